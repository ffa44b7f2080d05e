//! Parts of a suite for comparison with another: those of its runs, the cells of its sweeps, and
//! the figures of its commands and load studies.

use super::command_step::CommandResult;
use super::outcome::{StepResult, StudyFigure, SuiteResult};
use super::study_figure_kind::StudyFigureKind;
use iosonde_job::plan::ReadWrite;
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, MeasuredResult, PartRole, ResultPart,
    Subject, figure_of, name_beside,
};
use iosonde_study::sweep::{SweepResult, compared};

/// Degrees of freedom assumed where a result has the ends of an interval, but not its samples.
const FREEDOM: f64 = 20.0;

/// Units of time with their nanoseconds. A command's figure in another unit is a rate.
const TIME_UNITS: [(&str, f64); 13] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("nsec", 1.0),
    ("usec", 1e3),
    ("msec", 1e6),
    ("sec", 1e9),
    ("seconds", 1e9),
    ("min", 6e10),
    ("minutes", 6e10),
    ("h", 3.6e12),
];

/// Returns the parts of all steps in their order. Repetitions of a part are one part, whose figures
/// are those of the suite's table.
pub fn suite_parts(suite: &SuiteResult) -> Vec<ResultPart> {
    let all = repetitions(suite, step_parts);
    let mut parts: Vec<ResultPart> = Vec::new();
    for part in all.iter().flat_map(|measured| &measured.parts) {
        if parts.iter().all(|known| known.name != part.name) {
            parts.push(combined_part(part, &all));
        }
    }
    parts
}

/// Returns one result for each repetition, with the parts of the runs of its steps.
#[must_use]
pub fn run_repetitions(suite: &SuiteResult) -> Vec<MeasuredResult> {
    repetitions(suite, |step| step.parts.clone())
}

/// Returns one result for each repetition, with the parts that `parts_of` returns for its steps.
fn repetitions(
    suite: &SuiteResult,
    parts_of: impl Fn(&StepResult) -> Vec<ResultPart>,
) -> Vec<MeasuredResult> {
    let numbers = suite.steps.iter().map(|step| step.repetition);
    let of = |repetition: u32| MeasuredResult {
        name: format!("repetition {repetition}"),
        machine: None,
        parts: suite
            .steps
            .iter()
            .filter(|step| step.repetition == repetition)
            .flat_map(&parts_of)
            .collect(),
    };
    (1..=numbers.max().unwrap_or(0)).map(of).collect()
}

/// Returns a part whose figures are combined over the repetitions that have them. A figure that no
/// repetition has stays as it is.
#[must_use]
pub fn combined_part(part: &ResultPart, repetitions: &[MeasuredResult]) -> ResultPart {
    let combined = |figure: &Figure| {
        let side = figure_of(repetitions, &part.name, figure.subject, figure.measure);
        side.map_or(*figure, |side| Figure {
            value: side.value,
            bounds: side.bounds,
            settled: match side.unsettled {
                true => Some(false),
                false => figure.settled,
            },
            ..*figure
        })
    };
    ResultPart {
        figures: part.figures.iter().map(combined).collect(),
        ..part.clone()
    }
}

/// Returns the parts of one step: its runs, the measured cells of its sweep, and other figures.
fn step_parts(step: &StepResult) -> Vec<ResultPart> {
    let mut parts = step.parts.clone();
    if let Some(sweep) = &step.sweep {
        parts.extend(sweep_parts(step, sweep));
    }
    let stands = |found: &&StudyFigure| !step.standing(found.kind).is_empty();
    let found = step.found.iter().filter(stands);
    parts.extend(found.filter_map(|found| found_part(step, found)));
    parts
}

/// Returns the maxima and the cells of a sweep, whose names begin with the workload.
fn sweep_parts(step: &StepResult, sweep: &SweepResult) -> Vec<ResultPart> {
    let named = |part: ResultPart| {
        let name = match step.workload.is_empty() {
            true => part.name,
            false => format!("{}, {}", step.workload, part.name),
        };
        ResultPart {
            name: match step.beside {
                Some(_) => name_beside(&name),
                None => name,
            },
            role: role_of_step(step),
            ..part
        }
    };
    let cells = compared(sweep, &|_, _| None).into_iter();
    cells.map(|cell| named(cell.part)).collect()
}

