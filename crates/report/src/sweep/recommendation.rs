//! Recommended depth and number of jobs of each workload, from measured cells only.

use super::several_values;
use crate::known_digits::{
    APPROXIMATE_MARK, BANDWIDTH_UNITS, LATENCY_UNITS, RATE_UNITS, with_interval,
};
use crate::text_style::TextStyle;
use crate::{grouped, listed};
use iosonde_job::escape_control_characters;
use iosonde_study::saturation::Saturation;
use iosonde_study::sweep::{Axis, CellBasis, CurveState, LARGE_BYTES, SweepCell, SweepResult};
use iosonde_study::words;

/// Smallest share of the highest rate that a recommended cell reaches.
const SHARE_LEAST: f64 = 0.95;
/// Smallest share of the highest rate that the interval of a recommended cell allows.
const SHARE_BOUND_LEAST: f64 = 0.9;
/// Smallest share of the highest rate that counts as this rate: the share that reads as 100 %.
const SAME_RATE_LEAST: f64 = 0.995;
/// Largest relative error of a highest rate that supports a recommendation.
const MAXIMUM_ERROR_MOST: f64 = 0.2;
/// A cell has a lower latency if it has at most this share of the other.
const LOWER_LATENCY_MOST: f64 = 0.95;
/// Largest width of the name of a workload.
const SUBJECT_COLUMNS: usize = 40;

/// Position of a cell in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellAddress {
    /// Index of the curve.
    pub(super) curve: usize,
    /// Index of the cell in its curve.
    pub(super) cell: usize,
}

/// Recommendation for one workload: all axes but `numjobs` and `iodepth`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recommendation {
    /// The workload: values of all axes but `numjobs` and `iodepth`.
    pub(super) values: Vec<String>,
    /// Values that distinguish the workload from others. Empty if there is one workload.
    subject: String,
    /// Cell that the measured cells support.
    pub(super) outcome: RecommendedCell,
    /// Cell with the highest measured rate.
    fastest: CellAddress,
    /// Whether the search of a curve was cut off.
    is_cut_off: bool,
    /// Options of other curves whose searches ended below depths that may be faster: `numjobs=4`.
    unmeasured: Vec<String>,
}

/// Cell that the measured cells of a workload support.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RecommendedCell {
    /// A cell with almost the highest rate and a lower latency.
    BelowMaximum {
        /// The cell.
        address: CellAddress,
        /// Share of the highest measured rate, and half its interval.
        rate_share: (f64, f64),
        /// Share of the lowest mean latency of cells with the highest rate.
        latency_share: f64,
    },
    /// Of the cells with the highest rate, the one with the lowest latency.
    Maximum {
        /// The cell.
        address: CellAddress,
        /// Whether a cell of lower latency may reach the rate too.
        has_rival: bool,
    },
    /// The highest rate is not known well enough. Its relative error, if known.
    Undecided(Option<f64>),
    /// The search of the fastest curve ended at this cell, and deeper ones may be faster.
    DeeperUnmeasured(CellAddress),
}

/// A measured cell with its figures.
#[derive(Debug, Clone, Copy)]
struct MeasuredCell {
    address: CellAddress,
    rate: f64,
    /// Relative error of the rate.
    error: Option<f64>,
    latency_ns: f64,
    in_flight: u64,
}

/// Returns a recommendation for each workload that has a choice of cells.
pub(super) fn recommendations(result: &SweepResult) -> Vec<Recommendation> {
    let curves = result.curves.iter().enumerate().map(|(index, curve)| {
        let axes = result.axes.iter().zip(&curve.values);
        let kept = axes.filter(|(axis, _)| axis.name != "numjobs");
        let values = kept.map(|(_, value)| value.as_str());
        (values.collect::<Vec<&str>>(), index)
    });
    let workloads = grouped(curves);
    let recommended = workloads.iter().filter_map(|(values, curves)| {
        let cells = measured_cells(result, curves);
        let outcome = checked_outcome(result, &cells)?;
        let fastest = cells.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
        let others = curves
            .iter()
            .filter(|index| **index != fastest.address.curve);
        let state = |index: &usize| result.curves[*index].state;
        Some(Recommendation {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            subject: subject(result, *curves.first()?),
            outcome,
            fastest: fastest.address,
            is_cut_off: curves
                .iter()
                .any(|index| state(index) != CurveState::Complete),
            unmeasured: others
                .map(|index| &result.curves[*index])
                .filter(|curve| {
                    curve
                        .saturation
                        .as_ref()
                        .is_some_and(Saturation::is_open_ended)
                })
                .map(|curve| format!("numjobs={}", curve.numjobs))
                .collect(),
        })
    });
    recommended.collect()
}

