//! Results of latency objectives in words.

use super::{is_judged, latency, longest, percentile};
use iosonde_study::load::{LoadResult, Objective, ObjectiveAnswer};
use iosonde_study::words;

/// States that an objective is out of reach: its latency is below the median at the lowest rate
/// that has one. `None`: a longer study may decide it.
pub(super) fn out_of_reach(result: &LoadResult, found: &ObjectiveAnswer) -> Option<String> {
    let (objective, answer) = (found.objective, found.answer);
    if answer.held.is_some() || answer.failed.is_none() || objective.percentile < 50.0 {
        return None;
    }
    answer.untold?;
    let points = result.points.iter().filter(|point| is_judged(point));
    let known = points.filter(|point| point.percentile_ns(50.0).is_some());
    let lowest = known.min_by(|a, b| a.offered.total().total_cmp(&b.offered.total()))?;
    let (rate, ns) = (lowest.offered.total(), lowest.percentile_ns(50.0)?);
    let mut rates = result.points.iter().map(|point| point.offered.total());
    let place = match rates.all(|other| other >= rate) {
        true => "the lowest rate".to_owned(),
        false => format!("{} IOPS", words::iops_text(rate)),
    };
    let is_above = ns > objective.latency_ns as f64;
    let p50 = percentile(lowest, 50.0);
    is_above.then(|| format!("out of reach: p50 at {place} is {p50}"))
}

/// Describes the result of an objective of `result`: the rate that keeps it with its latency, and
/// the rate that does not.
pub fn objective(result: &LoadResult, found: &ObjectiveAnswer) -> String {
    let (objective, answer) = (found.objective, found.answer);
    if let Some(reason) = out_of_reach(result, found) {
        return format!("{objective}: {reason}");
    }
    let iops = |rate: f64| format!("{} IOPS", words::iops_text(rate));
    let kept = |rate: f64| match figure_at(result, objective, rate) {
        Some(figure) => format!("{} ({figure})", iops(rate)),
        None => iops(rate),
    };
    let verdict = match (answer.held, answer.failed, answer.untold) {
        (Some(held), Some(failed), _) if answer.is_interval => format!(
            "met up to {}, missed from {} on; undecided between them",
            kept(held),
            iops(failed)
        ),
        (Some(held), Some(failed), _) => {
            format!("met up to {}, missed at {}", kept(held), iops(failed))
        }
        (Some(held), None, Some(untold)) => format!(
            "met up to {}; undecided above it, up to {}, the highest offered rate",
            kept(held),
            iops(untold)
        ),
        (Some(held), None, None) => {
            format!("met at all offered rates, up to {}", kept(held))
        }
        (None, Some(failed), Some(untold)) if untold < failed => format!(
            "missed from {} on; undecided at {} and below",
            iops(failed),
            iops(untold)
        ),
        (None, Some(failed), Some(_)) => format!(
            "missed from {} on; lower rates have too few I/Os for {}; use a longer runtime",
            iops(failed),
            objective.measure()
        ),
        (None, Some(failed), None) => {
            format!("missed at all offered rates, down to {}", iops(failed))
        }
        (None, None, Some(untold)) => {
            format!("undecided at all offered rates, up to {}", iops(untold))
        }
        (None, None, None) => "no rate was measured completely".to_owned(),
    };
    format!("{objective}: {verdict}")
}

/// Measured latency of an objective at an offered rate, with its known digits: `p99 2.1 ms`.
/// `None`: too few I/Os were measured.
fn figure_at(result: &LoadResult, objective: Objective, rate: f64) -> Option<String> {
    let mut points = result.points.iter().filter(|point| is_judged(point));
    let point = points.find(|point| point.offered.total().total_cmp(&rate).is_eq())?;
    let figure = match objective.percentile {
        100.0 => latency(Some(longest(point)?)),
        percent => {
            point.percentile_ns(percent)?;
            percentile(point, percent)
        }
    };
    Some(format!("{} {figure}", objective.measure()))
}
