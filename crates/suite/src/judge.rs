//! Judges the figures of a suite by its expectations.

use super::beside::beside_figures;
use super::beside_figure::BesideFigure;
use super::expect::{Baseline, Claim};
use super::names::{FigureQuantity, FigureUnit};
use super::outcome::{
    ExpectationVerdict, JudgedExpectation, JudgedFigure, StepResult, StudyFigure,
};
use super::spec::{FigureSource, PartSpec, PromiseSource, Suite, SuiteExpectation};
use iosonde_job::plan::{ReadWrite, ReadWriteMode};
use iosonde_limits::{MeasuredFigure, Metric, Promise};
use iosonde_result::compare::{
    ComparisonRow, Measure, MeasuredResult, Subject, compare, figure_of, name_beside,
};
use iosonde_study::sweep::LARGE_BYTES;
use std::collections::HashMap;

/// Earlier results of the history for each baseline.
pub type Baselines = HashMap<Baseline, Vec<MeasuredResult>>;

/// The verdicts on the expectations of one target.
pub fn judge(
    suite: &Suite,
    expected: &[SuiteExpectation],
    steps: &[StepResult],
    baselines: &Baselines,
) -> Vec<JudgedExpectation> {
    let judge = ExpectationJudge {
        suite,
        steps,
        measured: repetitions(steps),
        beside: beside_figures(steps),
        baselines,
    };
    let all = expected.iter();
    all.flat_map(|expected| judge.judge_expectation(expected))
        .collect()
}

/// One result for each repetition, with the parts of all its steps.
fn repetitions(steps: &[StepResult]) -> Vec<MeasuredResult> {
    let most = steps.iter().map(|step| step.repetition).max().unwrap_or(0);
    let of = |repetition: u32| MeasuredResult {
        name: format!("repetition {repetition}"),
        machine: None,
        parts: steps
            .iter()
            .filter(|step| step.repetition == repetition && !step.interrupted)
            .flat_map(|step| step.parts.clone())
            .collect(),
    };
    (1..=most).map(of).collect()
}

struct ExpectationJudge<'a> {
    suite: &'a Suite,
    steps: &'a [StepResult],
    measured: Vec<MeasuredResult>,
    /// Figures alone and beside a neighbour.
    beside: Vec<BesideFigure>,
    baselines: &'a Baselines,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FigureEstimate {
    value: f64,
    interval: Option<(f64, f64)>,
}

impl FigureEstimate {
    /// The figure as reports print it. `unit` is `None` for a ratio to an earlier value.
    fn judged(self, unit: Option<FigureUnit>, claim: String) -> Option<Box<JudgedFigure>> {
        Some(Box::new(JudgedFigure {
            value: self.value,
            // JSON has no infinite numbers: the document could not be read back.
            interval: (self.interval).filter(|(low, high)| low.is_finite() && high.is_finite()),
            unit,
            claim,
        }))
    }
}

/// A figure to judge.
struct SelectedFigure<'a> {
    part: &'a PartSpec,
    subject: Option<Subject>,
    asked: FigureQuantity,
}

impl StepResult {
    /// Returns the error that ended the step without its help, which notes have.
    pub fn failure_without_help(&self) -> Option<&str> {
        let failure = self.failure.as_deref()?;
        Some(self.problem.as_deref().unwrap_or(failure))
    }
}

impl SelectedFigure<'_> {
    fn title(&self) -> String {
        let subject = match self.subject {
            // The only direction of a job is not named.
            Some(subject) if self.part.subjects.first() != Some(&subject) => {
                format!(" {}", subject.name())
            }
            _ => String::new(),
        };
        format!("{}{subject} {}", self.part.name, self.asked.title())
    }
}