fn subject(result: &SweepResult, curve: usize) -> String {
    let pairs = result.axes.iter().zip(&result.curves[curve].values);
    let pairs = pairs.filter(|(axis, _)| axis.name != "numjobs");
    label(&several_values(pairs), SUBJECT_COLUMNS)
}

fn measured_cells(result: &SweepResult, curves: &[usize]) -> Vec<MeasuredCell> {
    let of_curve = |index: &usize| {
        let (index, curve) = (*index, &result.curves[*index]);
        let cells = curve.cells.iter().enumerate();
        cells.filter_map(move |(cell, figures)| {
            let address = CellAddress { curve: index, cell };
            MeasuredCell::new(address, curve.numjobs, figures)
        })
    };
    curves.iter().flat_map(of_curve).collect()
}

impl MeasuredCell {
    fn new(address: CellAddress, numjobs: u32, cell: &SweepCell) -> Option<MeasuredCell> {
        let rate = cell.iops.filter(|_| cell.basis == CellBasis::Measured)?;
        Some(MeasuredCell {
            address,
            rate: rate.mean,
            error: rate.relative_error(),
            latency_ns: cell.mean_latency_ns?,
            in_flight: u64::from(numjobs) * u64::from(cell.iodepth),
        })
    }
}

/// Like [`outcome`], but a cell is only recommended if its curve was measured beyond the fastest.
fn checked_outcome(result: &SweepResult, cells: &[MeasuredCell]) -> Option<RecommendedCell> {
    let outcome = outcome(cells)?;
    let fastest = cells.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
    let found = result.curves[fastest.address.curve].saturation.as_ref();
    let is_supported = !matches!(outcome, RecommendedCell::Undecided(_));
    match found.is_some_and(Saturation::is_open_ended) && is_supported {
        true => Some(RecommendedCell::DeeperUnmeasured(fastest.address)),
        false => Some(outcome),
    }
}

/// Returns `None` for fewer than two cells, which leave no choice.
fn outcome(cells: &[MeasuredCell]) -> Option<RecommendedCell> {
    if cells.len() < 2 {
        return None;
    }
    let most = cells.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
    let error = most.error.filter(|error| *error <= MAXIMUM_ERROR_MOST);
    let Some(error) = error.filter(|_| most.rate > 0.0) else {
        return Some(RecommendedCell::Undecided(most.error));
    };
    let share = |cell: &MeasuredCell| cell.rate / most.rate;
    let half = |cell: &MeasuredCell| Some(share(cell) * cell.error?.hypot(error));
    let is_sure = |cell: &&MeasuredCell| {
        half(cell).is_some_and(|half| share(cell) - half >= SHARE_BOUND_LEAST)
    };
    // Deeper cells of a plateau have the same rate at a multiple of the latency.
    let same = cells.iter().filter(|cell| share(cell) >= SAME_RATE_LEAST);
    let reference = quickest(same.filter(is_sure)).unwrap_or(most);
    let is_near = |cell: &&MeasuredCell| {
        cell.latency_ns <= reference.latency_ns * LOWER_LATENCY_MOST && share(cell) >= SHARE_LEAST
    };
    let near = || cells.iter().filter(is_near);
    Some(match quickest(near().filter(is_sure)) {
        Some(cell) => RecommendedCell::BelowMaximum {
            address: cell.address,
            rate_share: (share(cell), half(cell).unwrap_or_default()),
            latency_share: cell.latency_ns / reference.latency_ns,
        },
        None => RecommendedCell::Maximum {
            address: reference.address,
            has_rival: near().next().is_some(),
        },
    })
}

/// The cell with the lowest latency, and of equal ones that with the fewest I/Os in flight.
fn quickest<'a>(cells: impl Iterator<Item = &'a MeasuredCell>) -> Option<&'a MeasuredCell> {
    cells.min_by(|a, b| {
        let latencies = a.latency_ns.total_cmp(&b.latency_ns);
        latencies.then(a.in_flight.cmp(&b.in_flight))
    })
}

