//! Published figures beside both sides of a comparison.

use crate::markdown_table::{markdown_paragraphs, markdown_table};
use crate::promise;
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{
    TableColumn, fill_table, hide_columns, is_narrow, plain, render_left, wrapped,
};
use comfy_table::{Column, ColumnConstraint, Table};
use iosonde_limits::{MeasuredFigure, Metric, Promise, PromiseComparison};
use iosonde_result::compare::{self, Figure, Measure, ResultPart, Subject};
use iosonde_study::probe::ProbeResult;
use iosonde_study::promise_check::{PromiseCheck, PromiseDoubt};
use serde::Serialize;

/// Columns that a narrow terminal does not show, the least important first: promised, measured by A
/// and B, verdicts. The shares stay.
const LEAST_IMPORTANT: [usize; 5] = [1, 2, 5, VERDICT_COLUMNS[0], VERDICT_COLUMNS[1]];
/// Verdicts on A and B.
const VERDICT_COLUMNS: [usize; 2] = [4, 7];

/// A measured figure of a side, judged against the promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideFigure {
    #[serde(flatten)]
    judged: PromiseComparison,
    /// Reasons to doubt the verdict, if the result shows any.
    doubts: Vec<PromiseDoubt>,
}

/// A figure of a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PromisedMetricRow {
    metric: Metric,
    /// `None` if a side did not measure the figure.
    a: Option<SideFigure>,
    b: Option<SideFigure>,
}

/// A promise and the figures that both sides measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromiseSides {
    /// Product with its size and machine.
    product: String,
    rows: Vec<PromisedMetricRow>,
}

/// Judges a side against a promise. A probe is judged as in its own report. Of other results, the
/// fastest figure of each metric counts, since a promise is a maximum.
pub fn judge_side(
    promise: &Promise,
    probe: Option<&ProbeResult>,
    results: &[compare::MeasuredResult],
) -> Vec<SideFigure> {
    if let Some(probe) = probe {
        let rows = PromiseCheck::from_probe(promise, probe).rows.into_iter();
        return rows
            .map(|row| SideFigure {
                judged: row.judged,
                doubts: row.doubts,
            })
            .collect();
    }
    let measured: Vec<MeasuredFigure> = Metric::ALL
        .into_iter()
        .filter_map(|metric| fastest(metric, results))
        .collect();
    let alone = |judged| SideFigure {
        judged,
        doubts: Vec::new(),
    };
    promise.judge(&measured).into_iter().map(alone).collect()
}

fn fastest(metric: Metric, results: &[compare::MeasuredResult]) -> Option<MeasuredFigure> {
    let subject = promise::subject_of_metric(metric)?;
    let parts = results.iter().flat_map(|result| &result.parts);
    let found = parts.filter(|part| is_one_way(part)).filter_map(|part| {
        let block_bytes = part.pattern.block_bytes();
        let iops = part.figure(subject, Measure::Iops)?;
        let factor = match metric.is_iops() {
            true => 1.0,
            false => block_bytes? as f64,
        };
        Some(MeasuredFigure {
            metric,
            per_s: iops.value * factor,
            error: error(iops).map(|error| error * factor),
            block_bytes,
        })
    });
    found.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
}

/// Half the width of the figure's interval.
fn error(figure: &Figure) -> Option<f64> {
    figure.bounds.map(|bounds| (bounds.high - bounds.low) / 2.0)
}

/// Whether a part only reads or only writes. A mix shares its limits between both directions.
fn is_one_way(part: &ResultPart) -> bool {
    let has = |subject| part.figure(subject, Measure::Iops).is_some();
    has(Subject::Read) != has(Subject::Write)
}

impl PromiseSides {
    /// Pairs the figures of both sides with those of the promise.
    pub fn pair(promise: &Promise, a: Vec<SideFigure>, b: Vec<SideFigure>) -> PromiseSides {
        let of = |side: &[SideFigure], metric| {
            let mut side = side.iter();
            side.find(|each| each.judged.metric == metric).cloned()
        };
        let rows = Metric::ALL.into_iter().map(|metric| PromisedMetricRow {
            metric,
            a: of(&a, metric),
            b: of(&b, metric),
        });
        PromiseSides {
            product: promise::title(promise),
            rows: rows
                .filter(|row| row.a.is_some() || row.b.is_some())
                .collect(),
        }
    }

    /// Returns a table of at most 80 columns.
    pub(super) fn table(&self) -> String {
        let mut text = wrapped(&format!("Promised: {}", self.product));
        if self.rows.is_empty() {
            return text + "No promised figure was measured.\n";
        }
        // On a narrow terminal, the shares may stand without the measured figures before them.
        let shares = match is_narrow() {
            true => ["A of it", "B of it"],
            false => ["of it", "of it"],
        };
        let rows = self.rows.iter().map(PromisedMetricRow::cells);
        let mut table = fill_table(plain(), &side_columns(shares), rows);
        hide_columns(&mut table, &LEAST_IMPORTANT);
        hide_second_verdict(&mut table);
        text.push_str(&render_left(&mut table));
        for doubt in self.doubts() {
            text.push_str(&wrapped(&doubt));
        }
        text
    }

