//! Result of a comparison of two sides: rows with verdicts.

use super::between_runs::BetweenRuns;
use super::comparison_note::ComparisonNote;
use super::confidence_interval::{LEVEL, Ratio, ratio};
use super::figure::{Bounds, IntervalBasis, Measure, Subject, informative_interval};
use super::group::ResultSpread;
use serde::{Deserialize, Serialize};

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Rows: one per figure that both sides have.
    pub rows: Vec<ComparisonRow>,
    /// Names of parts that only the first side has.
    pub only_in_a: Vec<String>,
    /// Names of parts that only the second side has.
    pub only_in_b: Vec<String>,
    /// Notes needed to interpret the rows, one sentence each.
    pub notes: Vec<ComparisonNote>,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Name of the part on the first side.
    pub part: String,
    /// The I/O that the figure concerns.
    pub subject: Subject,
    /// The measured quantity.
    pub measure: Measure,
    /// Figure of the first side.
    pub a: ComparedSide,
    /// Figure of the second side.
    pub b: ComparedSide,
    /// Second figure divided by the first, with its 95 % confidence interval.
    pub ratio: Ratio,
    /// The ratio with an interval that holds for all rows together at 95 % (Bonferroni).
    pub joint: Ratio,
    /// Whether each machine was compared with itself.
    pub paired: bool,
    /// Verdict on the second side, relative to the first.
    pub verdict: ComparisonVerdict,
}

/// One side of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// Value of the figure, or the geometric mean of results, with equal weight per machine.
    pub value: f64,
    /// The 95 % confidence interval.
    pub bounds: Option<Bounds>,
    /// Number of results that have the figure.
    pub runs: usize,
    /// Number of machines on which these results ran.
    pub machines: usize,
    /// Spread of the results, if there are several.
    pub spread: Option<ResultSpread>,
    /// Whether any of the results was not steady.
    pub unsettled: bool,
    /// Spread of earlier runs with the same plan and target as a single result, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_runs: Option<BetweenRuns>,
}

impl ComparedSide {
    /// A figure of one result, without interval.
    #[must_use]
    pub fn from_value(value: f64) -> ComparedSide {
        ComparedSide {
            value,
            bounds: None,
            runs: 1,
            machines: 1,
            spread: None,
            unsettled: false,
            earlier_runs: None,
        }
    }
}

/// Verdict on the second side, relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The second side is faster.
    Faster,
    /// The second side is slower.
    Slower,
    /// The interval of the ratio contains 1.
    NoDifferenceShown,
    /// A figure has no interval, or that of the ratio contains 1 and is not informative.
    Undecided,
}

impl ComparisonVerdict {
    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            ComparisonVerdict::Faster => "faster",
            ComparisonVerdict::Slower => "slower",
            ComparisonVerdict::NoDifferenceShown => "no difference shown",
            ComparisonVerdict::Undecided => "undecided",
        }
    }

    pub(super) fn from_ratio(ratio: &Ratio, measure: Measure) -> ComparisonVerdict {
        let Some(ends) = ratio.interval else {
            return ComparisonVerdict::Undecided;
        };
        if !ratio.is_shown() {
            informative_interval(ratio.value, ends).map_or(ComparisonVerdict::Undecided, |_| {
                ComparisonVerdict::NoDifferenceShown
            })
        } else if (ratio.value > 1.0) == measure.more_is_faster() {
            ComparisonVerdict::Faster
        } else {
            ComparisonVerdict::Slower
        }
    }
}

impl ComparisonRow {
    /// Returns whether the means of both runs differ, but by no more than repeated runs would.
    pub(super) fn is_decided_by_slow_variation(&self) -> bool {
        let means = |side: &ComparedSide| {
            side.bounds.map(|bounds| Bounds {
                repeat_factor: 1.0,
                ..bounds
            })
        };
        let (a, b) = (means(&self.a), means(&self.b));
        let of_means = ratio(
            (self.a.value, a.as_ref()),
            (self.b.value, b.as_ref()),
            LEVEL,
        );
        !self.paired && !self.ratio.is_shown() && of_means.is_shown()
    }

    /// Returns whether a side was interpolated instead of measured.
    fn is_predicted(&self) -> bool {
        [&self.a, &self.b].into_iter().any(|side| {
            side.bounds
                .is_some_and(|bounds| bounds.basis == IntervalBasis::Predicted)
        })
    }

    /// Returns by how much the second side is slower: 0.05 is a 5 % lower rate or higher latency.
    pub fn slower_by(&self) -> f64 {
        if self.measure.more_is_faster() {
            1.0 - self.ratio.value
        } else {
            self.ratio.value - 1.0
        }
    }
}

/// Effective samples of a run that is long enough for an interval determined by its variance alone.
const EFFECTIVE_SAMPLES_WANTED: f64 = 16.0;

impl Comparison {
    /// Returns the rows that are slower by `share` or more, and significantly so for the number of
    /// figures: of 100 comparisons of equals, at most 5 have any. Predicted figures are excluded.
    pub fn slower_by(&self, share: f64) -> Vec<&ComparisonRow> {
        let is_one = |row: &&ComparisonRow| {
            let is_slower =
                ComparisonVerdict::from_ratio(&row.joint, row.measure) == ComparisonVerdict::Slower;
            is_slower && row.slower_by() >= share && !row.is_predicted()
        };
        self.rows.iter().filter(is_one).collect()
    }

    /// Returns the rows that look slower by `share` or more, if no measured row is decided: then an
    /// empty [`Comparison::slower_by`] says nothing about the second side.
    #[must_use]
    pub fn looks_slower_by(&self, share: f64) -> Vec<&ComparisonRow> {
        let measured = self.rows.iter().filter(|row| !row.is_predicted());
        let mut measured: Vec<&ComparisonRow> = measured.collect();
        let is_decided = |row: &&ComparisonRow| row.verdict != ComparisonVerdict::Undecided;
        if measured.iter().any(is_decided) {
            return Vec::new();
        }
        measured.retain(|row| row.slower_by() > 0.0 && row.slower_by() >= share);
        measured
    }

    /// Returns the least effort that decides the undecided rows. `None` if all rows are decided.
    pub fn find_deciding_effort(&self) -> Option<String> {
        if self.count(ComparisonVerdict::Undecided) == 0 {
            return None;
        }
        let sides = || self.rows.iter().flat_map(|row| [&row.a, &row.b]);
        let single = || sides().filter(|side| side.runs == 1);
        let short = single().filter_map(|side| {
            side.bounds
                .filter(|bounds| bounds.basis == IntervalBasis::Thirds)
        });
        let longer = short
            .map(|bounds| EFFECTIVE_SAMPLES_WANTED / (2.0 * bounds.freedom))
            .reduce(f64::max)
            .map(|factor| factor.ceil().max(2.0));
        Some(match longer {
            Some(factor) => format!(
                "Some runs are too short for a narrow interval. To decide: make each run \
                 {factor:.0} times as long (`--runtime`), or run each side 3 times with a label"
            ),
            None if single().next().is_some() => {
                "To decide undecided figures: use longer runs (`--runtime`), or run each side 3 \
                 times with a label"
                    .to_owned()
            }
            None => "To decide undecided figures: run each side more often".to_owned(),
        })
    }

    /// Returns the number of rows with this verdict.
    pub fn count(&self, verdict: ComparisonVerdict) -> usize {
        let is_it = |row: &&ComparisonRow| row.verdict == verdict;
        self.rows.iter().filter(is_it).count()
    }
}
