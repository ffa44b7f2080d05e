//! Comparison of two sides, figure by figure.

use super::closed_loop::{join_rates_and_latencies, join_rates_and_syncs};
use super::earlier_runs::BetweenRuns;
use super::figure::{Basis, Bounds, Measure, Part, Subject, telling_interval};
use super::group::{Group, Measured, Spread, bounds_of_logs};
use super::interval::{LEVEL, Ratio, quantile, ratio};
use super::matching::matching;
use serde::{Deserialize, Serialize};

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Rows: one per figure that both sides have.
    pub rows: Vec<Row>,
    /// Names of parts that only the first side has.
    pub only_in_a: Vec<String>,
    /// Names of parts that only the second side has.
    pub only_in_b: Vec<String>,
    /// Notes needed to interpret the rows, one sentence each.
    pub notes: Vec<String>,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the part on the first side.
    pub part: String,
    /// The I/O that the figure concerns.
    pub subject: Subject,
    /// The measured quantity.
    pub measure: Measure,
    /// Figure of the first side.
    pub a: Side,
    /// Figure of the second side.
    pub b: Side,
    /// Second figure divided by the first, with its 95 % confidence interval.
    pub ratio: Ratio,
    /// The ratio with an interval that holds for all rows together at 95 % (Bonferroni).
    pub joint: Ratio,
    /// Whether each machine was compared with itself.
    pub paired: bool,
    /// Verdict on the second side, relative to the first.
    pub verdict: Verdict,
}

/// One side of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Value of the figure, or the geometric mean of results, with equal weight per machine.
    pub value: f64,
    /// The 95 % confidence interval.
    pub bounds: Option<Bounds>,
    /// Number of results that have the figure.
    pub runs: usize,
    /// Number of machines on which these results ran.
    pub machines: usize,
    /// Spread of the results, if there are several.
    pub spread: Option<Spread>,
    /// Whether any of the results was not steady.
    pub unsettled: bool,
    /// Spread of earlier runs with the same plan and target as a single result, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_runs: Option<BetweenRuns>,
}

/// Verdict on the second side, relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second side is faster.
    Faster,
    /// The second side is slower.
    Slower,
    /// The interval of the ratio contains 1.
    NoDifferenceShown,
    /// A figure has no interval, or that of the ratio contains 1 and is not informative.
    Undecided,
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceShown => "no difference shown",
            Verdict::Undecided => "undecided",
        }
    }

    pub(super) fn of(ratio: &Ratio, measure: Measure) -> Verdict {
        let Some(ends) = ratio.interval else {
            return Verdict::Undecided;
        };
        if !ratio.is_shown() {
            telling_interval(ratio.value, ends)
                .map_or(Verdict::Undecided, |_| Verdict::NoDifferenceShown)
        } else if (ratio.value > 1.0) == measure.more_is_faster() {
            Verdict::Faster
        } else {
            Verdict::Slower
        }
    }
}

