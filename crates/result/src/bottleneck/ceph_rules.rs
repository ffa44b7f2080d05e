//! Rules about a Ceph cluster: recovery and scrubs, slow OSDs, time in the OSDs or on the network.

use super::local_rules::{percent, verdict};
use super::{Observed, Place};
use crate::ceph::{CephSide, OsdLatency};
use crate::run::{Verdict, VerdictKind};
use crate::words;

/// Share of samples with recovery from which on recovery is the bottleneck.
const MOSTLY_RECOVERING: f64 = 0.5;
/// Factor from which on an OSD is slow, relative to the median of the others.
const MUCH_SLOWER: f64 = 3.0;
/// Smaller differences between OSDs are ignored, in nanoseconds.
const NOTICEABLE_NS: f64 = 2e6;
/// OSDs with fewer operations are ignored.
const FEWEST_OPS: u64 = 20;
/// Number of OSDs needed to call one of them slow.
const FEWEST_OSDS: usize = 3;
/// Share of the latency from which on the OSDs are the bottleneck.
const MOSTLY_OSDS: f64 = 0.5;

/// Returns the cluster, if all I/O went to it.
fn alone(seen: &Observed) -> Option<&CephSide> {
    seen.ceph.as_ref().filter(|_| !seen.beside_ceph)
}

/// Reports recovery that went on for most of the run.
pub(super) fn recovery(seen: &Observed) -> Option<Verdict> {
    let side = alone(seen)?;
    let activity = &side.activity;
    let most = f64::from(activity.recovering) >= MOSTLY_RECOVERING * f64::from(activity.looks);
    let told = side.recovery().filter(|_| most)?;
    Some(verdict(VerdictKind::ClusterBusy, told))
}

/// Reports other activity and outages of the cluster, independent of the bottleneck.
pub(super) fn others(seen: &Observed) -> Vec<Verdict> {
    let Some(side) = &seen.ceph else {
        return Vec::new();
    };
    let busy = [side.recovery(), side.scrub()].into_iter().flatten();
    let busy = busy.map(|told| verdict(VerdictKind::ClusterBusy, told));
    let degraded = side.outage();
    busy.chain(degraded.map(|told| verdict(VerdictKind::ClusterDegraded, told)))
        .collect()
}