impl ExpectationJudge<'_> {
    fn judge_expectation(&self, expected: &SuiteExpectation) -> Vec<JudgedExpectation> {
        let (parts, subject) = expected.parts(&self.suite.parts);
        let mut judged = self.judge_parts(expected, &parts, subject);
        let has_neighbour = |part: &&&PartSpec| self.suite.has_neighbour(&part.workload);
        let with = parts.iter().filter(has_neighbour);
        let beside: Vec<PartSpec> = with.map(|part| part.beside()).collect();
        let beside: Vec<&PartSpec> = beside.iter().collect();
        if !beside.is_empty() {
            judged.extend(self.judge_parts(expected, &beside, subject));
        }
        judged
    }

    fn judge_parts(
        &self,
        expected: &SuiteExpectation,
        parts: &[&PartSpec],
        subject: Option<Subject>,
    ) -> Vec<JudgedExpectation> {
        if let Claim::NotSlower { than, share } = &expected.expectation.claim {
            return self.not_slower(expected, parts, subject, (than, *share));
        }
        let mut selected = self.select_figures(expected, parts, subject);
        let asked = expected
            .expectation
            .figure
            .as_ref()
            .map(|figure| figure.asked);
        if asked.is_some_and(FigureQuantity::is_highest) {
            selected = self.keep_highest(selected);
        }
        selected
            .iter()
            .map(|selected| self.bound(expected, selected))
            .collect()
    }

    /// The figures that an expectation selects.
    fn select_figures<'s>(
        &self,
        expected: &SuiteExpectation,
        parts: &[&'s PartSpec],
        subject: Option<Subject>,
    ) -> Vec<SelectedFigure<'s>> {
        let mut selected = Vec::new();
        for part in parts {
            let asked = match &expected.expectation.figure {
                Some(figure) => figure.asked,
                None => self.default_quantity(part),
            };
            let natural = || {
                let directions = part.subjects.iter().copied();
                directions.filter(|subject| *subject != Subject::Sync)
            };
            let subjects: Vec<Option<Subject>> = match (part.has, subject) {
                (FigureSource::Run { .. }, Some(subject)) if part.subjects.contains(&subject) => {
                    vec![Some(subject)]
                }
                (FigureSource::Run { .. }, Some(_)) => Vec::new(),
                (FigureSource::Run { .. }, None) => natural().map(Some).collect(),
                _ => vec![None],
            };
            selected.extend(subjects.into_iter().map(|subject| SelectedFigure {
                part,
                subject,
                asked,
            }));
        }
        selected
    }

    /// The rate of a part without a named figure: IOPS for small blocks, bandwidth for large ones.
    fn default_quantity(&self, part: &PartSpec) -> FigureQuantity {
        let blocks = self.measured.iter().flat_map(|measured| &measured.parts);
        let mut blocks = blocks.filter(|each| each.name == part.name);
        let bytes = blocks.find_map(|part| part.pattern.block_bytes());
        FigureQuantity::Measure(match bytes {
            Some(bytes) if bytes >= LARGE_BYTES => Measure::BytesPerS,
            _ => Measure::Iops,
        })
    }

    /// Keeps the figure with the highest value.
    fn keep_highest<'s>(&self, selected: Vec<SelectedFigure<'s>>) -> Vec<SelectedFigure<'s>> {
        let value = |selected: &SelectedFigure<'_>| {
            self.estimate(selected).map_or(-1.0, |known| known.value)
        };
        let best = selected
            .into_iter()
            .max_by(|a, b| value(a).total_cmp(&value(b)));
        best.into_iter().collect()
    }

    fn estimate(&self, selected: &SelectedFigure<'_>) -> Option<FigureEstimate> {
        if matches!(selected.part.has, FigureSource::Run { .. }) {
            return self.estimate_from_runs(selected);
        }
        let kind = selected.asked.study_figure_kind()?;
        let all = self.steps.iter().flat_map(|step| step.standing(kind));
        let found: Vec<&StudyFigure> = all
            .filter(|found| found.kind == kind && selected.part.is_of(found))
            .collect();
        let (first, rest) = found.split_first()?;
        Some(match rest.is_empty() {
            true => FigureEstimate {
                value: first.value,
                interval: first.interval,
            },
            false => spread(&found),
        })
    }

    fn estimate_from_runs(&self, selected: &SelectedFigure<'_>) -> Option<FigureEstimate> {
        let (subject, measure) = (selected.subject?, selected.asked.measure()?);
        let of = |measure| figure_of(&self.measured, &selected.part.name, subject, measure);
        let side = of(measure).or_else(|| completion(measure).and_then(of))?;
        Some(FigureEstimate {
            value: side.value,
            interval: side.bounds.map(|bounds| (bounds.low, bounds.high)),
        })
    }

    fn bound(
        &self,
        expected: &SuiteExpectation,
        selected: &SelectedFigure<'_>,
    ) -> JudgedExpectation {
        let unit = selected.asked.unit();
        let mut judged = JudgedExpectation {
            expectation: expected.expectation.text.clone(),
            workload: selected.part.workload.clone(),
            figure: selected.title(),
            verdict: ExpectationVerdict::NotMeasured,
            evidence: self.why_not_measured(selected),
            measured: None,
            failure: None,
        };
        let Some(known) = self.estimate(selected) else {
            judged.failure = self
                .steps_of(selected)
                .find_map(|step| step.failure.clone());
            return judged;
        };
        let bound = match (&expected.expectation.claim, &expected.promise) {
            (Claim::Bound { least, value }, _) => Some((*least, *value)),
            (Claim::Promised { share, .. }, Some(PromiseSource::Known(promise))) => self
                .promised(selected, known, promise)
                .map(|per_s| (true, share * per_s)),
            _ => None,
        };
        let Some((least, bound)) = bound else {
            judged.evidence = "the limits have no promise for this figure".to_owned();
            return judged;
        };
        judged.verdict = verdict(known, least, bound);
        let sign = if least { ">=" } else { "<=" };
        let promised_by = match &expected.promise {
            Some(PromiseSource::Known(promise)) => format!(" ({})", promise.name()),
            _ => String::new(),
        };
        let mut claim = format!("expected {sign} {}{promised_by}", unit.show(bound));
        claim.extend(self.ratio_to_alone(selected));
        judged.evidence = format!("{}, {claim}", unit.show(known.value));
        judged.measured = known.judged(Some(unit), claim);
        judged
    }

    /// Compares a figure beside a neighbour with the figure alone, as the end of the claim.
    fn ratio_to_alone(&self, selected: &SelectedFigure<'_>) -> Option<String> {
        let (subject, measure) = (selected.subject?, selected.asked.measure()?);
        let is_it = |figure: &&BesideFigure| {
            name_beside(&figure.part) == selected.part.name
                && figure.subject == subject
                && (figure.measure == measure || completion(measure) == Some(figure.measure))
        };
        let figure = self.beside.iter().find(is_it)?;
        Some(format!("; {}", figure.sentence()))
    }

    /// The steps of the workload of a figure.
    fn steps_of<'s>(
        &'s self,
        selected: &'s SelectedFigure<'_>,
    ) -> impl Iterator<Item = &'s StepResult> {
        let part = selected.part;
        let is_alone = self.suite.parts.iter().any(|known| known.name == part.name);
        let steps = self.steps.iter();
        steps
            .filter(move |step| step.workload == part.workload && step.beside.is_none() == is_alone)
    }

    fn why_not_measured(&self, selected: &SelectedFigure<'_>) -> String {
        let of_it = || self.steps_of(selected);
        match of_it().find_map(StepResult::failure_without_help) {
            Some(problem) => format!("the run failed: {problem}"),
            None if of_it().next().is_none() => "the workload did not run".to_owned(),
            None if of_it().any(|step| step.interrupted) => "the run was interrupted".to_owned(),
            None if matches!(selected.asked, FigureQuantity::Measure(_)) => {
                "too few I/Os for this figure; use a longer runtime".to_owned()
            }
            None => "the result lacks this figure".to_owned(),
        }
    }

    /// The promised rate for I/O of the measured block size.
    fn promised(
        &self,
        selected: &SelectedFigure<'_>,
        known: FigureEstimate,
        promise: &Promise,
    ) -> Option<f64> {
        let bytes = matches!(selected.asked.measure()?, Measure::BytesPerS);
        let reads = match selected.subject {
            Some(Subject::Read) => Some(true),
            Some(Subject::Write) => Some(false),
            Some(_) => None,
            None => match ReadWrite::from_rw(&selected.part.rw).map(|rw| rw.mode) {
                Some(ReadWriteMode::Read) => Some(true),
                Some(ReadWriteMode::Write | ReadWriteMode::TrimWrite) => Some(false),
                _ => None,
            },
        };
        let metric = match (bytes, reads) {
            (false, Some(true)) => Metric::ReadIops,
            (false, Some(false)) => Metric::WriteIops,
            (false, None) => Metric::Iops,
            (true, Some(true)) => Metric::ReadBandwidth,
            (true, Some(false)) => Metric::WriteBandwidth,
            (true, None) => Metric::Bandwidth,
        };
        let mut parts = self.measured.iter().flat_map(|measured| &measured.parts);
        let part = parts.find(|part| part.name == selected.part.name);
        let block_bytes = part.and_then(|part| part.pattern.block_bytes());
        let measured = MeasuredFigure {
            metric,
            per_s: known.value,
            error: known.interval.map(|(low, high)| (high - low) / 2.0),
            block_bytes,
        };
        Some(promise.judge(&[measured]).first()?.promised_per_s)
    }

    /// One verdict for each figure that both sides have.
    fn not_slower(
        &self,
        expected: &SuiteExpectation,
        parts: &[&PartSpec],
        subject: Option<Subject>,
        (than, share): (&Baseline, f64),
    ) -> Vec<JudgedExpectation> {
        let none = Vec::new();
        let comparison = compare(self.baselines.get(than).unwrap_or(&none), &self.measured);
        let asked = expected
            .expectation
            .figure
            .as_ref()
            .map(|figure| figure.asked);
        let measure = asked.and_then(FigureQuantity::measure);
        let mut judged = Vec::new();
        for part in parts {
            let is_about = |row: &&ComparisonRow| {
                row.part == part.name
                    && subject.is_none_or(|subject| subject == row.subject)
                    && measure.is_none_or(|measure| {
                        row.measure == measure || completion(measure) == Some(row.measure)
                    })
            };
            let rows: Vec<&ComparisonRow> = comparison.rows.iter().filter(is_about).collect();
            if rows.is_empty() {
                judged.push(JudgedExpectation {
                    expectation: expected.expectation.text.clone(),
                    workload: part.workload.clone(),
                    figure: part.name.clone(),
                    verdict: ExpectationVerdict::NotMeasured,
                    evidence: "the two results have no common figure of this kind".to_owned(),
                    measured: None,
                    failure: None,
                });
            }
            judged.extend(
                rows.into_iter()
                    .map(|row| slower(expected, part, row, share)),
            );
        }
        judged
    }
}

