//! Reads a figure from a stored result, with its workload.

use crate::failure::CommandError;
use iosonde_history::{Store, StudySummary};
use iosonde_job::quote_shell_word;
use iosonde_result::compare::{Bounds, Figure, IntervalBasis, Measure, ResultPart, Subject};
use iosonde_study::load::LoadResult;
use iosonde_suite::{FigureName, NamedPart, StepResult, StudyFigure, StudyFigureKind, SuiteResult};
use std::collections::BTreeSet;

/// A figure of one result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PivotFigure {
    pub(super) value: f64,
    pub(super) bounds: Option<Bounds>,
    /// fio's `rw` of the workload.
    pub(super) rw: String,
    /// Bytes of each I/O, if uniform or if the mean is known.
    pub(super) block_bytes: Option<u64>,
}

/// A part, matched by name.
struct OfPart<'a>(&'a ResultPart);

impl NamedPart for OfPart<'_> {
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

/// A figure found by a study, matched by name.
struct OfFound {
    found: StudyFigure,
    workload: String,
}

impl NamedPart for OfFound {
    fn name(&self) -> &str {
        &self.found.part
    }
    fn workload(&self) -> &str {
        &self.workload
    }
    fn rw(&self) -> &str {
        &self.found.rw
    }
}

/// Name of a load study that is not a step of a suite.
const LOAD: &str = "load";

/// The figures of one result, one for each repetition. Empty if it has no such figure.
pub(super) fn measured(
    store: &Store,
    study: &StudySummary,
    figure: &FigureName,
) -> Result<Vec<PivotFigure>, CommandError> {
    // A search's result is more reliable than the best of its short cells.
    match (study.kind.as_str(), figure.asked.study_figure_kind()) {
        ("suite", _) => {
            if let Some(suite) = store.without_runs(study)?.suite(None) {
                return of_suite(study, &suite, figure);
            }
        }
        ("sweep", Some(kind)) => {
            if let Some(sweep) = store.without_runs(study)?.sweep(None) {
                let all = of_workload("", StudyFigure::from_sweep("", &sweep));
                if let Some(found) = of_found(study, &all, kind, figure)? {
                    return Ok(vec![found]);
                }
            }
        }
        ("load", Some(kind)) => {
            if let Some(load) = store.without_runs(study)?.load(None) {
                let all = of_workload(LOAD, of_load(&load));
                let found = of_found(study, &all, kind, figure)?;
                return Ok(found.into_iter().collect());
            }
        }
        _ => {}
    }
    let found = of_parts(study, study.parts.iter(), figure)?;
    Ok(found.into_iter().collect())
}

/// The figures that hold for a whole load study: no rate if some rates were not tried.
fn of_load(load: &LoadResult) -> Vec<StudyFigure> {
    let is_whole = load.error.is_none() && load.failure().is_none();
    let stands = |found: &StudyFigure| {
        !load.interrupted && (is_whole || found.kind != StudyFigureKind::Rate)
    };
    let mut all = StudyFigure::from_load(LOAD, load);
    all.retain(stands);
    all
}

fn of_workload(workload: &str, all: Vec<StudyFigure>) -> Vec<OfFound> {
    let of = |found: StudyFigure| OfFound {
        workload: match workload {
            "" => found.part.clone(),
            workload => workload.to_owned(),
        },
        found,
    };
    all.into_iter().map(of).collect()
}