impl Row {
    /// Returns whether the means of both runs differ, but by no more than repeated runs would.
    fn is_decided_by_slow_variation(&self) -> bool {
        let means = |side: &Side| {
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

    /// Returns by how much the second side is slower: 0.05 is a 5 % lower rate or higher latency.
    pub fn slower_by(&self) -> f64 {
        if self.measure.more_is_faster() {
            1.0 - self.ratio.value
        } else {
            self.ratio.value - 1.0
        }
    }
}

impl Comparison {
    /// Returns the rows that are slower by `share` or more, and significantly so for the number of
    /// figures: of 100 comparisons of equals, at most 5 have any. Predicted figures are excluded.
    pub fn slower_by(&self, share: f64) -> Vec<&Row> {
        let is_drawn = |side: &Side| {
            side.bounds
                .is_some_and(|bounds| bounds.basis == Basis::Predicted)
        };
        let is_one = |row: &&Row| {
            let is_slower = Verdict::of(&row.joint, row.measure) == Verdict::Slower;
            is_slower && row.slower_by() >= share && !is_drawn(&row.a) && !is_drawn(&row.b)
        };
        self.rows.iter().filter(is_one).collect()
    }

    /// Returns the least effort that decides rows that are undecided or have too short runs.
    pub fn what_would_decide(&self) -> Option<String> {
        let rows = &self.rows;
        let sides = || rows.iter().flat_map(|row| [&row.a, &row.b]);
        let single = || sides().filter(|side| side.runs == 1);
        let is_undecided = rows.iter().any(|row| row.verdict == Verdict::Undecided);
        let short =
            single().filter_map(|side| side.bounds.filter(|bounds| bounds.basis == Basis::Thirds));
        let longer = short
            .map(|bounds| EFFECTIVE_SAMPLES_WANTED / (2.0 * bounds.freedom))
            .reduce(f64::max)
            .map(|factor| factor.ceil().max(2.0));
        match longer {
            Some(factor) => Some(format!(
                "Some runs are too short for a narrow interval. To decide: runs {factor:.0} times as long, or 3 runs of each side \
                 with a label"
            )),
            None if is_undecided && single().next().is_some() => Some(
                "To decide what is undecided: longer runs, or 3 runs of each side with a label"
                    .to_owned(),
            ),
            None if is_undecided => {
                Some("To decide what is undecided: more runs of each side".to_owned())
            }
            None => None,
        }
    }

    /// Returns the number of rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let is_it = |row: &&Row| row.verdict == verdict;
        self.rows.iter().filter(is_it).count()
    }
}

/// Compares the results of `b` with those of `a`.
pub fn compare(a: &[Measured], b: &[Measured]) -> Comparison {
    let matching = matching(a, b);
    let mut rows = rows(a, b, &matching.pairs);
    join_rates_and_latencies(&mut rows);
    join_rates_and_syncs(&mut rows, &matching.pairs);
    let names = |parts: &[&Part]| parts.iter().map(|part| part.name.clone()).collect();
    Comparison {
        notes: notes(&rows, &matching.pairs),
        only_in_a: names(&matching.only_in_a),
        only_in_b: names(&matching.only_in_b),
        rows,
    }
}

/// Returns the figures of each pair of parts, each with its own interval.
pub(super) fn rows(a: &[Measured], b: &[Measured], pairs: &[(&Part, &Part)]) -> Vec<Row> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for (mine, theirs) in pairs {
        for subject in Subject::ALL {
            for measure in shared_measures(mine, theirs, subject) {
                let of = |side, part: &Part| Group::of(side, &part.name, subject, measure);
                if let (Some(first), Some(second)) = (of(a, mine), of(b, theirs)) {
                    found.push(Found {
                        part: &mine.name,
                        subject,
                        measure,
                        first,
                        second,
                    });
                }
            }
        }
    }
    let with_interval = found
        .iter()
        .filter(|found| found.ratio(LEVEL).0.interval.is_some())
        .count();
    let joint_level = 1.0 - (1.0 - LEVEL) / with_interval.max(1) as f64;
    found.iter().map(|each| each.row(joint_level)).collect()
}

/// Returns each figure that more than one result has, with its part, subject and measure.
pub fn together(results: &[Measured]) -> Vec<(String, Subject, Measure, Side)> {
    let rows = compare(results, results).rows.into_iter();
    rows.filter(|row| row.a.spread.is_some())
        .map(|row| (row.part, row.subject, row.measure, row.a))
        .collect()
}

/// Returns one figure combined over several results. `None` if no result has it.
pub fn figure_of(
    results: &[Measured],
    part: &str,
    subject: Subject,
    measure: Measure,
) -> Option<Side> {
    Group::of(results, part, subject, measure).map(|group| side(&group))
}

/// Returns the measures that both parts have. Completion latency is included only if total latency
/// is missing. Bandwidth is included only if it differs from IOPS, because the block sizes differ.
fn shared_measures(a: &Part, b: &Part, subject: Subject) -> Vec<Measure> {
    let both = |measure| a.figure(subject, measure).zip(b.figure(subject, measure));
    let says_more = |measure: Measure| match measure {
        Measure::BytesPerS => match (both(Measure::Iops), both(Measure::BytesPerS)) {
            (Some((a_ios, b_ios)), Some((a_bytes, b_bytes))) => {
                let a_block = a_bytes.value / a_ios.value;
                let b_block = b_bytes.value / b_ios.value;
                (a_block / b_block - 1.0).abs() > 1e-3
            }
            _ => true,
        },
        _ => measure.of_total().is_none_or(|total| both(total).is_none()),
    };
    let shared = Measure::ALL
        .into_iter()
        .filter(|measure| both(*measure).is_some() && says_more(*measure));
    shared.collect()
}

