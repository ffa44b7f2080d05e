//! What was expected beside what was measured.

use super::expect::{Baseline, Claim};
use super::names::Asked;
use super::outcome::{Found, Judged, StepResult, Verdict};
use super::spec::{Expected, Has, Owed, PartSpec, Suite};
use crate::limits::{Measured as PromiseMeasured, Metric, Promise};
use crate::sweep::LARGE_BYTES;
use iosonde_result::compare::{
    Measure, Measured, Row, Subject, compare, figure_of, telling_interval,
};
use std::collections::HashMap;

/// Results of the history that expectations are held against.
pub type Baselines = HashMap<Baseline, Vec<Measured>>;

/// The verdicts on what was expected of one target, on which a suite was run.
pub fn judge(
    suite: &Suite,
    expected: &[Expected],
    steps: &[StepResult],
    baselines: &Baselines,
) -> Vec<Judged> {
    let judge = Judge {
        suite,
        steps,
        measured: repetitions(steps),
        baselines,
    };
    let all = expected.iter();
    all.flat_map(|expected| judge.expected(expected)).collect()
}

/// Each repetition as one result: the parts of all its steps.
fn repetitions(steps: &[StepResult]) -> Vec<Measured> {
    let most = steps.iter().map(|step| step.repetition).max().unwrap_or(0);
    let of = |repetition: u32| Measured {
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

struct Judge<'a> {
    suite: &'a Suite,
    steps: &'a [StepResult],
    measured: Vec<Measured>,
    baselines: &'a Baselines,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    value: f64,
    interval: Option<(f64, f64)>,
}

impl Known {
    /// The interval as evidence. One that says nothing still decides the verdict: it is more than none.
    fn interval_in_words(&self, show: impl Fn(f64) -> String) -> String {
        let telling = self
            .interval
            .and_then(|ends| telling_interval(self.value, ends));
        match telling {
            Some((low, high)) => format!("{} to {}", show(low), show(high)),
            None => "interval not known".to_owned(),
        }
    }
}

/// A figure that an expectation is about.
struct About<'a> {
    part: &'a PartSpec,
    subject: Option<Subject>,
    asked: Asked,
}

impl About<'_> {
    fn title(&self) -> String {
        let subject = match self.subject {
            // The only direction of a job need not be named.
            Some(subject) if self.part.subjects.first() != Some(&subject) => {
                format!(" {}", subject.name())
            }
            _ => String::new(),
        };
        format!("{}{subject} {}", self.part.name, self.asked.title())
    }
}

