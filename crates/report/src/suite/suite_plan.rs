//! Built-in suites, and the plan of a suite.

use crate::text_table::{
    fit_lines, hide_columns, is_narrow, plain, render, right, set_gap, wrapped, wrapped_table,
};
use comfy_table::Cell;
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_study::sweep::quiet_wait_max;
use iosonde_study::{TimeRange, words};
use iosonde_suite::{BUILTIN, StepKind, Suite, SuiteTarget};
use std::time::Duration;

/// Columns of a plan that a narrow terminal does not show, the least important first: number of
/// repetitions, number of runs.
const LEAST_IMPORTANT: [usize; 2] = [2, 1];

/// Lists the built-in suites.
pub fn builtin_suite_list() -> String {
    let mut table = wrapped_table();
    for suite in BUILTIN {
        table.add_row([suite.name.to_owned(), suite.about().unwrap_or_default()]);
    }
    set_gap(&mut table, 2);
    render(&table)
}

/// Describes the planned runs and their time.
pub fn planned_runs_text(suite: &Suite, targets: &[SuiteTarget]) -> String {
    let mut text = String::new();
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    text.push_str(&wrapped(&format!("{} on {}", suite.name, names.join(", "))));
    let mut table = plain();
    let mut total = Some(TimeRange::default());
    // A workload with many combinations has one line.
    let mut workloads: Vec<(&str, usize, u32, Option<TimeRange>)> = Vec::new();
    for step in &suite.steps {
        let time = step.planned_time();
        let times = u64::from(step.repetitions) * targets.len() as u64;
        total = total
            .zip(time)
            .map(|(total, time)| total + time.times(times));
        match workloads.last_mut() {
            Some((name, count, _, all)) if *name == step.workload => {
                *count += 1;
                *all = all.zip(time).map(|(all, time)| all + time);
            }
            _ => workloads.push((&step.workload, 1, step.repetitions, time)),
        }
    }
    for (name, count, repetitions, time) in workloads {
        let runs = words::counted(count, "run");
        let times = if repetitions == 1 {
            String::new()
        } else {
            format!("{repetitions} times")
        };
        table.add_row([
            Cell::new(format!("  {name}")),
            right(runs),
            right(times),
            right(time.map_or(unknown_end(suite, name), |time| {
                let times = u64::from(repetitions) * targets.len() as u64;
                time.times(times).words()
            })),
        ]);
    }
    if is_narrow() {
        set_gap(&mut table, 1);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT);
    text.push_str(&render(&table));
    let total = match total {
        Some(total) => format!(
            "{} in all, plus layout{}",
            total.words(),
            waiting(suite, targets)
        ),
        None if has_command(suite) => "duration depends on the commands".to_owned(),
        None => "duration depends on the data".to_owned(),
    };
    let expectations = match suite.expectations.len() {
        0 => "no expectations".to_owned(),
        count => words::counted(count, "expectation"),
    };
    text.push_str(&fit_lines(&format!("{total}; {expectations}\n")));
    text
}

/// Describes the end of a workload whose time is not known.
fn unknown_end(suite: &Suite, workload: &str) -> String {
    let mut steps = suite.steps.iter().filter(|step| step.workload == workload);
    match steps.any(|step| matches!(step.what, StepKind::Command(_))) {
        true => "until the command ends".to_owned(),
        false => "until all data is written".to_owned(),
    }
}

fn has_command(suite: &Suite) -> bool {
    let mut steps = suite.steps.iter();
    steps.any(|step| matches!(step.what, StepKind::Command(_)))
}

/// Describes the maximum time that sweeps wait for idle devices. Empty if no sweep waits.
fn waiting(suite: &Suite, targets: &[SuiteTarget]) -> String {
    let is_real = |target: &&SuiteTarget| !is_simulated_name(&target.name);
    let real = targets.iter().filter(is_real).count() as u32;
    let waits = suite.steps.iter().filter_map(|step| match &step.what {
        StepKind::Sweep(sweep) => {
            Some(quiet_wait_max(sweep.planned.most_ns) * step.repetitions * real)
        }
        _ => None,
    });
    let most: Duration = waits.sum();
    match most.is_zero() {
        true => String::new(),
        false => format!(
            " and at most {} of waiting for an idle device",
            words::duration(most.as_secs_f64())
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_limits::Limits;
    use iosonde_suite::{MOST_RUNS, suite};
    use std::collections::BTreeMap;

    const SUITE: &str = r#"
name = "a suite with a long name"
[[workload]]
name = "database-log-of-small-writes"
options = { rw = "write", bs = "4k", size = "1m" }
[[workload]]
name = "disk"
repetitions = 12
options = { rw = "randread", ioengine = "libaio", size = "1m", runtime = 60, time_based = 1 }
axes = { iodepth = "1,8,32" }
"#;

    #[test]
    fn narrow_terminal_shows_the_time_of_each_workload() {
        let (variables, limits) = (BTreeMap::new(), Limits::published());
        let read = suite(
            "s.toml",
            SUITE,
            &variables,
            limits,
            MOST_RUNS,
            &FakeEnv::new(),
        );
        let planned = read.map_err(|all| all.render(false)).unwrap();
        let targets = ["/dev/disk/by-id/nvme-of-a-vendor-1", "sim:hdd"].map(|name| SuiteTarget {
            name: name.to_owned(),
            labels: BTreeMap::new(),
        });
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = planned_runs_text(&planned, &targets);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("no expectations"), "{text}");
            let row = text.lines().find(|line| line.starts_with("  disk "));
            assert!(row.unwrap().contains("about "), "{text}");
        }
        crate::text_table::set_columns(80);
    }

    #[test]
    fn narrow_terminal_wraps_purposes_of_suites() {
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = builtin_suite_list();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            for suite in BUILTIN {
                let is_shown = text.lines().any(|line| line.starts_with(suite.name));
                assert!(is_shown, "{}: {text}", suite.name);
            }
        }
        crate::text_table::set_columns(80);
    }
}
