//! Advice that follows from a sweep, as text.

use super::recommendation::{CellAddress, Recommendation, recommendations};
use super::{grid, several_values};
use crate::text_style::TextStyle;
use crate::text_table::{is_narrow, wrapped};
use crate::{grouped, listed};
use iosonde_study::sweep::{
    AdvisedCell, BlocksAdvice, BoundBy, CurveResult, Parallel, ParallelAdvice, SweepResult,
};
use iosonde_study::words;

/// Width of the names of goals.
const GOAL_COLUMNS: usize = 34;

/// Cells that are named for one workload.
struct WorkloadGoals {
    subject: String,
    goals: Vec<Goal>,
}

/// A cell and the goals that it reaches.
struct Goal {
    /// Names of the goals, with commas between them.
    names: String,
    /// Depth and jobs of the cell, with its figures in the digits of the table.
    figures: String,
    /// Share of the highest measured rate of the workload. `None`: the cell has that rate.
    rate_share: Option<String>,
}

impl Goal {
    /// Figures of the cell in one line.
    fn sentence(&self) -> String {
        match &self.rate_share {
            Some(share) => format!("{}, {share}", self.figures),
            None => self.figures.clone(),
        }
    }

    /// Lines of the report. The share has a line of its own: figures and share do not fit in one.
    fn text(&self) -> String {
        if is_narrow() {
            return wrapped(&format!("- {}: {}", self.names, self.sentence()));
        }
        let first = format!("  {:<GOAL_COLUMNS$} {}", self.names, self.figures);
        match &self.rate_share {
            Some(share) => format!("{first},\n{:width$}{share}\n", "", width = GOAL_COLUMNS + 3),
            None => format!("{first}\n"),
        }
    }
}

/// Returns text as wide as a paragraph. It is empty if there is no advice.
pub(crate) fn advice_text(result: &SweepResult) -> String {
    let found = depth_recommendations(result);
    let mut text = String::new();
    for workload in workloads(result, &found) {
        text.push_str(&format!("{}\n", workload.subject));
        text.extend(workload.goals.iter().map(Goal::text));
    }
    for sentence in sentences(result, &found) {
        text.push_str(&wrapped(&sentence));
    }
    match text.is_empty() {
        true => text,
        false => format!("Advice\n{text}"),
    }
}

/// Returns the advice with one item per line.
pub fn lines(result: &SweepResult) -> Vec<String> {
    let found = depth_recommendations(result);
    let mut lines = Vec::new();
    for workload in workloads(result, &found) {
        let subject = &workload.subject;
        let goals = workload.goals.iter();
        let goals = goals.map(|goal| format!("{}: {}", goal.names, goal.sentence()));
        lines.extend(goals.map(|goal| format!("advice: {subject}: {goal}")));
    }
    let sentences = sentences(result, &found).into_iter();
    lines.extend(sentences.map(|sentence| format!("advice: {sentence}")));
    lines
}

/// Returns the advice as Markdown.
pub(super) fn markdown(result: &SweepResult) -> String {
    let found = depth_recommendations(result);
    let mut text = String::new();
    for workload in workloads(result, &found) {
        text.push_str(&format!("\n**{}**\n\n", workload.subject));
        let goals = workload.goals.iter();
        let goals = goals.map(|goal| format!("- {}: {}\n", goal.names, goal.sentence()));
        text.extend(goals);
    }
    let sentences: String = sentences(result, &found)
        .iter()
        .map(|one| format!("- {one}\n"))
        .collect();
    if !sentences.is_empty() {
        text.push_str(&format!("\n{sentences}"));
    }
    match text.is_empty() {
        true => text,
        false => format!("\n### Advice\n{text}"),
    }
}

/// Recommendations of the short report. A sweep over the working set has one depth, so none.
fn depth_recommendations(result: &SweepResult) -> Vec<Recommendation> {
    match super::is_of_working_sets(result) {
        true => Vec::new(),
        false => recommendations(result),
    }
}

/// Subject of an advice: the values of axes that have several.
fn subject(result: &SweepResult, values: &[String], without: &[&str]) -> String {
    let axes = &result.axes[..result.axes.len() - 1];
    let kept = axes
        .iter()
        .filter(|axis| !without.contains(&axis.name.as_str()));
    let names = several_values(kept.zip(values));
    match names.is_empty() {
        true => super::sweep_target_text(result),
        false => names,
    }
}

/// Workloads with a cell for at least one goal.
fn workloads(result: &SweepResult, found: &[Recommendation]) -> Vec<WorkloadGoals> {
    let workloads = found.iter().map(|found| WorkloadGoals {
        subject: subject(result, &found.values, &["numjobs"]),
        goals: goals(result, found),
    });
    workloads
        .filter(|workload| !workload.goals.is_empty())
        .collect()
}

