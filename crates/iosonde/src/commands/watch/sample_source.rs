//! Where `iosonde watch` takes its samples: this machine, or nodes of a cluster.

use super::watch_sample::{NfsActivity, WatchSample, WatchedDevice, WatchedMachine};
use crate::failure::CommandError;
use iosonde_cluster::NodeSession;
use iosonde_machine::device_watch::DeviceSampler;
use iosonde_machine::machine_snapshot::{MachineSnapshot, SnapshotSources};
use iosonde_machine::nfs_stats::NfsSampler;
use iosonde_machine::proc_root::System;
use iosonde_result::machine::hundredths;
use jiff::Timestamp;

/// Takes one sample per interval.
pub(super) trait SampleSource {
    /// Returns the counts since the last sample.
    fn sample(&mut self) -> Result<WatchSample, CommandError>;
}

/// This machine.
pub(super) struct LocalSource {
    devices: DeviceSampler,
    sources: SnapshotSources,
    last: MachineSnapshot,
    nfs: NfsSampler,
    /// Devices that the user names.
    named: Vec<String>,
}

impl LocalSource {
    /// Starts sampling.
    ///
    /// # Errors
    /// If a word is not a device or a path on one.
    pub(super) fn begin(named: &[String]) -> Result<LocalSource, CommandError> {
        let system = System::live();
        let devices = DeviceSampler::begin(system.clone(), named).map_err(|word| {
            CommandError::usage(
                format!("{word} is neither a block device nor a path on one"),
                "lsblk lists the block devices; without a name, iosonde watch shows all disks",
            )
        })?;
        let sources = SnapshotSources::find(system.clone());
        Ok(LocalSource {
            devices,
            last: sources.read(),
            sources,
            nfs: NfsSampler::begin(system),
            named: named.to_vec(),
        })
    }
}

impl SampleSource for LocalSource {
    fn sample(&mut self) -> Result<WatchSample, CommandError> {
        let (elapsed, rows) = self.devices.sample_requests();
        if rows.is_empty() && !self.named.is_empty() {
            return Err(CommandError::Io(format!(
                "{} no longer exists",
                self.named.join(" ")
            )));
        }
        let now = self.sources.read();
        let slice = now.slice_since(&self.last, &[]);
        let throttled = now.cpu_throttled_ns.zip(self.last.cpu_throttled_ns);
        let machine_ns = now.elapsed_since(&self.last).as_nanos().max(1);
        let throttled_percent = throttled.map(|(now_ns, before_ns)| {
            hundredths(100.0 * now_ns.saturating_sub(before_ns) as f64 / machine_ns as f64)
        });
        self.last = now;
        let device = |(name, requests)| WatchedDevice { name, requests };
        let machine = WatchedMachine {
            node: None,
            elapsed_ns: elapsed.as_nanos() as u64,
            devices: rows.into_iter().map(device).collect(),
            cpu: slice.cpu,
            pressure: slice.pressure,
            throttled_percent,
            network: slice.network,
            nfs: self
                .nfs
                .sample()
                .iter()
                .map(NfsActivity::of_mount)
                .collect(),
        };
        Ok(WatchSample {
            at: now_text(),
            machines: vec![machine],
        })
    }
}

/// Nodes of a cluster.
pub(super) struct NodeSource<'w> {
    session: NodeSession<'w>,
    /// Devices that the user names. If empty: all.
    named: Vec<String>,
}

impl<'w> NodeSource<'w> {
    /// Takes samples of a session.
    pub(super) fn new(session: NodeSession<'w>, named: &[String]) -> NodeSource<'w> {
        NodeSource {
            session,
            named: named.to_vec(),
        }
    }
}

impl SampleSource for NodeSource<'_> {
    fn sample(&mut self) -> Result<WatchSample, CommandError> {
        let mut machines = Vec::new();
        for sample in self.session.sample() {
            if let Some(message) = sample.message {
                eprintln!("note: {message}");
            }
            // A slice without length only starts sampling, after a lost connection.
            if let Some(slice) = sample.slice.filter(|slice| slice.length_ns > 0) {
                machines.push(WatchedMachine::of_node(sample.node, slice));
            }
        }
        let mut sample = WatchSample {
            at: now_text(),
            machines,
        };
        sample.keep_devices(&self.named);
        Ok(sample)
    }
}

fn now_text() -> String {
    Timestamp::now().to_string()
}
