//! Figures by two labels, as the page draws them: grouped bars.

use super::document::{Kept, Pivot, PivotCell, Unit};
use crate::report::pivot::{self, Promised};
use crate::store::Summary;
use iosonde_study::limits::Verdict;
use iosonde_study::suite;

/// A table of one figure.
pub(super) fn of(pivot: &pivot::Pivot) -> Pivot {
    let (rows, columns) = pivot.headers();
    let cell = |row: &str, column: &str| {
        let cell = pivot.cell(row, column)?;
        let promised = cell.promised.as_ref();
        Some(PivotCell {
            value: cell.value,
            between: cell.bounds,
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
            kept: promised.and_then(kept),
        })
    };
    let cells = rows
        .iter()
        .map(|row| columns.iter().map(|column| cell(row, column)).collect());
    Pivot {
        figure: pivot.figure.clone(),
        title: pivot.title.clone(),
        unit: match pivot.unit {
            suite::Unit::PerSecond => Unit::Iops,
            suite::Unit::BytesPerSecond => Unit::BytesPerS,
            suite::Unit::Nanoseconds => Unit::Ns,
            suite::Unit::Depth => Unit::Count,
        },
        row_label: pivot.rows.clone(),
        column_label: pivot.columns.clone(),
        cells: cells.collect(),
        rows: rows.into_iter().map(str::to_owned).collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        simulated: pivot.simulated,
    }
}

fn kept(promised: &Promised) -> Option<bool> {
    match promised.verdict {
        Verdict::Kept | Verdict::Bursting => Some(true),
        Verdict::Below => Some(false),
        Verdict::Above => None,
    }
}

/// A result that the figures are of.
pub(super) fn kept_result(study: &Summary) -> Kept {
    Kept {
        id: study.short_id.clone(),
        kind: study.kind.clone(),
        target: study.target.clone(),
        machine: study.machine.clone(),
        program: study.program.clone(),
        started_at_ms: study.started_at_ms,
        labels: study.labels.clone(),
    }
}
