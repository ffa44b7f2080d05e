//! Time series as CSV: one line per interval.

use super::columns::columns;
use super::interval_rows;
use crate::csv::csv_line;
use iosonde_result::run::RunResult;

/// Returns the intervals of all runs, each with the run's name. Unknown values are empty.
pub fn intervals_csv(runs: &[(&str, &RunResult)]) -> String {
    let results: Vec<&RunResult> = runs.iter().map(|(_, result)| *result).collect();
    let columns = columns(&results);
    let names = columns.iter().map(|column| column.name.as_str());
    let first = ["run", "start_s", "length_s", "ramp"];
    let mut text = csv_line(first.into_iter().chain(names));
    for (name, result) in runs {
        for (interval, slice) in interval_rows(result) {
            let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
            let mut fields = vec![
                (*name).to_owned(),
                seconds(interval.start_ns),
                seconds(interval.length_ns),
                u8::from(interval.ramp).to_string(),
            ];
            fields.extend(columns.iter().map(|column| {
                let value = (column.value)(&interval, slice.as_deref());
                value.map_or(String::new(), short)
            }));
            text.push_str(&csv_line(fields));
        }
    }
    text
}

/// Formats at most three decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
