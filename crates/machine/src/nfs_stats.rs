//! Counters of the kernel's NFS client for each mount (`/proc/self/mountstats`) over a run.

use super::proc_root::System;
use iosonde_result::host::{ServiceClient, TargetInfo};
use iosonde_result::nfs::{NfsBytes, NfsOp, NfsSide};
use std::collections::BTreeMap;

/// The NFS mounts of some targets, with their counters at the start.
#[derive(Debug)]
pub struct NfsWatch {
    /// Sources and mount points.
    mounts: Vec<(String, String)>,
    before: Vec<NfsSide>,
}

impl NfsWatch {
    /// Reads the counters at the start. Without NFS mounts nothing is read.
    pub fn begin(system: &System, targets: &[TargetInfo]) -> NfsWatch {
        let mut mounts: Vec<(String, String)> = Vec::new();
        for mount in targets.iter().filter_map(|target| target.mount.as_ref()) {
            let is_nfs = (mount.service.as_ref())
                .is_some_and(|service| service.client == ServiceClient::Nfs);
            let point = mount.mount_point.display().to_string();
            let known = (mount.source.clone(), point);
            if is_nfs && !mounts.contains(&known) {
                mounts.push(known);
            }
        }
        NfsWatch {
            before: match mounts.is_empty() {
                true => Vec::new(),
                false => read_nfs_sides(system),
            },
            mounts,
        }
    }

    /// The activity since the start. Mounts without counters are omitted.
    pub fn read_activity(self, system: &System) -> Vec<NfsSide> {
        if self.mounts.is_empty() {
            return Vec::new();
        }
        let after = read_nfs_sides(system);
        // Of two mounts at one path the later one covers the other.
        let find = |all: &[NfsSide], (source, point): &(String, String)| {
            let mut all = all.iter().rev();
            all.find(|side| side.source == *source && side.mount_point == *point)
                .cloned()
        };
        let mounts = self.mounts.iter();
        mounts
            .filter_map(|mount| {
                let (before, after) = (find(&self.before, mount)?, find(&after, mount)?);
                Some(difference(&before, after))
            })
            .collect()
    }
}

/// Samples the counters of all NFS mounts.
#[derive(Debug)]
pub struct NfsSampler {
    system: System,
    last: Vec<NfsSide>,
}

impl NfsSampler {
    /// Starts sampling.
    pub fn begin(system: System) -> NfsSampler {
        NfsSampler {
            last: read_nfs_sides(&system),
            system,
        }
    }

    /// The activity of each mount since the last sample. A new mount counts from zero.
    pub fn sample(&mut self) -> Vec<NfsSide> {
        let after = read_nfs_sides(&self.system);
        let none = NfsSide::default();
        let activity = |side: &NfsSide| {
            let mut known = self.last.iter().rev();
            let before = known.find(|before| {
                before.source == side.source && before.mount_point == side.mount_point
            });
            difference(before.unwrap_or(&none), side.clone())
        };
        let moved = after.iter().map(activity).collect();
        self.last = after;
        moved
    }
}

fn read_nfs_sides(system: &System) -> Vec<NfsSide> {
    parse(&system.text("/proc/self/mountstats").unwrap_or_default())
}

fn difference(before: &NfsSide, mut after: NfsSide) -> NfsSide {
    for (now, then) in bytes(&mut after.bytes)
        .into_iter()
        .zip(bytes(&mut before.bytes.clone()))
    {
        // A new mount counts from zero.
        *now = now.checked_sub(*then).unwrap_or(*now);
    }
    for (name, op) in &mut after.ops {
        let then = before.ops.get(name).copied().unwrap_or_default();
        *op = op_difference(&then, *op);
    }
    after.ops.retain(|_, op| op.ops > 0 || op.transmissions > 0);
    after
}

fn op_difference(then: &NfsOp, now: NfsOp) -> NfsOp {
    if now.ops < then.ops {
        return now;
    }
    NfsOp {
        ops: now.ops - then.ops,
        transmissions: now.transmissions.saturating_sub(then.transmissions),
        timeouts: now.timeouts.saturating_sub(then.timeouts),
        sent_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
        received_bytes: now.received_bytes.saturating_sub(then.received_bytes),
        queue_ms: now.queue_ms.saturating_sub(then.queue_ms),
        rtt_ms: now.rtt_ms.saturating_sub(then.rtt_ms),
        execute_ms: now.execute_ms.saturating_sub(then.execute_ms),
        errors: (now.errors).map(|errors| errors.saturating_sub(then.errors.unwrap_or(0))),
    }
}

