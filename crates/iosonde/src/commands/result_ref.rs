//! Arguments of `compare` and `report` that name a file, a label, or a stored result.

use super::import::studies;
use crate::failure::CommandError;
use iosonde_history::{
    Filter, HistoryPath, Loaded, Store, StoreError, StudyRecord, StudySummary, is_from_the_end,
    meant, split_label,
};
use std::path::Path;

/// The results that an argument names.
pub(super) enum ResultRef {
    /// All results in a file.
    File(Vec<StudyRecord>),
    /// All results with a label or fact: at least one, without their documents.
    Label(Store, Vec<StudySummary>),
    /// A stored result.
    Stored(Box<Loaded>),
}

impl ResultRef {
    /// Resolves a file that exists, a label, or the name of a stored result.
    pub(super) fn resolve(word: &str, store: Option<&Path>) -> Result<ResultRef, CommandError> {
        if word == "-" || Path::new(word).is_file() {
            return read_result_file(word);
        }
        let opened =
            HistoryPath::find(store).and_then(|place| crate::commands::open_history(&place));
        if let Ok((key, value)) = split_label(word) {
            let store = opened?;
            let found = store.list(&Filter::label(&key, &value))?;
            return match found.is_empty() {
                true => Err(store.no_such_label(word).into()),
                false => Ok(ResultRef::Label(store, found)),
            };
        }
        let loaded = match opened {
            Err(StoreError::Empty(_) | StoreError::NoPlace) if !is_from_the_end(word) => {
                Err(StoreError::Unknown {
                    name: word.to_owned(),
                    near: Vec::new(),
                })
            }
            other => other.and_then(|store| store.load(word)),
        };
        match loaded {
            Ok(loaded) => Ok(ResultRef::Stored(Box::new(loaded))),
            Err(StoreError::Unknown { near, .. }) => Err(CommandError::usage(
                format!("{word:?} is not a file, a label or the ID of a result"),
                match near.is_empty() {
                    true => "name a file, KEY=VALUE, `latest`, or an ID of `iosonde list`".into(),
                    false => meant(&near),
                },
            )),
            Err(error) => Err(error.into()),
        }
    }
}

fn read_result_file(word: &str) -> Result<ResultRef, CommandError> {
    let wrong = |problem: String| {
        CommandError::usage(
            format!("{word}: {problem}"),
            "iosonde writes results with --format json, fio with --output-format=json or json+",
        )
    };
    studies(Path::new(word)).map(ResultRef::File).map_err(wrong)
}

/// Names the result that is used by default, on standard error.
pub(super) fn print_latest(loaded: &Loaded) {
    let StudySummary {
        short_id,
        kind,
        target,
        ..
    } = &loaded.summary;
    eprintln!("no result is named: using the latest, {short_id}, {kind} of {target}");
}
