//! The result of a load study, in each format.

mod matrix;

use crate::failure::Failure;
use crate::report::probe::table::wrapped;
use crate::report::sweep::listed;
use crate::report::{ended_by, facts};
use iosonde_result::run::VerdictKind;
use iosonde_study::load::{Arrivals, LoadResult, Mix, ObjectiveAnswer, Offered, Point};
use iosonde_study::words;
use serde::Serialize;

/// Version of the JSON document; counts up when a member changes its meaning.
const FORMAT: u32 = 1;
/// Percentiles that are shown.
const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];
/// Columns of the bar that shows the 99th percentile.
const BAR: f64 = 8.0;

/// For people, within 80 columns.
pub(crate) fn table(result: &LoadResult) -> String {
    let mut text = wrapped(&headline(result));
    text.push_str(&curve(result));
    for answer in &result.objectives {
        text.push_str(&format!("\n{}", wrapped(&objective(answer))));
    }
    if let Some(found) = &result.matrix {
        text.push_str(&format!("\n{}", matrix::text(found)));
    }
    for note in notes(result) {
        text.push_str(&format!("\n{}", wrapped(&note)));
    }
    text
}

/// The target, and what was offered.
pub(crate) fn headline(result: &LoadResult) -> String {
    let options = &result.options;
    let order = if options.pattern.random {
        "random"
    } else {
        "sequential"
    };
    let kind = match options.mix {
        Mix::READ => format!("{order} reads"),
        Mix::WRITE => format!("{order} writes"),
        mix => format!("{order} I/O, {} % reads", mix.read_percent),
    };
    let arrivals = match options.arrivals {
        Arrivals::Poisson => "Poisson",
        Arrivals::Constant => "evenly spaced",
    };
    let capacity = match result.capacity_iops {
        Some(iops) => format!(
            "; capacity {} IOPS at depth 128 in closed loop",
            words::iops(iops)
        ),
        None => String::new(),
    };
    format!(
        "{}: {order_size} {kind}, {arrivals} arrivals, {} working set{capacity}. Latency counts from the intended start.",
        result.target,
        words::bytes(result.bytes),
        order_size = words::bytes(options.pattern.block_bytes)
            .replace(" KiB", "k")
            .replace(" MiB", "M"),
    )
}

fn curve(result: &LoadResult) -> String {
    let kept_up = || {
        let points = result.points.iter().filter(|point| is_judged(point));
        points.filter_map(|point| point.percentile_ns(99.0))
    };
    let range = (
        kept_up().fold(f64::INFINITY, f64::min),
        kept_up().fold(0.0, f64::max),
    );
    let mut text = format!(
        "\n{:>5} {:>8} {:>8}  {:>8} {:>8} {:>8} {:>8} {:>8}  {}\n",
        "load", "offered", "done/s", "p50", "p95", "p99", "p99.9", "max", "p99"
    );
    for point in &result.points {
        let load = match result.capacity_iops {
            Some(capacity) => share_of(point.offered.total(), capacity),
            None => String::new(),
        };
        let mark = match (point.interrupted, point.kept_up) {
            (true, _) => '/',
            (false, false) => '*',
            (false, true) => ' ',
        };
        text.push_str(&format!(
            "{load:>5} {:>8} {:>8}{mark}",
            words::iops(point.offered.total()),
            words::iops(point.achieved_per_s()),
        ));
        for percent in PERCENTILES {
            text.push_str(&format!(" {:>8}", latency(point.percentile_ns(percent))));
        }
        let bar = if is_judged(point) {
            bar(point.percentile_ns(99.0), range)
        } else {
            String::new()
        };
        text.push_str(&format!(" {:>8}  {bar}", latency(longest(point))));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A share in per cent, so that small ones can be told apart: `0.7%`, `1.4%`, `25%`.
fn share_of(offered: f64, capacity: f64) -> String {
    let percent = 100.0 * offered / capacity;
    match percent < 4.95 && percent.fract() > 0.05 {
        true => format!("{percent:.1}%"),
        false => format!("{percent:.0}%"),
    }
}

/// Whether its latencies stand for the load.
fn is_judged(point: &Point) -> bool {
    point.kept_up && !point.interrupted
}

/// From one sign for the lowest latency to a full bar for the highest; each sign more is the same ratio.
fn bar(latency_ns: Option<f64>, (lowest_ns, highest_ns): (f64, f64)) -> String {
    let Some(ns) = latency_ns else {
        return String::new();
    };
    let share = if highest_ns > lowest_ns {
        (ns / lowest_ns).ln() / (highest_ns / lowest_ns).ln()
    } else {
        0.0
    };
    "#".repeat((1.0 + (BAR - 1.0) * share).round() as usize)
}

/// The longest I/O, if any was measured: past saturation none may have begun in time.
fn longest(point: &Point) -> Option<f64> {
    let measured = point.sides().any(|side| side.latency.count > 0);
    measured.then(|| point.max_ns())
}

fn latency(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), words::latency)
}

