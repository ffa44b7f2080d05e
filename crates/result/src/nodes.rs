//! Disk activity of nodes that were watched during a run elsewhere, such as its servers.

use crate::interval::Intervals;
use crate::run::{RunResult, Verdict, VerdictKind};
use crate::verdict_cause::{DiskLimit, ServerDisk, ServerNode, VerdictCause};
use crate::words;

pub use crate::node_result::NodeResult;

/// Utilisation in per cent from which on a disk counts as saturated.
const BUSY_PERCENT: f64 = 90.0;
/// Smallest share of the run's bytes that a saturated disk moves to count as the bottleneck.
const LEAST_SHARE: f64 = 0.5;
/// Utilisation in per cent up to which a disk counts as mostly idle.
const IDLE_PERCENT: f64 = 50.0;

/// Adds the activity of the watched nodes to each network verdict.
///
/// If the server's disks are idle, the clients wait for the network or the server process. If one
/// is saturated and moves the clients' bytes, the verdict names the device.
pub fn judge(result: &mut RunResult) {
    let per_s = bytes_per_s(&result.intervals);
    let Some(server) = busiest_server(&result.nodes, per_s) else {
        return;
    };
    let of_pods = result.pods.iter_mut().flat_map(|pod| &mut pod.verdicts);
    let verdicts = result.verdicts.iter_mut().chain(of_pods);
    for verdict in verdicts.filter(|verdict| verdict.kind == VerdictKind::Network) {
        add_server(verdict, &server);
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

/// Returns the busiest node with its busiest disk, and whether that disk limits the run.
fn busiest_server(nodes: &[NodeResult], bytes_per_s: f64) -> Option<ServerNode> {
    let node = nodes.iter().max_by(|a, b| {
        let util = |node: &NodeResult| node.busiest().map_or(0.0, |(_, rates)| rates.util_percent);
        // If two nodes are equally busy, the one that serves the volume decides.
        util(a).total_cmp(&util(b)).then(a.serves.cmp(&b.serves))
    })?;
    let server = |disk: Option<ServerDisk>, limit: DiskLimit| ServerNode {
        node: node.node.clone(),
        serves_volume: node.serves,
        disk,
        limit,
        network: node.network_load(),
    };
    let Some((name, rates)) = node.busiest() else {
        return Some(server(None, DiskLimit::Unknown));
    };
    // A disk that is busy with other work does not limit this run.
    let moved_per_s = (rates.read_kib_s + rates.write_kib_s) * 1024.0;
    let is_its_work = moved_per_s >= LEAST_SHARE * bytes_per_s;
    let limit = match rates.util_percent {
        percent if percent >= BUSY_PERCENT && is_its_work => DiskLimit::Limit,
        percent if percent <= IDLE_PERCENT && node.serves => DiskLimit::NoLimit,
        _ => DiskLimit::Unknown,
    };
    let disk = ServerDisk {
        name,
        busy_percent: rates.util_percent,
        queue: rates.queue,
        request_ns: rates.await_ms * 1e6,
    };
    Some(server(Some(disk), limit))
}

fn add_server(verdict: &mut Verdict, server: &ServerNode) {
    verdict.kind = server_kind(server);
    verdict.evidence = server_evidence(server, &verdict.evidence);
    verdict.cause = Some(VerdictCause::WatchedServer {
        server: server.clone(),
        wait: verdict.cause.take().map(Box::new),
    });
}

/// Returns the kind of verdict on a server: its disk, or the network and the server.
pub(crate) fn server_kind(server: &ServerNode) -> VerdictKind {
    match server.limit {
        DiskLimit::Limit => VerdictKind::Device,
        DiskLimit::NoLimit | DiskLimit::Unknown => VerdictKind::Network,
    }
}

/// Returns the evidence of a verdict on a watched server. `waited` is that of the workers' machine.
pub(crate) fn server_evidence(server: &ServerNode, waited: &str) -> String {
    let disk = disk_evidence(server, waited);
    match &server.network {
        Some(load) => format!("{disk}; on {}, {}", server.node, load.evidence_text()),
        None => disk,
    }
}

fn disk_evidence(server: &ServerNode, waited: &str) -> String {
    let name = match server.serves_volume {
        true => format!("{}, which serves the volume", server.node),
        false => format!("{}, which was watched", server.node),
    };
    let Some(disk) = &server.disk else {
        return format!("{waited}; no disk of {name}, had I/O");
    };
    let busy = format!(
        "{} of {name}, was busy {:.0} % of the time with {} in flight and {} for each request",
        disk.name,
        disk.busy_percent,
        words::three_digits(disk.queue),
        words::latency(disk.request_ns),
    );
    match server.limit {
        DiskLimit::Limit => format!("the workers waited for a server, and {busy}"),
        DiskLimit::NoLimit => format!("{waited}; {busy}: the disk is not the limit"),
        DiskLimit::Unknown => format!("{waited}; {busy}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::machine::{DeviceRates, MachineSeries, MachineSlice};
    use crate::network::{InterfaceRates, NetworkRates};
    use iosonde_job::plan::{Direction, Plan};
    use std::collections::BTreeMap;

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
    fn node_means_are_weighted_by_time_or_requests() {
        let node = node(vec![slice(1, 100.0, 1.0, 10.0), slice(3, 300.0, 5.0, 50.0)]);
        let (name, rates) = node.busiest().unwrap();
        assert_eq!(name, "sdb");
        assert_eq!((rates.tps, rates.util_percent), (250.0, 40.0));
        assert_eq!(rates.await_ms, 4.6, "(100 x 1 + 900 x 5) / 1000");
        assert_eq!(node.averages()["sda"], DeviceRates::default());
    }

    pub(crate) fn empty() -> RunResult {
        RunResult::unmeasured(Plan::default())
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
                cause: None,
            }],
            intervals: vec![interval].into(),
            nodes: vec![node],
            ..empty()
        };
        judge(&mut result);
        result.verdicts.swap_remove(0)
    }

    /// Returns the server that a verdict names.
    #[track_caller]
    fn server_of(verdict: &Verdict) -> &ServerNode {
        match &verdict.cause {
            Some(VerdictCause::WatchedServer { server, .. }) => server,
            cause => panic!("no server: {cause:?}"),
        }
    }

    #[test]
    fn server_disk_load_separates_network_from_device() {
        let busy = |percent, tps| node(vec![slice(1, tps, 1.0, percent)]);
        let network = VerdictKind::Network;
        let far = judged(busy(3.0, 100.0), network);
        assert_eq!(far.kind, network);
        let server = server_of(&far);
        assert_eq!((&*server.node, server.serves_volume), ("n1", true));
        assert_eq!(server.limit, DiskLimit::NoLimit);
        let disk = server.disk.as_ref().unwrap();
        assert_eq!((&*disk.name, disk.busy_percent), ("sdb", 3.0));
        let full = judged(busy(98.0, 100.0), network);
        assert_eq!(full.kind, VerdictKind::Device);
        assert_eq!(server_of(&full).limit, DiskLimit::Limit);
        let between = judged(busy(70.0, 100.0), network);
        assert_eq!(between.kind, network);
        assert_eq!(server_of(&between).limit, DiskLimit::Unknown);
        let other = judged(busy(3.0, 100.0), VerdictKind::QueueDepth);
        assert_eq!(other.cause, None, "no business of it");
    }

    #[test]
    fn unproven_server_disk_is_not_called_the_cause() {
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
        let server = server_of(&asked);
        assert_eq!(
            (server.serves_volume, server.limit),
            (false, DiskLimit::Unknown)
        );
        // Idle disks are left out of the slices.
        let still = MachineSlice {
            devices: BTreeMap::new(),
            ..slice(1, 0.0, 0.0, 0.0)
        };
        let still = judged(node(vec![still]), network);
        assert_eq!(server_of(&still).disk, None);
    }

    #[test]
    fn server_evidence_names_network_of_node() {
        let rates = InterfaceRates {
            sent_bytes_s: 117_500_000.0,
            speed_mbit_s: Some(1000),
            ..InterfaceRates::default()
        };
        let busy = MachineSlice {
            network: Some(NetworkRates {
                interfaces: [("eno1".to_owned(), rates)].into(),
                ..NetworkRates::default()
            }),
            ..slice(1, 100.0, 1.0, 3.0)
        };
        let verdict = judged(node(vec![busy]), VerdictKind::Network);
        let expected = "; on n1, eno1 received 0.00 B/s and sent 112 MiB/s (94 % of its 1000 \
                        Mbit/s), with 0.00 drops/s and 0.00 errors/s";
        assert!(verdict.evidence.ends_with(expected), "{}", verdict.evidence);
    }

    #[test]
    fn server_evidence_has_its_words() {
        let server = |limit, serves_volume| ServerNode {
            node: "n1".to_owned(),
            serves_volume,
            disk: Some(ServerDisk {
                name: "sdb".to_owned(),
                busy_percent: 3.0,
                queue: 0.1,
                request_ns: 1e6,
            }),
            limit,
            network: None,
        };
        let use_of_disk = "was busy 3 % of the time with 0.100 in flight and 1.00 ms for each \
                           request";
        let cases = [
            (
                server(DiskLimit::Limit, true),
                format!(
                    "the workers waited for a server, and sdb of n1, which serves the volume, \
                     {use_of_disk}"
                ),
            ),
            (
                server(DiskLimit::NoLimit, true),
                format!(
                    "waited; sdb of n1, which serves the volume, {use_of_disk}: the disk is not \
                     the limit"
                ),
            ),
            (
                server(DiskLimit::Unknown, false),
                format!("waited; sdb of n1, which was watched, {use_of_disk}"),
            ),
            (
                ServerNode {
                    disk: None,
                    ..server(DiskLimit::Unknown, true)
                },
                "waited; no disk of n1, which serves the volume, had I/O".to_owned(),
            ),
        ];
        for (server, text) in cases {
            assert_eq!(server_evidence(&server, "waited"), text);
        }
    }
}