impl Recommendation {
    /// Returns the recommended cell, if the intervals support one.
    pub(super) fn address(&self) -> Option<CellAddress> {
        match self.outcome {
            RecommendedCell::BelowMaximum { address, .. }
            | RecommendedCell::Maximum { address, .. } => Some(address),
            RecommendedCell::Undecided(_) | RecommendedCell::DeeperUnmeasured(_) => None,
        }
    }

    /// Share of a measured cell's rate in the highest measured rate: `57 % of the highest measured
    /// rate`. `None`: the rates are equal, or one is not known.
    pub(super) fn rate_share(&self, result: &SweepResult, address: CellAddress) -> Option<String> {
        let rate = |address: CellAddress| {
            let cell = &result.curves[address.curve].cells[address.cell];
            cell.iops.filter(|_| cell.basis == CellBasis::Measured)
        };
        let (own, most) = (rate(address)?, rate(self.fastest)?);
        let share = own.mean / most.mean;
        if most.mean <= 0.0 || share >= SAME_RATE_LEAST {
            return None;
        }
        let errors = own.relative_error().zip(most.relative_error());
        let half = errors.map(|(own, most)| share * own.hypot(most));
        let share = match half.filter(|half| *half < share) {
            Some(half) => percent(share, half, TextStyle::PLAIN),
            None => format!("{APPROXIMATE_MARK}{} %", words::whole_percent(share)),
        };
        Some(format!("{share} of the highest measured rate"))
    }

    /// Whether the sentence restricts the recommendation: another cell may be as good.
    pub(super) fn has_caveat(&self) -> bool {
        let has_rival = matches!(
            self.outcome,
            RecommendedCell::Maximum {
                has_rival: true,
                ..
            }
        );
        has_rival || self.is_cut_off || !self.unmeasured.is_empty()
    }

    /// Returns the recommendation as a sentence.
    pub(super) fn sentence(&self, result: &SweepResult, style: TextStyle) -> String {
        let maximum = match self.unmeasured.is_empty() {
            true => "the maximum",
            false => "the highest measured rate",
        };
        let finding = match self.outcome {
            RecommendedCell::BelowMaximum {
                address,
                rate_share: (share, half),
                latency_share,
            } => format!(
                "{}: {} of {maximum} at {} ({})",
                options(result, address),
                percent(share, half, style),
                latency(latency_share),
                figures(result, address, style)
            ),
            RecommendedCell::Maximum {
                address,
                has_rival: false,
            } => format!(
                "{}: {maximum} ({})",
                options(result, address),
                figures(result, address, style)
            ),
            RecommendedCell::Maximum { address, .. } => format!(
                "{}: the highest measured rate ({}); cells of lower latency may reach it too: \
                 use a longer --runtime",
                options(result, address),
                figures(result, address, style)
            ),
            RecommendedCell::Undecided(Some(error)) if error > 1.0 => {
                "undecided: the highest rate is uncertain by more than 100 %; use a longer \
                 --runtime"
                    .to_owned()
            }
            RecommendedCell::Undecided(Some(error)) => format!(
                "undecided: the highest rate is known to {}{:.0} % only; use a longer --runtime",
                style.plus_minus(),
                (error * 100.0).ceil()
            ),
            RecommendedCell::Undecided(None) => {
                "undecided: the highest rate has no interval; use a longer --runtime".to_owned()
            }
            RecommendedCell::DeeperUnmeasured(address) => format!(
                "undecided: more than {} was not measured in the time and may be faster; use a \
                 longer --runtime",
                options(result, address)
            ),
        };
        let space = if self.subject.is_empty() { "" } else { ": " };
        let end = if self.is_cut_off {
            "; the search was cut off"
        } else {
            ""
        };
        let unmeasured = self.unmeasured_in_words();
        format!("{}{space}{unmeasured}{finding}{end}", self.subject)
    }

    /// Names other curves whose deeper cells may be faster, or only counts them. It precedes the
    /// finding, so that no short report cuts it off.
    fn unmeasured_in_words(&self) -> String {
        match self.unmeasured.as_slice() {
            [] => String::new(),
            options @ [_, _, _, ..] => format!(
                "more depth was not measured with {} other numjobs; ",
                options.len()
            ),
            options => format!("more depth was not measured with {}; ", listed(options)),
        }
    }
}

