//! `iosonde rados` where there is no cluster.

mod common;

use common::{Scratch, error};

/// What is wrong with the words themselves is told before a cluster is asked, which may take its time.
#[test]
fn a_prefix_that_is_not_ours_is_refused_without_a_cluster() {
    let scratch = Scratch::new("rados-prefix");
    let clean_up = |prefix: &str| {
        let words = ["rados", "-p", "pool", "--conf", "none.conf", "cleanup"];
        scratch.run(&[&words[..], &["--prefix", prefix]].concat())
    };
    let refused = clean_up("rbd_data");
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    assert!(error(&refused).contains("not of a benchmark"));
    for ours in ["benchmark_data_x", "iosonde-"] {
        let output = clean_up(ours);
        assert!(!output.status.success() && !error(&output).contains("not of a benchmark"));
    }
}
