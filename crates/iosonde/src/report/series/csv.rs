//! Series as CSV: one line for each interval.

use super::columns::columns;
use super::rows;
use crate::report::csv::text_cell;
use iosonde_result::run::RunResult;

/// The runs, each with its name, one after another; what is not known is left empty.
pub(crate) fn csv(runs: &[(&str, &RunResult)]) -> String {
    let results: Vec<&RunResult> = runs.iter().map(|(_, result)| *result).collect();
    let columns = columns(&results);
    let names = columns.iter().map(|column| text_cell(&column.name));
    let first = ["run", "start_s", "length_s", "ramp"].map(str::to_owned);
    let head: Vec<String> = first.into_iter().chain(names).collect();
    let mut text = head.join(",") + "\n";
    for (name, result) in runs {
        for (interval, slice) in rows(result) {
            let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
            let mut fields = vec![
                text_cell(name),
                seconds(interval.start_ns),
                seconds(interval.length_ns),
                u8::from(interval.ramp).to_string(),
            ];
            fields.extend(columns.iter().map(|column| {
                let value = (column.value)(&interval, slice.as_deref());
                value.map_or(String::new(), short)
            }));
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// Three decimals at most.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
