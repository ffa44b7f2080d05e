//! Times of the machine's processors: user, system, idle, iowait and steal.

use super::proc_root::System;
use iosonde_result::machine::{CpuShares, hundredths};
use std::collections::BTreeMap;

/// Times of all processors together since boot, in kernel ticks. Guests' time is part of `user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Programs, including those with low priority.
    pub user: u64,
    /// The kernel, including interrupts.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while I/O was in flight.
    pub iowait: u64,
    /// Stolen by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// Reads `/proc/stat`.
    pub fn take(system: &System) -> Option<Self> {
        Self::parse(&system.text("/proc/stat")?)
    }

    /// Parses the first line of `/proc/stat`: user nice system idle iowait irq softirq steal ...
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        (fields.len() >= 4).then(|| Self {
            user: at(0).saturating_add(at(1)),
            system: at(2).saturating_add(at(5)).saturating_add(at(6)),
            idle: at(3),
            iowait: at(4),
            steal: at(7),
        })
    }

    /// Reads the times of each processor, by its number.
    pub(crate) fn take_each(system: &System) -> BTreeMap<u32, Self> {
        system
            .text("/proc/stat")
            .map(|text| Self::parse_each(&text))
            .unwrap_or_default()
    }

    /// Parses the lines of single processors: `cpu0`, `cpu1`, ...
    fn parse_each(text: &str) -> BTreeMap<u32, Self> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("cpu"));
        lines
            .filter_map(|line| {
                let (number, _) = line.split_once(' ')?;
                let of_all = format!("cpu {}", line.strip_prefix(number)?);
                Some((number.parse().ok()?, Self::parse(&of_all)?))
            })
            .collect()
    }

    fn total_ticks(&self) -> f64 {
        let all = [self.user, self.system, self.idle, self.iowait, self.steal];
        all.into_iter().map(|ticks| ticks as f64).sum()
    }

    /// Share of time in which a processor had nothing to run, in per cent. Time in iowait is idle
    /// too. `None` if no time has passed.
    pub fn idle_percent(&self) -> Option<f64> {
        let (idle, all) = (self.idle as f64 + self.iowait as f64, self.total_ticks());
        (all > 0.0).then(|| hundredths(100.0 * idle / all))
    }

    /// The difference of two readings. iowait and, on some hypervisors, steal can decrease a
    /// little.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            idle: self.idle.saturating_sub(before.idle),
            iowait: self.iowait.saturating_sub(before.iowait),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Shares of the total; `None` if no time has passed.
    pub fn shares(&self) -> Option<CpuShares> {
        let all = self.total_ticks();
        let share = |ticks: u64| hundredths(100.0 * ticks as f64 / all);
        (all > 0.0).then(|| CpuShares {
            user: share(self.user),
            system: share(self.system),
            iowait: share(self.iowait),
            steal: share(self.steal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_shares_are_percent_of_the_elapsed_time() {
        let before = CpuTimes::parse(
            "cpu  1554421 96097 249717 1787320 78445 0 13689 2277 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
        );
        let after = CpuTimes::parse("cpu  1554471 96107 249747 1787410 78445 4 13695 2287 0 0\n");
        let shares = after.unwrap().since(&before.unwrap()).shares().unwrap();
        assert_eq!(
            (shares.user, shares.system, shares.iowait, shares.steal),
            (30.0, 20.0, 0.0, 5.0)
        );
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        let times = CpuTimes::parse("cpu  1 2 3 4\n").unwrap();
        assert_eq!((times.user, times.steal), (3, 0));
        assert_eq!(CpuTimes::parse("cpu0 1 2 3 4\n"), None);
        assert_eq!(CpuTimes::default().shares(), None);
    }

    #[test]
    fn cpu_times_are_per_processor_with_iowait_as_idle() {
        let before =
            CpuTimes::parse_each("cpu  0 0 0 0 0\ncpu0 0 0 0 0 0\ncpu12 5 0 0 5 0\nintr 7\n");
        let after = CpuTimes::parse_each("cpu  9 9 9 9 9\ncpu0 10 0 10 60 20\ncpu12 5 0 0 5 0\n");
        assert_eq!(before.keys().copied().collect::<Vec<_>>(), [0, 12]);
        assert_eq!(after[&0].since(&before[&0]).idle_percent(), Some(80.0));
        assert_eq!(after[&12].since(&before[&12]).idle_percent(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_cpu_times_never_panic(text in "\\PC*", numbers in "cpu [0-9 ]*") {
            CpuTimes::parse(&text);
            let _ = CpuTimes::parse(&numbers.chars().take(100).collect::<String>());
        }
    }
}