/// Options that select a cell, as fio names them.
fn options(result: &SweepResult, address: CellAddress) -> String {
    let curve = &result.curves[address.curve];
    let depth = curve.cells[address.cell].iodepth;
    let has_jobs = |axis: &Axis| axis.name == "numjobs" && axis.values.len() > 1;
    match result.axes.iter().any(has_jobs) {
        true => format!("iodepth={depth}, numjobs={}", curve.numjobs),
        false => format!("iodepth={depth}"),
    }
}

/// Rate of a cell with its interval, and its mean latency: `3.92k ±0.01k IOPS, mean 1.02 ms`.
fn figures(result: &SweepResult, address: CellAddress, style: TextStyle) -> String {
    let curve = &result.curves[address.curve];
    let cell = &curve.cells[address.cell];
    let rate = cell.iops.map(|iops| {
        let bytes = cell
            .bytes_per_s
            .filter(|_| curve.block_bytes >= LARGE_BYTES);
        match bytes {
            Some(bytes) => {
                let block_bytes = bytes / iops.mean.max(f64::MIN_POSITIVE);
                let error = iops.error.map(|error| error * block_bytes);
                with_interval(bytes, error, BANDWIDTH_UNITS, style.plus_minus())
            }
            None => {
                let rate = with_interval(iops.mean, iops.error, RATE_UNITS, style.plus_minus());
                format!("{rate} IOPS")
            }
        }
    });
    let latency = cell.mean_latency_ns;
    let latency = latency.map(|ns| {
        let error = cell.mean_latency_error_ns();
        let sign = style.plus_minus();
        format!("mean {}", with_interval(ns, error, LATENCY_UNITS, sign))
    });
    let parts: Vec<String> = rate.into_iter().chain(latency).collect();
    parts.join(", ")
}

/// Formats a share, rounded down as in the sentence of its curve, with half its interval, unless
/// that rounds to zero: `98 %`, `97 ±2 %`.
fn percent(share: f64, half: f64, style: TextStyle) -> String {
    let (percent, half_percent) = (words::whole_percent(share), half * 100.0);
    match half_percent < 0.5 {
        true => format!("{percent} %"),
        false => format!(
            "{percent} {}{:.0} %",
            style.plus_minus(),
            half_percent.ceil()
        ),
    }
}

fn latency(share: f64) -> String {
    match share {
        0.475..0.525 => "half its latency".to_owned(),
        share if share < 0.01 => "less than 1 % of its latency".to_owned(),
        share => format!("{:.0} % of its latency", share * 100.0),
    }
}
/// Escapes control characters and keeps the end of a long name, where paths differ.
pub(crate) fn label(text: &str, width: usize) -> String {
    const CUT: &str = "...";
    let text = escape_control_characters(text).replace(['\n', '\t'], " ");
    let count = text.chars().count();
    match count > width {
        true => {
            let kept = text.chars().skip(count + CUT.len() - width);
            CUT.chars().chain(kept).collect()
        }
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undecided(error: Option<f64>) -> Recommendation {
        Recommendation {
            values: Vec::new(),
            subject: String::new(),
            outcome: RecommendedCell::Undecided(error),
            fastest: CellAddress { curve: 0, cell: 0 },
            is_cut_off: false,
            unmeasured: Vec::new(),
        }
    }

    #[test]
    fn caveat_is_reported_for_each_restriction() {
        let address = CellAddress { curve: 0, cell: 0 };
        let with_rival = |has_rival: bool| Recommendation {
            outcome: RecommendedCell::Maximum { address, has_rival },
            ..undecided(None)
        };
        assert!(!with_rival(false).has_caveat());
        assert!(with_rival(true).has_caveat());
        let cut_off = Recommendation {
            is_cut_off: true,
            ..with_rival(false)
        };
        let unmeasured = Recommendation {
            unmeasured: vec!["numjobs=4".to_owned()],
            ..with_rival(false)
        };
        assert!(cut_off.has_caveat() && unmeasured.has_caveat());
    }

    #[test]
    fn curves_without_depth_are_counted_if_many() {
        let with = |count: usize| Recommendation {
            unmeasured: (1..=count).map(|jobs| format!("numjobs={jobs}")).collect(),
            ..undecided(None)
        };
        let start = "more depth was not measured with";
        assert_eq!(with(0).unmeasured_in_words(), "");
        assert_eq!(
            with(2).unmeasured_in_words(),
            format!("{start} numjobs=1 and numjobs=2; ")
        );
        assert_eq!(
            with(3).unmeasured_in_words(),
            format!("{start} 3 other numjobs; ")
        );
    }
}
