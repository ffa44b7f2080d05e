//! Pressure stall information (PSI): the time that processes waited for I/O, a processor or memory.
//!
//! `MachineSnapshot` reads it, and the engine's `series_sampler` records it for each interval.
//!
//! The kernel's Documentation/accounting/psi.rst describes the files.

use super::proc_root::System;
use iosonde_result::machine::{Pressure, Pressures, hundredths};
use std::time::Duration;

/// Stall times of one resource since boot, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PsiTotals {
    /// Time in which at least one task waited.
    some_us: u64,
    /// Time in which all non-idle tasks waited.
    full_us: u64,
}

/// Stall times of each resource; `None` if the kernel does not report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PsiSnapshot {
    io: Option<PsiTotals>,
    cpu: Option<PsiTotals>,
    memory: Option<PsiTotals>,
}

impl PsiTotals {
    /// Parses `/proc/pressure/X` or a control group's `X.pressure`.
    fn parse(text: &str) -> Option<Self> {
        let total = |sort: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(sort))?;
            line.split_ascii_whitespace()
                .find_map(|pair| pair.strip_prefix("total="))?
                .parse()
                .ok()
        };
        Some(Self {
            some_us: total("some ")?,
            // Older kernels have no such line for processors: at least one task always runs.
            full_us: total("full ").unwrap_or(0),
        })
    }

    fn since(&self, before: &Self, elapsed: Duration) -> Pressure {
        let share = |now: u64, before: u64| {
            let us = now.saturating_sub(before) as f64;
            hundredths(100.0 * us / (elapsed.as_secs_f64() * 1e6)).min(100.0)
        };
        Pressure {
            some: share(self.some_us, before.some_us),
            full: share(self.full_us, before.full_us),
        }
    }
}

impl PsiSnapshot {
    /// Reads `/proc/pressure`, or in a container without it, the files of the root cgroup.
    pub fn take(system: &System) -> Self {
        let read = |resource: &str| {
            let whole = system.text(format!("/proc/pressure/{resource}"));
            let text = whole.or_else(|| system.text(format!("/sys/fs/cgroup/{resource}.pressure")));
            PsiTotals::parse(&text?)
        };
        Self {
            io: read("io"),
            cpu: read("cpu"),
            memory: read("memory"),
        }
    }

    /// Whether the kernel reports no stall time at all.
    pub fn is_missing(&self) -> bool {
        *self == Self::default()
    }

    /// Shares of the time between two readings; `None` if no resource is reported.
    pub fn since(&self, before: &Self, elapsed: Duration) -> Option<Pressures> {
        let share = |now: Option<PsiTotals>, before: Option<PsiTotals>| {
            (!elapsed.is_zero()).then(|| Some(now?.since(&before?, elapsed)))?
        };
        let pressures = Pressures {
            io: share(self.io, before.io),
            cpu: share(self.cpu, before.cpu),
            memory: share(self.memory, before.memory),
        };
        (pressures != Pressures::default()).then_some(pressures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IO: &str = "some avg10=0.70 avg60=3.82 avg300=5.42 total=1143998346\n\
                      full avg10=0.00 avg60=2.33 avg300=3.70 total=489146702\n";

    #[test]
    fn psi_shares_are_growth_over_time() {
        let before = PsiTotals::parse(IO).unwrap();
        let after = PsiTotals {
            some_us: before.some_us + 500_000,
            full_us: before.full_us + 20_000,
        };
        let pressure = after.since(&before, Duration::from_secs(2));
        assert_eq!((pressure.some, pressure.full), (25.0, 1.0));
        assert_eq!(PsiTotals::parse("some total=7\n").unwrap().full_us, 0);
        assert_eq!(PsiTotals::parse("full total=7\n"), None);
    }

    #[test]
    fn psi_is_read_from_the_cgroup_in_a_container() {
        let root = tempfile::tempdir().unwrap();
        let system = System::captured(root.path());
        assert!(PsiSnapshot::take(&system).is_missing());
        let group = root.path().join("sys/fs/cgroup");
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("io.pressure"), IO).unwrap();
        let stalls = PsiSnapshot::take(&system);
        assert!(stalls.io.is_some() && stalls.cpu.is_none());
        let shares = stalls.since(&stalls, Duration::from_secs(1)).unwrap();
        assert_eq!(
            (shares.io, shares.memory),
            (Some(Pressure::default()), None)
        );
        assert_eq!(stalls.since(&stalls, Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn arbitrary_psi_text_never_panics(text in "\\PC*") {
            PsiTotals::parse(&text);
        }
    }
}
