//! `iosonde rados` without a cluster.

use crate::common::{Scratch, error};

/// Errors in the arguments are reported before the program connects to a cluster.
#[test]
fn foreign_object_prefix_is_rejected_without_cluster() {
    let scratch = Scratch::new("rados-prefix");
    let clean_up = |prefix: &str| {
        let words = ["rados", "-p", "pool", "--conf", "none.conf", "cleanup"];
        scratch.run(&[&words[..], &["--prefix", prefix]].concat())
    };
    let refused = clean_up("rbd_data");
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    assert!(error(&refused).contains("is not a prefix of a benchmark"));
    for ours in ["benchmark_data_x", "iosonde-"] {
        let output = clean_up(ours);
        assert!(
            !output.status.success() && !error(&output).contains("is not a prefix of a benchmark")
        );
    }
}
