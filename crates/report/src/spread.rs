//! Spread of results that belong together: between runs on a machine, and between machines.

use super::comparison::runs_on;
use super::figures::{label, percent, value};
use crate::text_table::{hide_columns, plain, render, right, wrapped};
use comfy_table::Cell;
use iosonde_result::compare::{MeasuredResult, combine_figures};
use std::collections::BTreeSet;

/// Columns that a narrow terminal does not show, the least important first: machines, runs, mean.
const LEAST_IMPORTANT: [usize; 3] = [3, 2, 1];

/// `6 runs on 2 machines`.
pub fn counts(results: &[MeasuredResult]) -> String {
    let machines: BTreeSet<_> = results.iter().map(|result| &result.machine).collect();
    runs_on(results.len(), machines.len())
}

/// Returns a table of at most 80 columns, or `None` if no figure was measured twice.
pub fn table(name: &str, results: &[MeasuredResult]) -> Option<String> {
    let found = combine_figures(results);
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
    hide_columns(&mut table, &LEAST_IMPORTANT);
    let explained = format!(
        "{name}: {}. Standard deviation between runs of one machine, and between machines in \
         addition:",
        counts(results)
    );
    Some(format!("{}\n{}", wrapped(&explained), render(&table)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Figure, IoPattern, ResultPart, Subject};

    fn measured(machine: &str, iops: f64) -> MeasuredResult {
        let figure = Figure {
            subject: Subject::Read,
            measure: iosonde_result::compare::Measure::Iops,
            value: iops,
            bounds: None,
            settled: None,
        };
        MeasuredResult {
            name: "one".to_owned(),
            machine: Some(machine.to_owned()),
            parts: vec![ResultPart {
                name: "scan".to_owned(),
                pattern: IoPattern::default(),
                figures: vec![figure],
            }],
        }
    }

    #[test]
    fn spread_separates_within_and_between_machines() {
        let results = [
            measured("n1", 10_000.0),
            measured("n1", 10_100.0),
            measured("n2", 8_000.0),
            measured("n2", 8_080.0),
        ];
        insta::assert_snapshot!("of_two_machines", table("disk=old", &results).unwrap());
        assert!(table("disk=old", &results[..1]).is_none());
    }

    #[test]
    fn narrow_terminal_shows_both_spreads_of_a_figure() {
        let measured = |machine, iops| {
            let mut result = measured(machine, iops);
            result.parts[0].name = "random-reads-of-large-files".to_owned();
            result
        };
        let results = [
            measured("n1", 10_000.0),
            measured("n1", 10_100.0),
            measured("n2", 8_000.0),
            measured("n2", 8_080.0),
        ];
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&"label=value ".repeat(5), &results).unwrap();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert!(text.contains("within  between"), "{text}");
            assert!(text.contains("0.7 %     16 %"), "{text}");
        }
        crate::text_table::set_columns(80);
    }
}
