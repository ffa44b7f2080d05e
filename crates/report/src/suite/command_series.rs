//! Figures of commands over time, as sparklines.

use crate::series::sparkline;
use crate::text_table::{plain, render_left, right};
use comfy_table::Cell;
use iosonde_suite::{CommandResult, SuiteResult};

/// A command with fewer samples has no sparkline.
const LEAST_SAMPLES: usize = 3;

/// Returns a table with one line per command, or an empty text.
pub(super) fn table(result: &SuiteResult) -> String {
    let mut table = plain();
    table.set_header([
        Cell::new("over time"),
        Cell::new(""),
        right("least"),
        right("mean"),
        right("most"),
    ]);
    let mut has_rows = false;
    for step in &result.steps {
        let command = step.command.as_ref();
        if let Some(command) = command.filter(|each| each.samples.len() >= LEAST_SAMPLES) {
            table.add_row(cells(&step.name, command));
            has_rows = true;
        }
    }
    match has_rows {
        true => format!("\n{}", render_left(&mut table)),
        false => String::new(),
    }
}

fn cells(name: &str, command: &CommandResult) -> [Cell; 5] {
    let values = command.samples.iter().map(|sample| sample.value);
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.clone().sum::<f64>() / command.samples.len() as f64;
    let weighted: Vec<(f64, u64)> = values.map(|value| (value, 1)).collect();
    [
        Cell::new(name),
        Cell::new(sparkline(&weighted, most)),
        right(command.shown(least)),
        right(command.shown(mean)),
        right(command.shown(most)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_suite::{CommandSample, FORMAT, StepResult};

    fn suite_of(rates: &[f64]) -> SuiteResult {
        let samples = (0u64..).zip(rates).map(|(second, value)| CommandSample {
            at_ns: second * 1_000_000_000,
            value: *value,
        });
        let command = CommandResult {
            command: "pgbench -P 1 bench".to_owned(),
            unit: "tps".to_owned(),
            value: 450.0,
            samples: samples.collect(),
            ..CommandResult::default()
        };
        SuiteResult {
            format: FORMAT,
            suite: "db".to_owned(),
            about: None,
            target: "/data".to_owned(),
            labels: Default::default(),
            steps: vec![StepResult {
                workload: "tpcb".to_owned(),
                name: "tpcb".to_owned(),
                repetition: 1,
                parts: Vec::new(),
                elapsed_ns: 0,
                found: Vec::new(),
                findings: Vec::new(),
                failure: None,
                interrupted: false,
                sweep: None,
                load: None,
                command: Some(Box::new(command)),
                in_memory: None,
                beside: None,
                pods: Vec::new(),
            }],
            judged: Vec::new(),
            beside: Vec::new(),
            interrupted: false,
        }
    }

    #[test]
    fn series_of_a_command_is_a_sparkline() {
        let text = table(&suite_of(&[450.0, 440.0, 100.0, 460.0]));
        insta::assert_snapshot!(text, @r#"
        over time          least     mean     most
        tpcb       ██▃█  100 tps  362 tps  460 tps
        "#);
        assert_eq!(table(&suite_of(&[450.0, 440.0])), "");
    }
}
