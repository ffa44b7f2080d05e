//! Pivot tables for the page, which draws them as grouped bars.

use super::document::{PagePivot, PageResult, PageUnit, PivotCell};
use super::page_promises::promise_kept;
use crate::pivot;
use iosonde_history::{StudySummary, TOGETHER};
use iosonde_result::compare::informative_interval;
use iosonde_suite as suite;

/// Converts a pivot table.
pub(super) fn convert_pivot(pivot: &pivot::PivotTable) -> PagePivot {
    let (rows, columns) = pivot.headers();
    let cell = |row: &str, column: &str| {
        let cell = pivot.cell(row, column)?;
        let promised = cell.promised.as_ref();
        Some(PivotCell {
            value: cell.value,
            between: informative(cell.value, cell.bounds),
            results: cell.results,
            note: (cell.results > 1).then(|| {
                format!(
                    "{} of {} results, {} to {}",
                    pivot.of.words(),
                    cell.results,
                    pivot.unit.show(cell.range.0),
                    pivot.unit.show(cell.range.1)
                )
            }),
            promised: promised.map(|promised| promised.value),
            product: promised.map(|promised| format!("{}: {}", promised.product, promised.source)),
            kept: promised.and_then(|promised| promise_kept(promised.verdict)),
        })
    };
    let cells = rows
        .iter()
        .map(|row| columns.iter().map(|column| cell(row, column)).collect());
    PagePivot {
        figure: pivot.figure.clone(),
        title: pivot.title.clone(),
        unit: match pivot.unit {
            suite::FigureUnit::PerSecond => PageUnit::Iops,
            suite::FigureUnit::BytesPerSecond => PageUnit::BytesPerS,
            suite::FigureUnit::Nanoseconds => PageUnit::Ns,
            suite::FigureUnit::Depth | suite::FigureUnit::OfCommand => PageUnit::Count,
        },
        row_label: pivot.rows.clone(),
        column_label: pivot.columns.clone(),
        cells: cells.collect(),
        rows: rows.into_iter().map(str::to_owned).collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        simulated: pivot.simulated,
    }
}

/// The interval of a cell. `None`: it is not known, or too wide to be shown.
fn informative(value: f64, bounds: Option<(f64, f64)>) -> Option<(f64, f64)> {
    informative_interval(value, bounds?)
}

/// Converts a stored result that pivot tables use.
pub(super) fn convert_result(study: &StudySummary) -> PageResult {
    let mut labels = study.labels.clone();
    labels.remove(TOGETHER);
    PageResult {
        id: study.short_id.clone(),
        kind: study.kind.clone(),
        target: study.target.clone(),
        machine: study.machine.clone(),
        program: study.program.clone(),
        started_at_ms: study.started_at_ms,
        labels,
    }
}

#[cfg(test)]
mod tests {
    use super::informative;

    #[test]
    fn interval_that_reaches_zero_is_not_known_on_the_page() {
        assert_eq!(informative(100.0, None), None);
        assert_eq!(informative(100.0, Some((-5.0, 205.0))), None);
        assert_eq!(informative(100.0, Some((90.0, 110.0))), Some((90.0, 110.0)));
    }
}