/// Cells with their goals. Goals that share a cell are joined.
fn goals(result: &SweepResult, found: &Recommendation) -> Vec<Goal> {
    let mut choices = result.advice.choices.iter();
    let choice = choices.find(|choice| choice.values == found.values);
    let advised = |spot: &AdvisedCell| address_of(result, &found.values, spot);
    let all = [
        ("recommended", found.address()),
        (
            "lowest latency",
            choice.and_then(|choice| advised(&choice.latency)),
        ),
        (
            "most throughput",
            choice.and_then(|choice| advised(&choice.throughput)),
        ),
    ];
    let is_complete = all.iter().all(|(_, address)| address.is_some());
    let known = all.into_iter();
    let mut goals = grouped(known.filter_map(|(goal, address)| Some((address?, goal))));
    if let ([(_, names)], true) = (&mut goals[..], is_complete) {
        *names = vec!["recommended for latency and rate"];
    }
    let goals = goals.into_iter().map(|(address, names)| Goal {
        names: names.join(", "),
        figures: figures(result, address),
        rate_share: found.rate_share(result, address),
    });
    goals.collect()
}

/// Depth and jobs of a cell, with its figures in the digits of the table.
fn figures(result: &SweepResult, address: CellAddress) -> String {
    let curve = &result.curves[address.curve];
    let cell = &curve.cells[address.cell];
    let jobs = match curve.numjobs {
        1 => String::new(),
        jobs => format!("{jobs} jobs, "),
    };
    let (rate, latency) = (grid::rate_with_unit(curve, cell), grid::latency(cell));
    format!("{jobs}depth {}: {rate}, {latency}", cell.iodepth)
}

/// The cell of the sweep that an advice on the workload with these values names.
fn address_of(result: &SweepResult, values: &[String], spot: &AdvisedCell) -> Option<CellAddress> {
    let axes = &result.axes[..result.axes.len() - 1];
    let is_of_workload = |curve: &CurveResult| {
        let own = axes.iter().zip(&curve.values);
        let own = own.filter(|(axis, _)| axis.name != "numjobs");
        curve.numjobs == spot.numjobs && own.map(|(_, value)| value).eq(values)
    };
    let curve = result.curves.iter().position(is_of_workload)?;
    let mut cells = result.curves[curve].cells.iter();
    let cell = cells.position(|cell| cell.iodepth == spot.iodepth)?;
    Some(CellAddress { curve, cell })
}

fn sentences(result: &SweepResult, found: &[Recommendation]) -> Vec<String> {
    let limited = found
        .iter()
        .filter(|found| found.address().is_none() || found.has_caveat());
    let limited = limited.map(|found| found.sentence(result, TextStyle::PLAIN));
    let parallel = result
        .advice
        .parallel
        .iter()
        .map(|advice| jobs_or_depth(result, advice));
    let blocks = result
        .advice
        .blocks
        .iter()
        .map(|advice| blocks(result, advice));
    limited.chain(parallel).chain(blocks).collect()
}

fn jobs_or_depth(result: &SweepResult, advice: &ParallelAdvice) -> String {
    let subject = subject(result, &advice.values, &["numjobs"]);
    let better = match advice.better {
        Parallel::Jobs => "more jobs are better than more depth",
        Parallel::Depth => "more depth is better than more jobs",
        Parallel::Same => "more jobs are no better than more depth",
    };
    format!("{subject}: {better}: {}", advice.evidence)
}

fn blocks(result: &SweepResult, advice: &BlocksAdvice) -> String {
    let of = |bound: BoundBy| {
        let found = advice
            .blocks
            .iter()
            .filter(move |block| block.bound_by == bound);
        let sizes: Vec<String> = found
            .clone()
            .map(|block| words::bytes(block.block_bytes))
            .collect();
        let iops = found.clone().map(|block| block.iops).fold(0.0, f64::max);
        let bytes = found.map(|block| block.bytes_per_s).fold(0.0, f64::max);
        (sizes, iops, bytes)
    };
    let mut parts: Vec<(Vec<String>, String)> = Vec::new();
    let (sizes, iops, _) = of(BoundBy::Iops);
    parts.push((sizes, format!("by IOPS ({})", words::iops_text(iops))));
    let (sizes, ..) = of(BoundBy::Both);
    parts.push((sizes, "by IOPS and bandwidth".to_owned()));
    let (sizes, _, bytes) = of(BoundBy::Bandwidth);
    let bandwidth = format!("by bandwidth ({})", words::bandwidth(bytes));
    parts.push((sizes, bandwidth));
    let mut limits = parts.iter().filter(|(sizes, _)| !sizes.is_empty());
    let first = limits.next().map_or(String::new(), |(sizes, bound)| {
        format!("blocks of {} are limited {bound}", listed(sizes))
    });
    let others: String = limits
        .map(|(sizes, bound)| format!(", those of {} {bound}", listed(sizes)))
        .collect();
    let (rising, ..) = of(BoundBy::Depth);
    let end = match rising.is_empty() {
        true => {
            let turning = words::bytes((advice.turning_bytes / 1024.0).round() as u64 * 1024);
            format!("blocks of {turning} would reach both maxima")
        }
        false => format!(
            "the rate of {} still rises at the deepest queue",
            listed(&rising)
        ),
    };
    format!(
        "{}: {first}{others}; {end}",
        subject(result, &advice.values, &["bs", "numjobs"]),
    )
}