/// What came of an objective.
pub(crate) fn objective(found: &ObjectiveAnswer) -> String {
    let (objective, answer) = (found.objective, found.answer);
    let iops = |rate: f64| format!("{} IOPS", words::iops(rate));
    let told = match (answer.held, answer.failed, answer.untold) {
        (Some(held), Some(failed), _) if answer.is_interval => format!(
            "kept up to {}, not kept from {} on; undecided between",
            iops(held),
            iops(failed)
        ),
        (Some(held), Some(failed), _) => {
            format!("kept up to {} (not at {})", iops(held), words::iops(failed))
        }
        (Some(held), None, Some(untold)) => format!(
            "kept up to {}; undecided above, up to {}, the highest that was offered",
            iops(held),
            iops(untold)
        ),
        (Some(held), None, None) => {
            format!("kept at every rate that was offered, up to {}", iops(held))
        }
        (None, Some(failed), Some(untold)) if untold < failed => format!(
            "not kept from {} on; undecided at {} and below",
            iops(failed),
            iops(untold)
        ),
        (None, Some(failed), Some(_)) => format!(
            "not kept from {} on; lower rates have too few I/Os to tell {}",
            iops(failed),
            objective.measure()
        ),
        (None, Some(failed), None) => format!(
            "not kept at any rate that was offered, down to {}",
            iops(failed)
        ),
        (None, None, Some(untold)) => {
            format!(
                "undecided at every rate that was offered, up to {}",
                iops(untold)
            )
        }
        (None, None, None) => "nothing was measured to its end".to_owned(),
    };
    format!("{objective}: {told}")
}

/// What would tell more of the objectives, and what rows have several runs.
fn notes_on_objectives(result: &LoadResult) -> Vec<String> {
    let mut notes = Vec::new();
    let most = result.points.iter().map(|point| point.runs).max();
    if let Some(most) = most.filter(|most| *most > 1) {
        notes.push(format!(
            "Rates near the limit of an objective were offered up to {most} times. Their rows count all I/Os of all runs."
        ));
    }
    let mut answers = result.objectives.iter().map(|found| found.answer);
    if answers.any(|answer| answer.untold.is_some()) {
        notes.push("A longer --runtime leaves less undecided.".to_owned());
    }
    notes
}

/// What else should be known, each in one sentence.
pub(crate) fn notes(result: &LoadResult) -> Vec<String> {
    let mut notes = notes_on_objectives(result);
    let mut all = result
        .points
        .iter()
        .chain(result.matrix.iter().flat_map(|matrix| &matrix.points));
    if all.any(|point| !point.kept_up && !point.interrupted && point.failure.is_none()) {
        notes.push(format!(
            "* not kept up with: the backlog, and with it latency, grows for as long as the load lasts (here {})",
            words::wait(result.options.runtime_ns + result.options.ramp_ns)
        ));
    }
    if result.interrupted {
        let cut = result.points.iter().any(|point| point.interrupted);
        let mark = if cut { "/ " } else { "" };
        let judged = if cut {
            ", which nothing is judged by"
        } else {
            ""
        };
        notes.push(format!("{mark}interrupted: what ran until then{judged}"));
    }
    notes.extend(result.error.as_ref().map(ended_by));
    let capacity = result.capacity_failure.as_ref();
    notes.extend(capacity.map(|failure| format!("ended by an error: {}", failure.message)));
    notes.extend(result.ceph.as_ref().map(facts::cluster));
    notes.extend(result.notes.iter().cloned());
    notes.extend(findings(result));
    notes
}