impl Judge<'_> {
    fn expected(&self, expected: &Expected) -> Vec<Judged> {
        let (parts, subject) = expected.parts(&self.suite.parts);
        if let Claim::NotSlower { than, share } = &expected.expectation.claim {
            return self.not_slower(expected, &parts, subject, (than, *share));
        }
        let mut about = self.about(expected, &parts, subject);
        let asked = expected
            .expectation
            .figure
            .as_ref()
            .map(|figure| figure.asked);
        if asked.is_some_and(Asked::is_highest) {
            about = self.highest(about);
        }
        about
            .iter()
            .map(|about| self.bound(expected, about))
            .collect()
    }

    /// Every figure that is meant.
    fn about<'s>(
        &self,
        expected: &Expected,
        parts: &[&'s PartSpec],
        subject: Option<Subject>,
    ) -> Vec<About<'s>> {
        let mut about = Vec::new();
        for part in parts {
            let asked = match &expected.expectation.figure {
                Some(figure) => figure.asked,
                None => self.rate_of(part),
            };
            let natural = || {
                let directions = part.subjects.iter().copied();
                directions.filter(|subject| *subject != Subject::Sync)
            };
            let subjects: Vec<Option<Subject>> = match (part.has, subject) {
                (Has::Run { .. }, Some(subject)) if part.subjects.contains(&subject) => {
                    vec![Some(subject)]
                }
                (Has::Run { .. }, Some(_)) => Vec::new(),
                (Has::Run { .. }, None) => natural().map(Some).collect(),
                _ => vec![None],
            };
            about.extend(subjects.into_iter().map(|subject| About {
                part,
                subject,
                asked,
            }));
        }
        about
    }

    /// What counts of a part of which no figure is named: small blocks by I/Os, large ones by bytes.
    fn rate_of(&self, part: &PartSpec) -> Asked {
        let blocks = self.measured.iter().flat_map(|measured| &measured.parts);
        let mut blocks = blocks.filter(|each| each.name == part.name);
        let bytes = blocks.find_map(|part| part.pattern.bs.parse::<u64>().ok());
        Asked::Measure(match bytes {
            Some(bytes) if bytes >= LARGE_BYTES => Measure::BytesPerS,
            _ => Measure::Iops,
        })
    }

    /// Of several parts only the one with the highest figure.
    fn highest<'s>(&self, about: Vec<About<'s>>) -> Vec<About<'s>> {
        let value = |about: &About<'_>| self.known(about).map_or(-1.0, |known| known.value);
        let best = about
            .into_iter()
            .max_by(|a, b| value(a).total_cmp(&value(b)));
        best.into_iter().collect()
    }

    fn known(&self, about: &About<'_>) -> Option<Known> {
        if matches!(about.part.has, Has::Run { .. }) {
            return self.known_of_runs(about);
        }
        let kind = about.asked.found()?;
        let all = self.steps.iter().flat_map(|step| step.standing(kind));
        let found: Vec<&Found> = all
            .filter(|found| found.kind == kind && about.part.is_of(found))
            .collect();
        let (first, rest) = found.split_first()?;
        Some(match rest.is_empty() {
            true => Known {
                value: first.value,
                interval: first.interval,
            },
            false => spread(&found),
        })
    }

    fn known_of_runs(&self, about: &About<'_>) -> Option<Known> {
        let (subject, measure) = (about.subject?, about.asked.measure()?);
        let of = |measure| figure_of(&self.measured, &about.part.name, subject, measure);
        let side = of(measure).or_else(|| completion(measure).and_then(of))?;
        Some(Known {
            value: side.value,
            interval: side.bounds.map(|bounds| (bounds.low, bounds.high)),
        })
    }

    fn bound(&self, expected: &Expected, about: &About<'_>) -> Judged {
        let unit = about.asked.unit();
        let mut judged = Judged {
            expectation: expected.expectation.text.clone(),
            workload: about.part.workload.clone(),
            figure: about.title(),
            verdict: Verdict::NotMeasured,
            evidence: self.why_not(about),
        };
        let Some(known) = self.known(about) else {
            return judged;
        };
        let bound = match (&expected.expectation.claim, &expected.promise) {
            (Claim::Bound { least, value }, _) => Some((*least, *value)),
            (Claim::Promised { share, .. }, Some(Owed::Known(promise))) => self
                .promised(about, known, promise)
                .map(|per_s| (true, share * per_s)),
            _ => None,
        };
        let Some((least, bound)) = bound else {
            judged.evidence = "nothing is promised of this figure".to_owned();
            return judged;
        };
        judged.verdict = verdict(known, least, bound);
        let interval = known.interval_in_words(|end| unit.show(end));
        let sign = if least { ">=" } else { "<=" };
        let promised_by = match &expected.promise {
            Some(Owed::Known(promise)) => format!(" ({})", promise.name()),
            _ => String::new(),
        };
        judged.evidence = format!(
            "{} ({interval}), expected {sign} {}{promised_by}",
            unit.show(known.value),
            unit.show(bound)
        );
        judged
    }

    fn why_not(&self, about: &About<'_>) -> String {
        let of_it = || {
            let workload = &about.part.workload;
            self.steps
                .iter()
                .filter(move |step| step.workload == *workload)
        };
        match of_it().find_map(|step| step.failure.as_ref()) {
            Some(failure) => format!("the run failed: {failure}"),
            None if of_it().next().is_none() => "it was not run".to_owned(),
            None if of_it().any(|step| step.interrupted) => "it was interrupted".to_owned(),
            None if matches!(about.asked, Asked::Measure(_)) => {
                "too few I/Os for it to mean anything; run it for longer".to_owned()
            }
            None => "nothing was found".to_owned(),
        }
    }

    /// What is promised for I/O of this size.
    fn promised(&self, about: &About<'_>, known: Known, promise: &Promise) -> Option<f64> {
        let bytes = matches!(about.asked.measure()?, Measure::BytesPerS);
        let reads = match about.subject {
            Some(Subject::Read) => Some(true),
            Some(Subject::Write) => Some(false),
            Some(_) => None,
            None => match (
                about.part.rw.contains("read"),
                about.part.rw.contains("write"),
            ) {
                (true, false) => Some(true),
                (false, true) => Some(false),
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
        let part = parts.find(|part| part.name == about.part.name);
        let block_bytes = part.and_then(|part| part.pattern.bs.parse().ok());
        let measured = PromiseMeasured {
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
        expected: &Expected,
        parts: &[&PartSpec],
        subject: Option<Subject>,
        (than, share): (&Baseline, f64),
    ) -> Vec<Judged> {
        let none = Vec::new();
        let comparison = compare(self.baselines.get(than).unwrap_or(&none), &self.measured);
        let asked = expected
            .expectation
            .figure
            .as_ref()
            .map(|figure| figure.asked);
        let measure = asked.and_then(Asked::measure);
        let mut judged = Vec::new();
        for part in parts {
            let is_about = |row: &&Row| {
                row.part == part.name
                    && subject.is_none_or(|subject| subject == row.subject)
                    && measure.is_none_or(|measure| {
                        row.measure == measure || completion(measure) == Some(row.measure)
                    })
            };
            let rows: Vec<&Row> = comparison.rows.iter().filter(is_about).collect();
            if rows.is_empty() {
                judged.push(Judged {
                    expectation: expected.expectation.text.clone(),
                    workload: part.workload.clone(),
                    figure: part.name.clone(),
                    verdict: Verdict::NotMeasured,
                    evidence: "both sides have no such figure in common".to_owned(),
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

/// The ratio of a row beside the share by which it may be slower.
fn slower(expected: &Expected, part: &PartSpec, row: &Row, share: f64) -> Judged {
    let known = Known {
        value: row.ratio.value,
        interval: row.ratio.interval,
    };
    let more = row.measure.more_is_faster();
    let bound = if more { 1.0 - share } else { 1.0 + share };
    let subject = match part.subjects.first() == Some(&row.subject) {
        true => String::new(),
        false => format!(" {}", row.subject.name()),
    };
    let interval = known.interval_in_words(|end| format!("{end:.3}"));
    let sign = if more { ">=" } else { "<=" };
    Judged {
        expectation: expected.expectation.text.clone(),
        workload: part.workload.clone(),
        figure: format!("{}{subject} {}", part.name, row.measure.title()),
        verdict: verdict(known, more, bound),
        evidence: format!(
            "{:.3} of before ({interval}), expected {sign} {bound:.3}",
            known.value
        ),
    }
}

/// A figure without an interval is judged only if it lies this many times above or below its bound.
const CLEAR_FACTOR: f64 = 10.0;

/// Where the interval holds the bound, neither is shown.
fn verdict(known: Known, least: bool, bound: f64) -> Verdict {
    let by_itself = (known.value / CLEAR_FACTOR, known.value * CLEAR_FACTOR);
    let (low, high) = known.interval.unwrap_or(by_itself);
    let (met, missed) = match least {
        true => (low >= bound, high < bound),
        false => (high <= bound, low > bound),
    };
    match (met, missed) {
        (true, _) => Verdict::Met,
        (_, true) => Verdict::Missed,
        _ => Verdict::Undecided,
    }
}

/// Several values of repetitions: their mean, from the lowest end to the highest.
fn spread(found: &[&Found]) -> Known {
    // The values themselves tell how far they lie apart.
    let ends = |found: &&Found| found.interval.unwrap_or((found.value, found.value));
    let low = found
        .iter()
        .map(|found| ends(found).0)
        .fold(f64::INFINITY, f64::min);
    let high = found.iter().map(|found| ends(found).1).fold(0.0, f64::max);
    let sum: f64 = found.iter().map(|found| found.value).sum();
    Known {
        value: sum / found.len() as f64,
        interval: Some((low, high)),
    }
}

/// The measure of completion latency for one of total latency: a run may have recorded only that.
fn completion(measure: Measure) -> Option<Measure> {
    Measure::ALL
        .into_iter()
        .find(|each| each.of_total() == Some(measure))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two repetitions gave a p99 of 7.12 ms from 214 ns to 237 s.
    #[test]
    fn interval_that_says_nothing_is_not_shown_as_evidence() {
        let shown = |interval| {
            let known = Known {
                value: 7.12e6,
                interval,
            };
            known.interval_in_words(crate::words::latency)
        };
        assert_eq!(shown(Some((7e6, 8e6))), "7.00 ms to 8.00 ms");
        for ends in [(214.0, 237e9), (0.0, 8e6), (7e6, 14.3e6)] {
            assert_eq!(shown(Some(ends)), "interval not known");
        }
    }
}
