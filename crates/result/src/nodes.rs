//! Disk activity of nodes that were watched during a run elsewhere, such as its servers.

use crate::interval::Intervals;
use crate::machine::{DeviceRates, MachineSeries};
use crate::run::{RunResult, Verdict, VerdictKind};
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Utilisation in per cent from which on a disk counts as saturated.
const BUSY_PERCENT: f64 = 90.0;
/// Smallest share of the run's bytes that a saturated disk moves to count as the bottleneck.
const LEAST_SHARE: f64 = 0.5;
/// Utilisation in per cent up to which a disk counts as mostly idle.
const IDLE_PERCENT: f64 = 50.0;

/// Disk activity of one node during a run on other machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeResult {
    /// Name of the node.
    pub node: String,
    /// Reason for watching the node, in a few words.
    pub why: String,
    /// Whether the node is known to serve the volume.
    #[serde(default)]
    pub serves: bool,
    /// Time series of all disks of the node.
    pub series: MachineSeries,
}

impl NodeResult {
    /// Returns the activity of each disk, averaged over the whole time.
    pub fn averages(&self) -> BTreeMap<String, DeviceRates> {
        let mut sums: BTreeMap<String, ([f64; 8], f64)> = BTreeMap::new();
        for slice in &self.series.slices {
            let seconds = slice.length_ns as f64 / 1e9;
            for (name, rates) in &slice.devices {
                let (sum, of_requests) = sums.entry(name.clone()).or_default();
                let requests = rates.tps * seconds;
                let columns = rates.columns();
                // Request size and await are weighted by requests, all other columns by time.
                let weights = [
                    seconds, seconds, seconds, seconds, requests, seconds, requests, seconds,
                ];
                for (sum, (column, weight)) in sum.iter_mut().zip(columns.into_iter().zip(weights))
                {
                    *sum += column * weight;
                }
                *of_requests += requests;
            }
        }
        let slices = self.series.slices.iter();
        let seconds: f64 = slices.map(|slice| slice.length_ns as f64 / 1e9).sum();
        let mean = |(name, (sum, requests)): (String, ([f64; 8], f64))| {
            let of = |index: usize| match index {
                4 | 6 if requests > 0.0 => sum[index] / requests,
                4 | 6 => 0.0,
                _ => sum[index] / seconds.max(1e-9),
            };
            let rates = DeviceRates {
                tps: of(0),
                read_kib_s: of(1),
                write_kib_s: of(2),
                discard_kib_s: of(3),
                request_kib: of(4),
                queue: of(5),
                await_ms: of(6),
                util_percent: of(7),
            };
            (name, rates.rounded())
        };
        sums.into_iter().map(mean).collect()
    }

    /// Returns the disk with the highest utilisation. `None` if no disk was active.
    pub fn busiest(&self) -> Option<(String, DeviceRates)> {
        let averages = self.averages().into_iter();
        averages.max_by(|(_, a), (_, b)| a.util_percent.total_cmp(&b.util_percent))
    }
}

/// Adds the activity of the watched nodes to each network verdict.
///
/// If the server's disks are idle, the clients wait for the network or the server process. If one
/// is saturated and moves the clients' bytes, the verdict names the device.
pub fn judge(result: &mut RunResult) {
    let per_s = bytes_per_s(&result.intervals);
    let Some(side) = ServerSide::of(&result.nodes, per_s) else {
        return;
    };
    let of_pods = result.pods.iter_mut().flat_map(|pod| &mut pod.verdicts);
    let verdicts = result.verdicts.iter_mut().chain(of_pods);
    for verdict in verdicts.filter(|verdict| verdict.kind == VerdictKind::Network) {
        side.join(verdict);
    }
}

fn bytes_per_s(intervals: &Intervals) -> f64 {
    let mut sums = (0, 0);
    for interval in intervals.iter().filter(|interval| !interval.ramp) {
        let moved = interval.directions.iter().map(|(_, counts)| counts.bytes);
        sums = (sums.0 + moved.sum::<u64>(), sums.1 + interval.length_ns);
    }
    sums.0 as f64 * 1e9 / sums.1.max(1) as f64
}

/// Conclusion from the disks of the watched nodes.
struct ServerSide {
    kind: VerdictKind,
    evidence: String,
}

impl ServerSide {
    fn of(nodes: &[NodeResult], bytes_per_s: f64) -> Option<ServerSide> {
        let node = nodes.iter().max_by(|a, b| {
            let util =
                |node: &NodeResult| node.busiest().map_or(0.0, |(_, rates)| rates.util_percent);
            // If two nodes are equally busy, the one that serves the volume decides.
            util(a).total_cmp(&util(b)).then(a.serves.cmp(&b.serves))
        })?;
        let name = match node.serves {
            true => format!("{}, which serves the volume", node.node),
            false => format!("{}, which was watched", node.node),
        };
        let Some((disk, rates)) = node.busiest() else {
            return Some(ServerSide {
                kind: VerdictKind::Network,
                evidence: format!("no disk of {name}, did anything"),
            });
        };
        let busy = format!(
            "{disk} of {name}, was busy {:.0} % of the time with {} in flight and {} for each request",
            rates.util_percent,
            words::three_digits(rates.queue),
            words::latency(rates.await_ms * 1e6),
        );
        // A disk that is busy with other work does not limit this run.
        let moved_per_s = (rates.read_kib_s + rates.write_kib_s) * 1024.0;
        let is_its_work = moved_per_s >= LEAST_SHARE * bytes_per_s;
        Some(match rates.util_percent {
            percent if percent >= BUSY_PERCENT && is_its_work => ServerSide {
                kind: VerdictKind::Device,
                evidence: busy,
            },
            percent if percent <= IDLE_PERCENT && node.serves => ServerSide {
                kind: VerdictKind::Network,
                evidence: format!("{busy}: not the disk"),
            },
            _ => ServerSide {
                kind: VerdictKind::Network,
                evidence: busy,
            },
        })
    }

