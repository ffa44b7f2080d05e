//! Results of the history that a suite holds its figures against, found before anything is measured.

use crate::failure::Failure;
use crate::store::{Filter, Place, Store};
use iosonde_result::compare::Measured;
use iosonde_study::suite::{Baseline, Baselines, Claim, Expected, Suite};
use std::path::Path;

/// All that the suite names, and what is wrong with those that cannot be had.
pub(super) fn find(suite: &Suite, store: Option<&Path>) -> (Baselines, Vec<Failure>) {
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

/// What an expectation is held against.
fn checked(
    suite: &Suite,
    expected: &Expected,
    than: &Baseline,
    store: Option<&Path>,
) -> Result<Vec<Measured>, Failure> {
    let measured = results(than, store)?;
    let text = &expected.expectation.text;
    let has = |name: &str| {
        let mut parts = measured.iter().flat_map(|result| &result.parts);
        parts.any(|part| part.name == name)
    };
    if measured.is_empty() {
        return Err(Failure::usage(
            format!("`{text}`: no such result is in the history"),
            "measure it first: iosonde run SUITE --label KEY=VALUE, without that expectation",
        ));
    }
    let (parts, _) = expected.parts(&suite.parts);
    if !parts.iter().any(|part| has(&part.name)) {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Err(Failure::usage(
            format!("`{text}`: those results have no {}", names.join(", ")),
            "hold it against results of the same suite",
        ));
    }
    Ok(measured)
}

fn results(than: &Baseline, store: Option<&Path>) -> Result<Vec<Measured>, Failure> {
    let store = Store::open(&Place::find(store)?)?;
    let filter = match than {
        Baseline::Run(id) => return Ok(vec![store.load(id)?.measured()]),
        Baseline::Label(key, Some(value)) => Filter::label(key, value),
        Baseline::Label(..) => Filter::default(),
    };
    let mut studies = store.list(&filter)?;
    if let Baseline::Label(key, None) = than {
        studies.retain(|study| study.labels.contains_key(key));
    }
    Ok(studies.iter().map(|study| study.measured()).collect())
}
