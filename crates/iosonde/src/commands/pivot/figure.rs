//! The figure of one result, and what it was measured with.

use crate::args::PivotOf;
use crate::failure::Failure;
use crate::store::{Store, Summary};
use iosonde_result::compare::{
    Basis, Bounds, Figure, Measure, Measured as OneResult, Part, Pattern, Side, Subject, figure_of,
};
use iosonde_study::load::LoadResult;
use iosonde_study::suite::{Asked, FigureName, Found, FoundKind, Named, StepResult, SuiteResult};
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

/// Results of one pair of labels as one figure, with its interval where that is known.
pub(super) fn together(
    results: &[(&Summary, Measured)],
    of: PivotOf,
    asked: Asked,
) -> Option<Side> {
    let mut sorted: Vec<&(&Summary, Measured)> = results.iter().collect();
    sorted.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let chosen = match of {
        PivotOf::Mean => return mean(results),
        PivotOf::Best if asked.is_better_low() => *sorted.first()?,
        PivotOf::Best => *sorted.last()?,
        // Of equals the last: repetitions are in their order.
        PivotOf::Latest => results
            .iter()
            .max_by_key(|(study, _)| study.started_at_ms)?,
        PivotOf::Median => {
            let high = sorted.get(sorted.len() / 2)?;
            let low = sorted.get((sorted.len() - 1) / 2)?;
            let median = (low.1.value + high.1.value) / 2.0;
            let bounds = low.1.bounds.filter(|_| results.len() == 1);
            return Some(side(results, median, bounds));
        }
    };
    Some(side(results, chosen.1.value, chosen.1.bounds))
}

fn side(results: &[(&Summary, Measured)], value: f64, bounds: Option<Bounds>) -> Side {
    let machines: BTreeSet<&Option<String>> =
        results.iter().map(|(study, _)| &study.machine).collect();
    Side {
        value,
        bounds,
        runs: results.len(),
        machines: machines.len(),
        spread: None,
        unsettled: false,
        earlier_runs: None,
    }
}

