//! Baselines: stored results that a suite compares with, read before anything is measured.

use crate::args::RunArgs;
use crate::commands::show_command::store_options;
use crate::failure::CommandError;
use iosonde_history::{Filter, HistoryPath};
use iosonde_job::quote_shell_word;
use iosonde_result::compare::MeasuredResult;
use iosonde_suite::{Baseline, Baselines, Claim, Suite, SuiteExpectation};
use std::path::Path;

/// Reads all baselines that the suite names. Returns the errors of missing ones.
pub(super) fn load_baselines(suite: &Suite, args: &RunArgs) -> (Baselines, Vec<CommandError>) {
    let (mut found, mut failures) = (Baselines::new(), Vec::new());
    let mut met = Vec::new();
    for expected in &suite.expectations {
        let Claim::NotSlower { than, .. } = &expected.expectation.claim else {
            continue;
        };
        if met.contains(&than) {
            continue;
        }
        met.push(than);
        match checked(suite, expected, than, args) {
            Ok(measured) => drop(found.insert(than.clone(), measured)),
            Err(failure) => failures.push(failure),
        }
    }
    (found, failures)
}

/// Reads the baseline of an expectation and checks that it has its parts.
fn checked(
    suite: &Suite,
    expected: &SuiteExpectation,
    than: &Baseline,
    args: &RunArgs,
) -> Result<Vec<MeasuredResult>, CommandError> {
    let measured = results(than, args.keep.store.as_deref())?;
    let text = &expected.expectation.text;
    let has = |name: &str| {
        let mut parts = measured.iter().flat_map(|result| &result.parts);
        parts.any(|part| part.name == name)
    };
    if measured.is_empty() {
        return Err(CommandError::usage(
            format!("`{text}`: the history has no such result"),
            format!(
                "measure the baseline first, without this expectation: `{}`",
                baseline_command(than, args)
            ),
        ));
    }
    let (parts, _) = expected.parts(&suite.parts);
    if !parts.iter().any(|part| has(&part.name)) {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Err(CommandError::usage(
            format!(
                "`{text}`: the results of the baseline have no {}",
                names.join(", ")
            ),
            "compare with results of the same suite",
        ));
    }
    Ok(measured)
}

/// The command that measures a baseline: `iosonde run suite.toml --label build=main`.
fn baseline_command(than: &Baseline, args: &RunArgs) -> String {
    let words = args.suite.iter().chain(&args.targets);
    let words = words.map(|word| format!(" {}", quote_shell_word(word)));
    let words: String = words.collect();
    let variables = args.variables.iter().map(|(name, value)| {
        let pair = quote_shell_word(&format!("{name}={value}"));
        format!(" --var {pair}")
    });
    let variables: String = variables.collect();
    let label = match than {
        Baseline::Label(key, value) => {
            let value = value.as_deref().unwrap_or("baseline");
            let label = quote_shell_word(&format!("{key}={value}"));
            format!(" --label {label}")
        }
        Baseline::Run(_) => String::new(),
    };
    let options = store_options(&args.keep);
    format!("iosonde run{words}{variables}{label}{options}")
}

fn results(than: &Baseline, store: Option<&Path>) -> Result<Vec<MeasuredResult>, CommandError> {
    let store = crate::commands::open_history(&HistoryPath::find(store)?)?;
    let filter = match than {
        Baseline::Run(id) => return Ok(vec![store.load(id)?.measured()]),
        Baseline::Label(key, Some(value)) => Filter::label(key, value),
        Baseline::Label(..) => Filter::default(),
    };
    let mut studies = store.list(&filter)?;
    if let Baseline::Label(key, None) = than {
        studies.retain(|study| study.value_of(key).is_some());
    }
    Ok(studies.iter().map(|study| study.measured()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    #[test]
    fn command_of_a_baseline_has_suite_targets_variables_and_label() {
        let words = [
            "iosonde",
            "run",
            "my suite.toml",
            "/data",
            "--var=size=1g",
            "--store",
            "s.db",
        ];
        let CliCommand::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not run");
        };
        let command = |key: &str, value: Option<&str>| {
            let than = Baseline::Label(key.to_owned(), value.map(str::to_owned));
            baseline_command(&than, &args)
        };
        assert_eq!(
            command("build", Some("main")),
            "iosonde run 'my suite.toml' /data --var size=1g --label build=main --store s.db"
        );
        let any = command("release", None);
        assert!(any.contains(" --label release=baseline "), "{any}");
    }
}
