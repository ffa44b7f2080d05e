//! Report of a load study, in each format.

pub(crate) mod knee_rate;
mod latency_chart;
mod load_rates;
pub(crate) mod matrix;
pub(crate) mod objective_limits;
mod objective_text;
pub(crate) mod rate_state;
mod round_latency;
mod short_load;

pub use latency_chart::GrowingCurve;
pub use objective_text::objective;
pub use short_load::short;

use crate::axis_numbers::log_share;
use crate::csv::csv_line;
use crate::intervals::half_width;
use crate::json_document::json_document;
use crate::known_digits::{LATENCY_UNITS, UnitLadder, known_digits};
use crate::listed;
use crate::markdown_table::{markdown_paragraphs, markdown_table};
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{paragraphs, wrapped};
use crate::{INTERRUPTED, ended_by, facts};
use iosonde_result::device_class::memory_caution;
use iosonde_result::run::VerdictKind;
use iosonde_study::load::{Arrivals, LoadMeasurement, LoadResult, Mix, Offered};
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::words;
use knee_rate::KneeRate;
use load_rates::curve;
use objective_text::out_of_reach;
use rate_state::RateState;
use serde::Serialize;

/// Percentiles in the tables.
pub(crate) const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];
/// Stands before the note on rates that fell behind, like `*` in their rows.
const FELL_BEHIND_MARK: &str = "* ";
/// Stands before the note on an interrupted rate, like `/` in its row.
const INTERRUPTED_MARK: &str = "/ ";
/// Stands before the note on rates that an I/O error ended, like `!` in their rows.
const FAILED_MARK: &str = "! ";
/// Marks of the notes on rates that fell behind, that were interrupted, and that failed.
const NOTE_MARKS: [&str; 3] = [FELL_BEHIND_MARK, INTERRUPTED_MARK, FAILED_MARK];
/// Width of the bar for the 99th percentile, in columns.
const BAR: f64 = 8.0;

/// Returns the report with all details as text of at most 80 columns. The answers precede the
/// figures.
pub fn table(result: &LoadResult) -> String {
    let mut text = wrapped(&headline(result));
    text.push_str(&paragraphs(&objectives(result)));
    text.push_str(&curve(result));
    if let Some(found) = &result.matrix {
        text.push_str(&format!("\n{}", matrix::matrix_text(found)));
    }
    text + &paragraphs(&notes(result))
}

/// Results of all objectives, each one sentence.
pub(crate) fn objectives(result: &LoadResult) -> Vec<String> {
    let found = result.objectives.iter();
    found.map(|found| objective(result, found)).collect()
}

/// Names the target and the offered load.
pub fn headline(result: &LoadResult) -> String {
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
    let simulated = match result.kind {
        StudyTargetKind::Simulated { .. } => "a simulated device; ",
        _ => "",
    };
    let capacity = match result.capacity_iops {
        Some(iops) => format!(
            "; capacity {} IOPS at depth 128 in closed loop",
            words::iops_text(iops)
        ),
        None => String::new(),
    };
    format!(
        "{}: {simulated}{order_size} {kind}, {arrivals} arrivals, {} working set{capacity}. \
         Latency counts from the intended start.",
        result.target,
        words::bytes(result.bytes),
        order_size = words::block_bytes(options.pattern.block_bytes),
    )
}

/// Formats a share in per cent without its sign, with a decimal for small shares: `1.4`, `25`.
fn percent_of(offered: f64, capacity: f64) -> String {
    let percent = 100.0 * offered / capacity;
    match percent < 4.95 && percent.fract() > 0.05 {
        true => format!("{percent:.1}"),
        false => format!("{percent:.0}"),
    }
}

/// Whether the latencies of the point are valid for its load.
pub(crate) fn is_judged(point: &LoadMeasurement) -> bool {
    point.kept_up && !point.interrupted
}

/// Bar on a logarithmic scale: one character for the lowest latency, all for the highest.
fn latency_bar(latency_ns: Option<f64>, range_ns: (f64, f64)) -> String {
    latency_ns.map_or(String::new(), |ns| {
        "#".repeat((1.0 + (BAR - 1.0) * log_share(ns, range_ns)).round() as usize)
    })
}

