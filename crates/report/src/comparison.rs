//! Report of a comparison of two sides.

pub(crate) mod advantage;
mod promise_comparison;
mod ratio_grid;
mod ratio_text;
mod short_comparison;

pub use promise_comparison::{PromiseSides, judge_side};

use super::csv::csv_line;
use super::figures::{known_figure, label, percent};
use crate::format::TextFormat;
use crate::json_document::json_document_without_program;
use crate::markdown_table::markdown_table;
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{
    aligned_columns, column_widths, columns, fill_table, hidden_columns, plain, render, set_gap,
    wrapped,
};
use iosonde_job::escape_control_characters;
use iosonde_result::compare::{
    ComparedSide, Comparison, ComparisonNote, ComparisonRow, ComparisonVerdict, Measure,
    ResultSpread,
};
use iosonde_study::probe::{ProbePhase, phase_of_part};
use iosonde_study::sweep::{ComparedPart, LARGE_BYTES};
use iosonde_study::words::counted;
use ratio_text::{interval, number};
use serde::Serialize;
use std::collections::BTreeMap;

/// Index of the column of verdicts.
const VERDICT_COLUMN: usize = 5;
/// Columns that a narrow terminal does not show, the least important first: interval, both sides,
/// ratio.
const LEAST_IMPORTANT: [usize; 4] = [4, 1, 2, 3];

/// JSON document of a comparison with the names of its sides.
#[derive(Serialize)]
pub struct ComparisonDocument<'a> {
    /// Name of the first side.
    pub a: &'a str,
    /// Name of the second side.
    pub b: &'a str,
    #[serde(flatten)]
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Published figures with the measured ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<PromiseSides>,
    /// Parts of the first side if both sides are sweeps, whose cells are shown as curves.
    #[serde(skip)]
    pub sweep: &'a [ComparedPart],
    /// Titles of parts whose names are keys.
    #[serde(skip)]
    pub titles: BTreeMap<String, String>,
    /// Whether the sides are of different kinds, so that most parts belong to only one of them.
    #[serde(skip)]
    pub is_of_two_kinds: bool,
}