/// Returns the part of a study's figure. `None`: the cells of the sweep have it, or it is 0.
fn found_part(step: &StepResult, found: &StudyFigure) -> Option<ResultPart> {
    let name = &found.part;
    let direction = ReadWrite::from_rw(&found.rw).and_then(|rw| rw.mode.only_direction());
    let subject = direction.map_or(Subject::Mixed, Subject::from);
    let (name, subject, measure, factor) = match found.kind {
        StudyFigureKind::CommandFigure => command_figure(name, step.command.as_deref()),
        StudyFigureKind::Rate => (format!("{name} rate"), subject, Measure::Iops, 1.0),
        StudyFigureKind::Capacity => (format!("{name} capacity"), subject, Measure::Iops, 1.0),
        StudyFigureKind::MaxIops | StudyFigureKind::MaxBytesPerS | StudyFigureKind::Knee => {
            return None;
        }
    };
    // The ends of a rate are rates that were tried, not a confidence interval.
    let interval = (found.interval).filter(|_| found.kind == StudyFigureKind::CommandFigure);
    let figure = Figure {
        subject,
        measure,
        value: found.value * factor,
        bounds: interval.map(|(low, high)| Bounds {
            low: (low * factor).max(0.0),
            high: high * factor,
            freedom: FREEDOM,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        }),
        settled: None,
    };
    (figure.value > 0.0).then(|| ResultPart {
        name,
        pattern: IoPattern::default(),
        figures: vec![figure],
        role: role_of_step(step),
    })
}

/// Role of the figures of a study or a command, which are never those of the neighbour.
fn role_of_step(step: &StepResult) -> PartRole {
    match step.beside {
        Some(_) => PartRole::BesideNeighbour,
        None => PartRole::Alone,
    }
}

/// Returns name, subject, measure and factor of a command's figure. Times become nanoseconds, of
/// which fewer are faster. The name contains any other unit, so that only like figures compare.
fn command_figure(name: &str, command: Option<&CommandResult>) -> (String, Subject, Measure, f64) {
    let unit = command.map_or("", |command| command.unit.trim());
    // A time per operation, such as `ms/op`, is a time.
    let of_time = unit.split('/').next().unwrap_or_default().trim_end();
    let time = TIME_UNITS.iter().find(|(time, _)| *time == of_time);
    if let Some((_, ns)) = time {
        return (name.to_owned(), Subject::Command, Measure::LatMean, *ns);
    }
    let name = match unit.is_empty() {
        true => name.to_owned(),
        false => format!("{name}, {unit}"),
    };
    (name, Subject::Command, Measure::CommandFigure, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(repetition: u32, value: f64, unit: &str) -> StepResult {
        let command = CommandResult {
            unit: unit.to_owned(),
            value,
            ..CommandResult::default()
        };
        StepResult {
            found: vec![StudyFigure {
                part: "db".to_owned(),
                rw: String::new(),
                kind: StudyFigureKind::CommandFigure,
                value,
                interval: Some((value * 0.9, value * 1.1)),
            }],
            command: Some(Box::new(command)),
            ..StepResult::without_figures("db", "db", repetition)
        }
    }

    fn suite(steps: Vec<StepResult>) -> SuiteResult {
        SuiteResult::from_steps("s", "/data", steps)
    }

    #[test]
    fn figure_of_a_command_is_a_part_with_its_unit() {
        let parts = suite_parts(&suite(vec![step(1, 450.0, "tps")]));
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].name, "db, tps");
        let figure = parts[0].figure(Subject::Command, Measure::CommandFigure);
        let figure = figure.unwrap();
        assert_eq!(figure.value, 450.0);
        assert!(figure.bounds.unwrap().low > 404.0);
        assert!(Measure::CommandFigure.more_is_faster());
    }

    #[test]
    fn repetitions_of_a_part_are_one_part_with_their_mean() {
        let parts = suite_parts(&suite(vec![step(1, 440.0, "tps"), step(2, 450.0, "tps")]));
        assert_eq!(parts.len(), 1);
        let figure = &parts[0].figures[0];
        assert!((figure.value - 444.97).abs() < 0.01, "{figure:?}");
        let bounds = figure.bounds.unwrap();
        assert_eq!(bounds.basis, IntervalBasis::Runs);
        // A figure of a single repetition keeps its own interval.
        let parts = suite_parts(&suite(vec![step(1, 440.0, "tps")]));
        let bounds = parts[0].figures[0].bounds.unwrap();
        assert_eq!(bounds.basis, IntervalBasis::Series);
    }

    #[test]
    fn time_of_a_command_is_a_latency() {
        let parts = suite_parts(&suite(vec![step(1, 2.5, "ms")]));
        let figure = parts[0].figure(Subject::Command, Measure::LatMean).unwrap();
        assert_eq!((parts[0].name.as_str(), figure.value), ("db", 2.5e6));
        for unit in ["ms/op", "msec", "s / transaction"] {
            let parts = suite_parts(&suite(vec![step(1, 2.5, unit)]));
            let figure = parts[0].figure(Subject::Command, Measure::LatMean);
            assert!(figure.is_some(), "{unit}");
        }
    }

    #[test]
    fn interrupted_or_zero_figure_is_no_part() {
        let mut interrupted = step(1, 450.0, "tps");
        interrupted.interrupted = true;
        let steps = vec![interrupted, step(2, 0.0, "tps")];
        assert_eq!(suite_parts(&suite(steps)), []);
    }
}