/// Figures of a suite's repetitions: from studies, else from runs. Incomplete steps have none.
fn of_suite(
    study: &StudySummary,
    suite: &SuiteResult,
    figure: &FigureName,
) -> Result<Vec<PivotFigure>, CommandError> {
    let repetitions: BTreeSet<u32> = suite.steps.iter().map(|step| step.repetition).collect();
    let (mut found, mut of_runs) = (Vec::new(), Vec::new());
    let (mut is_cut, mut is_run_cut) = (false, false);
    for repetition in repetitions {
        let steps = || (suite.steps.iter()).filter(|step| step.repetition == repetition);
        if let Some(kind) = figure.asked.study_figure_kind() {
            let of_steps = |standing: bool| {
                let of_step = |step: &StepResult| match standing {
                    true => of_workload(&step.workload, step.standing(kind).to_vec()),
                    false => of_workload(&step.workload, step.found.clone()),
                };
                let all: Vec<OfFound> = steps().flat_map(of_step).collect();
                of_found(study, &all, kind, figure)
            };
            found.extend(of_steps(true)?);
            is_cut |= of_steps(false)?.is_some();
        }
        let (whole, cut): (Vec<&StepResult>, Vec<&StepResult>) =
            steps().partition(|step| step.is_whole());
        let parts = whole.into_iter().flat_map(|step| &step.parts);
        of_runs.extend(of_parts(study, parts, figure)?);
        // Ambiguous names give no figure either.
        let parts = cut.into_iter().flat_map(|step| &step.parts);
        is_run_cut |= !matches!(of_parts(study, parts, figure), Ok(None));
    }
    if !found.is_empty() || is_cut {
        return Ok(found);
    }
    // The history also has the runs of incomplete steps.
    if !of_runs.is_empty() || is_run_cut {
        return Ok(of_runs);
    }
    // Cells of searches belong to no step.
    let cells = of_parts(study, study.parts.iter(), figure)?;
    Ok(cells.into_iter().collect())
}

/// The figure that a study found. `max_` figures are the highest of several.
fn of_found(
    study: &StudySummary,
    all: &[OfFound],
    kind: StudyFigureKind,
    figure: &FigureName,
) -> Result<Option<PivotFigure>, CommandError> {
    let of_kind: Vec<&OfFound> = all.iter().filter(|one| one.found.kind == kind).collect();
    let Some((picked, _)) = figure.pick(&of_kind) else {
        return Ok(None);
    };
    if !figure.asked.is_highest() {
        let names = picked.iter().map(|one| one.name());
        refuse_several(study, (figure, None), names)?;
    }
    let highest = picked
        .into_iter()
        .map(|one| &one.found)
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .filter(|one| one.value > 0.0);
    let Some(highest) = highest else {
        return Ok(None);
    };
    let of_curve = |kind| {
        let mut same = all.iter().filter(|one| one.found.part == highest.part);
        same.find(|one| one.found.kind == kind)
            .map(|one| one.found.value)
    };
    let block = of_curve(StudyFigureKind::MaxBytesPerS).zip(of_curve(StudyFigureKind::MaxIops));
    Ok(Some(PivotFigure {
        value: highest.value,
        bounds: highest.interval.map(|(low, high)| Bounds {
            low,
            high,
            freedom: f64::INFINITY,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        }),
        rw: highest.rw.clone(),
        block_bytes: block.map(|(bytes, ios)| (bytes / ios).round() as u64),
    }))
}

/// Fails if several parts have the name, as the choice would be ambiguous.
fn refuse_several<'a>(
    study: &StudySummary,
    (figure, subject): (&FigureName, Option<Subject>),
    names: impl Iterator<Item = &'a str>,
) -> Result<(), CommandError> {
    let names: BTreeSet<&str> = names.collect();
    if names.len() <= 1 {
        return Ok(());
    }
    let named = names.iter().find(|name| !name.is_empty());
    let example = figure.of_part(named.copied().unwrap_or_default(), subject);
    let names: Vec<&str> = names.into_iter().take(8).collect();
    Err(CommandError::usage(
        format!(
            "{} has several parts with this figure: {}",
            study.short_id,
            names.join(", ")
        ),
        format!("for example `--value {}`", quote_shell_word(&example)),
    ))
}

