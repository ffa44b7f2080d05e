//! Heat tables of a sweep: the rate of each cell with a shade, over two axes.

use super::cell_text::{bandwidth_unit, cell_bandwidth_in_unit, cell_rate, rate_header};
use super::recommendation::{CellAddress, label};
use crate::known_digits::{
    APPROXIMATE_MARK, NamedUnit, PREDICTED_LEGEND, RATE_UNITS, lacks_interval,
};
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::{self, wrapped};
use iosonde_study::sweep::{CellBasis, LARGE_BYTES, SweepCell, SweepResult};
use iosonde_study::words;

/// Shares of the highest rate of a table from which the next shade begins.
const SHADE_SHARES: [f64; 4] = [0.25, 0.5, 0.75, 0.97];
/// Largest number of tables, each as wide as a paragraph.
const TABLES_MAX: usize = 3;
/// Largest number of rows of a table.
const ROWS_MAX: usize = 20;
/// Largest width of a row's label.
const ROW_LABEL_COLUMNS: usize = 24;
/// Largest width of a column's header.
const HEADER_COLUMNS: usize = 16;
/// Mark of a recommended cell.
const RECOMMENDED: char = '*';

/// Whether cells have the signs of recommended, unknown, predicted and approximate rates.
type CellSigns = [bool; 4];
/// A cell as text, with its signs.
type DrawnCell = (String, CellSigns);

/// A table: the cells that share the values of all other axes.
struct HeatTable {
    title: String,
    /// Labels of the rows and of the columns.
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<PlacedCell>,
}

/// A cell and its place in a table.
struct PlacedCell {
    row: usize,
    column: usize,
    address: CellAddress,
}

/// Axes of the rows and the columns, as indices.
struct HeatAxes {
    row: usize,
    column: Option<usize>,
}

/// Returns the first tables, the number of the others with `details`, the command that shows them,
/// and the legend.
pub(super) fn lines(
    result: &SweepResult,
    recommended: &[CellAddress],
    details: &str,
    style: TextStyle,
) -> Vec<String> {
    let axes = HeatAxes::new(result);
    let mut lines = Vec::new();
    let mut signs = CellSigns::default();
    let (mut shown, mut hidden) = (0, 0);
    for table in tables(result, &axes) {
        let drawn = DrawnTable::new(result, &table, &axes, recommended, style);
        for (part, signs_of_part) in drawn.parts(details) {
            if shown < TABLES_MAX {
                lines.push(String::new());
                lines.extend(part);
                signs = joined_signs(signs, signs_of_part);
                shown += 1;
            } else {
                hidden += 1;
            }
        }
    }
    let legend = legend(signs, style);
    if hidden > 0 {
        let more = words::counted(hidden, "more table");
        lines.extend([String::new(), format!("{more}: {details}")]);
    }
    lines.push(String::new());
    lines.extend(legend);
    let certainty = certainty(result, style);
    lines.extend(certainty.iter().flat_map(|text| wrapped_lines(text)));
    lines
}

/// The number of measured rates without an interval, and the widest interval of the others.
fn certainty(result: &SweepResult, style: TextStyle) -> Vec<String> {
    let cells = result.curves.iter().flat_map(|curve| &curve.cells);
    let measured = cells.filter(|cell| cell.basis == CellBasis::Measured);
    let errors: Vec<Option<f64>> = measured
        .filter_map(|cell| cell.iops.map(|iops| iops.relative_error()))
        .map(|error| error.filter(|error| error.is_finite()))
        .collect();
    let without = errors.iter().filter(|error| error.is_none()).count();
    let missing = match without {
        0 => None,
        1 => Some("1 measured rate has no interval.".to_owned()),
        _ => Some(format!("{without} measured rates have no interval.")),
    };
    let known = errors.into_iter().flatten().max_by(f64::total_cmp);
    let known = known.map(|widest| {
        let rates = match without {
            0 => "Measured rates",
            _ => "The other measured rates",
        };
        let sign = style.plus_minus();
        match widest < 1.0 {
            true => format!(
                "{rates} are known to {sign}{:.0} % or better (95 % intervals).",
                (widest * 100.0).ceil().max(1.0)
            ),
            false => "The intervals of some measured rates are wider than 100 %.".to_owned(),
        }
    });
    missing.into_iter().chain(known).collect()
}

