//! Sample of `iosonde watch`: the counts of each machine in an interval. Recordings hold samples.

use iosonde_result::device_requests::DeviceRequests;
use iosonde_result::machine::{CpuShares, MachineSlice, Pressure, Pressures};
use iosonde_result::network::NetworkRates;
use iosonde_result::nfs::NfsSide;
use serde::{Deserialize, Serialize};

/// Counts of an interval, or the sum of several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WatchSample {
    /// End of the interval, as RFC 3339 writes it.
    pub(super) at: String,
    /// This machine, or the watched nodes that answered.
    pub(super) machines: Vec<WatchedMachine>,
}

/// Counts of one machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WatchedMachine {
    /// Name of the node of a cluster. `None` is this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    /// Length of the time.
    pub(super) elapsed_ns: u64,
    /// Devices. Those of nodes are left out while they are idle.
    #[serde(default)]
    pub(super) devices: Vec<WatchedDevice>,
    /// Use of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuShares>,
    /// Pressure stall information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pressure: Option<Pressures>,
    /// Share of the time in which control groups throttled iosonde's processors. `None` without a
    /// CPU quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) throttled_percent: Option<f64>,
    /// Network interfaces, TCP and storage protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<NetworkRates>,
    /// NFS mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) nfs: Vec<NfsActivity>,
}

/// A device and its requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct WatchedDevice {
    /// Its kernel name.
    pub(super) name: String,
    /// Its requests.
    pub(super) requests: DeviceRequests,
}

/// Counts of the client of an NFS mount.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NfsActivity {
    /// Directory where it is mounted.
    pub(super) mount_point: String,
    /// Operations of all kinds.
    pub(super) ops: u64,
    /// Operations that read.
    pub(super) reads: u64,
    /// Sum of their round-trip times, in milliseconds.
    pub(super) read_rtt_ms: u64,
    /// Operations that write.
    pub(super) writes: u64,
    /// Sum of their round-trip times, in milliseconds.
    pub(super) write_rtt_ms: u64,
    /// Bytes read from the server.
    pub(super) read_bytes: u64,
    /// Bytes written to the server.
    pub(super) written_bytes: u64,
    /// Requests sent again.
    pub(super) retransmits: u64,
}

impl WatchSample {
    /// Adds a later sample: requests are summed, shares and rates averaged over the time.
    pub(super) fn add(&mut self, later: &WatchSample) {
        self.at.clone_from(&later.at);
        for machine in &later.machines {
            let mut known = self.machines.iter_mut();
            match known.find(|known| known.node == machine.node) {
                Some(sum) => sum.add(machine),
                None => self.machines.push(machine.clone()),
            }
        }
    }

    /// Returns all devices of all machines as one: requests are summed, and the utilisation is the
    /// mean, as `iostat -g` prints it.
    pub(super) fn total(&self) -> WatchSample {
        let mut requests: Option<DeviceRequests> = None;
        let devices = self.machines.iter().flat_map(|machine| &machine.devices);
        let mut count: u64 = 0;
        for device in devices {
            count += 1;
            match &mut requests {
                Some(sum) => sum.add(&device.requests),
                None => requests = Some(device.requests),
            }
        }
        let mut requests = requests.unwrap_or_default();
        requests.busy_ms /= count.max(1);
        let machines = self.machines.len().max(1) as u64;
        let lengths_ns = self.machines.iter().map(|machine| machine.elapsed_ns);
        let elapsed_ns = lengths_ns.fold(0, u64::saturating_add);
        WatchSample {
            at: self.at.clone(),
            machines: vec![WatchedMachine {
                elapsed_ns: elapsed_ns / machines,
                devices: vec![WatchedDevice {
                    name: "total".to_owned(),
                    requests,
                }],
                ..WatchedMachine::default()
            }],
        }
    }

    /// Keeps only devices of these names. Without names all are kept.
    pub(super) fn keep_devices(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        for machine in &mut self.machines {
            machine.devices.retain(|device| {
                let plain = |name: &String| name.strip_prefix("/dev/") == Some(&*device.name);
                names.iter().any(|name| *name == device.name || plain(name))
            });
        }
    }
}

