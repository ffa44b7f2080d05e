//! What the words of `iosonde report` put into it.

use crate::commands::named::{Named, tell_latest};
use crate::failure::Failure;
use crate::report::html::Builder;
use crate::store::{Document, KeptStudy, LATEST};
use iosonde_result::compare::Measured;
use iosonde_result::fio::import::import;
use std::path::Path;

/// Takes everything that the words stand for into the report: the latest result, if there are none.
pub(in crate::commands) fn take_all(
    report: &mut Builder,
    words: &[String],
    store: Option<&Path>,
) -> Result<(), Failure> {
    if words.is_empty() {
        let named = Named::of(LATEST, store)?;
        if let Named::Stored(loaded) = &named {
            tell_latest(loaded);
        }
        return take(report, LATEST, named);
    }
    for word in words {
        take(report, word, Named::of(word, store)?)?;
    }
    Ok(())
}

fn take(report: &mut Builder, word: &str, named: Named) -> Result<(), Failure> {
    match named {
        Named::File(found) => {
            let stem = Path::new(word).file_stem().unwrap_or(word.as_ref());
            let source = match word {
                "-" => "standard input".into(),
                _ => stem.to_string_lossy(),
            };
            for study in found {
                kept(report, &source, study, None);
            }
        }
        Named::Label(store, found) => {
            let measured: Vec<Measured> = found.iter().map(|summary| summary.measured()).collect();
            report.spread(word, &measured);
            for summary in found {
                let loaded = store.load(&summary.id)?;
                kept(report, &loaded.name(), loaded.study, None);
            }
        }
        Named::Stored(loaded) => kept(report, &loaded.name(), loaded.study, loaded.run),
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
    let pts = study.pts(run);
    if let Some(result) = &pts {
        report.pts(source, result);
    }
    if let Some(result) = study.suite(run) {
        report.suite(source, &result);
    }
    let is_grid = sweep.is_some() || load.is_some() || pts.is_some();
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