/// Longest latency. `None` if no I/O was measured: past saturation, none may have started in time.
pub(crate) fn longest(point: &LoadMeasurement) -> Option<f64> {
    let measured = point.sides().any(|side| side.latency.count > 0);
    measured.then(|| point.max_ns())
}

/// Formats a percentile of a rate with its known digits. `-` if too few I/Os were measured.
pub(crate) fn percentile(point: &LoadMeasurement, percent: f64) -> String {
    percentile_in(point, percent, LATENCY_UNITS)
}

/// Formats a percentile as [`percentile`] does, with these units.
pub(crate) fn percentile_in(point: &LoadMeasurement, percent: f64, units: &UnitLadder) -> String {
    point.percentile_ns(percent).map_or("-".to_owned(), |ns| {
        known_digits(ns, percentile_half_ns(point, percent), units)
    })
}

/// Half the interval of a percentile of a rate. `None`: unknown.
fn percentile_half_ns(point: &LoadMeasurement, percent: f64) -> Option<f64> {
    let ns = point.percentile_ns(percent)?;
    half_width(ns, point.percentile_interval_ns(percent))
}

fn latency(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), words::latency)
}

/// Offered rate at the knee. `None` if the study shows none.
pub(crate) fn knee_per_s(result: &LoadResult) -> Option<f64> {
    KneeRate::of_result(result).map(|knee| knee.rate)
}

/// Notes on rates with several runs, and on runs that would decide more objectives.
fn notes_on_objectives(result: &LoadResult) -> Vec<String> {
    let mut notes = Vec::new();
    let most = result.points.iter().map(|point| point.runs).max();
    if let Some(most) = most.filter(|most| *most > 1) {
        notes.push(format!(
            "Rates near the bound of an objective have the I/Os of up to {most} runs."
        ));
    }
    let mut answers = result.objectives.iter();
    if answers.any(|found| found.answer.untold.is_some() && out_of_reach(result, found).is_none()) {
        notes.push("Use a longer runtime to decide more rates.".to_owned());
    }
    notes
}

/// Returns all notes on the result, each one sentence.
pub fn notes(result: &LoadResult) -> Vec<String> {
    marked_notes(result, NOTE_MARKS)
}

/// Returns the notes on a load study that is a step of a suite, whose report has the caution on
/// targets in memory.
pub(crate) fn notes_of_step(result: &LoadResult) -> Vec<String> {
    let [rates, others] = note_groups(result, NOTE_MARKS);
    [rates, others].concat()
}

/// Returns all notes on the result. `marks` stand before the notes on rates, as in [`NOTE_MARKS`].
/// The caution on a target in memory follows the notes with marks: a short report leaves out the
/// last notes.
fn marked_notes(result: &LoadResult, marks: [&str; 3]) -> Vec<String> {
    let [mut notes, others] = note_groups(result, marks);
    notes.extend(result.in_memory.as_deref().map(memory_caution));
    notes.extend(others);
    notes
}

/// Returns the notes on the rates, some of which have marks, and the other notes.
fn note_groups(result: &LoadResult, marks: [&str; 3]) -> [Vec<String>; 2] {
    let [fell_behind_mark, interrupted_mark, failed_mark] = marks;
    let mut rates = notes_on_objectives(result);
    let matrix = result.matrix.iter().flat_map(|matrix| &matrix.points);
    let fell_behind = fell_behind(result, result.points.iter().chain(matrix));
    rates.extend(fell_behind.map(|note| format!("{fell_behind_mark}{note}")));
    if result.interrupted {
        let note = interrupted_rate(result).map(|note| format!("{interrupted_mark}{note}"));
        rates.push(note.unwrap_or_else(|| INTERRUPTED.to_owned()));
    }
    rates.extend(failed_rate(result).map(|note| format!("{failed_mark}{note}")));
    let mut others = Vec::new();
    others.extend(result.error.as_ref().map(ended_by));
    let capacity = result.capacity_failure.as_ref();
    others.extend(capacity.map(|failure| format!("ended by an error: {}", failure.message)));
    others.extend(result.ceph.as_ref().map(facts::cluster));
    others.extend(result.notes.iter().cloned());
    others.extend(findings(result));
    [rates, others]
}

