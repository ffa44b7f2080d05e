//! Reads the arguments of `iosonde report`.

use crate::commands::result_ref::{ResultRef, print_latest};
use crate::failure::CommandError;
use iosonde_history::{LATEST, RunDocument, StudyRecord};
use iosonde_report::html::HtmlReportBuilder;
use iosonde_result::compare::MeasuredResult;
use iosonde_result::fio::import::import;
use std::path::Path;

/// Adds all results that the arguments name. Without arguments, adds the latest result.
pub(in crate::commands) fn take_all(
    report: &mut HtmlReportBuilder,
    words: &[String],
    store: Option<&Path>,
) -> Result<(), CommandError> {
    if words.is_empty() {
        let named = ResultRef::resolve(LATEST, store)?;
        if let ResultRef::Stored(loaded) = &named {
            print_latest(loaded);
        }
        return add_result(report, LATEST, named);
    }
    for word in words {
        add_result(report, word, ResultRef::resolve(word, store)?)?;
    }
    Ok(())
}

fn add_result(
    report: &mut HtmlReportBuilder,
    word: &str,
    named: ResultRef,
) -> Result<(), CommandError> {
    match named {
        ResultRef::File(found) => {
            let stem = Path::new(word).file_stem().unwrap_or(word.as_ref());
            let source = match word {
                "-" => "standard input".into(),
                _ => stem.to_string_lossy(),
            };
            for study in found {
                add_study(report, &source, study, None);
            }
        }
        ResultRef::Label(store, found) => {
            let measured: Vec<MeasuredResult> =
                found.iter().map(|summary| summary.measured()).collect();
            report.spread(word, &measured);
            for summary in found {
                let loaded = store.load(&summary.id)?;
                add_study(report, &loaded.name(), loaded.study, None);
            }
        }
        ResultRef::Stored(loaded) => add_study(report, &loaded.name(), loaded.study, loaded.run),
    }
    Ok(())
}

/// Adds a study, or one run of it. An interrupted probe has no findings, only its runs.
fn add_study(report: &mut HtmlReportBuilder, source: &str, study: StudyRecord, run: Option<u32>) {
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
    if let Some(result) = study.lifecycle(run) {
        report.lifecycle(source, &result);
    }
    if let Some(result) = study.csi(run) {
        report.csi(source, &result);
    }
    let suite = study.suite(run);
    if let Some(result) = &suite {
        report.suite(source, result);
    }
    let is_grid = sweep.is_some() || load.is_some() || pts.is_some();
    for run in study.runs {
        match run.document {
            RunDocument::Run(result) if is_grid => report.of_grid(source, *result),
            RunDocument::Run(result) => match &suite {
                Some(suite) => report.run_of_suite(source, suite, *result),
                None if study.kind == "probe" => {
                    report.run_of_probe(source, &study.target, *result);
                }
                None => report.run(source, *result),
            },
            // Stored documents of fio were parsed before, so this does not fail.
            RunDocument::Fio(json) => {
                if let Ok(found) = import(&json.to_string()) {
                    report.fio(source, found);
                }
            }
        }
    }
}
