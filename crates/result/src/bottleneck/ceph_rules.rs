//! Rules about a Ceph cluster: recovery and scrubs, slow OSDs, time in the OSDs or on the network.

use super::verdict_text::verdict;
use super::{FileLocation, RunObservation};
use crate::ceph::{CephSide, OsdLatency};
use crate::run::Verdict;
use crate::verdict_cause::{OsdMeasure, VerdictCause};

/// Share of samples with recovery from which on recovery is the bottleneck.
const MOSTLY_RECOVERING: f64 = 0.5;
/// Factor from which on an OSD is slow, relative to the median of the others.
const MUCH_SLOWER: f64 = 3.0;
/// Smaller differences between OSDs are ignored, in nanoseconds.
const NOTICEABLE_NS: f64 = 2e6;
/// Number of operations needed for a verdict on the OSDs, or to call one of them slow.
const FEWEST_OPS: u64 = 20;
/// Number of operations that an OSD needs to be compared with a slow one. The median of several
/// OSDs is compared, so that each of them needs fewer.
const FEWEST_OPS_OF_OTHERS: u64 = 10;
/// Number of OSDs needed to call one of them slow.
const FEWEST_OSDS: usize = 3;
/// Share of the latency from which on the OSDs are the bottleneck.
const MOSTLY_OSDS: f64 = 0.5;

/// Returns the cluster, if all I/O went to it.
fn alone(seen: &RunObservation) -> Option<&CephSide> {
    seen.ceph.as_ref().filter(|_| !seen.beside_ceph)
}

/// Reports recovery that went on for most of the run.
pub(super) fn recovery(seen: &RunObservation) -> Option<Verdict> {
    let side = alone(seen)?;
    let activity = &side.activity;
    let most = f64::from(activity.recovering) >= MOSTLY_RECOVERING * f64::from(activity.looks);
    recovery_of(side).filter(|_| most)
}

fn recovery_of(side: &CephSide) -> Option<Verdict> {
    let activity = side.activity.clone();
    (activity.recovering > 0).then(|| verdict(VerdictCause::ClusterRecovery { activity }))
}

fn scrub_of(side: &CephSide) -> Option<Verdict> {
    let activity = side.activity.clone();
    (activity.scrubbing > 0).then(|| verdict(VerdictCause::ClusterScrub { activity }))
}

fn outage_of(side: &CephSide) -> Option<Verdict> {
    (side.osds.up < side.osds.total).then(|| {
        verdict(VerdictCause::OsdsDown {
            osds: side.osds,
            checks: side.check_texts(),
        })
    })
}

/// Reports other activity and outages of the cluster, independent of the bottleneck.
pub(super) fn others(seen: &RunObservation) -> Vec<Verdict> {
    let Some(side) = &seen.ceph else {
        return Vec::new();
    };
    let found = [recovery_of(side), scrub_of(side), outage_of(side)];
    found.into_iter().flatten().collect()
}

pub(super) fn slow_osd(seen: &RunObservation) -> Option<Verdict> {
    let side = alone(seen)?;
    let asked: Vec<&OsdLatency> = side
        .osd_latency
        .iter()
        .filter(|osd| osd.ops >= FEWEST_OPS_OF_OTHERS)
        .collect();
    let by_ops = slowest(asked.iter().map(|osd| (osd.osd, osd.op_ns))).filter(|(slow, ..)| {
        let mut known = asked.iter().filter(|osd| osd.ops >= FEWEST_OPS);
        known.any(|osd| osd.osd == *slow)
    });
    let commits = side.osd_latency.iter();
    let by_commit = slowest(commits.filter_map(|osd| Some((osd.osd, osd.commit_ns? as f64))));
    let (slow, measured) = match (by_ops, by_commit) {
        (Some(slow), _) => (slow, OsdMeasure::Operation),
        (None, Some(slow)) if asked.is_empty() => (slow, OsdMeasure::Commit),
        _ => return None,
    };
    let (osd, latency_ns, others_ns) = slow;
    Some(verdict(VerdictCause::SlowOsd {
        osd,
        measured,
        latency_ns,
        others_ns,
    }))
}

/// Returns the slowest OSD, its time and the median of the others, if it is much slower than these.
fn slowest(times: impl Iterator<Item = (u32, f64)>) -> Option<(u32, f64, f64)> {
    let mut times: Vec<(u32, f64)> = times.collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (osd, ns) = times.pop()?;
    if times.len() + 1 < FEWEST_OSDS {
        return None;
    }
    let others_ns = times[(times.len() - 1) / 2].1;
    let slow = ns >= MUCH_SLOWER * others_ns && ns >= others_ns + NOTICEABLE_NS;
    slow.then_some((osd, ns, others_ns))
}

