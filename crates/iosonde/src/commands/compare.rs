//! `iosonde compare`: is B faster than A?

use super::import::studies;
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::comparison::{Document, runs_on};
use crate::report::figures::{label, percent};
use crate::report::history::time;
use crate::store::{Filter, KeptStudy, Loaded, Place, Store, StoreError, split_label};
use iosonde_result::compare::{Comparison, Measured, compare};
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::path::Path;

/// Prints the comparison; fails if it is asked to and B is slower.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref());
    let a = Chosen::of(&args.a, &place)?;
    let b = Chosen::of(&args.b, &place)?;
    let comparison = compare(&a.results, &b.results);
    let document = Document::of(&a.name, &b.name, &comparison);
    Output::Standard.write(document.text(args.format).as_bytes())?;
    if comparison.rows.is_empty() {
        return Err(Failure::usage(
            "the two have no figure in common",
            "compare results of the same kind of job",
        ));
    }
    args.fail_if_slower
        .map_or(Ok(()), |share| judge(&comparison, share))
}

/// One side: what it is called, and its results.
struct Chosen {
    name: String,
    results: Vec<Measured>,
}

impl Chosen {
    /// A file that exists, a label, or an id.
    fn of(word: &str, place: &Result<Place, StoreError>) -> Result<Chosen, Failure> {
        if word == "-" || Path::new(word).is_file() {
            return Chosen::file(word);
        }
        let store = match place {
            Ok(place) => Store::open(place),
            Err(_) => Err(StoreError::NoPlace),
        };
        if let Ok((key, value)) = split_label(word) {
            return Chosen::labelled(&store?, word, &key, &value);
        }
        let loaded = match store {
            Err(StoreError::Empty(_)) => Err(StoreError::Unknown(word.to_owned())),
            other => other.and_then(|store| store.load(word)),
        };
        match loaded {
            Ok(loaded) => Ok(Chosen::stored(&loaded)),
            Err(StoreError::Unknown(_)) => Err(Failure::usage(
                format!("{word:?} is neither a file, nor a label, nor the id of a result"),
                "name a file, key=value, or an id that `iosonde list` shows",
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn file(word: &str) -> Result<Chosen, Failure> {
        let wrong = |problem: String| {
            Failure::usage(
                format!("{word}: {problem}"),
                "iosonde writes results with --format json, fio with --output-format=json or json+",
            )
        };
        let mut found = studies(Path::new(word)).map_err(wrong)?;
        let (Some(study), true) = (found.pop(), found.is_empty()) else {
            return Err(Failure::usage(
                format!("{word}: there are results of several targets in it"),
                "import it, and compare two of the results that `iosonde list` shows then",
            ));
        };
        Ok(Chosen {
            name: format!("{word}: {}", described(&study)),
            results: vec![study.measured(word)],
        })
    }

    fn stored(loaded: &Loaded) -> Chosen {
        Chosen {
            name: format!("{}: {}", loaded.name(), described(&loaded.study)),
            results: vec![loaded.measured()],
        }
    }

    fn labelled(store: &Store, word: &str, key: &str, value: &str) -> Result<Chosen, Failure> {
        let studies = store.list(&Filter::label(key, value))?;
        if studies.is_empty() {
            return Err(StoreError::UnknownLabel(word.to_owned()).into());
        }
        let machines: BTreeSet<_> = studies.iter().map(|study| &study.machine).collect();
        Ok(Chosen {
            name: format!("{word}: {}", runs_on(studies.len(), machines.len())),
            results: studies.iter().map(|study| study.measured()).collect(),
        })
    }
}

/// `probe of /data on n1, 2026-11-21 03:01`.
fn described(study: &KeptStudy) -> String {
    let machine = study
        .machine
        .as_ref()
        .map_or(String::new(), |name| format!(" on {name}"));
    let started = time(study.started_at_ms, &TimeZone::system());
    format!("{} of {}{machine}, {started}", study.kind, study.target)
}

/// The exit status for CI.
fn judge(comparison: &Comparison, share: f64) -> Result<(), Failure> {
    let slower = comparison.slower_by(share);
    if slower.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = slower
        .iter()
        .map(|row| {
            let name = label(row.subject.name(), row.measure);
            format!("{} {name} by {}", row.part, percent(row.slower_by()))
        })
        .collect();
    Err(Failure::Slower(format!(
        "B is slower by {} or more: {}",
        percent(share),
        named.join(", ")
    )))
}

#[cfg(test)]
mod tests;
