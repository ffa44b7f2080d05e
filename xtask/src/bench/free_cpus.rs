//! Processors that other programs leave free.

use anyhow::{Context, Result};
use std::time::Duration;

/// Time between two readings of the kernel's counters.
const SAMPLE: Duration = Duration::from_millis(500);

/// Least processors free for two workers: the kernel's own work leaves no processor idle all the
/// time.
const LEAST_FOR_TWO_WORKERS: f64 = 1.8;

/// Processors that this process may use, and how many of them are idle.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreeCpus {
    allowed: usize,
    free: f64,
}

impl FreeCpus {
    /// Measures for half a second.
    pub(super) fn measure() -> Result<FreeCpus> {
        let read = || std::fs::read_to_string("/proc/stat").context("reading /proc/stat");
        let before = read()?;
        std::thread::sleep(SAMPLE);
        let after = read()?;
        let share = idle_share(&before, &after).context("/proc/stat has no CPU times")?;
        let allowed = allowed_cpus();
        Ok(FreeCpus {
            allowed,
            free: share * allowed as f64,
        })
    }

    /// The reason why two workers cannot have a processor each, if there is one.
    pub(super) fn refusal_of_two_workers(self) -> Option<String> {
        (self.free < LEAST_FOR_TWO_WORKERS).then(|| {
            format!(
                "two workers were not judged: {:.1} of {} processors were free",
                self.free, self.allowed
            )
        })
    }
}

/// Processors that this process may use.
pub(super) fn allowed_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Share of the CPU time between two texts of /proc/stat that was idle.
fn idle_share(before: &str, after: &str) -> Option<f64> {
    let (before, after) = (cpu_ticks(before)?, cpu_ticks(after)?);
    let idle = |ticks: &[u64]| ticks[3] + ticks[4];
    let all = |ticks: &[u64]| ticks.iter().sum::<u64>();
    let passed = all(&after).checked_sub(all(&before))?;
    // The kernel may lower the time of waits for I/O.
    let was_idle = idle(&after).saturating_sub(idle(&before));
    (passed > 0).then(|| (was_idle as f64 / passed as f64).min(1.0))
}

/// Ticks of all CPUs from user time to stolen time. Guests count as user time.
fn cpu_ticks(text: &str) -> Option<Vec<u64>> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    (ticks.len() == 8).then_some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_share_counts_waits_and_leaves_out_guests() {
        let before = "cpu  100 0 100 1000 100 0 0 0 50 0\ncpu0 1 2\n";
        let after = "cpu  150 0 150 1250 150 0 0 0 90 0\ncpu0 1 2\n";
        assert_eq!(idle_share(before, after), Some(0.75));
        assert_eq!(idle_share(after, before), None, "the ticks go forward");
        assert_eq!(idle_share(before, before), None);
        assert_eq!(idle_share("cpu  1 2 3\n", after), None);
    }

    #[test]
    fn two_workers_need_two_free_processors() {
        let refusal = |allowed, free| FreeCpus { allowed, free }.refusal_of_two_workers();
        assert_eq!(refusal(2, 1.95), None);
        assert_eq!(
            refusal(2, 1.34).unwrap(),
            "two workers were not judged: 1.3 of 2 processors were free"
        );
        assert!(refusal(1, 1.0).is_some());
    }
}
