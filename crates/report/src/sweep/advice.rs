//! Advice that follows from a sweep, as text.

use super::named;
use crate::text_table::wrapped;
use iosonde_study::sweep::{
    AdvisedCell, BlocksAdvice, BoundBy, LARGE_BYTES, Parallel, ParallelAdvice, SweepResult,
    WorkloadAdvice,
};
use iosonde_study::words;

/// Returns text of at most 80 columns. It is empty if there is no advice.
pub fn text(result: &SweepResult) -> String {
    let advice = &result.advice;
    let mut text = String::new();
    for choice in advice
        .choices
        .iter()
        .filter(|_| result.axes.iter().any(|axis| axis.values.len() > 1))
    {
        text.push_str(&format!(
            "{}\n",
            subject(result, &choice.values, &["numjobs"])
        ));
        for (goal, spot) in goals(choice) {
            let line = format!("  {goal:<34} {}", place(spot, choice.block_bytes));
            text.push_str(&format!("{line}\n"));
        }
    }
    for sentence in sentences(result) {
        text.push_str(&wrapped(&sentence));
    }
    match text.is_empty() {
        true => text,
        false => format!("Advice\n{text}"),
    }
}

/// Returns the advice with one item per line.
pub fn lines(result: &SweepResult) -> Vec<String> {
    let choices = result.advice.choices.iter().flat_map(|choice| {
        let subject = subject(result, &choice.values, &["numjobs"]);
        let goals = goals(choice).into_iter();
        goals.map(move |(goal, spot)| {
            format!("{subject}: {goal}: {}", place(spot, choice.block_bytes))
        })
    });
    let all = choices.chain(sentences(result));
    all.map(|line| format!("advice: {line}")).collect()
}

/// Returns the advice as Markdown.
pub(super) fn markdown(result: &SweepResult) -> String {
    let mut text = String::new();
    for choice in &result.advice.choices {
        text.push_str(&format!(
            "\n**{}**\n\n",
            subject(result, &choice.values, &["numjobs"])
        ));
        for (goal, spot) in goals(choice) {
            text.push_str(&format!("- {goal}: {}\n", place(spot, choice.block_bytes)));
        }
    }
    let sentences: String = sentences(result)
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

/// Subject of an advice: the values of axes that have several.
fn subject(result: &SweepResult, values: &[String], without: &[&str]) -> String {
    let axes = &result.axes[..result.axes.len() - 1];
    let kept = axes
        .iter()
        .filter(|axis| !without.contains(&axis.name.as_str()));
    let names: Vec<String> = kept
        .zip(values)
        .filter(|(axis, _)| axis.values.len() > 1)
        .map(|(axis, value)| named(&axis.name, value))
        .collect();
    match names.is_empty() {
        true => super::what(result),
        false => names.join(" "),
    }
}

/// Cells with their goals. Goals that share a cell are joined.
fn goals(choice: &WorkloadAdvice) -> Vec<(String, &AdvisedCell)> {
    let all = [
        ("lowest latency", &choice.latency),
        ("balance", &choice.balance),
        ("most throughput", &choice.throughput),
    ];
    let mut goals: Vec<(String, &AdvisedCell)> = Vec::new();
    for (goal, spot) in all {
        match goals.iter_mut().find(|(_, other)| *other == spot) {
            Some((names, _)) => *names = format!("{names}, {goal}"),
            None => goals.push((goal.to_owned(), spot)),
        }
    }
    if let [(all, _)] = &mut goals[..] {
        *all = "best for latency, balance, rate".to_owned();
    }
    goals
}

fn place(spot: &AdvisedCell, block_bytes: u64) -> String {
    let jobs = match spot.numjobs {
        1 => String::new(),
        jobs => format!("{jobs} jobs, "),
    };
    let rate = match block_bytes >= LARGE_BYTES {
        true => words::bandwidth(spot.bytes_per_s),
        false => format!("{} IOPS", words::iops(spot.iops)),
    };
    format!(
        "{jobs}depth {}: {rate}, {}",
        spot.iodepth,
        words::latency(spot.mean_latency_ns)
    )
}

fn sentences(result: &SweepResult) -> Vec<String> {
    let unsure = result.advice.unsure.iter().map(|values| {
        let subject = subject(result, values, &["numjobs"]);
        format!(
            "{subject}: no advice on depth and jobs, because the figures are too uncertain; use a \
             longer --runtime"
        )
    });
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
    unsure.chain(parallel).chain(blocks).collect()
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
    parts.push((sizes, format!("by IOPS ({})", words::iops(iops))));
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
    let turning = words::bytes((advice.turning_bytes / 1024.0).round() as u64 * 1024);
    format!(
        "{}: {first}{others}; blocks of {turning} would reach both maxima",
        subject(result, &advice.values, &["bs", "numjobs"]),
    )
}

/// `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