impl WatchedMachine {
    /// Returns the counts of the watcher of a node.
    pub(super) fn of_node(node: String, slice: MachineSlice) -> WatchedMachine {
        let device = |(name, requests)| WatchedDevice { name, requests };
        WatchedMachine {
            node: Some(node),
            elapsed_ns: slice.length_ns,
            devices: slice.requests.into_iter().map(device).collect(),
            cpu: slice.cpu,
            pressure: slice.pressure,
            network: slice.network,
            ..WatchedMachine::default()
        }
    }

    /// Returns the length of the time in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    fn add(&mut self, later: &WatchedMachine) {
        let (before_ns, later_ns) = (self.elapsed_ns as f64, later.elapsed_ns as f64);
        let mean = |a: f64, b: f64| {
            let whole_ns = before_ns + later_ns;
            match whole_ns > 0.0 {
                true => (a * before_ns + b * later_ns) / whole_ns,
                false => 0.0,
            }
        };
        self.cpu = either_or_mean(self.cpu, later.cpu, |a, b| CpuShares {
            user: mean(a.user, b.user),
            system: mean(a.system, b.system),
            iowait: mean(a.iowait, b.iowait),
            steal: mean(a.steal, b.steal),
        });
        let pressure = |a: Pressure, b: Pressure| Pressure {
            some: mean(a.some, b.some),
            full: mean(a.full, b.full),
        };
        self.pressure = either_or_mean(self.pressure, later.pressure, |a, b| Pressures {
            io: either_or_mean(a.io, b.io, pressure),
            cpu: either_or_mean(a.cpu, b.cpu, pressure),
            memory: either_or_mean(a.memory, b.memory, pressure),
        });
        self.throttled_percent =
            either_or_mean(self.throttled_percent, later.throttled_percent, mean);
        self.network = match (&self.network, &later.network) {
            (Some(a), Some(b)) => {
                let spans = [(self.elapsed_ns, a), (later.elapsed_ns, b)];
                NetworkRates::mean(spans.into_iter())
            }
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        self.add_counts(later);
        self.elapsed_ns = self.elapsed_ns.saturating_add(later.elapsed_ns);
    }

    fn add_counts(&mut self, later: &WatchedMachine) {
        for device in &later.devices {
            let mut known = self.devices.iter_mut();
            match known.find(|known| known.name == device.name) {
                Some(sum) => sum.requests.add(&device.requests),
                None => self.devices.push(device.clone()),
            }
        }
        for mount in &later.nfs {
            let mut known = self.nfs.iter_mut();
            match known.find(|known| known.mount_point == mount.mount_point) {
                Some(sum) => sum.add(mount),
                None => self.nfs.push(mount.clone()),
            }
        }
    }
}

impl NfsActivity {
    /// Sums the counters of a mount.
    pub(super) fn of_mount(side: &NfsSide) -> NfsActivity {
        let op = |name: &str| side.ops.get(name).copied().unwrap_or_default();
        let (read, write) = (op("READ"), op("WRITE"));
        NfsActivity {
            mount_point: side.mount_point.clone(),
            ops: side.ops.values().map(|op| op.ops).sum(),
            reads: read.ops,
            read_rtt_ms: read.rtt_ms,
            writes: write.ops,
            write_rtt_ms: write.rtt_ms,
            read_bytes: side.bytes.server_read,
            written_bytes: side.bytes.server_written,
            retransmits: side.retransmissions(),
        }
    }

    fn counts(&mut self) -> [&mut u64; 8] {
        [
            &mut self.ops,
            &mut self.reads,
            &mut self.read_rtt_ms,
            &mut self.writes,
            &mut self.write_rtt_ms,
            &mut self.read_bytes,
            &mut self.written_bytes,
            &mut self.retransmits,
        ]
    }

