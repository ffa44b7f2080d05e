//! Activity of a target's devices and of the machine while a command runs.

use iosonde_job::plan::Plan;
use iosonde_machine::device_watch::{DeviceSampler, MachineSampler};
use iosonde_machine::host::describe_host;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_report::json_document::PROGRAM;
use iosonde_result::host::TargetInfo;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::machine::{DeviceRates, MachineSeries, MachineSlice};
use iosonde_result::run::{FORMAT, RunResult};
use iosonde_result::spill_list::SpillList;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Length of a slice.
const SLICE: Duration = Duration::from_secs(1);

/// Samples the machine once per second.
pub(super) struct CommandWatch {
    started_at_ms: u64,
    target: Option<TargetInfo>,
    machine: MachineSampler,
    /// The target's own devices. `None` if it has none on this machine.
    devices: Option<DeviceSampler>,
    next: Instant,
    /// Sum of the slices so far.
    sampled_ns: u64,
    slices: SpillList<MachineSlice>,
    intervals: Intervals,
}

impl CommandWatch {
    /// Starts to watch the devices below a path.
    pub(super) fn begin(target: &str) -> CommandWatch {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        CommandWatch {
            started_at_ms: since.map_or(0, |since| since.as_millis() as u64),
            target: identify(Path::new(target)).ok(),
            machine: MachineSampler::begin(System::live()),
            devices: DeviceSampler::begin(System::live(), &[target.to_owned()]).ok(),
            next: Instant::now() + SLICE,
            sampled_ns: 0,
            slices: SpillList::default(),
            intervals: Intervals::default(),
        }
    }

    /// Takes a sample if a second has passed.
    pub(super) fn sample_if_due(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.sample();
            // A late sample is not made up for.
            self.next = (self.next + SLICE).max(now);
        }
    }

    /// Takes the last sample.
    pub(super) fn finish(&mut self) {
        self.sample();
        if let Some(devices) = &mut self.devices {
            devices.sample();
        }
    }

    fn sample(&mut self) {
        let mut slice = self.machine.sample();
        slice.start_ns = self.sampled_ns;
        let target = self.target.as_ref();
        let own = target.map_or(Vec::new(), TargetInfo::all_devices);
        slice
            .devices
            .retain(|name, _| own.iter().any(|device| device.name == *name));
        self.sampled_ns += slice.length_ns;
        self.intervals.push(Interval {
            start_ns: slice.start_ns,
            length_ns: slice.length_ns,
            ..Interval::default()
        });
        self.slices.push(slice);
    }

    /// Returns the activity of the target's devices over the whole time.
    pub(super) fn devices(&self) -> Vec<(String, DeviceRates)> {
        let devices = self.devices.as_ref();
        devices.map_or(Vec::new(), |devices| devices.average().rows)
    }

    /// Returns the run of the machine, without I/O of iosonde's own.
    pub(super) fn into_run(self, plan: &Plan, elapsed_ns: u64, notes: Vec<String>) -> RunResult {
        RunResult {
            format: FORMAT,
            program: PROGRAM.to_owned(),
            started_at_ms: self.started_at_ms,
            elapsed_ns,
            plan: plan.clone(),
            host: describe_host(&System::live()),
            targets: self.target.into_iter().collect(),
            labels: Default::default(),
            workers: Vec::new(),
            neighbours: Vec::new(),
            disks: Vec::new(),
            intervals: self.intervals,
            series: MachineSeries {
                slices: self.slices,
                ..MachineSeries::default()
            },
            pods: Vec::new(),
            shared_file: None,
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            caches: Vec::new(),
            events: Vec::new(),
            verdicts: Vec::new(),
            notes,
        }
    }
}
