//! Knee of a load study: the offered rate beyond which latency grows faster than the rate.
//!
//! The knee is the rate with the highest ratio of rate to p99, as in Kleinrock's power (L.
//! Kleinrock, ICC 1979), which is the ratio of rate to mean latency.

use super::{is_judged, percent_of, percentile_half_ns};
use crate::known_digits::{LATENCY_UNITS, known_digits};
use iosonde_study::load::{LoadMeasurement, LoadResult};
use iosonde_study::words;

/// Smallest number of rates with a p99 that can show a knee.
const RATES_LEAST: usize = 3;
/// Factor by which p99 has grown at the rate that is named beside the knee.
const GROWN: f64 = 2.0;

/// The knee of a load study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KneeRate {
    /// Offered I/Os per second.
    pub(super) rate: f64,
    /// 99th percentile of the latency.
    pub(super) p99_ns: f64,
    /// Half its interval. `None`: unknown.
    p99_half_ns: Option<f64>,
    beyond: BeyondKnee,
}

/// Behaviour at higher rates.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BeyondKnee {
    /// The latency is higher: at the next measured rate, and at the first that has [`GROWN`] times
    /// the latency.
    Slower {
        next: MeasuredRate,
        grown: Option<MeasuredRate>,
    },
    /// The target fell behind.
    FellBehind { rate: f64 },
}

/// A rate beyond the knee.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredRate {
    rate: f64,
    p99_ns: f64,
    p99_half_ns: Option<f64>,
}

impl MeasuredRate {
    /// Formats `260 us at 55.1k`.
    fn words(&self) -> String {
        let p99 = p99_text(self.p99_ns, self.p99_half_ns);
        format!("{p99} at {}", words::iops_text(self.rate))
    }
}

/// Offered rate and p99 of each rate that the target sustained.
fn sustained(result: &LoadResult) -> Vec<(f64, f64)> {
    let points = result.points.iter().filter(|point| is_judged(point));
    let rates =
        points.filter_map(|point| Some((point.offered.total(), point.percentile_ns(99.0)?)));
    rates.collect()
}

/// Half the interval of the p99 at a rate that the target sustained.
fn p99_half_ns(result: &LoadResult, rate: f64) -> Option<f64> {
    let mut points = result.points.iter().filter(|point| is_judged(point));
    let point = points.find(|point| point.offered.total().total_cmp(&rate).is_eq())?;
    percentile_half_ns(point, 99.0)
}

/// Formats a p99 with its known digits.
fn p99_text(p99_ns: f64, half_ns: Option<f64>) -> String {
    known_digits(p99_ns, half_ns, LATENCY_UNITS)
}

/// Whether the target did not keep up with the rate. A failed run does not show it.
pub(crate) fn has_fallen_behind(point: &LoadMeasurement) -> bool {
    !point.kept_up && !point.interrupted && point.failure.is_none()
}

/// The lowest offered rate above `rate` at which the target fell behind.
fn lowest_behind(result: &LoadResult, rate: f64) -> Option<f64> {
    let points = result
        .points
        .iter()
        .filter(|point| has_fallen_behind(point));
    let rates = points.map(|point| point.offered.total());
    rates.filter(|other| *other > rate).min_by(f64::total_cmp)
}

impl KneeRate {
    /// Returns `None` if the rates are too few, or if none is beyond the knee.
    pub(super) fn of_result(result: &LoadResult) -> Option<KneeRate> {
        let known = sustained(result);
        if known.len() < RATES_LEAST {
            return None;
        }
        let power = |(rate, p99_ns): (f64, f64)| rate / p99_ns.max(f64::MIN_POSITIVE);
        let best = known.iter().copied();
        let (rate, p99_ns) = best.max_by(|a, b| power(*a).total_cmp(&power(*b)))?;
        let is_slower = |(other, ns): &(f64, f64)| *other > rate && *ns > p99_ns;
        let mut slower: Vec<(f64, f64)> = known.iter().copied().filter(is_slower).collect();
        slower.sort_by(|a, b| a.0.total_cmp(&b.0));
        let measured = |(rate, p99_ns): &(f64, f64)| MeasuredRate {
            rate: *rate,
            p99_ns: *p99_ns,
            p99_half_ns: p99_half_ns(result, *rate),
        };
        let grown = slower.iter().skip(1).find(|(_, ns)| *ns >= GROWN * p99_ns);
        let slower = slower.first().map(|next| BeyondKnee::Slower {
            next: measured(next),
            grown: grown.filter(|_| next.1 < GROWN * p99_ns).map(&measured),
        });
        let behind = lowest_behind(result, rate).map(|rate| BeyondKnee::FellBehind { rate });
        Some(KneeRate {
            rate,
            p99_ns,
            p99_half_ns: p99_half_ns(result, rate),
            beyond: slower.or(behind)?,
        })
    }

