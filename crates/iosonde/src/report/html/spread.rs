//! How far results of one label lie apart, within a machine and from machine to machine.

use super::document::{Spread, SpreadRow, Unit};
use crate::report::figures::label;
use crate::report::spread::counts;
use iosonde_result::compare::{Measure, Measured, together};

/// Of the results of a label; `None` where no figure was measured twice.
pub(super) fn of(name: &str, results: &[Measured]) -> Option<Spread> {
    let rows: Vec<SpreadRow> = together(results)
        .into_iter()
        .map(|(part, subject, measure, side)| {
            let percent = |share: Option<f64>| share.map(|share| share * 100.0);
            SpreadRow {
                what: format!("{part} {}", label(subject.name(), measure)),
                unit: match measure {
                    Measure::Iops => Unit::Iops,
                    Measure::BytesPerS => Unit::BytesPerS,
                    _ => Unit::Ns,
                },
                mean: side.value,
                runs: side.runs,
                machines: side.machines,
                within_percent: percent(side.spread.and_then(|spread| spread.within_machine)),
                between_percent: percent(side.spread.and_then(|spread| spread.between_machines)),
            }
        })
        .collect();
    (!rows.is_empty()).then(|| Spread {
        title: format!("{name}: {}", counts(results)),
        rows,
    })
}