/// Effective samples of a run that is long enough for an interval determined by its variance alone.
const EFFECTIVE_SAMPLES_WANTED: f64 = 16.0;

/// A figure of both sides.
struct Found<'a> {
    part: &'a str,
    subject: Subject,
    measure: Measure,
    first: Group,
    second: Group,
}

impl Found<'_> {
    fn row(&self, joint_level: f64) -> Row {
        let (ratio, paired) = self.ratio(LEVEL);
        Row {
            part: self.part.to_owned(),
            subject: self.subject,
            measure: self.measure,
            a: side(&self.first),
            b: side(&self.second),
            joint: self.ratio(joint_level).0,
            verdict: Verdict::of(&ratio, self.measure),
            ratio,
            paired,
        }
    }

    /// Returns the ratio, and whether each machine was compared with itself.
    fn ratio(&self, level: f64) -> (Ratio, bool) {
        if let Some(paired) = self.paired(level) {
            return (paired, true);
        }
        let (a, b) = (&self.first, &self.second);
        let apart = ratio(
            (a.value, a.bounds.as_ref()),
            (b.value, b.bounds.as_ref()),
            level,
        );
        (apart, false)
    }

    /// Compares each machine with itself, if both sides ran on the same two or more machines.
    fn paired(&self, level: f64) -> Option<Ratio> {
        let (a, b) = (&self.first.machines, &self.second.machines);
        let same = a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(mine, theirs)| mine.0.is_some() && mine.0 == theirs.0);
        if a.len() < 2 || !same {
            return None;
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.1 - a.1).collect();
        let bounds = bounds_of_logs(&differences, Basis::Machines)?;
        let value = self.second.value / self.first.value;
        let wider = quantile(level, bounds.freedom) / quantile(LEVEL, bounds.freedom);
        let half = (bounds.high / value).ln() * wider;
        Some(Ratio {
            value,
            interval: Some((value * (-half).exp(), value * half.exp())),
        })
    }
}

fn side(group: &Group) -> Side {
    Side {
        value: group.value,
        bounds: group.bounds,
        runs: group.runs,
        machines: group.machines.len(),
        spread: group.spread,
        unsettled: group.unsettled,
        earlier_runs: None,
    }
}

fn notes(rows: &[Row], pairs: &[(&Part, &Part)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (a, b) in pairs {
        if a.pattern != b.pattern {
            notes.push(format!(
                "{}: not the same pattern: A ran {}; B ran {}",
                a.name, a.pattern, b.pattern
            ));
        } else if a.name != b.name {
            notes.push(format!("{} of A is held against {} of B", a.name, b.name));
        }
    }
    let any = |is_so: &dyn Fn(&Side) -> bool| rows.iter().any(|row| is_so(&row.a) || is_so(&row.b));
    let basis = |side: &Side| side.bounds.map(|bounds| bounds.basis);
    if any(&|side| side.unsettled) {
        notes.push("* did not settle: the rate drifted or jumped while it was measured".to_owned());
    }
    if any(&|side| basis(side) == Some(Basis::Samples)) {
        notes.push(
            "Some intervals come from number, mean and deviation of samples alone, with an assumed \
             correlation: the result has no series"
                .to_owned(),
        );
    }
    if any(&|side| basis(side) == Some(Basis::Drift)) {
        notes.push(
            "Some runs drifted while they were measured: their intervals hold the drift, and are wide"
                .to_owned(),
        );
    }
    if let Some(row) = rows.iter().find(|row| row.is_decided_by_slow_variation()) {
        notes.push(format!(
            "The runs vary slowly: how well another run would repeat the figure decides, not how well the mean of each \
             run is known (first in {}, {})",
            row.part,
            row.measure.title()
        ));
    }
    if rows.iter().any(|row| row.paired) {
        notes.push("Both sides ran on the same machines: each is compared with itself".to_owned());
    }
    notes
}
