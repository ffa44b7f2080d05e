//! The figure of one result, and what it was measured with.

use crate::failure::Failure;
use crate::store::{Store, Summary};
use iosonde_result::compare::{
    Basis, Bounds, Figure, Measure, Measured as OneResult, Part, Pattern, Side, Subject, figure_of,
};
use iosonde_study::suite::{Asked, FigureName, Found, FoundKind, Named, SuiteResult, Unit};
use std::collections::BTreeSet;

/// A figure of one result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) value: f64,
    pub(super) bounds: Option<Bounds>,
    /// fio's `rw` of what was done.
    pub(super) rw: String,
    /// Bytes of each I/O, where they are all of one size or the mean is known.
    pub(super) block_bytes: Option<u64>,
}

/// Results of one pair of labels as one figure, with the interval that they give together.
pub(super) fn together(results: &[(&Summary, Measured)]) -> Option<Side> {
    // Whatever it is a figure of: all of them are of the same.
    let (part, subject, measure) = ("figure", Subject::Read, Measure::Iops);
    let one = |(study, measured): &(&Summary, Measured)| OneResult {
        name: study.short_id.clone(),
        machine: study.machine.clone(),
        parts: vec![Part {
            name: part.to_owned(),
            pattern: Pattern::default(),
            figures: vec![Figure {
                subject,
                measure,
                value: measured.value,
                bounds: measured.bounds,
                settled: None,
            }],
        }],
    };
    let results: Vec<OneResult> = results.iter().map(one).collect();
    figure_of(&results, part, subject, measure)
}

/// Parts as names look for them.
struct OfPart<'a>(&'a Part);

impl Named for OfPart<'_> {
    fn name(&self) -> &str {
        &self.0.name
    }
    fn workload(&self) -> &str {
        &self.0.name
    }
    fn rw(&self) -> &str {
        &self.0.pattern.rw
    }
}

/// What a study found, as names look for it.
struct OfFound(Found);

impl Named for OfFound {
    fn name(&self) -> &str {
        &self.0.part
    }
    fn workload(&self) -> &str {
        &self.0.part
    }
    fn rw(&self) -> &str {
        &self.0.rw
    }
}

/// The figure of one result; `None` where it has none.
pub(super) fn measured(
    store: &Store,
    study: &Summary,
    figure: &FigureName,
) -> Result<Option<Measured>, Failure> {
    let kind = match figure.asked {
        Asked::Measure(_) => return of_parts(study, figure),
        Asked::MaxIops => FoundKind::MaxIops,
        Asked::MaxBandwidth => FoundKind::MaxBytesPerS,
        Asked::Knee => FoundKind::Knee,
        Asked::Rate => FoundKind::Rate,
    };
    // What a search found is surer than the best of its short cells.
    if matches!(study.kind.as_str(), "suite" | "sweep") {
        let loaded = store.load(&study.id)?;
        if let Some(suite) = loaded.study.suite(None) {
            if let Some(outcome) = of_suite(&suite, kind, figure) {
                return Ok(outcome);
            }
        } else if let Some(sweep) = loaded.study.sweep(None) {
            let highest = of_found(&Found::of_sweep("", &sweep), kind, figure);
            if highest.is_some() {
                return Ok(highest);
            }
        }
    }
    of_parts(study, figure)
}

/// The highest of what the steps of a suite found; `Some(None)` where all that was cut short would be no figure of it.
fn of_suite(suite: &SuiteResult, kind: FoundKind, figure: &FigureName) -> Option<Option<Measured>> {
    let steps = || suite.steps.iter();
    let standing: Vec<Found> = steps()
        .flat_map(|step| step.standing(kind))
        .cloned()
        .collect();
    let all: Vec<Found> = steps().flat_map(|step| &step.found).cloned().collect();
    match of_found(&standing, kind, figure) {
        Some(highest) => Some(Some(highest)),
        None => of_found(&all, kind, figure).map(|_| None),
    }
}

