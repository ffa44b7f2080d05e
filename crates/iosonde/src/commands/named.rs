//! What a word of `compare` and `report` stands for: a file, a label, or a stored result.

use super::import::studies;
use crate::failure::Failure;
use crate::store::{
    Filter, KeptStudy, Loaded, Place, Store, StoreError, Summary, is_from_the_end, meant,
    split_label,
};
use std::path::Path;

/// What was found.
pub(super) enum Named {
    /// All results in a file.
    File(Vec<KeptStudy>),
    /// All results with a label: at least one, without their documents.
    Label(Store, Vec<Summary>),
    /// One of the history.
    Stored(Box<Loaded>),
}

impl Named {
    /// A file that exists, a label, or the name of a stored result.
    pub(super) fn of(word: &str, store: Option<&Path>) -> Result<Named, Failure> {
        if word == "-" || Path::new(word).is_file() {
            return file(word);
        }
        let opened = Place::find(store).and_then(|place| Store::open(&place));
        if let Ok((key, value)) = split_label(word) {
            let store = opened?;
            let found = store.list(&Filter::label(&key, &value))?;
            return match found.is_empty() {
                true => Err(store.no_such_label(word).into()),
                false => Ok(Named::Label(store, found)),
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
            Ok(loaded) => Ok(Named::Stored(Box::new(loaded))),
            Err(StoreError::Unknown { near, .. }) => Err(Failure::usage(
                format!("{word:?} is neither a file, nor a label, nor the id of a result"),
                match near.is_empty() {
                    true => "name a file, key=value, `latest`, or an id that `iosonde list` shows"
                        .into(),
                    false => meant(&near),
                },
            )),
            Err(error) => Err(error.into()),
        }
    }
}

fn file(word: &str) -> Result<Named, Failure> {
    let wrong = |problem: String| {
        Failure::usage(
            format!("{word}: {problem}"),
            "iosonde writes results with --format json, fio with --output-format=json or json+",
        )
    };
    studies(Path::new(word)).map(Named::File).map_err(wrong)
}

/// Says on standard error which result is taken where none is named.
pub(super) fn tell_latest(loaded: &Loaded) {
    let Summary {
        short_id,
        kind,
        target,
        ..
    } = &loaded.summary;
    eprintln!("none is named: the latest, {short_id}, {kind} of {target}");
}
