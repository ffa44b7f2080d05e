//! Figures of commands over time, as sparklines.

use crate::series_table::sparkline_of_intervals;
use crate::text_style::{SparkScale, TextStyle};
use crate::text_table::{aligned_columns, fill_table, hide_columns, plain, render_left, set_wide};
use iosonde_suite::{CommandResult, SuiteResult};

/// A command with fewer samples has no sparkline.
const LEAST_SAMPLES: usize = 3;
/// Columns that a narrow terminal does not show, the least important first: least, most, mean.
const LEAST_IMPORTANT: [usize; 3] = [2, 4, 3];

/// Returns a table with one line per command, or an empty text.
pub(super) fn table(result: &SuiteResult, style: TextStyle) -> String {
    let rows = result.steps.iter().filter_map(|step| {
        let command = step.command.as_ref();
        let command = command.filter(|each| each.samples.len() >= LEAST_SAMPLES)?;
        Some(cells(&step.name, command, style))
    });
    let rows: Vec<[String; 5]> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["over time", "", "least", "mean", "most"];
    let mut table = fill_table(plain(), &aligned_columns(&head, 2), rows);
    hide_columns(&mut table, &LEAST_IMPORTANT);
    set_wide(&mut table);
    format!("\n{}", render_left(&mut table))
}

fn cells(name: &str, command: &CommandResult, style: TextStyle) -> [String; 5] {
    let values = command.samples.iter().map(|sample| sample.value);
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.clone().sum::<f64>() / command.samples.len() as f64;
    let weighted: Vec<(f64, u64)> = values.map(|value| (value, 1)).collect();
    [
        name.to_owned(),
        sparkline_of_intervals(&weighted, SparkScale::Amount, style),
        command.shown(least),
        command.shown(mean),
        command.shown(most),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_suite::{CommandSample, StepResult};

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
        let step = StepResult {
            command: Some(Box::new(command)),
            ..StepResult::without_figures("tpcb", "tpcb", 1)
        };
        SuiteResult::from_steps("db", "/data", vec![step])
    }

    #[test]
    fn series_of_a_command_is_a_sparkline() {
        let suite = suite_of(&[450.0, 440.0, 100.0, 460.0]);
        let text = table(&suite, TextStyle::for_locale("C.UTF-8", false));
        insta::assert_snapshot!(text, @r#"
        over time          least     mean     most
        tpcb       ▇▇▁▇  100 tps  362 tps  460 tps
        "#);
        let text = table(&suite, TextStyle::PLAIN);
        assert!(text.contains("##.#") && text.is_ascii(), "{text}");
        let short = suite_of(&[450.0, 440.0]);
        assert_eq!(table(&short, TextStyle::PLAIN), "");
    }

    #[test]
    fn wide_terminal_shows_more_samples_of_a_command() {
        let result = suite_of(&[450.0; 50]);
        crate::text_table::set_columns(120);
        let text = table(&result, TextStyle::PLAIN);
        crate::text_table::set_columns(80);
        assert!(text.contains(&"=".repeat(50)), "{text}");
        assert_eq!(text.trim().lines().count(), 2, "{text}");
    }

    #[test]
    fn narrow_terminal_shows_the_mean_of_a_command() {
        let mut result = suite_of(&[450.0; 40]);
        result.steps[0].name = "tpcb-long".to_owned();
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&result, TextStyle::PLAIN);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert_eq!(text.trim().lines().count(), 2, "{text}");
            assert!(text.contains("mean") && text.contains(" 450 tps"), "{text}");
        }
        crate::text_table::set_columns(80);
    }
}
