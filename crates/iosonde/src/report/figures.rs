//! Figures of parts, whatever measured them: tables, CSV, Markdown.

use super::csv::text_cell;
use super::intervals;
use super::probe::table::{plain, render, right, wrapped};
use comfy_table::Cell;
use iosonde_result::compare::{Figure, Measure, Part};
use iosonde_study::words;

/// A value with its unit.
pub(crate) fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Iops => words::iops(value),
        Measure::BytesPerS => words::bandwidth(value),
        _ => words::latency(value),
    }
}

/// What was measured, as short as a table needs: `read p99`. Latencies show by their unit.
pub(crate) fn label(subject: &str, measure: Measure) -> String {
    let title = measure.title();
    format!(
        "{subject} {}",
        title.strip_suffix(" latency").unwrap_or(title)
    )
}

/// A share in per cent: `0.4 %`, `12 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else if percent < 999.5 {
        format!("{percent:.0} %")
    } else {
        "> 999 %".to_owned()
    }
}

/// The ends of the interval, from zero up.
fn interval(figure: &Figure) -> String {
    let bounds = figure.bounds.map(|bounds| (bounds.low, bounds.high));
    intervals::ends(figure.value, bounds, |end| value(figure.measure, end))
}

fn mark(figure: &Figure) -> &'static str {
    match figure.settled {
        Some(false) => "*",
        _ => "",
    }
}

/// Tables of 80 columns, one for each part.
pub(crate) fn table(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let mut table = plain();
        table.set_header([Cell::new(&part.name), right(""), right("95 % interval")]);
        for figure in &part.figures {
            table.add_row([
                Cell::new(format!(
                    "  {}",
                    label(figure.subject.name(), figure.measure)
                )),
                right(value(figure.measure, figure.value) + mark(figure)),
                right(interval(figure)),
            ]);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        text.push_str(&format!(
            "{}\n({})\n\n",
            render(&table).trim_end(),
            part.pattern
        ));
    }
    if parts
        .iter()
        .flat_map(|part| &part.figures)
        .any(|figure| figure.settled == Some(false))
    {
        text.push_str("* did not settle: the rate drifted or jumped while it was measured.\n");
    }
    let mut figures = parts.iter().flat_map(|part| &part.figures);
    if figures.any(|figure| interval(figure) == intervals::NOT_KNOWN) {
        text.push_str(&wrapped(
            "A longer run of one kind of I/O, kept with its series, decides the intervals that are not known.",
        ));
    }
    text
}

const HEAD: &str =
    "part,rw,bs,iodepth,numjobs,subject,measure,value,low_95,high_95,interval_from,settled";

/// One line for each figure; latencies in nanoseconds.
pub(crate) fn csv(parts: &[Part]) -> String {
    let mut text = format!("{HEAD}\n");
    for part in parts {
        for figure in &part.figures {
            let pattern = &part.pattern;
            let bounds = figure.bounds;
            let number =
                |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
            let fields = [
                text_cell(&part.name),
                text_cell(&pattern.rw),
                text_cell(&pattern.bs),
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
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// One table for each part.
pub(crate) fn markdown(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(&format!("### {}\n\n{}\n\n", part.name, part.pattern));
        text.push_str("| | | 95 % interval |\n| --- | ---: | ---: |\n");
        for figure in &part.figures {
            text.push_str(&format!(
                "| {} | {}{} | {} |\n",
                label(figure.subject.name(), figure.measure),
                value(figure.measure, figure.value),
                mark(figure),
                interval(figure)
            ));
        }
        text.push('\n');
    }
    text
}
