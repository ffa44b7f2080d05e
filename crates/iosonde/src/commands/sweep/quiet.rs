//! A cell begins when the device is quiet: what the one before left behind, and what others do, would be in its figures.

use crate::signals::Stop;
use iosonde_engine::device::diskstats::Snapshot;
use iosonde_engine::device::identify::identify;
use iosonde_engine::device::system::System;
use iosonde_result::host::DeviceNumber;
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

/// Waits, and remembers how long.
pub(super) struct Gate {
    devices: Vec<DeviceNumber>,
    stop: Stop,
    waited: Duration,
    /// Cells that began although the device was busy.
    in_vain: u32,
}

impl Gate {
    /// Watches the devices below the targets. Where there is none (simulated, in memory, over a network) nothing is waited for.
    pub(super) fn new(targets: &[SweepTarget], stop: Stop) -> Gate {
        let real = targets
            .iter()
            .filter(|target| !matches!(target.kind, TargetKind::Simulated { .. }))
            // The path of a target in a cluster is one of its pod.
            .filter(|target| !target.name.contains("://"));
        let found = real.filter_map(|target| identify(Path::new(&target.path)).ok());
        let numbers = found.flat_map(|info| info.devices.into_iter().map(|device| device.number));
        Gate {
            devices: numbers.collect(),
            stop,
            waited: Duration::ZERO,
            in_vain: 0,
        }
    }

    /// Returns when all devices are quiet, when that takes too long, or when the user wants the end.
    pub(super) fn wait(&mut self) {
        if self.devices.is_empty() || self.in_vain >= MOST_IN_VAIN {
            return;
        }
        let system = System::live();
        let began = Instant::now();
        let mut before = (began, Snapshot::take(&system));
        loop {
            std::thread::sleep(LOOK);
            let now = (Instant::now(), Snapshot::take(&system));
            let since = now.1.since(&before.1);
            let elapsed = now.0.duration_since(before.0);
            let is_quiet = self.devices.iter().all(|device| {
                let counters = since.get(*device);
                counters.is_none_or(|counters| counters.busy_percent(elapsed) < QUIET_PERCENT)
            });
            if is_quiet || self.stop.interrupt.is_requested() {
                break;
            }
            if began.elapsed() >= MOST {
                self.in_vain += 1;
                break;
            }
            before = now;
        }
        // One look is no wait.
        self.waited += began.elapsed().saturating_sub(LOOK * 2);
    }

    /// What the user should know of it.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.waited >= Duration::from_secs(1) {
            let waited = words::wait(self.waited.as_nanos() as u64);
            notes.push(format!(
                "{waited} were spent waiting for the device to be quiet before a cell"
            ));
        }
        match self.in_vain {
            0 => {}
            MOST_IN_VAIN.. => notes.push(format!(
                "the device was in use by others before {MOST_IN_VAIN} cells for {} each, and was not waited for any more",
                words::wait(MOST.as_nanos() as u64)
            )),
            cells => notes.push(format!("{cells} cells began while the device was in use by others")),
        }
        notes
    }
}