/// Judges the ratio of a row by the share by which it may be slower.
fn slower(
    expected: &SuiteExpectation,
    part: &PartSpec,
    row: &ComparisonRow,
    share: f64,
) -> JudgedExpectation {
    let known = FigureEstimate {
        value: row.ratio.value,
        interval: row.ratio.interval,
    };
    let more = row.measure.more_is_faster();
    let bound = if more { 1.0 - share } else { 1.0 + share };
    let subject = match part.subjects.first() == Some(&row.subject) {
        true => String::new(),
        false => format!(" {}", row.subject.name()),
    };
    let sign = if more { ">=" } else { "<=" };
    let claim = format!("expected {sign} {bound:.3}");
    JudgedExpectation {
        expectation: expected.expectation.text.clone(),
        workload: part.workload.clone(),
        figure: format!("{}{subject} {}", part.name, row.measure.title()),
        verdict: verdict(known, more, bound),
        evidence: format!("{:.3} of the earlier value, {claim}", known.value),
        measured: known.judged(None, claim),
        failure: None,
    }
}

/// A figure without an interval is judged only if its bound differs from it by this factor or more.
const CLEAR_FACTOR: f64 = 10.0;

/// An interval that contains the bound is undecided.
fn verdict(known: FigureEstimate, least: bool, bound: f64) -> ExpectationVerdict {
    let by_itself = (known.value / CLEAR_FACTOR, known.value * CLEAR_FACTOR);
    let (low, high) = known.interval.unwrap_or(by_itself);
    let (met, missed) = match least {
        true => (low >= bound, high < bound),
        false => (high <= bound, low > bound),
    };
    match (met, missed) {
        (true, _) => ExpectationVerdict::Met,
        (_, true) => ExpectationVerdict::Missed,
        _ => ExpectationVerdict::Undecided,
    }
}

