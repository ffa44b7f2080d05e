//! Verdicts on measured figures.

use super::*;
use crate::limits::{Measured, Verdict};

fn measured(metric: Metric, per_s: f64) -> Measured {
    Measured {
        metric,
        per_s,
        error: None,
        block_bytes: None,
    }
}

fn verdict(promise: &Promise, measured: Measured) -> Verdict {
    promise.judge(&[measured])[0].verdict
}

#[test]
fn the_ratio_decides() {
    let promise = ask("gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8");
    let of = |per_s| verdict(&promise, measured(Metric::ReadIops, per_s));
    assert_eq!(of(15_000.0), Verdict::Kept);
    assert_eq!(of(14_750.0), Verdict::Kept);
    assert_eq!(of(14_600.0), Verdict::Below);
    assert_eq!(of(15_250.0), Verdict::Kept);
    assert_eq!(of(100_000.0), Verdict::Above);
    let judged = &promise.judge(&[measured(Metric::ReadIops, 12_000.0)])[0];
    assert_eq!(judged.ratio, 0.8);
    assert_eq!(
        judged.promised.limited_by.to_string(),
        "machine n1, 8-15 vCPUs"
    );
}

#[test]
fn the_error_of_the_measurement_is_no_breach() {
    let promise = ask("gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8");
    let unsure = |per_s, error| Measured {
        error: Some(error),
        ..measured(Metric::WriteIops, per_s)
    };
    assert_eq!(verdict(&promise, unsure(14_000.0, 1000.0)), Verdict::Kept);
    assert_eq!(verdict(&promise, unsure(14_000.0, 100.0)), Verdict::Below);
    assert_eq!(verdict(&promise, unsure(16_000.0, 1000.0)), Verdict::Kept);
}

#[test]
fn a_vendor_that_delivers_nine_tenths_keeps_its_word_with_them() {
    let promise = ask("aws-gp3:size=100");
    assert_eq!(
        verdict(&promise, measured(Metric::ReadIops, 2710.0)),
        Verdict::Kept
    );
    assert_eq!(
        verdict(&promise, measured(Metric::ReadIops, 2690.0)),
        Verdict::Below
    );
}

#[test]
fn a_burst_is_neither_kept_nor_exceeded() {
    let promise = ask("aws-gp2:size=100GiB");
    let of = |per_s| verdict(&promise, measured(Metric::ReadIops, per_s));
    assert_eq!(of(300.0), Verdict::Kept);
    assert_eq!(of(3000.0), Verdict::Bursting);
    assert_eq!(of(9000.0), Verdict::Above);
}

#[test]
fn the_size_of_ios_counts() {
    let promise = ask("aws-gp3:size=100");
    let with_block = |metric, per_s, block_bytes| Measured {
        block_bytes: Some(block_bytes),
        ..measured(metric, per_s)
    };
    // 1 MiB counts as four of 256 KiB, but 125 MiB/s is reached before.
    let judged = &promise.judge(&[with_block(Metric::ReadIops, 125.0, 1 << 20)])[0];
    assert_eq!(
        (judged.promised_per_s, judged.verdict),
        (125.0, Verdict::Kept)
    );
    // 4 KiB cannot reach 125 MiB/s with 3,000 operations.
    let bytes = 3000.0 * 4096.0;
    let judged = &promise.judge(&[with_block(Metric::ReadBandwidth, bytes, 4096)])[0];
    assert_eq!(
        (judged.promised_per_s, judged.verdict),
        (bytes, Verdict::Kept)
    );
}

#[test]
fn both_directions_together_need_a_figure_for_both() {
    let split = ask("gcp-pd-standard:size=375GiB,machine=n1,vcpus=8");
    assert!(split.judge(&[measured(Metric::Iops, 300.0)]).is_empty());
    let one = ask("aws-gp3:size=100");
    assert_eq!(verdict(&one, measured(Metric::Iops, 3000.0)), Verdict::Kept);
}
