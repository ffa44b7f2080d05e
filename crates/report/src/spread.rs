//! Spread of results that belong together: between runs on a machine, and between machines.

use super::comparison::runs_on;
use super::figures::{UNKNOWN_LEGEND, has_known_digits, known_figure_in, label, percent};
use crate::known_digits::{LATENCY_UNITS, UnitLadder};
use crate::text_table::{
    aligned_columns, fill_table, hide_columns, plain, render, set_gap, wrapped,
};
use iosonde_result::compare::{ComparedSide, Measure, MeasuredResult, Subject, combine_figures};
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
    let rows = found.iter().map(|(part, subject, measure, side)| {
        let share = |share: Option<f64>| share.map_or("-".to_owned(), percent);
        let spread = side.spread.as_ref();
        [
            format!("{part} {}", label(subject.name(), *measure)),
            mean_text(*measure, side, LATENCY_UNITS),
            side.runs.to_string(),
            side.machines.to_string(),
            share(spread.and_then(|spread| spread.within_machine)),
            share(spread.and_then(|spread| spread.between_machines)),
        ]
    });
    let head = ["", "mean", "runs", "machines", "within", "between"];
    let mut table = fill_table(plain(), &aligned_columns(&head, 1), rows);
    set_gap(&mut table, 2);
    hide_columns(&mut table, &LEAST_IMPORTANT);
    let explained = format!(
        "{name}: {}. Standard deviation between runs of one machine, and between machines in \
         addition:",
        counts(results)
    );
    let is_known =
        |each: &(String, Subject, Measure, ComparedSide)| has_known_mean(each.2, &each.3);
    let legend = match found.iter().all(is_known) {
        true => String::new(),
        false => wrapped(UNKNOWN_LEGEND),
    };
    Some(format!(
        "{}\n{}{legend}",
        wrapped(&explained),
        render(&table)
    ))
}

/// The mean of a figure with the digits that its interval supports. `units` are those of latencies.
pub(crate) fn mean_text(measure: Measure, side: &ComparedSide, units: &UnitLadder) -> String {
    known_figure_in(measure, side.value, interval(side), units)
}

/// Whether the mean has no mark of an unknown interval.
fn has_known_mean(measure: Measure, side: &ComparedSide) -> bool {
    has_known_digits(measure, side.value, interval(side))
}

fn interval(side: &ComparedSide) -> Option<(f64, f64)> {
    side.bounds.map(|bounds| (bounds.low, bounds.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Figure, IoPattern, ResultPart};

    fn measured(machine: &str, iops: f64) -> MeasuredResult {
        let figure = Figure {
            subject: Subject::Read,
            measure: Measure::Iops,
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
                role: Default::default(),
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
    fn mean_has_known_digits_and_a_mark_without_an_interval() {
        // Means of machines that differ by a factor have an interval that reaches zero.
        let apart = [measured("n1", 10_000.0), measured("n2", 1_100.0)];
        let text = table("disk=old", &apart).unwrap();
        assert!(text.contains(" ~3.3k "), "{text}");
        assert!(text.ends_with(&format!("{UNKNOWN_LEGEND}\n")), "{text}");
        let rates = [10_000.0, 10_100.0, 10_050.0, 9_950.0, 10_020.0];
        let close = rates.map(|iops| measured("n1", iops));
        let text = table("disk=old", &close).unwrap();
        assert!(text.contains(" 10.0k "), "{text}");
        assert!(!text.contains('~'), "{text}");
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
