//! A cell begins when the device is quiet: what the one before left behind, and what others do, would be in its figures.

use crate::signals::Stop;
use iosonde_machine::diskstats::Snapshot;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_result::host::{DeviceNumber, Locality};
use iosonde_study::probe::TargetKind;
use iosonde_study::sweep::SweepTarget;
use iosonde_study::words;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the device is watched at a time.
const LOOK: Duration = Duration::from_millis(100);
/// A device that is busy for a smaller share of that is quiet.
const QUIET_PERCENT: f64 = 10.0;
/// Longest wait before one cell.
const MOST: Duration = Duration::from_secs(10);
/// After so many waits in vain there is no more waiting: others use the device all the time.
const MOST_IN_VAIN: u32 = 3;

/// Time that a sweep waits for a quiet device at most, in all: a quarter of what is planned for its runs, and
/// for one cell in any case.
pub(crate) fn most_waited(planned_ns: u64) -> Duration {
    Duration::from_nanos(planned_ns / 4).max(MOST)
}

/// Waits, and remembers how long.
pub(in crate::commands) struct Gate {
    devices: Vec<DeviceNumber>,
    /// Targets whose storage is elsewhere: what it does besides is not seen here.
    unseen: Vec<String>,
    stop: Stop,
    waits: Waits,
}

impl Gate {
    /// Watches the devices below the targets. Where there is none (simulated, in memory, over a network) nothing is waited for.
    /// All waits together take no more than [`most_waited`].
    pub(in crate::commands) fn new(targets: &[SweepTarget], stop: Stop, planned_ns: u64) -> Gate {
        let real = targets
            .iter()
            .filter(|target| !matches!(target.kind, TargetKind::Simulated { .. }));
        let (mut devices, mut unseen) = (Vec::new(), Vec::new());
        for target in real {
            // The path of a target in a cluster is one of its pod.
            let is_here = !target.name.contains("://");
            let found = is_here.then(|| identify(Path::new(&target.path)).ok());
            let found = found.flatten().unwrap_or_default();
            let is_memory =
                (found.mount.as_ref()).is_some_and(|mount| mount.locality == Locality::Memory);
            if found.devices.is_empty() && !is_memory {
                unseen.push(target.name.clone());
            }
            devices.extend(found.devices.into_iter().map(|device| device.number));
        }
        Gate {
            devices,
            unseen,
            stop,
            waits: Waits {
                most: most_waited(planned_ns),
                ..Waits::default()
            },
        }
    }

    /// Returns when all devices are quiet, when that takes too long, or when the user wants the end.
    pub(in crate::commands) fn wait(&mut self) {
        if self.devices.is_empty() {
            return;
        }
        let system = System::live();
        let began = Instant::now();
        let mut before = (began, Snapshot::take(&system));
        let (devices, stop) = (&self.devices, &self.stop);
        self.waits.until_quiet(|| {
            std::thread::sleep(LOOK);
            let now = (Instant::now(), Snapshot::take(&system));
            let since = now.1.since(&before.1);
            let elapsed = now.0.duration_since(before.0);
            before = now;
            let is_quiet = devices.iter().all(|device| {
                let counters = since.get(*device);
                counters.is_none_or(|counters| counters.busy_percent(elapsed) < QUIET_PERCENT)
            });
            let is_over = is_quiet || stop.interrupt.is_requested();
            (is_over, began.elapsed())
        });
    }

    /// What the user should know of it.
    pub(in crate::commands) fn notes(&self) -> Vec<String> {
        let mut notes = self.waits.notes();
        if !self.unseen.is_empty() {
            let named = self.unseen.join(", ");
            notes.push(format!(
                "no cell was waited for on {named}: whether others use its storage cannot be seen from here"
            ));
        }
        notes
    }
}

/// How long was waited, and how often in vain.
#[derive(Debug, Default)]
struct Waits {
    waited: Duration,
    /// Of all waits together.
    most: Duration,
    /// Cells that began although the device was busy.
    in_vain: u32,
}

