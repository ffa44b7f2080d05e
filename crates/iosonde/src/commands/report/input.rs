//! What a word of `iosonde report` stands for: a file, a label, or a stored result.

use crate::commands::import::studies;
use crate::failure::Failure;
use crate::report::html::Builder;
use crate::store::{Document, Filter, KeptStudy, Place, Store, StoreError, split_label};
use iosonde_result::compare::Measured;
use iosonde_result::fio::import::import;
use std::path::Path;

/// Takes everything that the word stands for into the report.
pub(super) fn take(report: &mut Builder, word: &str, store: Option<&Path>) -> Result<(), Failure> {
    if word == "-" || Path::new(word).is_file() {
        return file(report, word);
    }
    let opened = Place::find(store).and_then(|place| Store::open(&place));
    if let Ok((key, value)) = split_label(word) {
        return labelled(report, &opened?, word, &Filter::label(&key, &value));
    }
    let loaded = match opened {
        Err(StoreError::Empty(_) | StoreError::NoPlace) => {
            Err(StoreError::Unknown(word.to_owned()))
        }
        other => other.and_then(|store| store.load(word)),
    };
    match loaded {
        Ok(loaded) => {
            kept(report, &loaded.name(), loaded.study, loaded.run);
            Ok(())
        }
        Err(StoreError::Unknown(_)) => Err(Failure::usage(
            format!("{word:?} is neither a file, nor a label, nor the id of a result"),
            "name a file, key=value, or an id that `iosonde list` shows",
        )),
        Err(error) => Err(error.into()),
    }
}

fn file(report: &mut Builder, word: &str) -> Result<(), Failure> {
    let found = studies(Path::new(word)).map_err(|problem| {
        Failure::usage(
            format!("{word}: {problem}"),
            "iosonde writes results with --format json, fio with --output-format=json or json+",
        )
    })?;
    let stem = Path::new(word).file_stem().unwrap_or(word.as_ref());
    let source = match word {
        "-" => "standard input".into(),
        _ => stem.to_string_lossy(),
    };
    for study in found {
        kept(report, &source, study, None);
    }
    Ok(())
}

fn labelled(
    report: &mut Builder,
    store: &Store,
    word: &str,
    filter: &Filter,
) -> Result<(), Failure> {
    let found = store.list(filter)?;
    if found.is_empty() {
        return Err(StoreError::UnknownLabel(word.to_owned()).into());
    }
    let measured: Vec<Measured> = found.iter().map(|summary| summary.measured()).collect();
    report.spread(word, &measured);
    for summary in found {
        let loaded = store.load(&summary.id)?;
        kept(report, &loaded.name(), loaded.study, None);
    }
    Ok(())
}

/// Takes in a study, or one run of it. A probe that was cut off has no findings, but its runs are there.
fn kept(report: &mut Builder, source: &str, study: KeptStudy, run: Option<u32>) {
    if let Some(probe) = study.probe(run) {
        return report.probe(source, probe);
    }
    let sweep = study.sweep(run);
    let load = study.load(run);
    if let Some(result) = &sweep {
        report.sweep(source, result);
    }
    if let Some(result) = &load {
        report.load(source, result);
    }
    let is_grid = sweep.is_some() || load.is_some();
    for run in study.runs {
        match run.document {
            Document::Run(result) if is_grid => report.of_grid(source, *result),
            Document::Run(result) => report.run(source, *result),
            // What is kept of fio's was read from it once, so it can be read again.
            Document::Fio(json) => {
                if let Ok(found) = import(&json.to_string()) {
                    report.fio(source, found);
                }
            }
        }
    }
}