fn joined_signs(one: CellSigns, other: CellSigns) -> CellSigns {
    std::array::from_fn(|index| one[index] || other[index])
}

/// Explains the shades, and these signs of cells.
fn legend(signs: CellSigns, style: TextStyle) -> Vec<String> {
    let [lowest, low, middle, high, highest] = style.shades();
    let shades = format!(
        "{highest} 97 % of the table's highest rate or more, {high} 75 %, {middle} 50 %, \
         {low} 25 %, {lowest} less"
    );
    let approximate = format!("{APPROXIMATE_MARK} measured without an interval");
    let texts = [
        "* recommended",
        "- not known",
        PREDICTED_LEGEND,
        approximate.as_str(),
    ];
    let signs: Vec<&str> = (signs.into_iter().zip(texts))
        .filter_map(|(is_used, text)| is_used.then_some(text))
        .collect();
    let signs = Some(signs.join("; ")).filter(|text| !text.is_empty());
    let texts = std::iter::once(shades).chain(signs);
    texts.flat_map(|text| wrapped_lines(&text)).collect()
}

fn wrapped_lines(text: &str) -> Vec<String> {
    wrapped(text).lines().map(str::to_owned).collect()
}

impl HeatAxes {
    /// Rows are depths if there are several. Columns are jobs or blocks if there are several.
    fn new(result: &SweepResult) -> HeatAxes {
        let depth = result.axes.len() - 1;
        let is_several = |index: &usize| result.axes[*index].values.len() > 1;
        let several: Vec<usize> = (0..=depth).filter(is_several).collect();
        let row = match several.contains(&depth) {
            true => depth,
            false => several.first().copied().unwrap_or(depth),
        };
        let others: Vec<usize> = several.into_iter().filter(|index| *index != row).collect();
        let named = |name: &str| {
            let mut indices = others.iter().copied();
            indices.find(|index| result.axes[*index].name == name)
        };
        HeatAxes {
            row,
            column: named("numjobs")
                .or_else(|| named("bs"))
                .or_else(|| others.last().copied()),
        }
    }
}

/// Value of an axis at a cell.
fn value(result: &SweepResult, axis: usize, address: CellAddress) -> String {
    let curve = &result.curves[address.curve];
    match curve.values.get(axis) {
        Some(value) => value.clone(),
        None => curve.cells[address.cell].iodepth.to_string(),
    }
}

fn tables(result: &SweepResult, axes: &HeatAxes) -> Vec<HeatTable> {
    let mut tables: Vec<HeatTable> = Vec::new();
    let counts = result.curves.iter().map(|curve| curve.cells.len());
    let addresses = counts
        .enumerate()
        .flat_map(|(curve, count)| (0..count).map(move |cell| CellAddress { curve, cell }));
    for address in addresses {
        let is_shared = |index: &usize| {
            *index != axes.row
                && Some(*index) != axes.column
                && result.axes[*index].values.len() > 1
        };
        let shared = (0..result.axes.len()).filter(is_shared);
        let names: Vec<String> = shared
            .map(|index| result.axes[index].value_text(&value(result, index, address)))
            .collect();
        let title = names.join(" ");
        let position = tables.iter().rposition(|table| table.title == title);
        let position = position.unwrap_or_else(|| {
            tables.push(HeatTable {
                title,
                rows: Vec::new(),
                columns: Vec::new(),
                cells: Vec::new(),
            });
            tables.len() - 1
        });
        let table = &mut tables[position];
        let column = axes.column.map_or(String::new(), |index| {
            result.axes[index].value_text(&value(result, index, address))
        });
        let placed = PlacedCell {
            row: position_of(&mut table.rows, value(result, axes.row, address)),
            column: position_of(&mut table.columns, column),
            address,
        };
        table.cells.push(placed);
    }
    tables
}

