//! Spread of the results of one label, within a machine and between machines.

use super::document::{PageSpread, PageUnit, SpreadRow};
use crate::figures::label;
use crate::spread::counts;
use iosonde_result::compare::{Measure, MeasuredResult, combine_figures};

/// Returns the spread of a label's results, or `None` if no figure was measured twice.
pub(super) fn convert_spread(name: &str, results: &[MeasuredResult]) -> Option<PageSpread> {
    let rows: Vec<SpreadRow> = combine_figures(results)
        .into_iter()
        .map(|(part, subject, measure, side)| {
            let percent = |share: Option<f64>| share.map(|share| share * 100.0);
            SpreadRow {
                what: format!("{part} {}", label(subject.name(), measure)),
                unit: match measure {
                    Measure::Iops => PageUnit::Iops,
                    Measure::BytesPerS => PageUnit::BytesPerS,
                    Measure::CommandFigure => PageUnit::Count,
                    _ => PageUnit::Ns,
                },
                mean: side.value,
                runs: side.runs,
                machines: side.machines,
                within_percent: percent(side.spread.and_then(|spread| spread.within_machine)),
                between_percent: percent(side.spread.and_then(|spread| spread.between_machines)),
            }
        })
        .collect();
    (!rows.is_empty()).then(|| PageSpread {
        title: format!("{name}: {}", counts(results)),
        rows,
    })
}
