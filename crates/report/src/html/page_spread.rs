//! Spread of the results of one label, within a machine and between machines.

use super::document::{PageSpread, SpreadRow};
use crate::figures::label;
use crate::known_digits::LATENCY_UNITS_UTF8;
use crate::spread::{counts, mean_text};
use iosonde_result::compare::{MeasuredResult, combine_figures};

/// Returns the spread of a label's results, or `None` if no figure was measured twice.
pub(super) fn convert_spread(name: &str, results: &[MeasuredResult]) -> Option<PageSpread> {
    let rows: Vec<SpreadRow> = combine_figures(results)
        .into_iter()
        .map(|(part, subject, measure, side)| {
            let percent = |share: Option<f64>| share.map(|share| share * 100.0);
            SpreadRow {
                what: format!("{part} {}", label(subject.name(), measure)),
                mean: mean_text(measure, &side, LATENCY_UNITS_UTF8),
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