/// The counters in the kernel's order.
fn bytes(bytes: &mut NfsBytes) -> [&mut u64; 6] {
    [
        &mut bytes.read,
        &mut bytes.written,
        &mut bytes.direct_read,
        &mut bytes.direct_written,
        &mut bytes.server_read,
        &mut bytes.server_written,
    ]
}

/// Parses the NFS mounts in `/proc/self/mountstats`, in order. It skips lines of another form.
pub fn parse(text: &str) -> Vec<NfsSide> {
    let mut sides: Vec<NfsSide> = Vec::new();
    let mut is_nfs = false;
    let mut in_ops = false;
    for line in text.lines() {
        if let Some(device) = line.strip_prefix("device ") {
            let side = mount(device);
            is_nfs = side.is_some();
            in_ops = false;
            sides.extend(side);
            continue;
        }
        let Some(side) = sides.last_mut().filter(|_| is_nfs) else {
            continue;
        };
        let line = line.trim();
        if line == "per-op statistics" {
            in_ops = true;
        } else if in_ops {
            if let Some((name, op)) = operation(line) {
                // With several transports some kernels repeat the table.
                side.ops.entry(name).or_insert(op);
            }
        } else if let Some(counts) = line.strip_prefix("bytes:") {
            for (place, count) in bytes(&mut side.bytes).into_iter().zip(numbers(counts)) {
                *place = count;
            }
        }
    }
    sides
}

/// Parses `server:/export mounted on /mnt with fstype nfs4 statvers=1.1`, escaped as in mountinfo.
fn mount(device: &str) -> Option<NfsSide> {
    let (source, rest) = device.split_once(" mounted on ")?;
    let (point, rest) = rest.rsplit_once(" with fstype ")?;
    let fs_type = rest.split_whitespace().next()?;
    matches!(fs_type, "nfs" | "nfs4").then(|| NfsSide {
        source: super::mounts::unescape(source),
        mount_point: super::mounts::unescape(point),
        bytes: NfsBytes::default(),
        ops: BTreeMap::new(),
    })
}

fn operation(line: &str) -> Option<(String, NfsOp)> {
    let (name, counts) = line.split_once(':')?;
    let counts: Vec<u64> = numbers(counts).collect();
    let [
        ops,
        transmissions,
        timeouts,
        sent_bytes,
        received_bytes,
        queue_ms,
        rtt_ms,
        execute_ms,
        rest @ ..,
    ] = &counts[..]
    else {
        return None;
    };
    let op = NfsOp {
        ops: *ops,
        transmissions: *transmissions,
        timeouts: *timeouts,
        sent_bytes: *sent_bytes,
        received_bytes: *received_bytes,
        queue_ms: *queue_ms,
        rtt_ms: *rtt_ms,
        execute_ms: *execute_ms,
        errors: rest.first().copied(),
    };
    Some((name.trim().to_owned(), op))
}

