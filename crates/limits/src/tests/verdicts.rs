//! Tests of verdicts on measured figures.

use super::*;
use crate::{MeasuredFigure, PromiseVerdict};

fn measured(metric: Metric, per_s: f64) -> MeasuredFigure {
    MeasuredFigure {
        metric,
        per_s,
        error: None,
        block_bytes: None,
    }
}

fn verdict(promise: &Promise, measured: MeasuredFigure) -> PromiseVerdict {
    promise.judge(&[measured])[0].verdict
}

#[test]
fn verdict_depends_on_ratio() {
    let promise = ask("gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8");
    let of = |per_s| verdict(&promise, measured(Metric::ReadIops, per_s));
    assert_eq!(of(15_000.0), PromiseVerdict::Kept);
    assert_eq!(of(14_750.0), PromiseVerdict::Kept);
    assert_eq!(of(14_600.0), PromiseVerdict::Below);
    assert_eq!(of(15_250.0), PromiseVerdict::Kept);
    assert_eq!(of(100_000.0), PromiseVerdict::Above);
    let judged = &promise.judge(&[measured(Metric::ReadIops, 12_000.0)])[0];
    assert_eq!(judged.ratio, 0.8);
    assert_eq!(
        judged.promised.limited_by.to_string(),
        "machine n1, 8-15 vCPUs"
    );
}

#[test]
fn confidence_interval_prevents_below_verdict() {
    let promise = ask("gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8");
    let unsure = |per_s, error| MeasuredFigure {
        error: Some(error),
        ..measured(Metric::WriteIops, per_s)
    };
    assert_eq!(
        verdict(&promise, unsure(14_000.0, 1000.0)),
        PromiseVerdict::Kept
    );
    assert_eq!(
        verdict(&promise, unsure(14_000.0, 100.0)),
        PromiseVerdict::Below
    );
    assert_eq!(
        verdict(&promise, unsure(16_000.0, 1000.0)),
        PromiseVerdict::Kept
    );
}

#[test]
fn delivery_share_lowers_kept_threshold() {
    let promise = ask("aws-gp3:size=100");
    assert_eq!(
        verdict(&promise, measured(Metric::ReadIops, 2710.0)),
        PromiseVerdict::Kept
    );
    assert_eq!(
        verdict(&promise, measured(Metric::ReadIops, 2690.0)),
        PromiseVerdict::Below
    );
}

#[test]
fn rate_within_burst_is_bursting() {
    let promise = ask("aws-gp2:size=100GiB");
    let of = |per_s| verdict(&promise, measured(Metric::ReadIops, per_s));
    assert_eq!(of(300.0), PromiseVerdict::Kept);
    assert_eq!(of(3000.0), PromiseVerdict::Bursting);
    assert_eq!(of(9000.0), PromiseVerdict::Above);
}

#[test]
fn block_size_limits_promised_rate() {
    let promise = ask("aws-gp3:size=100");
    let with_block = |metric, per_s, block_bytes| MeasuredFigure {
        block_bytes: Some(block_bytes),
        ..measured(metric, per_s)
    };
    // 1 MiB counts as four I/Os of 256 KiB, but the limit of 125 MiB/s is reached first.
    let judged = &promise.judge(&[with_block(Metric::ReadIops, 125.0, 1 << 20)])[0];
    assert_eq!(
        (judged.promised_per_s, judged.verdict),
        (125.0, PromiseVerdict::Kept)
    );
    // 3,000 I/Os of 4 KiB per second cannot reach 125 MiB/s.
    let bytes = 3000.0 * 4096.0;
    let judged = &promise.judge(&[with_block(Metric::ReadBandwidth, bytes, 4096)])[0];
    assert_eq!(
        (judged.promised_per_s, judged.verdict),
        (bytes, PromiseVerdict::Kept)
    );
}

#[test]
fn mixed_rate_needs_promise_for_both_directions() {
    let split = ask("gcp-pd-standard:size=375GiB,machine=n1,vcpus=8");
    assert!(split.judge(&[measured(Metric::Iops, 300.0)]).is_empty());
    let one = ask("aws-gp3:size=100");
    assert_eq!(
        verdict(&one, measured(Metric::Iops, 3000.0)),
        PromiseVerdict::Kept
    );
}