fn of_parts<'a>(
    study: &StudySummary,
    parts: impl Iterator<Item = &'a ResultPart>,
    figure: &FigureName,
) -> Result<Option<PivotFigure>, CommandError> {
    let Some(measure) = figure.asked.measure() else {
        return Ok(None);
    };
    let parts: Vec<OfPart<'_>> = parts.map(OfPart).collect();
    let Some((picked, subject)) = figure.pick(&parts) else {
        return Ok(None);
    };
    let mut values: Vec<(&ResultPart, &Figure)> = Vec::new();
    for part in picked {
        let subjects = [Subject::Read, Subject::Write, Subject::Mixed, Subject::Trim];
        let subjects = subject.map_or(subjects.to_vec(), |subject| vec![subject]);
        let found = subjects
            .into_iter()
            .filter_map(|subject| of_part(part.0, subject, measure));
        values.extend(found.map(|figure| (part.0, figure)));
    }
    if !figure.asked.is_highest() {
        let names = values.iter().map(|(part, _)| part.name.as_str());
        refuse_several(study, (figure, subject), names)?;
    }
    let highest = values
        .into_iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    Ok(highest
        .filter(|(_, figure)| figure.value > 0.0)
        .map(|(part, figure)| PivotFigure {
            value: figure.value,
            bounds: figure.bounds,
            rw: part.pattern.rw.clone(),
            block_bytes: part.pattern.block_bytes(),
        }))
}

fn of_part(part: &ResultPart, subject: Subject, measure: Measure) -> Option<&Figure> {
    let completion = Measure::ALL
        .into_iter()
        .find(|each| each.of_total() == Some(measure));
    let figure = part.figure(subject, measure);
    figure.or_else(|| part.figure(subject, completion?))
}

/// Limit on the names in an error.
const MOST_NAMES: usize = 12;