/// The numbers up to the first word that is not a number.
fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::host::{Mount, MountService};
    use proptest::prelude::*;

    /// Texts of kernels 4.x (statvers 1.0) and 5.3 and later (1.1, with an error count for each
    /// operation). This machine does not need NFS. The texts show two mounts before and after work
    /// on the second one.
    const BEFORE: &str = include_str!("nfs_stats/before.txt");
    const AFTER: &str = include_str!("nfs_stats/after.txt");

    fn machine(text: &str) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/mountstats"), text).unwrap();
        let system = System::captured(root.path());
        (root, system)
    }

    fn target(source: &str, point: &str, client: ServiceClient) -> TargetInfo {
        TargetInfo {
            mount: Some(Mount {
                source: source.into(),
                mount_point: point.into(),
                service: Some(MountService {
                    client,
                    ..MountService::default()
                }),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        }
    }

    #[test]
    fn nfs_watch_counts_from_start_to_end_of_run() {
        let (root, system) = machine(BEFORE);
        let nfs = || target("filer:/export/b c", "/mnt/b c", ServiceClient::Nfs);
        let watch = NfsWatch::begin(&system, &[nfs(), nfs()]);
        std::fs::write(root.path().join("proc/self/mountstats"), AFTER).unwrap();
        let sides = watch.read_activity(&system);
        assert_eq!(sides.len(), 1, "one mount, however many files are in it");
        let side = &sides[0];
        let names: Vec<&str> = side.ops.keys().map(String::as_str).collect();
        assert_eq!(names, ["COMMIT", "GETATTR", "READ", "WRITE"]);
        let read = side.ops["READ"];
        assert_eq!(
            (read.ops, read.retransmissions(), read.timeouts),
            (1000, 2, 1)
        );
        assert_eq!(
            (read.mean_rtt_ns(), read.mean_execute_ns()),
            (1_500_000.0, 1_800_000.0)
        );
        assert_eq!(side.ops["WRITE"].errors, Some(1));
        assert_eq!(side.retransmissions(), 2);
        assert_eq!(side.busiest()[0].0, "READ");
        let bytes = side.bytes;
        assert_eq!(
            (bytes.read, bytes.direct_read, bytes.server_read),
            (0, 4_096_000, 4_096_000)
        );
        assert_eq!(
            (bytes.written, bytes.server_written),
            (1_048_576, 1_048_576)
        );
    }

    #[test]
    fn nfs_sampler_reports_every_mount_of_each_span() {
        let (root, system) = machine(BEFORE);
        let mut sampler = NfsSampler::begin(system);
        std::fs::write(root.path().join("proc/self/mountstats"), AFTER).unwrap();
        let reads = |sides: Vec<NfsSide>| -> Vec<u64> {
            let reads = |side: &NfsSide| side.ops.get("READ").map_or(0, |read| read.ops);
            sides.iter().map(reads).collect()
        };
        assert_eq!(reads(sampler.sample()), [0, 1000]);
        assert_eq!(reads(sampler.sample()), [0, 0]);
    }

    #[test]
    fn other_file_systems_and_mounts_without_counters_have_nothing() {
        let (_root, system) = machine(AFTER);
        let ceph = target("filer:/export/b c", "/mnt/b c", ServiceClient::CephKernel);
        assert!(NfsWatch::begin(&system, &[ceph]).mounts.is_empty());
        let unknown = target("other:/x", "/mnt/x", ServiceClient::Nfs);
        assert_eq!(
            NfsWatch::begin(&system, &[unknown]).read_activity(&system),
            []
        );
    }

    #[test]
    fn mountstats_with_and_without_errors_are_read() {
        let sides = parse(AFTER);
        let found: Vec<(&str, Option<u64>)> = sides
            .iter()
            .map(|side| (side.source.as_str(), side.ops["GETATTR"].errors))
            .collect();
        assert_eq!(
            found,
            [("10.0.0.5:/old", None), ("filer:/export/b c", Some(0))]
        );
        assert_eq!(sides[0].ops["READ"].ops, 70);
    }

    /// A mount that was unmounted and mounted again counts from zero.
    #[test]
    fn counters_after_a_remount_are_taken_from_zero() {
        let (mut before, mut after) = (NfsSide::default(), NfsSide::default());
        let of = |ops| NfsOp {
            ops,
            rtt_ms: ops,
            ..NfsOp::default()
        };
        before.ops.insert("READ".into(), of(100));
        before.bytes.read = 100;
        after.ops.insert("READ".into(), of(7));
        after.bytes.read = 7;
        let side = difference(&before, after);
        assert_eq!((side.ops["READ"], side.bytes.read), (of(7), 7));
    }

    /// Words of the format in random order, truncated and repeated.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("device a:/b mounted on /c with fstype nfs4 statvers=1.1\n".to_owned()),
            Just("device x mounted on /y with fstype ext4\n".to_owned()),
            Just("device \n\tbytes:\t".to_owned()),
            Just("\tper-op statistics\n".to_owned()),
            Just("\tREAD: ".to_owned()),
            Just("\txprt:\ttcp 0 1\n".to_owned()),
            "[0-9]{1,25}( [0-9]{1,20}){0,12}\n",
            "\\PC{0,20}",
        ];
        proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn arbitrary_mountstats_never_panic(text in pieces()) {
            let sides = parse(&text);
            for side in &sides {
                prop_assert_eq!(difference(side, side.clone()).ops.len(), 0, "nothing happened");
            }
        }

        #[test]
        fn truncated_mountstats_add_no_operations(end in 0usize..4000) {
            let end = end.min(AFTER.len());
            let whole = parse(AFTER);
            let cut = parse(&AFTER[..end]);
            for (part, all) in cut.iter().zip(&whole) {
                prop_assert!(part.ops.keys().all(|name| all.ops.contains_key(name)));
            }
        }
    }
}