/// Checks whether an operation spends its time in the OSDs or on the network.
pub(super) fn slow_osd_or_network(seen: &RunObservation) -> Option<Verdict> {
    let side = alone(seen)?;
    // With a page cache on this machine, workers wait for other I/O than the OSDs receive.
    if seen.place != FileLocation::Nowhere && !seen.callers.direct {
        return None;
    }
    let ops: u64 = side.osd_latency.iter().map(|osd| osd.ops).sum();
    let latency_ns = seen.callers.latency_ns;
    if ops < FEWEST_OPS || latency_ns <= 0.0 {
        return None;
    }
    let total: f64 = side
        .osd_latency
        .iter()
        .map(|osd| osd.op_ns * osd.ops as f64)
        .sum();
    let within_ns = total / ops as f64;
    let osds_ns = within_ns.min(latency_ns);
    Some(verdict(if within_ns >= MOSTLY_OSDS * latency_ns {
        VerdictCause::TimeInOsds {
            latency_ns,
            osds_ns,
        }
    } else {
        VerdictCause::TimeOutsideOsds {
            latency_ns,
            osds_ns,
            network: seen.network.clone(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{RunObservation, WorkerObservation, classify};
    use super::*;
    use crate::ceph::{CephActivity, OsdCounts};
    use crate::interval::IntervalCounts;
    use crate::run::VerdictKind;
    use iosonde_job::plan::PerDirection;

    fn osd(osd: u32, op_ms: f64) -> OsdLatency {
        OsdLatency {
            osd,
            ops: 1000,
            op_ns: op_ms * 1e6,
            ..OsdLatency::default()
        }
    }

    /// Returns ten seconds of 16 operations in flight that take 5 ms each, with the given OSDs.
    fn seen(osds: &[f64], activity: CephActivity) -> RunObservation {
        RunObservation {
            seconds: 10.0,
            own: PerDirection {
                write: IntervalCounts {
                    ios: 32_000,
                    bytes: 32_000 << 12,
                },
                ..PerDirection::default()
            },
            callers: WorkerObservation {
                workers: 1,
                depth: 16,
                latency_ns: 5e6,
                least_latency_ns: 1e6,
                ..WorkerObservation::default()
            },
            ceph: Some(CephSide {
                osd_latency: osds.iter().zip(0..).map(|(ms, id)| osd(id, *ms)).collect(),
                activity,
                ..CephSide::default()
            }),
            ..RunObservation::default()
        }
    }

    fn main(seen: &RunObservation) -> Verdict {
        classify(seen).0.expect("a verdict")
    }

    #[test]
    fn long_recovery_is_the_bottleneck_and_short_a_finding() {
        let activity = CephActivity {
            looks: 6,
            recovering: 4,
            recovery_bytes_per_s: 50 << 20,
            degraded_objects: 120,
            ..CephActivity::default()
        };
        let verdict = main(&seen(&[1.0, 1.0, 1.0], activity.clone()));
        assert_eq!(verdict.kind, VerdictKind::ClusterBusy);
        let recovery = VerdictCause::ClusterRecovery {
            activity: activity.clone(),
        };
        assert_eq!(verdict.cause, Some(recovery));
        let little = CephActivity {
            recovering: 1,
            scrubbing: 2,
            ..activity
        };
        let (main, beside) = classify(&seen(&[1.0, 1.0, 1.0], little));
        assert_eq!(main.unwrap().kind, VerdictKind::Network);
        let kinds: Vec<VerdictKind> = beside.iter().map(|verdict| verdict.kind).collect();
        assert_eq!(kinds, [VerdictKind::ClusterBusy, VerdictKind::ClusterBusy]);
        assert!(matches!(
            &beside[1].cause,
            Some(VerdictCause::ClusterScrub { activity }) if activity.scrubbing == 2
        ));
    }

    #[test]
    fn ceph_cluster_is_not_blamed_for_io_to_other_targets() {
        let activity = CephActivity {
            looks: 6,
            recovering: 6,
            ..CephActivity::default()
        };
        let mut seen = seen(&[1.0, 1.0, 90.0], activity);
        seen.beside_ceph = true;
        let (main, beside) = classify(&seen);
        let of_clusters = [
            VerdictKind::ClusterBusy,
            VerdictKind::SlowOsd,
            VerdictKind::Osds,
            VerdictKind::Network,
        ];
        assert!(main.is_none_or(|verdict| !of_clusters.contains(&verdict.kind)));
        assert_eq!(beside[0].kind, VerdictKind::ClusterBusy);
    }

    #[test]
    fn daemons_that_are_down_are_a_finding() {
        let mut seen = seen(&[4.0, 4.2], CephActivity::default());
        let side = seen.ceph.as_mut().unwrap();
        side.osds = OsdCounts {
            total: 3,
            up: 2,
            r#in: 3,
        };
        side.checks = vec!["OSD_DOWN: 1 osds down".to_owned().into()];
        let (main, beside) = classify(&seen);
        assert_eq!(main.unwrap().kind, VerdictKind::Osds, "it says more");
        assert_eq!(beside[0].kind, VerdictKind::ClusterDegraded);
        let side = seen.ceph.as_ref().unwrap();
        let outage = VerdictCause::OsdsDown {
            osds: side.osds,
            checks: side.check_texts(),
        };
        assert_eq!(beside[0].cause, Some(outage));
        seen.ceph.as_mut().unwrap().osds.up = 3;
        assert_eq!(classify(&seen).1, []);
    }

    #[test]
    fn slow_osd_is_named_in_the_verdict() {
        let quiet = CephActivity::default();
        let verdict = main(&seen(&[1.0, 12.0, 1.2], quiet.clone()));
        assert_eq!(verdict.kind, VerdictKind::SlowOsd);
        let slow = VerdictCause::SlowOsd {
            osd: 1,
            measured: OsdMeasure::Operation,
            latency_ns: 12e6,
            others_ns: 1e6,
        };
        assert_eq!(verdict.cause, Some(slow));
        // Of two OSDs neither can be called slow, and a difference below the threshold is ignored.
        assert_ne!(
            main(&seen(&[1.0, 12.0], quiet.clone())).kind,
            VerdictKind::SlowOsd
        );
        assert_ne!(
            main(&seen(&[0.1, 0.1, 0.5], quiet)).kind,
            VerdictKind::SlowOsd
        );
    }

    #[test]
    fn slow_osd_needs_more_operations_than_others() {
        let kind = |ops: [u64; 3]| {
            let mut seen = seen(&[1.0, 12.0, 1.2], CephActivity::default());
            let osds = &mut seen.ceph.as_mut().unwrap().osd_latency;
            osds.iter_mut()
                .zip(ops)
                .for_each(|(osd, ops)| osd.ops = ops);
            main(&seen).kind
        };
        assert_eq!(kind([19, 63, 21]), VerdictKind::SlowOsd);
        assert_eq!(kind([10, 20, 10]), VerdictKind::SlowOsd);
        assert_ne!(kind([63, 19, 21]), VerdictKind::SlowOsd, "the slow one");
        assert_ne!(kind([9, 63, 21]), VerdictKind::SlowOsd, "of two others one");
    }

    #[test]
    fn slow_osd_is_found_from_commit_latency_alone() {
        let mut seen = seen(&[], CephActivity::default());
        let commits = [2_000_000, 40_000_000, 2_000_000];
        seen.ceph.as_mut().unwrap().osd_latency = commits
            .iter()
            .zip(0..)
            .map(|(ns, osd)| OsdLatency {
                osd,
                commit_ns: Some(*ns),
                ..OsdLatency::default()
            })
            .collect();
        let verdict = main(&seen);
        assert_eq!(verdict.kind, VerdictKind::SlowOsd);
        assert!(matches!(
            verdict.cause,
            Some(VerdictCause::SlowOsd {
                osd: 1,
                measured: OsdMeasure::Commit,
                latency_ns: 40e6,
                ..
            })
        ));
    }

    #[test]
    fn osds_are_blamed_on_a_mount_only_for_direct_io() {
        let mut mounted = seen(&[4.0, 4.2, 4.4], CephActivity::default());
        mounted.place = FileLocation::Served("CephFS (ceph-fuse)".to_owned());
        assert_eq!(main(&mounted).kind, VerdictKind::Network);
        mounted.callers.direct = true;
        assert_eq!(main(&mounted).kind, VerdictKind::Osds);
    }

    #[test]
    fn osd_share_of_latency_separates_osds_from_network() {
        let quiet = CephActivity::default();
        let osds = main(&seen(&[4.0, 4.2, 4.4], quiet.clone()));
        assert_eq!(osds.kind, VerdictKind::Osds);
        let Some(VerdictCause::TimeInOsds { osds_ns, .. }) = osds.cause else {
            panic!("{osds:?}");
        };
        assert!((osds_ns - 4.2e6).abs() < 1.0, "{osds_ns}");
        let network = main(&seen(&[0.5, 0.5, 0.5], quiet.clone()));
        assert_eq!(network.kind, VerdictKind::Network);
        let mut busy = seen(&[0.5, 0.5, 0.5], quiet);
        busy.callers.busiest = (0.6, 0.35);
        assert_eq!(
            main(&busy).kind,
            VerdictKind::Generator,
            "the client's processor"
        );
    }
}
