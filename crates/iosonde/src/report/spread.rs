//! How far results that belong together lie apart: from run to run on one machine, and from machine to machine.

use super::comparison::runs_on;
use super::figures::{label, percent, value};
use super::probe::table::{plain, render, right, wrapped};
use comfy_table::Cell;
use iosonde_result::compare::{Measured, together};
use std::collections::BTreeSet;

/// `6 runs on 2 machines`.
pub(crate) fn counts(results: &[Measured]) -> String {
    let machines: BTreeSet<_> = results.iter().map(|result| &result.machine).collect();
    runs_on(results.len(), machines.len())
}

/// A table of 80 columns; `None` where no figure was measured twice.
pub(crate) fn table(name: &str, results: &[Measured]) -> Option<String> {
    let found = together(results);
    if found.is_empty() {
        return None;
    }
    let mut table = plain();
    let mut header = vec![Cell::new("")];
    header.extend(["mean", "runs", "machines", "within", "between"].map(right));
    table.set_header(header);
    for (part, subject, measure, side) in &found {
        let share = |share: Option<f64>| right(share.map_or("-".to_owned(), percent));
        let spread = side.spread.as_ref();
        table.add_row([
            Cell::new(format!("{part} {}", label(subject.name(), *measure))),
            right(value(*measure, side.value)),
            right(side.runs),
            right(side.machines),
            share(spread.and_then(|spread| spread.within_machine)),
            share(spread.and_then(|spread| spread.between_machines)),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let explained = format!(
        "{name}: {}. Standard deviation from run to run within a machine, and from machine to machine beyond that:",
        counts(results)
    );
    Some(format!("{}\n{}", wrapped(&explained), render(&table)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Figure, Part, Pattern, Subject};

    fn measured(machine: &str, iops: f64) -> Measured {
        let figure = Figure {
            subject: Subject::Read,
            measure: iosonde_result::compare::Measure::Iops,
            value: iops,
            bounds: None,
            settled: None,
        };
        Measured {
            name: "one".to_owned(),
            machine: Some(machine.to_owned()),
            parts: vec![Part {
                name: "scan".to_owned(),
                pattern: Pattern::default(),
                figures: vec![figure],
            }],
        }
    }

    #[test]
    fn within_and_between_machines_are_told_apart() {
        let results = [
            measured("n1", 10_000.0),
            measured("n1", 10_100.0),
            measured("n2", 8_000.0),
            measured("n2", 8_080.0),
        ];
        insta::assert_snapshot!("of_two_machines", table("disk=old", &results).unwrap());
        assert!(table("disk=old", &results[..1]).is_none());
    }
}