    /// Returns the knee as a sentence.
    pub(super) fn sentence(&self, capacity_iops: Option<f64>) -> String {
        let share = capacity_iops.map_or(String::new(), |capacity| {
            format!(" ({} % of capacity)", percent_of(self.rate, capacity))
        });
        let beyond = match self.beyond {
            BeyondKnee::Slower { next, grown } => {
                let grown = grown.map(|grown| format!(" and {}", grown.words()));
                format!("{}{}", next.words(), grown.unwrap_or_default())
            }
            BeyondKnee::FellBehind { rate } => {
                format!("the target fell behind at {}", words::iops_text(rate))
            }
        };
        format!(
            "near {} IOPS{share}: p99 is {}, {beyond}",
            words::iops_text(self.rate),
            p99_text(self.p99_ns, self.p99_half_ns)
        )
    }
}

/// Offered rate and p99 of the highest rate that the target sustained.
fn highest_sustained(result: &LoadResult) -> Option<(f64, f64)> {
    let known = sustained(result).into_iter();
    known.max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// The highest offered rate that the target sustained. `None` without a rate that has a p99.
pub(crate) fn sustained_per_s(result: &LoadResult) -> Option<f64> {
    highest_sustained(result).map(|(rate, _)| rate)
}

/// Describes the knee, or why the study shows none.
pub(crate) fn knee_in_words(result: &LoadResult) -> String {
    let knee = KneeRate::of_result(result);
    let knee = knee.map(|knee| knee.sentence(result.capacity_iops));
    knee.or_else(|| without_knee(result)).unwrap_or_else(|| {
        let reason = match result.points.as_slice() {
            [] => "no rate was measured",
            points if points.iter().all(has_fallen_behind) => {
                "the target sustained no offered rate"
            }
            _ => "no sustained rate has a p99",
        };
        format!("none shown: {reason}")
    })
}

/// Names the highest sustained rate of a study that shows no knee, and the rate at which the target
/// fell behind.
pub(super) fn without_knee(result: &LoadResult) -> Option<String> {
    let highest = highest_sustained(result)?;
    let behind = lowest_behind(result, highest.0);
    let p99 = p99_text(highest.1, p99_half_ns(result, highest.0));
    let count = sustained(result).len();
    Some(words_without_knee(count, (highest.0, &p99), behind))
}

/// Describes a study of `count` sustained rates that shows no knee: its highest sustained rate with
/// p99, and the rate at which the target fell behind.
fn words_without_knee(count: usize, (rate, p99): (f64, &str), behind: Option<f64>) -> String {
    let start = match count {
        ..RATES_LEAST => format!("not known from fewer than {RATES_LEAST} sustained rates"),
        _ => "none shown".to_owned(),
    };
    let behind = behind.map_or(String::new(), |behind| {
        format!("; the target fell behind at {}", words::iops_text(behind))
    });
    format!(
        "{start}: p99 is {p99} at {} IOPS, the highest sustained rate{behind}",
        words::iops_text(rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hanging_lines::HangingLines;
    use crate::load::short_load::SECTION_LINES;

    /// Sentences of the widest figures.
    #[test]
    fn knee_fits_the_lines_of_its_section() {
        let (rate, p99_ns) = (123_400.0, 12.34e6);
        let knee = |beyond: BeyondKnee| KneeRate {
            rate,
            p99_ns,
            p99_half_ns: None,
            beyond,
        };
        let measured = MeasuredRate {
            rate,
            p99_ns,
            p99_half_ns: None,
        };
        let slower = BeyondKnee::Slower {
            next: measured,
            grown: Some(measured),
        };
        let p99 = p99_text(p99_ns, None);
        let sentences = [
            knee(slower).sentence(Some(rate)),
            knee(BeyondKnee::FellBehind { rate }).sentence(Some(rate)),
            words_without_knee(2, (rate, &p99), Some(rate)),
            words_without_knee(9, (1_234.0, &p99), Some(1_234.0)),
        ];
        for sentence in sentences {
            assert!(
                !HangingLines::new("knee", &sentence, SECTION_LINES).is_cut,
                "{sentence}"
            );
        }
    }

    #[test]
    fn sentence_names_what_lies_beyond_the_knee() {
        let knee = |beyond: BeyondKnee| KneeRate {
            rate: 3500.0,
            p99_ns: 1.45e6,
            p99_half_ns: Some(1e3),
            beyond,
        };
        let measured = |rate: f64, p99_ns: f64, p99_half_ns| MeasuredRate {
            rate,
            p99_ns,
            p99_half_ns,
        };
        let next = measured(4500.0, 4.09e6, None);
        let slower = BeyondKnee::Slower { next, grown: None };
        assert_eq!(
            knee(slower).sentence(Some(5000.0)),
            "near 3.50k IOPS (70 % of capacity): p99 is 1.45 ms, ~4.1 ms at 4.50k"
        );
        // The next rate is not skipped if another has twice the latency.
        let both = BeyondKnee::Slower {
            next: measured(4000.0, 1.8e6, Some(1e3)),
            grown: Some(next),
        };
        assert_eq!(
            knee(both).sentence(None),
            "near 3.50k IOPS: p99 is 1.45 ms, 1.80 ms at 4.00k and ~4.1 ms at 4.50k"
        );
        let behind = BeyondKnee::FellBehind { rate: 5500.0 };
        assert_eq!(
            knee(behind).sentence(None),
            "near 3.50k IOPS: p99 is 1.45 ms, the target fell behind at 5.50k"
        );
    }
}