/// Note on a rate whose run the user stopped. `None`: there is none.
fn interrupted_rate(result: &LoadResult) -> Option<String> {
    let has_any = result.points.iter().any(|point| point.interrupted);
    has_any.then(|| format!("{INTERRUPTED}, not used for verdicts"))
}

/// Note on the first rate whose run an I/O error ended. `None`: there is none.
fn failed_rate(result: &LoadResult) -> Option<String> {
    let mut points = result.points.iter().filter(|point| !point.interrupted);
    let failure = points.find_map(|point| point.failure.as_ref())?;
    let message = &failure.message;
    Some(format!(
        "ended by an error, not used for verdicts: {message}"
    ))
}

/// Note on the rates among `points` with which the target did not keep up. `None`: it kept up with
/// all.
fn fell_behind<'a>(
    result: &LoadResult,
    mut points: impl Iterator<Item = &'a LoadMeasurement>,
) -> Option<String> {
    points.any(knee_rate::has_fallen_behind).then(|| {
        format!(
            "fell behind: the backlog and the latency grow as long as the load lasts (here {})",
            words::whole_seconds_text(result.options.runtime_ns + result.options.ramp_ns)
        )
    })
}

/// Verdicts of the runs: one sentence per kind, with the rates at which it applies.
fn findings(result: &LoadResult) -> Vec<String> {
    // Results stored by older versions have no kinds, only texts.
    let said = result.points.iter().flat_map(|point| {
        let kinds = point.kinds.iter().copied().map(Some);
        let kinds = kinds.chain(std::iter::repeat(None));
        let said = point.verdicts.iter().zip(kinds);
        said.map(|(text, kind)| (kind, text.as_str(), words::iops_text(point.offered.total())))
    });
    let mut alike: Vec<Vec<(Option<VerdictKind>, &str, String)>> = Vec::new();
    for one in said {
        let is_of = |other: &Vec<(Option<VerdictKind>, &str, String)>| {
            let (kind, text, _) = &other[0];
            *kind == one.0 && (kind.is_some() || *text == one.1)
        };
        match alike.iter_mut().find(|other| is_of(other)) {
            Some(same) => same.push(one),
            None => alike.push(vec![one]),
        }
    }
    let sentences = alike.iter().map(|same| {
        // The verdict of the highest rate represents the others.
        let (_, text, rate) = &same[same.len() - 1];
        let mut others: Vec<String> = same.iter().map(|(.., rate)| rate.clone()).collect();
        others.dedup();
        others.retain(|other| other != rate);
        let likewise = match others.is_empty() {
            true => String::new(),
            false => format!("; likewise at {}", listed(&others)),
        };
        format!("{text} (at {rate} IOPS{likewise})")
    });
    sentences.collect()
}

/// Describes one point in a line, while the study runs.
pub fn one_line(point: &LoadMeasurement) -> String {
    let outcome = if point.interrupted {
        "interrupted".to_owned()
    } else if point.failure.is_some() {
        "ended by an error".to_owned()
    } else if point.kept_up {
        format!("p99 {}", percentile(point, 99.0))
    } else {
        format!(
            "fell behind: {} IOPS",
            words::iops_text(point.achieved_per_s())
        )
    };
    format!("offered {:<32} {outcome}", offered_load_text(point.offered))
}

/// Describes an offered load.
pub fn offered_load_text(offered: Offered) -> String {
    let reads = || format!("{} reads/s", words::iops_text(offered.reads_per_s));
    let writes = || format!("{} writes/s", words::iops_text(offered.writes_per_s));
    match (offered.reads_per_s > 0.0, offered.writes_per_s > 0.0) {
        (true, true) => format!("{} + {}", reads(), writes()),
        (true, false) => reads(),
        _ => writes(),
    }
}

#[derive(Serialize)]
struct LoadContent<'a> {
    load: &'a LoadResult,
}

/// Returns the whole result as JSON.
pub fn load_result_json(result: &LoadResult) -> serde_json::Result<String> {
    json_document("load", LoadContent { load: result })
}