impl Waits {
    /// Looks until a look says that the wait is over, or it has taken too long. A look also says how long it is since the first began.
    fn until_quiet(&mut self, mut look: impl FnMut() -> (bool, Duration)) {
        let most = MOST.min(self.most.saturating_sub(self.waited));
        if self.in_vain >= MOST_IN_VAIN || most < LOOK {
            return;
        }
        loop {
            let (is_over, elapsed) = look();
            if !is_over && elapsed < most {
                continue;
            }
            self.in_vain += u32::from(!is_over);
            // One look is no wait.
            self.waited += elapsed.saturating_sub(LOOK * 2);
            return;
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.waited >= Duration::from_secs(1) {
            let waited = words::wait(self.waited.as_nanos() as u64);
            notes.push(format!("waited {waited} for the device to become idle"));
        }
        match self.in_vain {
            0 => {}
            MOST_IN_VAIN.. => notes.push(format!(
                "the device was in use by others before {MOST_IN_VAIN} cells for {} each, and was not waited for any more",
                words::wait(MOST.as_nanos() as u64)
            )),
            1 => notes.push("1 cell began while the device was in use by others".to_owned()),
            cells => notes.push(format!(
                "{cells} cells began while the device was in use by others"
            )),
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told after some waits, of which each lasts for so many looks before the device is quiet. How many looks there were.
    fn after(waits: &[u32]) -> (Vec<String>, u32) {
        after_at_most(Duration::MAX, waits)
    }

    fn after_at_most(most: Duration, waits: &[u32]) -> (Vec<String>, u32) {
        let waits_at_most = Waits {
            most,
            ..Waits::default()
        };
        let (mut all, mut looks) = (waits_at_most, 0);
        for busy in waits {
            let mut count = 0;
            all.until_quiet(|| {
                count += 1;
                (count > *busy, LOOK * count)
            });
            looks += count;
        }
        (all.notes(), looks)
    }

    #[test]
    fn a_device_that_is_quiet_is_no_wait() {
        assert_eq!(after(&[0, 1, 0, 1]), (Vec::new(), 6));
    }

    #[test]
    fn storage_that_cannot_be_seen_is_named() {
        let target = |name: &str, kind: TargetKind| SweepTarget {
            name: name.to_owned(),
            path: "/data/file".to_owned(),
            kind,
            bytes: 1 << 30,
        };
        let options = "nvme".to_owned();
        let targets = [
            target("sc://fast", TargetKind::Directory { free_bytes: 1 }),
            target("rados://bench", TargetKind::Pool { free_bytes: 1 }),
            target("sim:nvme", TargetKind::Simulated { options }),
        ];
        let gate = Gate::new(&targets, Stop::default(), u64::MAX);
        let expected = "no cell was waited for on sc://fast, rados://bench: whether others use its storage cannot be seen from here";
        assert_eq!(gate.notes(), [expected]);
    }

    #[test]
    fn a_wait_is_told_and_bounded() {
        let most = (MOST.as_millis() / LOOK.as_millis()) as u32;
        let (notes, looks) = after(&[20]);
        assert_eq!(looks, 21);
        assert_eq!(notes, ["waited 2 s for the device to become idle"]);
        let (notes, looks) = after(&[u32::MAX]);
        assert_eq!(looks, most);
        assert_eq!(
            notes,
            [
                "waited 10 s for the device to become idle",
                "1 cell began while the device was in use by others"
            ]
        );
        // All waits together keep within what was announced.
        let (_, looks) = after_at_most(LOOK * 30, &[20, 20, 20]);
        assert!((30..=34).contains(&looks), "{looks}");
        let (notes, _) = after(&[u32::MAX, 0, u32::MAX]);
        assert_eq!(
            notes[1],
            "2 cells began while the device was in use by others"
        );
        // Others use it all the time: the rest begin at once.
        let (notes, looks) = after(&[u32::MAX; 20]);
        assert_eq!(looks, MOST_IN_VAIN * most);
        assert_eq!(
            notes[1],
            "the device was in use by others before 3 cells for 10 s each, and was not waited for any more"
        );
    }
}
