//! Figures of parts from any source: tables, CSV, Markdown.

use super::csv::csv_line;
use super::intervals::{self, half_width};
use crate::known_digits::{
    BANDWIDTH_UNITS, LATENCY_UNITS, RATE_UNITS, UnitLadder, digits_beside_interval, known_digits,
};
use crate::markdown_table::markdown_table;
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{
    UNBROKEN_BLANK, fill_table, hide_columns, keep_whole, plain, render, set_gap, wrapped,
};
use iosonde_result::compare::{Figure, Measure, ResultPart};
use iosonde_study::words;

/// Mark of a rate that drifted or jumped, and its legend.
pub(crate) const UNSETTLED: &str = "*";
pub(crate) const UNSETTLED_LEGEND: &str =
    "* not steady: the rate drifted or jumped during the run.";
/// Explains the mark of a figure whose interval is not known.
pub(crate) const UNKNOWN_LEGEND: &str = "A figure with ~ has no known interval.";

/// Marks of a figure, or of the figures of a row, that a legend explains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LegendMarks {
    /// [`UNSETTLED`].
    pub(crate) is_unsettled: bool,
    /// The mark of an unknown interval.
    pub(crate) lacks_interval: bool,
}

/// Returns the legends of the marks that figures have. `unsettled` is that of [`UNSETTLED`].
pub(crate) fn needed_legends(
    marks: impl Iterator<Item = LegendMarks>,
    unsettled: &'static str,
) -> Vec<&'static str> {
    let all = marks.fold(LegendMarks::default(), |all, marks| LegendMarks {
        is_unsettled: all.is_unsettled || marks.is_unsettled,
        lacks_interval: all.lacks_interval || marks.lacks_interval,
    });
    let legends = [
        all.is_unsettled.then_some(unsettled),
        all.lacks_interval.then_some(UNKNOWN_LEGEND),
    ];
    legends.into_iter().flatten().collect()
}

/// Index of the column of intervals.
const INTERVAL_COLUMN: usize = 2;

/// Formats a value with its unit.
pub fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Iops => words::iops_text(value),
        Measure::BytesPerS => words::bandwidth(value),
        Measure::CommandFigure => words::three_digits(value),
        _ => words::latency(value),
    }
}

/// Formats a figure with its unit and the digits that its interval supports, as `probe` and suites
/// print it: `93.4k`, `1.36 ms`. `~13k`: the interval is not known.
pub(crate) fn known_figure(measure: Measure, value: f64, interval: Option<(f64, f64)>) -> String {
    known_figure_in(measure, value, interval, LATENCY_UNITS)
}

/// Formats a figure as [`known_figure`] does, latencies with these units.
pub(crate) fn known_figure_in(
    measure: Measure,
    value: f64,
    interval: Option<(f64, f64)>,
    latency_units: &UnitLadder,
) -> String {
    let half = half_width(value, interval);
    match measure {
        Measure::Iops => digits_beside_interval(value, half, RATE_UNITS),
        Measure::BytesPerS => digits_beside_interval(value, half, BANDWIDTH_UNITS),
        // The unit of a command's figure is not known here.
        Measure::CommandFigure => words::three_digits(value),
        _ => known_digits(value, half, latency_units),
    }
}

/// Whether [`known_figure`] prints the figure without the mark of an unknown interval.
pub(crate) fn has_known_digits(measure: Measure, value: f64, interval: Option<(f64, f64)>) -> bool {
    measure == Measure::CommandFigure || value <= 0.0 || half_width(value, interval).is_some()
}

/// Formats a rate that is shown beside half its interval: `84.2k IOPS`, `365 MiB/s`.
#[must_use]
pub fn rate_beside_interval(rate: f64, half: f64, is_bandwidth: bool) -> String {
    match is_bandwidth {
        true => digits_beside_interval(rate, Some(half), BANDWIDTH_UNITS),
        false => format!(
            "{} IOPS",
            digits_beside_interval(rate, Some(half), RATE_UNITS)
        ),
    }
}

/// Short name of a figure: `read p99`. The unit identifies latencies.
pub fn label(subject: &str, measure: Measure) -> String {
    format!("{subject} {}", measure.short_title())
}