    /// Returns Markdown for a report or an issue.
    pub(super) fn markdown(&self) -> String {
        let rows = self.rows.iter().map(PromisedMetricRow::cells);
        let table = markdown_table(&side_columns(["of it"; 2]), rows);
        let mut text = format!("Promised: {}\n\n{table}", self.product);
        text.push_str(&markdown_paragraphs(&self.doubts()));
        text
    }

    /// `? A, read IOPS: a cache answered, not the volume.`
    fn doubts(&self) -> Vec<String> {
        let sides = |row: &PromisedMetricRow| [("A", row.a.clone()), ("B", row.b.clone())];
        let mut lines = Vec::new();
        for row in &self.rows {
            for (name, side) in sides(row) {
                let doubts = side.map(|side| side.doubts).unwrap_or_default();
                let words: Vec<&str> = doubts.iter().map(|doubt| doubt.words()).collect();
                if !words.is_empty() {
                    lines.push(format!("? {name}, {}: {}.", row.metric, words.join("; ")));
                }
            }
        }
        lines
    }
}

impl PromisedMetricRow {
    /// Cells of a line of [`side_columns`].
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.metric.to_string(), self.promised()];
        cells.extend(side_cells(self.a.as_ref()));
        cells.extend(side_cells(self.b.as_ref()));
        cells
    }

    /// Promised values. Both sides have one value, unless their block sizes differ.
    fn promised(&self) -> String {
        let sides = [&self.a, &self.b].into_iter().flatten();
        let mut shown: Vec<String> = sides.map(|side| promise::promised(&side.judged)).collect();
        shown.dedup();
        shown.join(" / ")
    }
}

/// Columns of both sides, with these titles of their shares of the promise.
fn side_columns([of_a, of_b]: [&str; 2]) -> [TableColumn<'_>; 8] {
    [
        Left(""),
        Right("promised"),
        Right("A"),
        Right(of_a),
        Left(""),
        Right("B"),
        Right(of_b),
        Left(""),
    ]
}

/// Hides the verdict on B if that on A is hidden. Alone, it would read as the verdict on both.
fn hide_second_verdict(table: &mut Table) {
    let [of_a, of_b] = VERDICT_COLUMNS;
    let is_hidden = table.column(of_a).is_some_and(Column::is_hidden);
    if let Some(column) = table.column_mut(of_b).filter(|_| is_hidden) {
        column.set_constraint(ColumnConstraint::Hidden);
    }
}

/// Measured value, its share of the promise, and the verdict.
fn side_cells(side: Option<&SideFigure>) -> [String; 3] {
    let Some(side) = side else {
        return ["-", "", ""].map(str::to_owned);
    };
    let doubted = if side.doubts.is_empty() { "" } else { "?" };
    [
        promise::measured(&side.judged),
        promise::share(&side.judged),
        format!("{}{doubted}", promise::verdict_keyword(side.judged.verdict)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_limits::Limits;

    #[test]
    fn narrow_terminal_shows_shares_of_both_sides() {
        let query = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8".parse().unwrap();
        let promise = Limits::published().evaluate(&query).unwrap();
        let side = |factor: f64| {
            let measured = |metric, per_s: f64| MeasuredFigure {
                metric,
                per_s: per_s * factor,
                error: None,
                block_bytes: None,
            };
            let judged = promise.judge(&[
                measured(Metric::WriteIops, 15_000.0),
                measured(Metric::WriteBandwidth, 420.0 * 1_048_576.0),
            ]);
            let doubted = |judged| SideFigure {
                judged,
                doubts: vec![PromiseDoubt::ServedFromCache],
            };
            judged.into_iter().map(doubted).collect::<Vec<_>>()
        };
        let sides = PromiseSides::pair(&promise, side(0.6), side(25.0));
        let mut verdicts_by_columns = Vec::new();
        for columns in [40, 50, 60, 79] {
            crate::text_table::set_columns(columns);
            let text = sides.table();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert!(
                text.contains("A of it") && text.contains("B of it"),
                "{text}"
            );
            let line = text
                .lines()
                .find(|line| line.starts_with("write bandwidth"));
            let line = line.unwrap();
            assert!(line.contains(" 60 %") && line.contains(" 2500 %"), "{text}");
            // Each verdict is doubted.
            verdicts_by_columns.push(line.matches('?').count());
        }
        // Either both sides have their verdict or neither does.
        assert_eq!(verdicts_by_columns[..2], [0, 0]);
        assert_eq!(verdicts_by_columns[3], 2);
        assert!(!verdicts_by_columns.contains(&1), "{verdicts_by_columns:?}");
        crate::text_table::set_columns(80);
    }
}