/// CSV with one line per direction of each point, including the matrix.
pub fn load_result_csv(result: &LoadResult) -> String {
    let mut text = "part,direction,offered_per_s,achieved_per_s,kept_up,count,mean_ns,p50_ns,\
                    p95_ns,p99_ns,p99_9_ns,max_ns,interrupted,runs\n"
        .to_owned();
    let matrix = result.matrix.iter().flat_map(|matrix| &matrix.points);
    let parts = result.points.iter().map(|point| ("curve", point));
    for (part, point) in parts.chain(matrix.map(|point| ("matrix", point))) {
        for (direction, side) in [("read", &point.read), ("write", &point.write)] {
            let Some(side) = side else { continue };
            let mut cells = vec![
                part.to_owned(),
                direction.to_owned(),
                format!("{:.0}", side.offered_per_s),
                format!("{:.1}", side.achieved_per_s),
                point.kept_up.to_string(),
                side.latency.count.to_string(),
                format!("{:.0}", side.latency.mean_ns),
            ];
            cells.extend(PERCENTILES.map(|percent| {
                let ns = side.latency.percentile_ns(percent);
                ns.map_or(String::new(), |ns| format!("{ns:.0}"))
            }));
            cells.push(format!("{:.0}", side.latency.max_ns));
            cells.push(point.interrupted.to_string());
            cells.push(point.runs.to_string());
            text.push_str(&csv_line(cells));
        }
    }
    text
}

/// The rates of a load study that is part of a suite, with its knee. `name` is that of its step.
pub(crate) fn rates_of_step(name: &str, result: &LoadResult) -> String {
    let rates = curve(result);
    let title = wrapped(&format!(
        "{name}: knee {}",
        knee_rate::knee_in_words(result)
    ));
    let notes = notes_of_rates(result).into_iter();
    let notes = notes.map(|(mark, note)| wrapped(&format!("{mark}{note}")));
    format!(
        "\n{title}{}{}",
        rates.trim_start_matches('\n'),
        notes.collect::<String>()
    )
}

/// Notes on the signs in the table of offered rates, each with its sign.
fn notes_of_rates(result: &LoadResult) -> Vec<(&'static str, String)> {
    let fell_behind = fell_behind(result, result.points.iter());
    let fell_behind = fell_behind.map(|note| (FELL_BEHIND_MARK, note));
    let interrupted = interrupted_rate(result).map(|note| (INTERRUPTED_MARK, note));
    let failed = failed_rate(result).map(|note| (FAILED_MARK, note));
    let notes = [fell_behind, interrupted, failed];
    notes.into_iter().flatten().collect()
}

/// The same in Markdown.
pub(crate) fn markdown_of_step(name: &str, result: &LoadResult) -> String {
    let knee = knee_rate::knee_in_words(result);
    let notes = notes_of_rates(result).into_iter();
    // The cells have words in place of the signs.
    let notes: String = notes.map(|(_, note)| format!("\n- {note}\n")).collect();
    format!(
        "\n{name}: knee {knee}\n\n{}{notes}\n",
        markdown_of_rates(result)
    )
}

/// Returns Markdown for a report or an issue.
pub fn markdown(result: &LoadResult) -> String {
    let mut text = format!(
        "## {}\n\n{}\n\n{}",
        result.target,
        headline(result),
        markdown_of_rates(result)
    );
    text.push_str(&markdown_paragraphs(&objectives(result)));
    if let Some(found) = &result.matrix {
        text.push_str(&format!("\n```text\n{}```\n", matrix::matrix_text(found)));
    }
    // The cells have words in place of the marks.
    for note in marked_notes(result, [""; 3]) {
        text.push_str(&format!("\n- {note}\n"));
    }
    text
}

/// Table of the offered rates.
fn markdown_of_rates(result: &LoadResult) -> String {
    let columns = [
        Right("offered per second"),
        Right("done per second"),
        Left("kept up"),
        Right("p50"),
        Right("p95"),
        Right("p99"),
        Right("p99.9"),
        Right("max"),
    ];
    let rows = result.points.iter().map(|point| {
        let mut cells = vec![
            words::iops_text(point.offered.total()),
            words::iops_text(point.achieved_per_s()),
            RateState::of_measurement(point).word().to_owned(),
        ];
        cells.extend(PERCENTILES.map(|percent| percentile(point, percent)));
        cells.push(latency(longest(point)));
        cells
    });
    markdown_table(&columns, rows)
}

#[cfg(test)]
pub(crate) mod tests;