    fn join(&self, verdict: &mut Verdict) {
        verdict.evidence = match self.kind {
            VerdictKind::Device => {
                format!("the callers waited for a server, and {}", self.evidence)
            }
            _ => format!("{}; {}", verdict.evidence, self.evidence),
        };
        verdict.kind = self.kind;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::machine::MachineSlice;
    use iosonde_job::plan::{Direction, Plan};

    fn slice(seconds: u64, tps: f64, await_ms: f64, util_percent: f64) -> MachineSlice {
        let rates = DeviceRates {
            tps,
            await_ms,
            util_percent,
            read_kib_s: tps * 4.0,
            request_kib: 4.0,
            queue: tps * await_ms / 1e3,
            ..DeviceRates::default()
        };
        MachineSlice {
            length_ns: seconds * 1_000_000_000,
            devices: [
                ("sdb".to_owned(), rates),
                ("sda".to_owned(), DeviceRates::default()),
            ]
            .into(),
            ..MachineSlice::default()
        }
    }

    fn node(slices: Vec<MachineSlice>) -> NodeResult {
        NodeResult {
            node: "n1".to_owned(),
            why: "serves the volume from 10.0.0.5".to_owned(),
            serves: true,
            series: MachineSeries {
                slices: slices.into(),
                ..MachineSeries::default()
            },
        }
    }

    #[test]
    fn means_are_of_time_and_those_of_requests_of_requests() {
        let node = node(vec![slice(1, 100.0, 1.0, 10.0), slice(3, 300.0, 5.0, 50.0)]);
        let (name, rates) = node.busiest().unwrap();
        assert_eq!(name, "sdb");
        assert_eq!((rates.tps, rates.util_percent), (250.0, 40.0));
        assert_eq!(rates.await_ms, 4.6, "(100 x 1 + 900 x 5) / 1000");
        assert_eq!(node.averages()["sda"], DeviceRates::default());
    }

    pub(crate) fn empty() -> RunResult {
        RunResult {
            format: crate::run::FORMAT,
            program: String::new(),
            started_at_ms: 0,
            elapsed_ns: 0,
            plan: Plan {
                jobs: Vec::new(),
                global_options: Vec::new(),
            },
            host: Default::default(),
            targets: Vec::new(),
            labels: BTreeMap::new(),
            workers: Vec::new(),
            disks: Vec::new(),
            intervals: Intervals::default(),
            series: Default::default(),
            pods: Vec::new(),
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            events: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the network verdict of clients that move as many bytes per second as 100 requests of
    /// 4 KiB, after judging it together with this node.
    fn judged(node: NodeResult, kind: VerdictKind) -> Verdict {
        let mut interval = Interval {
            length_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.directions[Direction::Read].bytes = 100 * 4096;
        let mut result = RunResult {
            verdicts: vec![Verdict {
                kind,
                evidence: "the callers waited".to_owned(),
            }],
            intervals: vec![interval].into(),
            nodes: vec![node],
            ..empty()
        };
        judge(&mut result);
        result.verdicts.swap_remove(0)
    }

    #[test]
    fn both_sides_tell_the_network_from_the_servers_disk() {
        let busy = |percent, tps| node(vec![slice(1, tps, 1.0, percent)]);
        let network = VerdictKind::Network;
        let far = judged(busy(3.0, 100.0), network);
        assert_eq!(far.kind, network);
        let words = "sdb of n1, which serves the volume, was busy 3 %";
        assert!(far.evidence.contains(words), "{far:?}");
        assert!(far.evidence.ends_with("not the disk"), "{far:?}");
        let full = judged(busy(98.0, 100.0), network);
        assert_eq!(full.kind, VerdictKind::Device);
        let words = "the callers waited for a server, and sdb";
        assert!(full.evidence.starts_with(words), "{full:?}");
        let between = judged(busy(70.0, 100.0), network);
        assert_eq!(between.kind, network);
        assert!(!between.evidence.contains("not the disk"), "{between:?}");
        let other = judged(busy(3.0, 100.0), VerdictKind::QueueDepth);
        assert_eq!(other.evidence, "the callers waited", "no business of it");
    }

    #[test]
    fn what_is_not_known_to_be_the_cause_is_not_called_so() {
        let network = VerdictKind::Network;
        // A disk that is busy with other work.
        let others = judged(node(vec![slice(1, 10.0, 100.0, 99.0)]), network);
        assert_eq!(others.kind, network, "{others:?}");
        // A node that the user named does not necessarily serve the volume.
        let asked = NodeResult {
            serves: false,
            ..node(vec![slice(1, 10.0, 1.0, 1.0)])
        };
        let asked = judged(asked, network);
        assert!(!asked.evidence.contains("not the disk"), "{asked:?}");
        assert!(
            asked.evidence.contains("n1, which was watched"),
            "{asked:?}"
        );
        // Idle disks are left out of the slices.
        let still = MachineSlice {
            devices: BTreeMap::new(),
            ..slice(1, 0.0, 0.0, 0.0)
        };
        let still = judged(node(vec![still]), network);
        assert!(still.evidence.contains("no disk of n1"), "{still:?}");
    }
}
