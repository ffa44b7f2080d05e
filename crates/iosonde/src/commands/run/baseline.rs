//! Baselines: stored results that a suite compares with, read before anything is measured.

use crate::failure::CommandError;
use iosonde_history::{Filter, HistoryPath};
use iosonde_result::compare::MeasuredResult;
use iosonde_suite::{Baseline, Baselines, Claim, Suite, SuiteExpectation};
use std::path::Path;

/// Reads all baselines that the suite names. Returns the errors of missing ones.
pub(super) fn load_baselines(
    suite: &Suite,
    store: Option<&Path>,
) -> (Baselines, Vec<CommandError>) {
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
        match checked(suite, expected, than, store) {
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
    store: Option<&Path>,
) -> Result<Vec<MeasuredResult>, CommandError> {
    let measured = results(than, store)?;
    let text = &expected.expectation.text;
    let has = |name: &str| {
        let mut parts = measured.iter().flat_map(|result| &result.parts);
        parts.any(|part| part.name == name)
    };
    if measured.is_empty() {
        return Err(CommandError::usage(
            format!("`{text}`: the history has no such result"),
            "measure the baseline first, without this expectation: iosonde run SUITE --label \
             KEY=VALUE",
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