/// Help text that lists the figures of the results, for a figure that none of them has.
pub(super) fn there_is(store: &Store, studies: &[StudySummary]) -> Result<String, CommandError> {
    let (mut of_runs, mut of_curves) = (BTreeSet::new(), BTreeSet::new());
    let (mut of_loads, mut of_commands) = (BTreeSet::new(), BTreeSet::new());
    for study in studies {
        let parts = study.results().into_iter();
        let parts = parts.filter(|part| !part.figures.is_empty());
        of_runs.extend(parts.flat_map(|part| [part.pattern.rw, part.name]));
        for one in found_by(store, study)? {
            match one.kind {
                StudyFigureKind::Rate | StudyFigureKind::Capacity => of_loads.insert(one.part),
                StudyFigureKind::CommandFigure => of_commands.insert(one.part),
                _ => of_curves.insert(one.part),
            };
        }
    }
    let named = |measures: &str, names: BTreeSet<String>| {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let shown = names[..names.len().min(MOST_NAMES)].join(", ");
        let more = if names.len() > MOST_NAMES {
            ", ..."
        } else {
            ""
        };
        (!names.is_empty()).then(|| format!("{measures} of {shown}{more}"))
    };
    let all = [
        named("iops, bw, lat, p50, p99, p99.9, max_iops, max_bw", of_runs),
        named("max_iops, max_bw, knee", of_curves),
        named("rate, capacity", of_loads),
        named("figure", of_commands),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    Ok(match all.is_empty() {
        true => "no selected result has figures; `iosonde list` lists all results".to_owned(),
        false => format!("the figures are {}", all.join("; ")),
    })
}

/// Figures of a study other than those of its runs.
fn found_by(store: &Store, study: &StudySummary) -> Result<Vec<StudyFigure>, CommandError> {
    if !matches!(study.kind.as_str(), "suite" | "sweep" | "load") {
        return Ok(Vec::new());
    }
    let kept = store.without_runs(study)?;
    let of_suite = |suite: SuiteResult| {
        let steps = suite.steps.into_iter();
        steps.flat_map(|step| step.found).collect::<Vec<_>>()
    };
    let found = kept.suite(None).map(of_suite);
    let found = found.or_else(|| Some(StudyFigure::from_sweep("", &kept.sweep(None)?)));
    let found = found.or_else(|| Some(of_load(&kept.load(None)?)));
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use iosonde_result::compare::IoPattern;

    fn step(repetition: u32, interrupted: bool, max_iops: f64) -> StepResult {
        StepResult {
            found: vec![StudyFigure {
                part: "w".to_owned(),
                rw: "randread".to_owned(),
                kind: StudyFigureKind::MaxIops,
                value: max_iops,
                interval: None,
            }],
            interrupted,
            ..StepResult::without_figures("w", "w", repetition)
        }
    }

    /// Returns a suite of the history without labels, facts and parts.
    pub(in super::super) fn summary(started_at_ms: u64) -> StudySummary {
        StudySummary {
            id: "0123456789".to_owned(),
            short_id: "012345".to_owned(),
            kind: "suite".to_owned(),
            target: "sim:".to_owned(),
            machine: None,
            program: String::new(),
            started_at_ms,
            finished_at_ms: None,
            is_running: false,
            reached_ns: None,
            imported_from: None,
            labels: Default::default(),
            facts: Default::default(),
            parts: Vec::new(),
            headline: Default::default(),
            shown: Vec::new(),
        }
    }

    fn interrupted_suite(steps: Vec<StepResult>) -> SuiteResult {
        SuiteResult {
            interrupted: true,
            ..SuiteResult::from_steps("s", "sim:", steps)
        }
    }

    #[test]
    fn figure_of_several_parts_has_one_of_them_in_its_remedy() {
        let part = |name: &str| ResultPart {
            name: name.to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value: 5.0,
                bounds: None,
                settled: None,
            }],
            role: Default::default(),
        };
        let parts = [part("c"), part("a b")];
        for (text, option) in [
            ("iops", "--value 'a b.iops'"),
            ("read.iops", "--value 'a b.read.iops'"),
        ] {
            let figure = FigureName::parse(text).ok().unwrap();
            let failure = of_parts(&summary(0), parts.iter(), &figure).unwrap_err();
            assert_eq!(failure.usage_parts().1, format!("for example `{option}`"));
            let one = FigureName::parse(&figure.of_part("a b", None))
                .ok()
                .unwrap();
            let found = of_parts(&summary(0), parts.iter(), &one).unwrap();
            assert_eq!(found.map(|found| found.value), Some(5.0));
        }
    }

    /// An interrupted search yields no maximum. Each repetition yields its own figure.
    #[test]
    fn interrupted_search_yields_no_figure() {
        let highest = |steps: Vec<StepResult>| {
            let suite = interrupted_suite(steps);
            let figure = FigureName::parse("max_iops").ok().unwrap();
            let found = of_suite(&summary(0), &suite, &figure).unwrap().into_iter();
            found.map(|measured| measured.value).collect::<Vec<_>>()
        };
        let steps = vec![step(1, true, 9.0), step(1, false, 5.0)];
        assert_eq!(highest(steps), [5.0]);
        let steps = vec![step(1, false, 6.0), step(2, false, 5.0), step(3, true, 9.0)];
        assert_eq!(highest(steps), [6.0, 5.0]);
        assert!(highest(vec![step(1, true, 9.0)]).is_empty());
        assert!(highest(Vec::new()).is_empty());
    }

    /// Nor do runs of failed or interrupted steps, even if the history has them.
    #[test]
    fn runs_of_incomplete_steps_yield_no_figure() {
        let part = |iops: f64| ResultPart {
            name: "w".to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value: iops,
                bounds: None,
                settled: None,
            }],
            role: Default::default(),
        };
        let of = |repetition, interrupted, failure: Option<&str>, iops| StepResult {
            parts: vec![part(iops)],
            found: Vec::new(),
            failure: failure.map(str::to_owned),
            ..step(repetition, interrupted, 0.0)
        };
        let all = |steps: Vec<StepResult>| {
            let suite = interrupted_suite(steps);
            let study = StudySummary {
                parts: vec![part(9.0)],
                ..summary(0)
            };
            let figure = FigureName::parse("iops").ok().unwrap();
            let found = of_suite(&study, &suite, &figure).unwrap().into_iter();
            found.map(|measured| measured.value).collect::<Vec<_>>()
        };
        let steps = vec![
            of(1, false, None, 5.0),
            of(2, true, None, 9.0),
            of(3, false, Some("no space"), 8.0),
        ];
        assert_eq!(all(steps), [5.0]);
        assert!(all(vec![of(1, true, None, 9.0)]).is_empty());
        assert!(all(vec![of(1, false, Some("no space"), 9.0)]).is_empty());
        assert_eq!(all(Vec::new()), [9.0]);
    }
}
