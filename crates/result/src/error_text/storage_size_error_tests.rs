//! Words of the errors of volumes and nodes that are too small.

use super::error_checks::{check_error, text};
use crate::run_error::{ClusterObstacle, RunError};

#[test]
fn existing_claim_that_is_too_small_suggests_a_larger_one() {
    let error = RunError::from(ClusterObstacle::VolumeTooSmall {
        option: None,
        volume_bytes: 1 << 30,
        needed_bytes: 2 << 30,
    });
    check_error(
        &error,
        "the files of the jobs need 2Gi, but the volume has 1Gi",
        "use a smaller size=, fewer jobs, or a larger claim",
    );
}

#[test]
fn request_above_the_storage_of_all_nodes_keeps_its_words() {
    let error = RunError::from(ClusterObstacle::EphemeralStorageTooSmall {
        requested_bytes: 200 << 30,
        largest_bytes: 90 << 30,
        node: text("n1"),
    });
    check_error(
        &error,
        "a pod requests 200Gi of ephemeral storage, but no suitable node allocates more than 90Gi \
         (n1)",
        "request less with --ephemeral-storage (emptydir:// also with --claim-size), or use nodes \
         with more local disk: `iosonde doctor --cluster` lists it",
    );
}
