//! Texts for the parts of a promise, for tables of all kinds.

use iosonde_limits::{BurstLength, Promise, PromisedFigure, exact};
use iosonde_study::words::duration;

/// The sustained figure, or its range.
pub(super) fn sustained(figure: &PromisedFigure) -> String {
    let low = figure.unit.show(figure.per_s);
    match figure.up_to_per_s {
        Some(up_to) => format!(
            "{} to {}",
            exact(figure.per_s / figure.unit.factor()),
            figure.unit.show(up_to)
        ),
        None => low,
    }
}

/// The burst figure; `-` if there is none.
pub(super) fn burst(figure: &PromisedFigure) -> String {
    match &figure.burst {
        Some(burst) => burst.unit.show(burst.per_s),
        None => "-".to_owned(),
    }
}

/// The next higher limit.
pub(super) fn next_limit_text(figure: &PromisedFigure) -> String {
    let next = figure
        .bounds
        .iter()
        .find(|bound| bound.per_s > figure.per_s);
    match next {
        Some(bound) => format!("{}: {}", bound.by, bound.unit.show(bound.per_s)),
        None => "-".to_owned(),
    }
}

/// Remarks that a reader of the figures needs.
pub(super) fn remarks(promise: &Promise) -> Vec<String> {
    let mut remarks: Vec<String> = promise
        .remarks
        .iter()
        .map(|remark| sentence(remark))
        .collect();
    let shared = match (promise.shared.iops, promise.shared.bandwidth) {
        (true, true) => Some("operations and bandwidth"),
        (true, false) => Some("operations, but not of bandwidth"),
        (false, true) => Some("bandwidth, but not of operations"),
        (false, false) => None,
    };
    remarks.extend(shared.map(|of| format!("Reads and writes share one budget of {of}.")));
    remarks.extend(promise.bursts.iter().map(lasts));
    if let Some(bytes) = promise.max_io_bytes {
        remarks.push(format!(
            "An I/O larger than {} KiB counts as several I/Os.",
            bytes >> 10
        ));
    }
    if let Some(delivery) = promise.delivery {
        let share = if delivery.share < 1.0 {
            format!("{} % of the limit", exact(delivery.share * 100.0))
        } else {
            "the limit".to_owned()
        };
        let time = exact(delivery.time * 100.0);
        remarks.push(format!(
            "The vendor's target is to deliver {share} {time} % of the time."
        ));
    }
    remarks
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// The duration of a burst.
fn lasts(burst: &BurstLength) -> String {
    let of = match burst.metric {
        Some(metric) => format!("the volume's {metric}"),
        None => burst.of.to_string(),
    };
    let refill = burst.refill_seconds.map_or(String::new(), |seconds| {
        format!(", which takes {} to fill", duration(seconds))
    });
    let note = burst
        .note
        .as_ref()
        .map_or(String::new(), |note| format!(" {note}"));
    format!(
        "Burst of {of}: {} from a full bucket{refill}.{note}",
        duration(burst.seconds)
    )
}

/// One line for each source.
pub(super) fn sources(promise: &Promise) -> Vec<String> {
    let of = |source: &iosonde_limits::LimitsSource| {
        let verified = if source.verified {
            ""
        } else {
            ", not verified"
        };
        format!(
            "{} ({}; {}{verified}): {}",
            source.of,
            source.as_of,
            source.evidence.text(),
            source.source
        )
    };
    promise.sources.iter().map(of).collect()
}