/// The mean of several repetitions, with an interval that covers all their intervals.
fn spread(found: &[&StudyFigure]) -> FigureEstimate {
    // A value without an interval counts as its own interval.
    let ends = |found: &&StudyFigure| found.interval.unwrap_or((found.value, found.value));
    let low = found
        .iter()
        .map(|found| ends(found).0)
        .fold(f64::INFINITY, f64::min);
    let highs = found.iter().map(|found| ends(found).1);
    let high = highs.fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = found.iter().map(|found| found.value).sum();
    FigureEstimate {
        value: sum / found.len() as f64,
        interval: Some((low, high)),
    }
}

/// The completion latency of a total latency: a run may have recorded only that.
fn completion(measure: Measure) -> Option<Measure> {
    Measure::ALL
        .into_iter()
        .find(|each| each.of_total() == Some(measure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_interval_is_stored_as_unknown() {
        let stored = |high: f64| {
            let known = FigureEstimate {
                value: 1.0,
                interval: Some((0.5, high)),
            };
            let document = serde_json::to_value(known.judged(None, String::new())).unwrap();
            let read: JudgedFigure = serde_json::from_value(document).unwrap();
            read.interval
        };
        assert_eq!(stored(f64::INFINITY), None);
        assert_eq!(stored(1.5), Some((0.5, 1.5)));
    }
}
