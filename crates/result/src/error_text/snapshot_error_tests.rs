//! Tests of the words for problems with snapshot classes.

use super::error_checks::{check_problems, text, texts};
use crate::run_error::VolumeProblem;

#[test]
fn snapshot_problems_keep_their_words() {
    let no_class = |known: &[&str]| VolumeProblem::NoSnapshotClass {
        driver: text("example.com/disk"),
        known: texts(known),
    };
    let cases = [
        (
            VolumeProblem::NoSnapshotApi,
            "the cluster has no snapshots: the resource volumesnapshotclasses of \
             snapshot.storage.k8s.io/v1 does not exist",
            "install the snapshot controller with its custom resource definitions, or leave \
             snapshots out: --services clone,expand",
        ),
        (
            no_class(&[]),
            "no snapshot class belongs to its driver example.com/disk",
            "create a VolumeSnapshotClass for it, or leave snapshots out: --services clone,expand",
        ),
        (
            no_class(&["ebs.csi.aws.com"]),
            "no snapshot class belongs to its driver example.com/disk",
            "create a VolumeSnapshotClass for it, or leave snapshots out: --services \
             clone,expand; there are snapshot classes for ebs.csi.aws.com",
        ),
        (
            VolumeProblem::NoSuchSnapshotClass {
                class: text("dayly"),
                known: texts(&["daily"]),
            },
            "there is no snapshot class dayly",
            "there are daily",
        ),
        (
            VolumeProblem::SnapshotClassOfOtherDriver {
                class: text("daily"),
                class_driver: text("a.example.com"),
                driver: text("b.example.com"),
            },
            "the snapshot class daily belongs to the driver a.example.com, but the volumes are of \
             b.example.com",
            "leave out --snapshot-class: a class of the driver is then used",
        ),
        (
            VolumeProblem::SnapshotClassRetains {
                class: text("daily"),
            },
            "the snapshot class daily keeps the data of deleted snapshots",
            "name a snapshot class with the deletion policy Delete: --snapshot-class",
        ),
    ];
    check_problems("sc://x", cases);
}