/// Position of a label, which is added if it is new.
fn position_of(labels: &mut Vec<String>, label: String) -> usize {
    let known = labels.iter().rposition(|other| *other == label);
    known.unwrap_or_else(|| {
        labels.push(label);
        labels.len() - 1
    })
}

/// Figure of a cell as text, with the number behind it.
#[derive(Debug, Clone, PartialEq)]
struct CellFigure {
    rate: f64,
    text: String,
    is_predicted: bool,
    /// Whether the figure was measured without an interval.
    is_approximate: bool,
}

impl CellFigure {
    /// Formats a bandwidth in this unit, else I/Os per second. Returns `None` if the rate is not
    /// known.
    fn new(cell: &SweepCell, unit: Option<NamedUnit>) -> Option<CellFigure> {
        let (rate, text) = match unit {
            Some(unit) => (cell.bytes_per_s?, cell_bandwidth_in_unit(cell, unit)?),
            None => (cell.iops?.mean, cell_rate(cell, RATE_UNITS)?),
        };
        // The bandwidth has the interval of the rate.
        let lacks_interval = cell
            .iops
            .is_some_and(|iops| lacks_interval(iops.mean, iops.error));
        let is_predicted = cell.basis == CellBasis::Predicted;
        Some(CellFigure {
            rate,
            text,
            is_predicted,
            is_approximate: lacks_interval && !is_predicted,
        })
    }
}

/// Index of the shade of a rate. A higher rate never has a lower shade.
pub(super) fn shade(rate: f64, highest: f64) -> usize {
    let share = rate / highest.max(f64::MIN_POSITIVE);
    SHADE_SHARES.iter().filter(|least| share >= **least).count()
}

/// Cells of a table as text.
struct DrawnTable {
    title: String,
    /// Labels of the rows below the name of their axis, all of the same width.
    labels: Vec<String>,
    /// Each column: its header, then its cells.
    columns: Vec<Vec<DrawnCell>>,
    /// Width of each column without colours.
    width: usize,
}

impl DrawnTable {
    fn new(
        result: &SweepResult,
        table: &HeatTable,
        axes: &HeatAxes,
        recommended: &[CellAddress],
        style: TextStyle,
    ) -> DrawnTable {
        let curve = |cell: &PlacedCell| &result.curves[cell.address.curve];
        let is_bandwidth = (table.cells.iter()).any(|cell| curve(cell).block_bytes >= LARGE_BYTES);
        let sweep_cell = |cell: &PlacedCell| &curve(cell).cells[cell.address.cell];
        // One unit for the whole table, so that its figures compare as its shades do.
        let unit = is_bandwidth.then(|| bandwidth_unit(table.cells.iter().map(sweep_cell)));
        let figures: Vec<(&PlacedCell, Option<CellFigure>)> = (table.cells.iter())
            .map(|cell| (cell, CellFigure::new(sweep_cell(cell), unit)))
            .collect();
        let unit = rate_header(unit);
        let known = || figures.iter().filter_map(|(_, figure)| figure.as_ref());
        let highest = known().map(|figure| figure.rate).fold(0.0, f64::max);
        let digits = known().map(|figure| figure.text.chars().count());
        let digits = digits.max().unwrap_or(1);
        let headers: Vec<String> = match axes.column {
            Some(_) => (table.columns.iter())
                .map(|name| label(name, HEADER_COLUMNS))
                .collect(),
            None => vec![unit.to_owned()],
        };
        let widest = headers.iter().map(|header| header.chars().count()).max();
        let width = widest.unwrap_or(0).max(digits + " ██".chars().count());
        let without_signs = |text: String| (text, CellSigns::default());
        let empty = vec![without_signs(" ".repeat(width + 1)); table.rows.len()];
        let mut columns: Vec<Vec<DrawnCell>> = headers
            .iter()
            .map(|header| {
                let header = std::iter::once(without_signs(format!("{header:>width$} ")));
                header.chain(empty.iter().cloned()).collect()
            })
            .collect();
        for (cell, figure) in &figures {
            let is_recommended = recommended.contains(&cell.address);
            let mark = if is_recommended { RECOMMENDED } else { ' ' };
            let figure = figure.as_ref();
            let signs = [
                is_recommended,
                figure.is_none(),
                figure.is_some_and(|figure| figure.is_predicted),
                figure.is_some_and(|figure| figure.is_approximate),
            ];
            let text = painted(figure, highest, width, style);
            columns[cell.column][cell.row + 1] = (format!("{text}{mark}"), signs);
        }
        let has_unit_in_title = axes.column.is_some();
        DrawnTable {
            title: match (has_unit_in_title, table.title.is_empty()) {
                (true, true) => unit.to_owned(),
                (true, false) => {
                    let room = text_table::columns() - ": ".len() - unit.len();
                    format!("{}: {unit}", label(&table.title, room))
                }
                (false, _) => label(&table.title, text_table::columns()),
            },
            labels: labels(&result.axes[axes.row].name, &table.rows),
            columns,
            width,
        }
    }