/// The geometric mean, with the interval that results give together.
fn mean(results: &[(&Summary, Measured)]) -> Option<Side> {
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
struct OfFound {
    found: Found,
    workload: String,
}

impl Named for OfFound {
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

/// What a load study is called where it is no workload of a suite.
const LOAD: &str = "load";

/// The figures of one result, one for each repetition; none where it has no such figure.
pub(super) fn measured(
    store: &Store,
    study: &Summary,
    figure: &FigureName,
) -> Result<Vec<Measured>, Failure> {
    // What a search found is surer than the best of its short cells.
    match (study.kind.as_str(), figure.asked.found()) {
        ("suite", _) => {
            if let Some(suite) = store.without_runs(study)?.suite(None) {
                return of_suite(study, &suite, figure);
            }
        }
        ("sweep", Some(kind)) => {
            if let Some(sweep) = store.without_runs(study)?.sweep(None) {
                let all = of_workload("", Found::of_sweep("", &sweep));
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

/// What of a load study stands for all of it: no rate where not all of them were tried.
fn of_load(load: &LoadResult) -> Vec<Found> {
    let is_whole = load.error.is_none() && load.failure().is_none();
    let stands = |found: &Found| !load.interrupted && (is_whole || found.kind != FoundKind::Rate);
    let mut all = Found::of_load(LOAD, load);
    all.retain(stands);
    all
}

fn of_workload(workload: &str, all: Vec<Found>) -> Vec<OfFound> {
    let of = |found: Found| OfFound {
        workload: match workload {
            "" => found.part.clone(),
            workload => workload.to_owned(),
        },
        found,
    };
    all.into_iter().map(of).collect()
}

/// The figures of the repetitions of a suite: what studies in it found, else of runs. What was cut short is no figure of it.
fn of_suite(
    study: &Summary,
    suite: &SuiteResult,
    figure: &FigureName,
) -> Result<Vec<Measured>, Failure> {
    let repetitions: BTreeSet<u32> = suite.steps.iter().map(|step| step.repetition).collect();
    let (mut found, mut of_runs) = (Vec::new(), Vec::new());
    let (mut is_cut, mut is_run_cut) = (false, false);
    for repetition in repetitions {
        let steps = || (suite.steps.iter()).filter(|step| step.repetition == repetition);
        if let Some(kind) = figure.asked.found() {
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
        // Several of that name are no figure either.
        let parts = cut.into_iter().flat_map(|step| &step.parts);
        is_run_cut |= !matches!(of_parts(study, parts, figure), Ok(None));
    }
    if !found.is_empty() || is_cut {
        return Ok(found);
    }
    // The history has the runs of what was cut short as well.
    if !of_runs.is_empty() || is_run_cut {
        return Ok(of_runs);
    }
    // Cells of searches are in no step.
    let cells = of_parts(study, study.parts.iter(), figure)?;
    Ok(cells.into_iter().collect())
}

/// What a study found; the highest, where that is asked for.
fn of_found(
    study: &Summary,
    all: &[OfFound],
    kind: FoundKind,
    figure: &FigureName,
) -> Result<Option<Measured>, Failure> {
    let of_kind: Vec<&OfFound> = all.iter().filter(|one| one.found.kind == kind).collect();
    let Some((picked, _)) = figure.pick(&of_kind) else {
        return Ok(None);
    };
    if !figure.asked.is_highest() {
        refuse_several(study, picked.iter().map(|one| one.name()))?;
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
    let block = of_curve(FoundKind::MaxBytesPerS).zip(of_curve(FoundKind::MaxIops));
    Ok(Some(Measured {
        value: highest.value,
        bounds: highest.interval.map(|(low, high)| Bounds {
            low,
            high,
            freedom: f64::INFINITY,
            repeat_factor: 1.0,
            basis: Basis::Series,
        }),
        rw: highest.rw.clone(),
        block_bytes: block.map(|(bytes, ios)| (bytes / ios).round() as u64),
    }))
}

/// Nobody could say which of several is meant.
fn refuse_several<'a>(
    study: &Summary,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let names: BTreeSet<&str> = names.collect();
    if names.len() <= 1 {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().take(8).collect();
    Err(Failure::usage(
        format!(
            "{} has several parts of that name: {}",
            study.short_id,
            names.join(", ")
        ),
        "name one of them, or ask for the highest: max_iops, max_bw",
    ))
}

fn of_parts<'a>(
    study: &Summary,
    parts: impl Iterator<Item = &'a Part>,
    figure: &FigureName,
) -> Result<Option<Measured>, Failure> {
    let Some(measure) = figure.asked.measure() else {
        return Ok(None);
    };
    let parts: Vec<OfPart<'_>> = parts.map(OfPart).collect();
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
    if !figure.asked.is_highest() {
        refuse_several(study, values.iter().map(|(part, _)| part.name.as_str()))?;
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

/// So many names are told at most.
const MOST_NAMES: usize = 12;

/// What can be asked for of results, for whoever asked for what there is not.
pub(super) fn there_is(store: &Store, studies: &[Summary]) -> Result<String, Failure> {
    let (mut of_runs, mut of_curves, mut of_loads) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for study in studies {
        let parts = study.results().into_iter();
        let parts = parts.filter(|part| !part.figures.is_empty());
        of_runs.extend(parts.flat_map(|part| [part.pattern.rw, part.name]));
        for one in found_by(store, study)? {
            match one.kind {
                FoundKind::Rate | FoundKind::Capacity => of_loads.insert(one.part),
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
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    Ok(match all.is_empty() {
        true => "no result that is looked at has figures; `iosonde list` shows all".to_owned(),
        false => format!("there are {}", all.join("; ")),
    })
}

/// What a result has beyond the figures of its runs.
fn found_by(store: &Store, study: &Summary) -> Result<Vec<Found>, Failure> {
    if !matches!(study.kind.as_str(), "suite" | "sweep" | "load") {
        return Ok(Vec::new());
    }
    let kept = store.without_runs(study)?;
    let of_suite = |suite: SuiteResult| {
        let steps = suite.steps.into_iter();
        steps.flat_map(|step| step.found).collect::<Vec<_>>()
    };
    let found = kept.suite(None).map(of_suite);
    let found = found.or_else(|| Some(Found::of_sweep("", &kept.sweep(None)?)));
    let found = found.or_else(|| Some(of_load(&kept.load(None)?)));
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_study::suite::FORMAT;

    fn step(repetition: u32, interrupted: bool, max_iops: f64) -> StepResult {
        StepResult {
            workload: "w".to_owned(),
            name: "w".to_owned(),
            repetition,
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

    fn summary(started_at_ms: u64) -> Summary {
        Summary {
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
            parts: Vec::new(),
            headline: Default::default(),
            shown: Vec::new(),
        }
    }

    /// What the first of ten minutes found is no maximum, however high; repetitions are figures of their own.
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

    /// Nor are the runs of a step that failed or was interrupted, also where the history has them.
    #[test]
    fn runs_of_what_was_cut_short_are_no_figure() {
        let part = |iops: f64| Part {
            name: "w".to_owned(),
            pattern: Pattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value: iops,
                bounds: None,
                settled: None,
            }],
        };
        let of = |repetition, interrupted, failure: Option<&str>, iops| StepResult {
            parts: vec![part(iops)],
            found: Vec::new(),
            failure: failure.map(str::to_owned),
            ..step(repetition, interrupted, 0.0)
        };
        let all = |steps: Vec<StepResult>| {
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
            let study = Summary {
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

    #[test]
    fn several_results_are_what_is_asked_for() {
        let (early, late) = (summary(1), summary(2));
        let measured = |value: f64| Measured {
            value,
            bounds: None,
            rw: "randread".to_owned(),
            block_bytes: None,
        };
        let results = [
            (&late, measured(100.0)),
            (&late, measured(400.0)),
            (&early, measured(900.0)),
            (&early, measured(200.0)),
        ];
        let of = |of, asked| together(&results, of, asked).unwrap().value;
        let iops = Asked::Measure(Measure::Iops);
        assert_eq!(of(PivotOf::Median, iops), 300.0);
        assert_eq!(of(PivotOf::Latest, iops), 400.0);
        assert_eq!(of(PivotOf::Best, iops), 900.0);
        assert_eq!(of(PivotOf::Best, Asked::Measure(Measure::LatP99)), 100.0);
        let mean = of(PivotOf::Mean, iops);
        let expected = (100.0 * 400.0 * 900.0 * 200.0f64).powf(0.25);
        assert!((mean / expected - 1.0).abs() < 1e-9);
        let middle = together(&results[..3], PivotOf::Median, iops).unwrap();
        assert_eq!(middle.value, 400.0);
        assert!(together(&[], PivotOf::Median, iops).is_none());
    }
}
