//! Promises of vendors, compared with the fastest measured figures.

use super::document::{PageFigure, PagePromise, PageRate, PageRun, PageUnit, PromiseRow};
use crate::promise::subject_of_metric;
use crate::unique;
use iosonde_limits::{MeasuredFigure, Metric, PromiseComparison, PromiseVerdict};
use iosonde_study::promise_check::{CheckedFigure, PromiseCheck, PromiseDoubt};

/// Compares a promise with the runs of each target. A promise is a maximum, so the fastest run of a
/// target counts.
pub(super) fn compare_runs(
    promise: &iosonde_limits::Promise,
    runs: &[PageRun],
) -> Vec<PagePromise> {
    // Probes are compared on their own.
    let alone = || runs.iter().filter(|run| run.study.is_none());
    unique(alone().map(|run| run.place.as_str()))
        .into_iter()
        .map(|place| PagePromise {
            product: promise.name(),
            place: place.to_owned(),
            source: promise.origin(),
            sentence: None,
            conditions: Vec::new(),
            rows: Metric::ALL
                .into_iter()
                .filter_map(|metric| promise_row(promise, metric, fastest(alone(), place, metric)?))
                .collect(),
        })
        .filter(|promise| !promise.rows.is_empty())
        .collect()
}

/// Converts the comparison of a promise with a probe.
pub(super) fn convert_check(held: &PromiseCheck, place: &str) -> PagePromise {
    let row = |row: &CheckedFigure| {
        let judged = &row.judged;
        let rate = PageRate::new(judged.measured_per_s, row.error_per_s);
        let doubts = row
            .doubts
            .iter()
            .filter(|doubt| **doubt != PromiseDoubt::NotFirm);
        let words: Vec<&str> = std::iter::once(verdict(judged))
            .chain(doubts.map(|doubt| doubt.words()))
            .collect();
        PromiseRow {
            verdict: words.join("; "),
            kept: promise_kept(judged.verdict).filter(|_| row.doubts.is_empty()),
            ..drawn(judged, rate)
        }
    };
    PagePromise {
        product: held.promise.name(),
        place: place.to_owned(),
        source: held.promise.origin(),
        sentence: Some(held.sentence()),
        conditions: held.conditions.clone(),
        rows: held.rows.iter().map(row).collect(),
    }
}

/// Fastest figure of a metric on a target, and its rate.
fn fastest<'a>(
    runs: impl Iterator<Item = &'a PageRun>,
    place: &str,
    metric: Metric,
) -> Option<(&'a PageFigure, PageRate)> {
    let direction = subject_of_metric(metric)?;
    let rate = |figure: &PageFigure| match metric.is_iops() {
        true => figure.iops,
        false => figure.bytes_per_s,
    };
    runs.filter(|run| run.place == place && !run.preparation && is_one_way(run))
        .flat_map(|run| &run.figures)
        .filter(|figure| figure.direction == direction)
        .map(|figure| (figure, rate(figure)))
        .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
}

/// Whether a run only reads or only writes. A mix shares its limits between both directions.
fn is_one_way(run: &PageRun) -> bool {
    let moved = |figure: &&PageFigure| figure.bytes > 0;
    let mut directions = run
        .figures
        .iter()
        .filter(moved)
        .map(|figure| figure.direction);
    let first = directions.next();
    directions.all(|other| Some(other) == first)
}

fn promise_row(
    promise: &iosonde_limits::Promise,
    metric: Metric,
    found: (&PageFigure, PageRate),
) -> Option<PromiseRow> {
    let (figure, rate) = found;
    let judged = promise
        .judge(&[MeasuredFigure {
            metric,
            per_s: rate.mean,
            error: rate.error,
            block_bytes: Some(figure.block_bytes[1]),
        }])
        .pop()?;
    Some(drawn(&judged, rate))
}

fn drawn(judged: &PromiseComparison, measured: PageRate) -> PromiseRow {
    PromiseRow {
        what: judged.metric.to_string(),
        unit: if judged.metric.is_iops() {
            PageUnit::Iops
        } else {
            PageUnit::BytesPerS
        },
        promised: judged.promised_per_s,
        measured,
        verdict: verdict(judged).to_owned(),
        kept: promise_kept(judged.verdict),
    }
}

/// Whether a promise is kept. `None`: the figure is not that of the promised product.
pub(super) fn promise_kept(verdict: PromiseVerdict) -> Option<bool> {
    match verdict {
        PromiseVerdict::Kept | PromiseVerdict::Bursting => Some(true),
        PromiseVerdict::Below => Some(false),
        PromiseVerdict::Above => None,
    }
}

fn verdict(judged: &PromiseComparison) -> &'static str {
    match judged.verdict {
        PromiseVerdict::Kept => "as promised",
        PromiseVerdict::Bursting => "burst: above the sustained rate",
        PromiseVerdict::Below if judged.firm => "below the promise",
        PromiseVerdict::Below => {
            "below the published value, which the vendor does not promise on this machine"
        }
        PromiseVerdict::Above => "above the promise: a cache, or another product",
    }
}
