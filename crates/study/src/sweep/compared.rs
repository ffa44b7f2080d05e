//! A sweep as parts that can be held against those of another one: the most of each curve, and each cell.

use super::axis::{JOB, TARGET};
use super::outcome::{Basis, CurveResult, SweepCell, SweepResult};
use crate::probe::compared_figure as figure;
use iosonde_result::compare::{self, Bounds, Figure, Measure, Part, Pattern, Subject};

/// One part of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedPart {
    /// What tells its curve from others: `randread 4k`.
    pub curve: String,
    /// The depth; `None` for the most at any depth.
    pub iodepth: Option<u32>,
    /// The lowest depth that reaches the most, where it was looked for.
    pub knee: Option<u32>,
    /// Its figures.
    pub part: Part,
}

/// The interval of a cell's 99th percentile, by the name of the job that ran it and its depth, where its runs are known.
pub type Known<'a> = &'a dyn Fn(&str, u32) -> Option<Bounds>;

/// The parts of a sweep, curve by curve. A single target is in no name: what is compared is mostly two targets.
pub fn compared(result: &SweepResult, known: Known<'_>) -> Vec<ComparedPart> {
    let of_curve = |curve: &CurveResult| {
        let name = name(result, curve);
        let most = most(&name, curve);
        let job = job_name(result, curve);
        let cells = curve.cells.iter().filter_map(|cell| {
            let p99 = known(&job, cell.iodepth).filter(|_| result.targets.len() <= 1);
            of(&name, curve, cell, p99)
        });
        most.into_iter().chain(cells).collect::<Vec<_>>()
    };
    result.curves.iter().flat_map(of_curve).collect()
}

/// The same for the same values, in whatever order the axes were given.
fn name(result: &SweepResult, curve: &CurveResult) -> String {
    let is_told = |name: &str| name != TARGET || result.targets.len() > 1;
    let axes = result.axes.iter().zip(&curve.values);
    let mut told: Vec<(usize, &str, String)> = axes
        .filter(|(axis, _)| is_told(&axis.name))
        .map(|(axis, value)| match axis.name.as_str() {
            "rw" => (0, "rw", value.clone()),
            "bs" => (1, "bs", value.clone()),
            other => (2, other, format!("{other}={value}")),
        })
        .collect();
    told.sort();
    match told.is_empty() {
        true => curve.rw.clone(),
        false => {
            let words: Vec<String> = told.into_iter().map(|(_, _, word)| word).collect();
            words.join(" ")
        }
    }
}

/// What a grid calls the job of a curve.
fn job_name(result: &SweepResult, curve: &CurveResult) -> String {
    let axes = result.axes.iter().zip(&curve.values);
    let words: Vec<&str> = axes
        .filter(|(axis, _)| axis.name != TARGET && axis.name != JOB)
        .map(|(_, value)| value.as_str())
        .collect();
    match words.is_empty() {
        true => "sweep".to_owned(),
        false => words.join("-"),
    }
}

fn subject(curve: &CurveResult) -> Subject {
    let rw = curve.rw.trim_start_matches("rand");
    rw.parse().unwrap_or(Subject::Mixed)
}

fn part(name: String, curve: &CurveResult, iodepth: u32, figures: Vec<Figure>) -> Part {
    Part {
        name,
        pattern: Pattern {
            rw: curve.rw.clone(),
            bs: curve.block_bytes.to_string(),
            iodepth,
            numjobs: curve.numjobs,
        },
        figures,
    }
}

/// The most at any depth: what was searched for, or else the best cell that was measured.
fn most(name: &str, curve: &CurveResult) -> Option<ComparedPart> {
    let (mean, error) = match &curve.saturation {
        Some(found) => {
            let maximum = found.known_maximum()?;
            (maximum.mean, maximum.error)
        }
        None => {
            let measured = curve
                .cells
                .iter()
                .filter(|cell| cell.basis == Basis::Measured);
            let best = measured
                .filter_map(|cell| cell.iops)
                .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
            (best.mean, best.error)
        }
    };
    let between = error.map(|error| (mean - error, mean + error));
    let basis = compare::Basis::Series;
    let iops = figure(subject(curve), Measure::Iops, mean, between, basis)?;
    Some(ComparedPart {
        curve: name.to_owned(),
        iodepth: None,
        knee: curve
            .saturation
            .as_ref()
            .and_then(|found| Some(found.known_knee()?.iodepth)),
        part: part(format!("{name}, the most"), curve, 0, vec![iops]),
    })
}

fn of(
    name: &str,
    curve: &CurveResult,
    cell: &SweepCell,
    p99_known: Option<Bounds>,
) -> Option<ComparedPart> {
    // What was drawn from other cells says nothing that those do not say.
    let iops = cell.iops.filter(|_| cell.basis == Basis::Measured)?;
    let basis = compare::Basis::Series;
    let between = iops
        .error
        .map(|error| (iops.mean - error, iops.mean + error));
    let mut figures: Vec<Figure> = figure(subject(curve), Measure::Iops, iops.mean, between, basis)
        .into_iter()
        .collect();
    if let Some(latency) = &cell.latency
        && let Some(p99) = latency.p99_ns
    {
        let between = latency.p99_between_ns;
        let between = between.map(|(low, high)| (low as f64, high as f64));
        let p99 = figure(subject(curve), Measure::LatP99, p99 as f64, between, basis);
        figures.extend(p99.map(|figure| Figure {
            bounds: figure.bounds.or(p99_known),
            ..figure
        }));
    }
    Some(ComparedPart {
        curve: name.to_owned(),
        iodepth: Some(cell.iodepth),
        knee: None,
        part: part(
            format!("{name}, iodepth {}", cell.iodepth),
            curve,
            cell.iodepth,
            figures,
        ),
    })
}
