//! For people: tables of 80 columns.

use super::{conditions, limits, promise, row};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use iosonde_study::probe::{Figure, ProbeResult};
use iosonde_study::words;

const COLUMNS: u16 = 80;

/// Everything about one target.
pub(crate) fn text(result: &ProbeResult) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!("\n{}: {size} measured\n\n", result.target);
    text.push_str(&figures(result));
    text.push('\n');
    for remark in remarks(result) {
        text.push_str(&wrapped(&remark));
    }
    let blocks = [
        (limits::MOST, limits::knees(result)),
        ("", limits::held_back(result)),
    ];
    for (head, block) in blocks.iter().filter(|(_, block)| !block.is_empty()) {
        text.push('\n');
        if !head.is_empty() {
            text.push_str(&format!("{head}\n"));
        }
        text.push_str(&pairs(block));
    }
    text.push('\n');
    text.push_str(&pairs(&conditions::of(result)));
    text.push('\n');
    text.push_str(&wrapped(&result.classification.sentence));
    for held in &result.expected {
        text.push('\n');
        text.push_str(&promise::table(held));
    }
    text
}

pub(crate) fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    table
}

/// comfy-table fills cells up with blanks; the last one's are of no use.
pub(crate) fn render(table: &Table) -> String {
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// The same, with nothing before the first column and two blanks between them.
pub(crate) fn render_left(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(table)
}

pub(crate) fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn figures(result: &ProbeResult) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let head = ["", "per s", "95 %+-", "bandwidth", "p50", "p99", "p99.9"];
    table.set_header(head.map(right));
    for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
        let latency = row::latency(figure);
        let mut cells = vec![Cell::new(row::label(figure))];
        cells.push(right(format!(
            "{}{}",
            words::iops(figure.iops.mean),
            mark(figure)
        )));
        let unsure = if row::is_unsure(figure) { "!" } else { "" };
        cells.push(right(format!("{}{unsure}", row::error(figure))));
        cells.push(right(words::bandwidth(figure.bytes_per_s.mean)));
        cells.push(right(row::percentile(latency.p50_ns)));
        cells.push(right(row::percentile(latency.p99_ns)));
        cells.push(right(row::percentile(latency.p99_9_ns)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    render(&table)
}

fn mark(figure: &Figure) -> &'static str {
    match figure.settled {
        Some(false) => "*",
        _ => "",
    }
}

/// What must be known to read the table.
fn remarks(result: &ProbeResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if result.interrupted {
        remarks.push("Interrupted: the figures are of what ran until then.".to_owned());
    }
    if result
        .figures
        .iter()
        .any(|figure| figure.settled == Some(false))
    {
        remarks
            .push("* did not settle: the rate drifted or jumped while it was measured.".to_owned());
    }
    if result.figures.iter().any(row::is_unsure) {
        let asked = 100.0 * result.options.budget.width;
        remarks.push(format!(
            "! not sure: not known to +- {asked} % when its time was over; --runtime 30 measures longer."
        ));
    }
    if let Some(write) = result
        .figures
        .iter()
        .find(|figure| figure.sync_latency.is_some())
    {
        let p50 = row::percentile(write.latency.p50_ns);
        remarks.push(format!(
            "write + fdatasync: sequential, through the page cache, as a database writes its log; latency is that of fdatasync (the write before it: p50 {p50}).",
        ));
    }
    for figure in &result.figures {
        if let Some(failure) = &figure.failure {
            remarks.push(format!(
                "{}: ended by an error: {}",
                row::label(figure),
                failure.message
            ));
        }
    }
    remarks
}

/// Facts with their names, of 80 columns.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> String {
    let mut table = plain();
    for (name, value) in pairs {
        table.add_row([*name, value]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

/// A paragraph of at most 80 columns.
pub(crate) fn wrapped(text: &str) -> String {
    let mut table = plain();
    table.add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    render(&table)
}