    fn add(&mut self, later: &NfsActivity) {
        let mut later = later.clone();
        for (sum, more) in self.counts().into_iter().zip(later.counts()) {
            *sum = sum.saturating_add(*more);
        }
    }
}

/// Returns the mean of two figures, or the one that is known.
fn either_or_mean<T: Copy>(a: Option<T>, b: Option<T>, mean: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(mean(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use iosonde_result::device_requests::RequestTotals;

    /// Returns a sample of one second of this machine, with two devices.
    pub(in crate::commands::watch) fn sample() -> WatchSample {
        let busy = DeviceRequests {
            reads: RequestTotals {
                ios: 97_543,
                merges: 0,
                sectors: 2_780_368,
                ticks_ms: 36_091,
            },
            writes: RequestTotals::default(),
            discards: Some(RequestTotals {
                ios: 3,
                merges: 0,
                sectors: 24,
                ticks_ms: 1,
            }),
            flushes: None,
            busy_ms: 545,
            in_queue_ms: 35_760,
        };
        let idle = DeviceRequests {
            discards: None,
            ..DeviceRequests::default()
        };
        let device = |name: &str, requests| WatchedDevice {
            name: name.to_owned(),
            requests,
        };
        WatchSample {
            at: "2026-11-21T06:44:04Z".to_owned(),
            machines: vec![WatchedMachine {
                elapsed_ns: 1_000_000_000,
                devices: vec![device("nvme0n1", busy), device("sda", idle)],
                pressure: Some(Pressures {
                    io: Some(Pressure {
                        some: 12.5,
                        full: 3.0,
                    }),
                    ..Pressures::default()
                }),
                throttled_percent: Some(4.0),
                ..WatchedMachine::default()
            }],
        }
    }

    #[test]
    fn sum_of_samples_weights_shares_by_time() {
        let mut sum = sample();
        let mut later = sample();
        later.machines[0].elapsed_ns = 3_000_000_000;
        later.machines[0].throttled_percent = Some(0.0);
        later.machines[0].pressure = None;
        later.machines[0].devices.remove(1);
        sum.add(&later);
        let machine = &sum.machines[0];
        assert_eq!(machine.elapsed_ns, 4_000_000_000);
        assert_eq!(machine.throttled_percent, Some(1.0));
        let io = machine.pressure.unwrap().io.unwrap();
        assert_eq!(io.some, 12.5, "not measured later");
        assert_eq!(machine.devices[0].requests.reads.ios, 2 * 97_543);
        assert_eq!(machine.devices.len(), 2);
        let mut empty = WatchSample::default();
        empty.add(&sum);
        assert_eq!(empty, sum);
    }

    #[test]
    fn total_sums_requests_and_averages_utilisation() {
        let mut two = sample();
        two.machines[0].devices[1].requests.reads.ios = 7;
        let total = two.total();
        let device = &total.machines[0].devices[0];
        assert_eq!(
            (&*device.name, device.requests.reads.ios),
            ("total", 97_550)
        );
        assert_eq!(device.requests.busy_ms, 272);
        assert_eq!(device.requests.flushes, None);
        assert_eq!(WatchSample::default().total().machines[0].elapsed_ns, 0);
    }

    #[test]
    fn only_named_devices_are_kept() {
        let mut all = sample();
        all.keep_devices(&[]);
        assert_eq!(all, sample());
        all.keep_devices(&["/dev/sda".to_owned()]);
        assert_eq!(all.machines[0].devices[0].name, "sda");
        assert_eq!(all.machines[0].devices.len(), 1);
    }

    #[test]
    fn node_sample_has_the_requests_of_its_slice() {
        let slice = MachineSlice {
            length_ns: 2,
            requests: [("sdb".to_owned(), DeviceRequests::default())].into(),
            ..MachineSlice::default()
        };
        let machine = WatchedMachine::of_node("n1".to_owned(), slice);
        assert_eq!(machine.node.as_deref(), Some("n1"));
        assert_eq!((machine.elapsed_ns, &*machine.devices[0].name), (2, "sdb"));
    }
}