/// Formats a share in per cent: `0.4 %`, `12 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else if percent < 999.5 {
        format!("{percent:.0} %")
    } else {
        "> 999 %".to_owned()
    }
}

/// Ends of the interval.
fn interval(figure: &Figure) -> String {
    let bounds = figure.bounds.map(|bounds| (bounds.low, bounds.high));
    intervals::interval_text(figure.value, bounds, |end| value(figure.measure, end))
}

/// The figure with its known digits, marked if it was not steady.
fn marked(figure: &Figure) -> String {
    let bounds = figure.bounds.map(|bounds| (bounds.low, bounds.high));
    known_figure(figure.measure, figure.value, bounds) + settled_mark(figure.settled)
}

/// Returns the mark of a rate that was not steady. Otherwise it is empty.
pub(crate) fn settled_mark(settled: Option<bool>) -> &'static str {
    match settled {
        Some(false) => UNSETTLED,
        _ => "",
    }
}

/// Tables as wide as a paragraph, one per part. A narrow terminal does not show the intervals.
pub fn table(parts: &[ResultPart]) -> String {
    let mut text = String::new();
    for part in parts {
        let rows = part.figures.iter().map(|figure| {
            let [label, mut figures @ ..] = figure_row(figure);
            keep_whole(&mut figures);
            [vec![format!("  {label}")], figures.to_vec()].concat()
        });
        let columns = [Left(&part.name), Right(""), Right("95 % interval")];
        let mut table = fill_table(plain(), &columns, rows);
        set_gap(&mut table, 2);
        hide_columns(&mut table, &[INTERVAL_COLUMN]);
        text.push_str(&format!(
            "{}\n({})\n\n",
            render(&table).trim_end().replace(UNBROKEN_BLANK, " "),
            part.pattern
        ));
    }
    if parts
        .iter()
        .flat_map(|part| &part.figures)
        .any(|figure| figure.settled == Some(false))
    {
        text.push_str(&format!("{UNSETTLED_LEGEND}\n"));
    }
    let mut figures = parts.iter().flat_map(|part| &part.figures);
    if figures.any(|figure| {
        let bounds = figure.bounds.map(|bounds| (bounds.low, bounds.high));
        half_width(figure.value, bounds).is_none()
    }) {
        text.push_str(&wrapped(
            "For unknown intervals: use a longer run of one kind of I/O with its time series.",
        ));
    }
    text
}

/// Name of a figure, the figure and its interval.
fn figure_row(figure: &Figure) -> [String; 3] {
    [
        label(figure.subject.name(), figure.measure),
        marked(figure),
        interval(figure),
    ]
}

const HEAD: &str =
    "part,rw,bs,iodepth,numjobs,subject,measure,value,low_95,high_95,interval_from,settled";

/// CSV with one line per figure. Latencies are in nanoseconds.
pub fn figures_csv(parts: &[ResultPart]) -> String {
    let mut text = format!("{HEAD}\n");
    for part in parts {
        for figure in &part.figures {
            let pattern = &part.pattern;
            let bounds = figure.bounds;
            let number =
                |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
            let cells = [
                part.name.clone(),
                pattern.rw.clone(),
                pattern.bs.clone(),
                pattern.iodepth.to_string(),
                pattern.numjobs.to_string(),
                figure.subject.name().to_owned(),
                figure.measure.name().to_owned(),
                number(Some(figure.value)),
                number(bounds.map(|bounds| bounds.low)),
                number(bounds.map(|bounds| bounds.high)),
                bounds.map_or("", |bounds| bounds.basis.name()).to_owned(),
                figure
                    .settled
                    .map_or("", |settled| if settled { "1" } else { "0" })
                    .to_owned(),
            ];
            text.push_str(&csv_line(cells));
        }
    }
    text
}

/// Markdown with one table per part.
pub fn markdown(parts: &[ResultPart]) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(&format!("### {}\n\n{}\n\n", part.name, part.pattern));
        let rows = part.figures.iter().map(figure_row);
        let table = markdown_table(&[Left(""), Right(""), Right("95 % interval")], rows);
        text.push_str(&format!("{table}\n"));
    }
    text
}