impl<'a> ComparisonDocument<'a> {
    /// Creates the document of a comparison.
    pub fn new(a: &'a str, b: &'a str, comparison: &'a Comparison) -> ComparisonDocument<'a> {
        ComparisonDocument {
            a,
            b,
            comparison,
            expected: Vec::new(),
            sweep: &[],
            titles: BTreeMap::new(),
            is_of_two_kinds: false,
        }
    }

    /// Returns the document in `format`.
    pub fn text(&self, format: TextFormat) -> String {
        match format {
            TextFormat::Table => self.table(),
            // Serialization of plain data cannot fail.
            TextFormat::Json => {
                json_document_without_program("comparison", self).unwrap_or_default()
            }
            TextFormat::Csv => self.csv(),
            TextFormat::Markdown => self.markdown(),
        }
    }

    /// Returns the verdict and the rows that differ, for a terminal. Control characters are
    /// escaped.
    #[must_use]
    pub fn short_text(&self, style: TextStyle) -> String {
        short_comparison::short_comparison_text(self, style)
    }

    fn table(&self) -> String {
        let mut text = wrapped(&format!("A  {}", self.a));
        text.push_str(&wrapped(&format!("B  {}", self.b)));
        text.push('\n');
        text.push_str(&self.figures());
        text.push('\n');
        text.push_str(&wrapped(&summary(self.comparison)));
        for note in self.notes() {
            text.push_str(&wrapped(&note));
        }
        if let Some(spread) = self.spreads() {
            text.push('\n');
            text.push_str(&spread);
        }
        for expected in &self.expected {
            text.push_str(&format!("\n{}", expected.table()));
        }
        text
    }

    /// Table of all figures. For sweeps, the maximum of each curve and the ratio of each cell.
    fn figures(&self) -> String {
        if self.sweep.is_empty() {
            return self.rows(&self.comparison.rows, TextStyle::PLAIN);
        }
        let is_most = |name: &str| {
            let mut most = self.sweep.iter().filter(|each| each.iodepth.is_none());
            most.any(|each| each.part.name == name)
        };
        let all = self.comparison.rows.iter();
        let most: Vec<ComparisonRow> = all.filter(|row| is_most(&row.part)).cloned().collect();
        let cells = ratio_grid::ratio_tables(self.comparison, self.sweep);
        format!(
            "{}{cells}{}",
            self.rows(&most, TextStyle::PLAIN),
            wrapped(ratio_grid::LEGEND)
        )
    }

    fn rows(&self, rows: &[ComparisonRow], style: TextStyle) -> String {
        let head = ["", "A", "B", "B / A", "95 % interval", ""].map(str::to_owned);
        let rows: Vec<ComparisonRow> = rows.iter().map(|row| self.in_unit_of_part(row)).collect();
        let cells: Vec<RowCells> = rows.iter().map(row_cells).collect();
        let columns = RowColumns::of_cells(std::iter::once(&head).chain(&cells));
        let mut output = columns.line(&head, None, style);
        let mut part = None;
        for (row, cells) in rows.iter().zip(&cells) {
            if part != Some(&row.part) {
                part = Some(&row.part);
                let title = escape_control_characters(self.title(&row.part));
                output.push_str(&wrapped(&title));
            }
            output.push_str(&columns.line(cells, verdict_role(row.verdict), style));
        }
        output
    }

    /// Table of the spread of a side's results, if a side has several.
    fn spreads(&self) -> Option<String> {
        let has_spread = |row: &&ComparisonRow| row.a.spread.is_some() || row.b.spread.is_some();
        let rows: Vec<&ComparisonRow> = self.comparison.rows.iter().filter(has_spread).collect();
        let first = rows.first()?;
        let counts = |name: &str, side: &ComparedSide| {
            format!("{name}: {}", runs_on(side.runs, side.machines))
        };
        let lines = rows.iter().map(|row| {
            let share = |side: &ComparedSide, of: fn(&ResultSpread) -> Option<f64>| {
                let share = side.spread.as_ref().and_then(of);
                share.map_or("-".to_owned(), percent)
            };
            let name = label(row.subject.name(), row.measure);
            [
                format!("{} {name}", self.title(&row.part)),
                share(&row.a, |spread| spread.within_machine),
                share(&row.a, |spread| spread.between_machines),
                share(&row.b, |spread| spread.within_machine),
                share(&row.b, |spread| spread.between_machines),
            ]
        });
        let head = [
            "standard deviation",
            "A within",
            "A between",
            "B within",
            "B between",
        ];
        let mut table = fill_table(plain(), &aligned_columns(&head, 1), lines);
        set_gap(&mut table, 2);
        let explained = format!(
            "Standard deviation between runs of one machine, and between machines in addition ({}; \
             {}):",
            counts("A", &first.a),
            counts("B", &first.b)
        );
        Some(format!("{}\n{}", wrapped(&explained), render(&table)))
    }

    /// Converts IOPS of a probe's large I/Os to bandwidth. The ratio is the same.
    fn in_unit_of_part(&self, row: &ComparisonRow) -> ComparisonRow {
        let phase = phase_of_part(&row.part).filter(|_| self.titles.contains_key(&row.part));
        let block_bytes = phase.map_or(0, ProbePhase::block_bytes);
        let mut row = row.clone();
        if row.measure == Measure::Iops && block_bytes >= LARGE_BYTES {
            row.measure = Measure::BytesPerS;
            for side in [&mut row.a, &mut row.b] {
                side.value *= block_bytes as f64;
                if let Some(bounds) = &mut side.bounds {
                    bounds.low *= block_bytes as f64;
                    bounds.high *= block_bytes as f64;
                }
            }
        }
        row
    }

    /// Title of a part, as other screens name it.
    #[must_use]
    pub fn title<'b>(&'b self, part: &'b str) -> &'b str {
        self.titles.get(part).map_or(part, String::as_str)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .comparison
            .notes
            .iter()
            .map(ComparisonNote::to_string)
            .chain(self.comparison.find_deciding_effort())
            .map(|note| format!("{note}."))
            .collect();
        let is_sweep = !self.sweep.is_empty();
        let mut only = |side: &str, names: &[String]| match names.len() {
            0 => {}
            // An adaptive sweep selects depths for each target, so the cells of both sides differ.
            count if is_sweep => notes.push(format!("{count} cells were measured only in {side}.")),
            // So do those of suites, which are parts among others.
            count if count > NAMED_PARTS_MAX => {
                notes.push(format!("{count} parts were measured only in {side}."));
            }
            _ => {
                let titles: Vec<&str> = names.iter().map(|name| self.title(name)).collect();
                notes.push(format!("Only {side} has: {}.", titles.join("; ")));
            }
        };
        if !self.is_of_two_kinds {
            only("A", &self.comparison.only_in_a);
            only("B", &self.comparison.only_in_b);
        }
        notes
    }

    fn csv(&self) -> String {
        let mut text =
            "part,subject,measure,a,b,ratio,ratio_low_95,ratio_high_95,verdict,a_runs,a_machines,\
                        b_runs,b_machines,a_within,a_between,b_within,b_between\n"
                .to_owned();
        for row in &self.comparison.rows {
            text.push_str(&csv_line(csv_cells(row)));
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("A: {}  \nB: {}\n\n", self.a, self.b);
        let columns = [
            Left(""),
            Left(""),
            Right("A"),
            Right("B"),
            Right("B / A"),
            Right("95 % interval"),
            Left(""),
        ];
        let rows = self.comparison.rows.iter().map(|row| {
            let row = &self.in_unit_of_part(row);
            [
                self.title(&row.part).to_owned(),
                label(row.subject.name(), row.measure),
                compared_side_text(row, &row.a),
                compared_side_text(row, &row.b),
                number(row.ratio.value),
                interval(&row.ratio),
                row.verdict.words().to_owned(),
            ]
        });
        text.push_str(&markdown_table(&columns, rows));
        text.push_str(&format!("\n{}\n", summary(self.comparison)));
        for note in self.notes() {
            text.push_str(&format!("\n{}\n", note.replace('*', "\\*")));
        }
        for expected in &self.expected {
            text.push_str(&format!("\n{}", expected.markdown()));
        }
        text
    }
}

/// Most parts of one side that a note names.
const NAMED_PARTS_MAX: usize = 8;

fn compared_side_text(row: &ComparisonRow, side: &ComparedSide) -> String {
    let mark = if side.unsettled { "*" } else { "" };
    let bounds = side.bounds.map(|bounds| (bounds.low, bounds.high));
    known_figure(row.measure, side.value, bounds) + mark
}

/// Cells of a row: its name, both sides, their ratio with its interval, and the verdict.
type RowCells = [String; VERDICT_COLUMN + 1];

fn row_cells(row: &ComparisonRow) -> RowCells {
    [
        format!(" {}", label(row.subject.name(), row.measure)),
        compared_side_text(row, &row.a),
        compared_side_text(row, &row.b),
        number(row.ratio.value),
        interval(&row.ratio),
        row.verdict.words().to_owned(),
    ]
}

/// Columns of the table of rows.
struct RowColumns {
    widths: [usize; VERDICT_COLUMN + 1],
    /// Indices of the columns that do not fit the terminal.
    hidden: Vec<usize>,
}

impl RowColumns {
    fn of_cells<'a>(cells: impl Iterator<Item = &'a RowCells>) -> RowColumns {
        let mut widths = column_widths(cells);
        // The names of parts have lines of their own.
        widths[0] = widths[0].max(1);
        let mut with_blanks = widths.map(|width| width + 1);
        with_blanks[VERDICT_COLUMN] -= 1;
        let hidden = hidden_columns(&with_blanks, &LEAST_IMPORTANT, columns());
        RowColumns { widths, hidden }
    }

    /// Returns the line of a row. The role gives its verdict a colour.
    fn line(&self, cells: &RowCells, role: Option<TextRole>, style: TextStyle) -> String {
        let mut line = format!("{:<width$}", cells[0], width = self.widths[0]);
        let shown = (1..VERDICT_COLUMN).filter(|column| !self.hidden.contains(column));
        for column in shown {
            let width = self.widths[column];
            line.push_str(&format!(" {:>width$}", cells[column]));
        }
        let verdict = &cells[VERDICT_COLUMN];
        match role {
            Some(role) => line.push_str(&format!(" {}", style.paint(role, verdict))),
            None => line.push_str(&format!(" {verdict}")),
        }
        format!("{}\n", line.trim_end())
    }
}

fn verdict_role(verdict: ComparisonVerdict) -> Option<TextRole> {
    match verdict {
        ComparisonVerdict::Faster => Some(TextRole::Good),
        ComparisonVerdict::Slower => Some(TextRole::Bad),
        ComparisonVerdict::Undecided => Some(TextRole::Unsure),
        ComparisonVerdict::NoDifferenceShown => None,
    }
}

/// Summarizes all rows in one or two sentences.
fn summary(comparison: &Comparison) -> String {
    let parts: Vec<String> = [
        (ComparisonVerdict::Faster, "B is faster in"),
        (ComparisonVerdict::Slower, "B is slower in"),
        (
            ComparisonVerdict::NoDifferenceShown,
            "no difference is shown in",
        ),
        (ComparisonVerdict::Undecided, "undecided in"),
    ]
    .into_iter()
    .map(|(verdict, words)| (comparison.count(verdict), words))
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{words} {}", counted(count, "figure")))
    .collect();
    if parts.is_empty() {
        return "A and B have no common figure.".to_owned();
    }
    let sentence = parts.join("; ");
    let (first, rest) = sentence.split_at(1);
    let by_chance = match comparison.rows.len() {
        0..10 => "",
        _ => " Even for equal devices, up to one figure in 20 differs by chance.",
    };
    format!("{}{rest}.{by_chance}", first.to_uppercase())
}

/// `6 runs on 2 machines`.
pub fn runs_on(runs: usize, machines: usize) -> String {
    let machines = counted(machines, "machine");
    format!("{} on {machines}", counted(runs, "run"))
}

fn csv_cells(row: &ComparisonRow) -> [String; 17] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    let within = |side: &ComparedSide| number(side.spread.and_then(|spread| spread.within_machine));
    let between =
        |side: &ComparedSide| number(side.spread.and_then(|spread| spread.between_machines));
    [
        row.part.clone(),
        row.subject.name().to_owned(),
        row.measure.name().to_owned(),
        number(Some(row.a.value)),
        number(Some(row.b.value)),
        number(Some(row.ratio.value)),
        number(row.ratio.interval.map(|(low, _)| low)),
        number(row.ratio.interval.map(|(_, high)| high)),
        row.verdict.words().to_owned(),
        row.a.runs.to_string(),
        row.a.machines.to_string(),
        row.b.runs.to_string(),
        row.b.machines.to_string(),
        within(&row.a),
        between(&row.a),
        within(&row.b),
        between(&row.b),
    ]
}