/// What the runs say against their own figures: one sentence of each kind, with the rates at which it was so.
fn findings(result: &LoadResult) -> Vec<String> {
    // Results that were kept before kinds were have their words only.
    let said = result.points.iter().flat_map(|point| {
        let kinds = point.kinds.iter().copied().map(Some);
        let kinds = kinds.chain(std::iter::repeat(None));
        let said = point.verdicts.iter().zip(kinds);
        said.map(|(told, kind)| (kind, told.as_str(), words::iops(point.offered.total())))
    });
    let mut alike: Vec<Vec<(Option<VerdictKind>, &str, String)>> = Vec::new();
    for one in said {
        let is_of = |other: &Vec<(Option<VerdictKind>, &str, String)>| {
            let (kind, told, _) = &other[0];
            *kind == one.0 && (kind.is_some() || *told == one.1)
        };
        match alike.iter_mut().find(|other| is_of(other)) {
            Some(same) => same.push(one),
            None => alike.push(vec![one]),
        }
    }
    let sentences = alike.iter().map(|same| {
        // That of the highest rate stands for all.
        let (_, told, rate) = &same[same.len() - 1];
        let mut others: Vec<String> = same.iter().map(|(.., rate)| rate.clone()).collect();
        others.dedup();
        others.retain(|other| other != rate);
        let likewise = match others.is_empty() {
            true => String::new(),
            false => format!("; likewise at {}", listed(&others)),
        };
        format!("{told} (at {rate} IOPS{likewise})")
    });
    sentences.collect()
}

/// One point, while the study goes on.
pub(crate) fn one_line(point: &Point) -> String {
    let told = if point.interrupted {
        "interrupted".to_owned()
    } else if point.failure.is_some() {
        "ended by an error".to_owned()
    } else if point.kept_up {
        format!("p99 {}", latency(point.percentile_ns(99.0)))
    } else {
        format!(
            "not kept up with: {} IOPS",
            words::iops(point.achieved_per_s())
        )
    };
    format!("offered {:<32} {told}", what(point.offered))
}

/// An offered load in words.
pub(crate) fn what(offered: Offered) -> String {
    let reads = || format!("{} reads/s", words::iops(offered.reads_per_s));
    let writes = || format!("{} writes/s", words::iops(offered.writes_per_s));
    match (offered.reads_per_s > 0.0, offered.writes_per_s > 0.0) {
        (true, true) => format!("{} + {}", reads(), writes()),
        (true, false) => reads(),
        _ => writes(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    kind: &'static str,
    program: &'static str,
    load: &'a LoadResult,
}

/// For programs: everything.
pub(crate) fn json(result: &LoadResult) -> Result<String, Failure> {
    let document = Document {
        format: FORMAT,
        kind: "load",
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")),
        load: result,
    };
    let mut text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    text.push('\n');
    Ok(text)
}

/// One line for each direction of each point, matrix included.
pub(crate) fn csv(result: &LoadResult) -> String {
    let mut text = "part,direction,offered_per_s,achieved_per_s,kept_up,count,mean_ns,p50_ns,p95_ns,p99_ns,p99_9_ns,max_ns,interrupted,runs\n".to_owned();
    let matrix = result.matrix.iter().flat_map(|matrix| &matrix.points);
    let parts = result.points.iter().map(|point| ("curve", point));
    for (part, point) in parts.chain(matrix.map(|point| ("matrix", point))) {
        for (direction, side) in [("read", &point.read), ("write", &point.write)] {
            let Some(side) = side else { continue };
            text.push_str(&format!(
                "{part},{direction},{:.0},{:.1},{},{},{:.0}",
                side.offered_per_s,
                side.achieved_per_s,
                point.kept_up,
                side.latency.count,
                side.latency.mean_ns
            ));
            for percent in PERCENTILES {
                let ns = side.latency.percentile_ns(percent);
                text.push_str(&ns.map_or(",".to_owned(), |ns| format!(",{ns:.0}")));
            }
            text.push_str(&format!(
                ",{:.0},{},{}\n",
                side.latency.max_ns, point.interrupted, point.runs
            ));
        }
    }
    text
}

/// A table for a report or an issue.
pub(crate) fn markdown(result: &LoadResult) -> String {
    let mut text = format!(
        "## {}\n\n{}\n\n| offered per second | done per second | kept up | p50 | p95 | p99 | p99.9 | max |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n",
        result.target,
        headline(result)
    );
    for point in &result.points {
        let mut cells = vec![
            words::iops(point.offered.total()),
            words::iops(point.achieved_per_s()),
            match (point.interrupted, point.kept_up) {
                (true, _) => "interrupted",
                (false, true) => "yes",
                (false, false) => "no",
            }
            .to_owned(),
        ];
        cells.extend(PERCENTILES.map(|percent| latency(point.percentile_ns(percent))));
        cells.push(latency(longest(point)));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    for answer in &result.objectives {
        text.push_str(&format!("\n{}\n", objective(answer)));
    }
    if let Some(found) = &result.matrix {
        text.push_str(&format!("\n```text\n{}```\n", matrix::text(found)));
    }
    for note in notes(result) {
        // A star of a note would begin a list in Markdown.
        text.push_str(&format!("\n- {}\n", note.trim_start_matches("* ")));
    }
    text
}

#[cfg(test)]
mod tests;