/// The highest of what a study found.
fn of_found(all: &[Found], kind: FoundKind, figure: &FigureName) -> Option<Measured> {
    let of_kind: Vec<OfFound> = all
        .iter()
        .filter(|one| one.kind == kind)
        .cloned()
        .map(OfFound)
        .collect();
    let (picked, _) = figure.pick(&of_kind)?;
    let highest = picked
        .into_iter()
        .max_by(|a, b| a.0.value.total_cmp(&b.0.value))
        .filter(|one| one.0.value > 0.0)?;
    let of_curve = |kind| {
        let mut same = all.iter().filter(|one| one.part == highest.0.part);
        same.find(|one| one.kind == kind).map(|one| one.value)
    };
    let block = of_curve(FoundKind::MaxBytesPerS).zip(of_curve(FoundKind::MaxIops));
    Some(Measured {
        value: highest.0.value,
        bounds: highest.0.interval.map(|(low, high)| Bounds {
            low,
            high,
            freedom: f64::INFINITY,
            basis: Basis::Series,
        }),
        rw: highest.0.rw.clone(),
        block_bytes: block.map(|(bytes, ios)| (bytes / ios).round() as u64),
    })
}

fn of_parts(study: &Summary, figure: &FigureName) -> Result<Option<Measured>, Failure> {
    let Some(measure) = figure.asked.measure() else {
        return Ok(None);
    };
    let parts: Vec<OfPart<'_>> = study.parts.iter().map(OfPart).collect();
    let Some((picked, subject)) = figure.pick(&parts) else {
        return Ok(None);
    };
    let mut values: Vec<(&Part, &Figure)> = Vec::new();
    for part in picked {
        let subjects = [Subject::Read, Subject::Write, Subject::Mixed, Subject::Trim];
        let subjects = subject.map_or(subjects.to_vec(), |subject| vec![subject]);
        let found = subjects
            .into_iter()
            .filter_map(|subject| of_part(part.0, subject, measure));
        values.extend(found.map(|figure| (part.0, figure)));
    }
    let names: BTreeSet<&str> = values.iter().map(|(part, _)| part.name.as_str()).collect();
    if !figure.asked.is_highest() && names.len() > 1 && figure.asked.unit() != Unit::Depth {
        let names: Vec<&str> = names.into_iter().take(8).collect();
        return Err(Failure::usage(
            format!(
                "{} has several parts of that name: {}",
                study.short_id,
                names.join(", ")
            ),
            "name one of them, or ask for the highest: max_iops, max_bw",
        ));
    }
    let highest = values
        .into_iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    Ok(highest
        .filter(|(_, figure)| figure.value > 0.0)
        .map(|(part, figure)| Measured {
            value: figure.value,
            bounds: figure.bounds,
            rw: part.pattern.rw.clone(),
            block_bytes: part.pattern.bs.parse().ok(),
        }))
}

fn of_part(part: &Part, subject: Subject, measure: Measure) -> Option<&Figure> {
    let completion = Measure::ALL
        .into_iter()
        .find(|each| each.of_total() == Some(measure));
    let figure = part.figure(subject, measure);
    figure.or_else(|| part.figure(subject, completion?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_study::suite::{FORMAT, StepResult};

    fn step(interrupted: bool, max_iops: f64) -> StepResult {
        StepResult {
            workload: "w".to_owned(),
            name: "w".to_owned(),
            repetition: 1,
            parts: Vec::new(),
            elapsed_ns: 0,
            found: vec![Found {
                part: "w".to_owned(),
                rw: "randread".to_owned(),
                kind: FoundKind::MaxIops,
                value: max_iops,
                interval: None,
            }],
            findings: Vec::new(),
            failure: None,
            interrupted,
            sweep: None,
        }
    }

    /// What the first of ten minutes found is no maximum, however high.
    #[test]
    fn what_was_interrupted_is_no_figure() {
        let highest = |steps: Vec<StepResult>| {
            let suite = SuiteResult {
                format: FORMAT,
                suite: "s".to_owned(),
                about: None,
                target: "sim:".to_owned(),
                labels: Default::default(),
                steps,
                judged: Vec::new(),
                interrupted: true,
            };
            let figure = FigureName::parse("max_iops").ok().unwrap();
            let outcome = of_suite(&suite, FoundKind::MaxIops, &figure);
            outcome.map(|found| found.map(|measured| measured.value))
        };
        let steps = vec![step(true, 9.0), step(false, 5.0)];
        assert_eq!(highest(steps), Some(Some(5.0)));
        assert_eq!(highest(vec![step(true, 9.0)]), Some(None));
        assert_eq!(highest(Vec::new()), None);
    }
}
