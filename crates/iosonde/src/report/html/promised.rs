//! What a vendor promises beside the best that was measured.

use super::document::{Figure, Promise, PromiseRow, Rate, Run, Unit};
use iosonde_study::limits::{self, Doubt, Held, HeldFigure, Judged, Measured, Metric, Verdict};

/// What of a promise was kept in each place. A promise is of what can be reached, so of all runs in a place the fastest
/// counts.
pub(super) fn of(promise: &limits::Promise, runs: &[Run]) -> Vec<Promise> {
    let mut places: Vec<&str> = Vec::new();
    // Probes are held against it for themselves.
    let alone = || runs.iter().filter(|run| run.study.is_none());
    for run in alone() {
        if !places.contains(&run.place.as_str()) {
            places.push(&run.place);
        }
    }
    places
        .into_iter()
        .map(|place| Promise {
            product: promise.name(),
            place: place.to_owned(),
            source: promise.origin(),
            sentence: None,
            conditions: Vec::new(),
            rows: Metric::ALL
                .into_iter()
                .filter_map(|metric| row(promise, metric, fastest(alone(), place, metric)?))
                .collect(),
        })
        .filter(|promise| !promise.rows.is_empty())
        .collect()
}

/// What of a promise was kept on the target of a probe.
pub(super) fn held(held: &Held, place: &str) -> Promise {
    let row = |row: &HeldFigure| {
        let judged = &row.judged;
        let rate = Rate::of(judged.measured_per_s, row.error_per_s);
        let doubts = row.doubts.iter().filter(|doubt| **doubt != Doubt::NotFirm);
        let words: Vec<&str> = std::iter::once(verdict(judged))
            .chain(doubts.map(|doubt| doubt.words()))
            .collect();
        PromiseRow {
            verdict: words.join("; "),
            kept: kept(judged).filter(|_| row.doubts.is_empty()),
            ..drawn(judged, rate)
        }
    };
    Promise {
        product: held.promise.name(),
        place: place.to_owned(),
        source: held.promise.origin(),
        sentence: Some(held.sentence()),
        conditions: held.conditions.clone(),
        rows: held.rows.iter().map(row).collect(),
    }
}

/// The fastest figure of a metric in a place, and its rate.
fn fastest<'a>(
    runs: impl Iterator<Item = &'a Run>,
    place: &str,
    metric: Metric,
) -> Option<(&'a Figure, Rate)> {
    let direction = match metric {
        Metric::ReadIops | Metric::ReadBandwidth => "read",
        Metric::WriteIops | Metric::WriteBandwidth => "write",
        // Figures are of one direction each.
        Metric::Iops | Metric::Bandwidth => return None,
    };
    let rate = |figure: &Figure| match metric.is_iops() {
        true => figure.iops,
        false => figure.bytes_per_s,
    };
    runs.filter(|run| run.place == place && !run.preparation && is_one_way(run))
        .flat_map(|run| &run.figures)
        .filter(|figure| figure.direction == direction)
        .map(|figure| (figure, rate(figure)))
        .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
}

/// Whether a run moves data one way only: a mix shares its limits between both.
fn is_one_way(run: &Run) -> bool {
    let moved = |figure: &&Figure| figure.bytes > 0;
    let mut directions = run
        .figures
        .iter()
        .filter(moved)
        .map(|figure| figure.direction);
    let first = directions.next();
    directions.all(|other| Some(other) == first)
}

fn row(promise: &limits::Promise, metric: Metric, found: (&Figure, Rate)) -> Option<PromiseRow> {
    let (figure, rate) = found;
    let judged = promise
        .judge(&[Measured {
            metric,
            per_s: rate.mean,
            error: rate.error,
            block_bytes: Some(figure.block_bytes[1]),
        }])
        .pop()?;
    Some(drawn(&judged, rate))
}

fn drawn(judged: &Judged, measured: Rate) -> PromiseRow {
    PromiseRow {
        what: judged.metric.to_string(),
        unit: if judged.metric.is_iops() {
            Unit::Iops
        } else {
            Unit::BytesPerS
        },
        promised: judged.promised_per_s,
        measured,
        verdict: verdict(judged).to_owned(),
        kept: kept(judged),
    }
}

fn kept(judged: &Judged) -> Option<bool> {
    match judged.verdict {
        Verdict::Kept | Verdict::Bursting => Some(true),
        Verdict::Below => Some(false),
        Verdict::Above => None,
    }
}

fn verdict(judged: &Judged) -> &'static str {
    match judged.verdict {
        Verdict::Kept => "as promised",
        Verdict::Bursting => "a burst: more than can be kept up",
        Verdict::Below if judged.firm => "less than promised",
        Verdict::Below => "less than published, which is not promised on this machine",
        Verdict::Above => "more than is promised at all: a cache, or another product",
    }
}