pub(super) fn slow_osd(seen: &Observed) -> Option<Verdict> {
    let side = alone(seen)?;
    let asked: Vec<&OsdLatency> = side
        .osd_latency
        .iter()
        .filter(|osd| osd.ops >= FEWEST_OPS)
        .collect();
    let by_ops = slowest(asked.iter().map(|osd| (osd.osd, osd.op_ns)));
    let commits = side.osd_latency.iter();
    let by_commit = slowest(commits.filter_map(|osd| Some((osd.osd, osd.commit_ns? as f64))));
    let (osd, ns, others_ns, what) = match (by_ops, by_commit) {
        (Some((osd, ns, others_ns)), _) => (osd, ns, others_ns, "for an operation"),
        (None, Some((osd, ns, others_ns))) if asked.is_empty() => {
            (osd, ns, others_ns, "to make a write safe")
        }
        _ => return None,
    };
    let evidence = format!(
        "osd.{osd} took {} {what}, and half of the others no more than {}: objects whose turn it is there hold up the rest",
        words::latency(ns),
        words::latency(others_ns)
    );
    Some(verdict(VerdictKind::SlowOsd, evidence))
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
pub(super) fn where_time_goes(seen: &Observed) -> Option<Verdict> {
    let side = alone(seen)?;
    // With a page cache on this machine, workers wait for other I/O than the OSDs receive.
    if seen.place != Place::Nowhere && !seen.callers.direct {
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
    let times = format!(
        "an I/O took {}, of which {} passed in the storage daemons ({})",
        words::latency(latency_ns),
        words::latency(within_ns.min(latency_ns)),
        percent((within_ns / latency_ns).min(1.0))
    );
    Some(if within_ns >= MOSTLY_OSDS * latency_ns {
        verdict(VerdictKind::Osds, times)
    } else {
        let evidence = format!("{times}; the rest on the way there and in this client");
        verdict(VerdictKind::Network, evidence)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Callers, Observed, classify};
    use super::*;
    use crate::ceph::{CephActivity, OsdCounts};
    use crate::interval::IntervalCounts;
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
    fn seen(osds: &[f64], activity: CephActivity) -> Observed {
        Observed {
            seconds: 10.0,
            own: PerDirection {
                write: IntervalCounts {
                    ios: 32_000,
                    bytes: 32_000 << 12,
                },
                ..PerDirection::default()
            },
            callers: Callers {
                workers: 1,
                depth: 16,
                latency_ns: 5e6,
                least_latency_ns: 1e6,
                ..Callers::default()
            },
            ceph: Some(CephSide {
                osd_latency: osds.iter().zip(0..).map(|(ms, id)| osd(id, *ms)).collect(),
                activity,
                ..CephSide::default()
            }),
            ..Observed::default()
        }
    }

    fn main(seen: &Observed) -> Verdict {
        classify(seen).0.expect("a verdict")
    }

    #[test]
    fn recovery_holds_back_or_is_mentioned() {
        let activity = CephActivity {
            looks: 6,
            recovering: 4,
            recovery_bytes_per_s: 50 << 20,
            degraded_objects: 120,
            ..CephActivity::default()
        };
        let verdict = main(&seen(&[1.0, 1.0, 1.0], activity.clone()));
        assert_eq!(verdict.kind, VerdictKind::ClusterBusy);
        assert_eq!(
            verdict.evidence,
            "the cluster was moving data (recovery or backfill) in 4 of 6 looks at it, at up to 50.0 MiB/s, and up to 120 copies of objects were missing"
        );
        let little = CephActivity {
            recovering: 1,
            scrubbing: 2,
            ..activity
        };
        let (main, beside) = classify(&seen(&[1.0, 1.0, 1.0], little));
        assert_eq!(main.unwrap().kind, VerdictKind::Network);
        let kinds: Vec<VerdictKind> = beside.iter().map(|verdict| verdict.kind).collect();
        assert_eq!(kinds, [VerdictKind::ClusterBusy, VerdictKind::ClusterBusy]);
        assert!(
            beside[1]
                .evidence
                .contains("scrubbed placement groups in 2 of 6")
        );
    }

    #[test]
    fn a_cluster_does_not_explain_what_went_elsewhere() {
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
        side.checks = vec!["OSD_DOWN: 1 osds down".to_owned()];
        let (main, beside) = classify(&seen);
        assert_eq!(main.unwrap().kind, VerdictKind::Osds, "it says more");
        assert_eq!(beside[0].kind, VerdictKind::ClusterDegraded);
        assert_eq!(
            beside[0].evidence,
            "1 of the cluster's 3 OSDs did not run, for a part of the time at least (OSD_DOWN: 1 osds down)"
        );
        seen.ceph.as_mut().unwrap().osds.up = 3;
        assert_eq!(classify(&seen).1, []);
    }

    #[test]
    fn one_slow_daemon_is_named() {
        let quiet = CephActivity::default();
        let verdict = main(&seen(&[1.0, 12.0, 1.2], quiet.clone()));
        assert_eq!(verdict.kind, VerdictKind::SlowOsd);
        assert!(
            verdict.evidence.starts_with(
                "osd.1 took 12.0 ms for an operation, and half of the others no more than 1.00 ms"
            ),
            "{}",
            verdict.evidence
        );
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
    fn a_slow_disk_shows_where_daemons_cannot_be_asked() {
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
        assert!(
            verdict
                .evidence
                .contains("osd.1 took 40.0 ms to make a write safe")
        );
    }

    #[test]
    fn behind_a_page_cache_nobody_waits_for_the_daemons_alone() {
        let mut mounted = seen(&[4.0, 4.2, 4.4], CephActivity::default());
        mounted.place = Place::Served("CephFS (ceph-fuse)".to_owned());
        assert_eq!(main(&mounted).kind, VerdictKind::Network);
        mounted.callers.direct = true;
        assert_eq!(main(&mounted).kind, VerdictKind::Osds);
    }

    #[test]
    fn time_goes_by_in_the_daemons_or_on_the_way() {
        let quiet = CephActivity::default();
        let osds = main(&seen(&[4.0, 4.2, 4.4], quiet.clone()));
        assert_eq!(osds.kind, VerdictKind::Osds);
        assert_eq!(
            osds.evidence,
            "an I/O took 5.00 ms, of which 4.20 ms passed in the storage daemons (84 %)"
        );
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