    /// Returns the lines of the tables that show all columns, each at most as wide as the terminal,
    /// with the signs of their cells.
    fn parts(&self, details: &str) -> Vec<(Vec<String>, CellSigns)> {
        let used = self.labels.first().map_or(0, |label| label.chars().count());
        // A column has a blank before it and a mark after it.
        let room = text_table::wide_columns().saturating_sub(used);
        let count = (room / (self.width + 2)).max(1);
        let parts = self.columns.chunks(count);
        parts.map(|columns| self.part(columns, details)).collect()
    }

    fn part(&self, columns: &[Vec<DrawnCell>], details: &str) -> (Vec<String>, CellSigns) {
        let title = Some(self.title.clone()).filter(|title| !title.is_empty());
        let mut lines: Vec<String> = title.into_iter().collect();
        let mut signs = CellSigns::default();
        for (row, label) in self.labels.iter().enumerate().take(ROWS_MAX + 1) {
            let mut line = label.clone();
            for (text, signs_of_cell) in columns.iter().map(|column| &column[row]) {
                line.push_str(&format!(" {text}"));
                signs = joined_signs(signs, *signs_of_cell);
            }
            lines.push(line.trim_end().to_owned());
        }
        let hidden = self.labels.len().saturating_sub(ROWS_MAX + 1);
        if hidden > 0 {
            let more = words::counted(hidden, "more row");
            lines.push(format!("{more}: {details}"));
        }
        (lines, signs)
    }
}

/// Figure and shade of a cell, aligned to the right.
fn painted(figure: Option<&CellFigure>, highest: f64, width: usize, style: TextStyle) -> String {
    let Some(figure) = figure else {
        return format!("{:>digits$}   ", "-", digits = width - 3);
    };
    let level = shade(figure.rate, highest);
    let shades = style.shades()[level].to_string().repeat(2);
    let text = format!("{} {shades}", figure.text);
    let blanks = " ".repeat(width - text.chars().count());
    let is_unsure = figure.is_predicted || figure.is_approximate;
    let text = match (is_unsure, level == SHADE_SHARES.len()) {
        (true, _) => style.paint(TextRole::Unsure, &text),
        (false, true) => style.paint(TextRole::Good, &text),
        (false, false) => text,
    };
    format!("{blanks}{text}")
}

/// Name of the axis and labels of its rows, aligned to the right.
fn labels(axis: &str, rows: &[String]) -> Vec<String> {
    let names = std::iter::once(axis).chain(rows.iter().map(String::as_str));
    let room = ROW_LABEL_COLUMNS.min(text_table::columns() / 2);
    let names: Vec<String> = names.map(|name| label(name, room)).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0);
    names.iter().map(|name| format!("{name:>width$}")).collect()
}

#[cfg(test)]
mod tests;
