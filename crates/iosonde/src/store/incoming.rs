//! Results from files: our own documents, and fio's.

use super::record::KeptStudy;
use iosonde_result::fio::import::{ImportError, import};
use iosonde_result::{document, run::RunResult};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::ProbeResult;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The studies that a document holds. The error says what is wrong with it.
pub(crate) fn read_documents(text: &str) -> Result<Vec<KeptStudy>, String> {
    match serde_json::from_str::<Head>(text) {
        Ok(head) if head.kind.as_deref() == Some("probe") => probes(text),
        Ok(head) if head.kind.as_deref() == Some("sweep") => sweep(text),
        Ok(head) if head.kind.as_deref() == Some("load") => load(text),
        Ok(head) if head.kind.as_deref() == Some("pts") => pts(text),
        Ok(head) if head.plan.is_some() => own_run(text),
        Ok(Head {
            kind: Some(kind), ..
        }) => Err(format!("this program knows no document of kind {kind:?}")),
        _ => fio(text),
    }
}

/// What tells documents apart.
#[derive(Deserialize)]
struct Head {
    kind: Option<String>,
    plan: Option<serde::de::IgnoredAny>,
}

/// `iosonde probe --format json`.
fn probes(text: &str) -> Result<Vec<KeptStudy>, String> {
    #[derive(Deserialize)]
    struct Probes {
        probes: Vec<ProbeResult>,
    }
    let Probes { probes } = read(text, iosonde_study::probe::FORMAT)?;
    Ok(probes.into_iter().map(KeptStudy::of_probe).collect())
}

/// `iosonde sweep --format json`.
fn sweep(text: &str) -> Result<Vec<KeptStudy>, String> {
    #[derive(Deserialize)]
    struct Document {
        program: String,
        sweep: Value,
    }
    let Document { program, sweep } = read(text, iosonde_study::sweep::FORMAT)?;
    let result: SweepResult = serde_json::from_value(sweep.clone()).map_err(damaged)?;
    let target = match &result.job_file {
        Some(file) => file.clone(),
        None => result.targets.join(", "),
    };
    let study = KeptStudy::without_runs("sweep", &target, program, sweep);
    Ok(vec![study])
}

/// `iosonde load --format json`.
fn load(text: &str) -> Result<Vec<KeptStudy>, String> {
    #[derive(Deserialize)]
    struct Document {
        program: String,
        load: Value,
    }
    let Document { program, load } = read(text, 1)?;
    let result: LoadResult = serde_json::from_value(load.clone()).map_err(damaged)?;
    let study = KeptStudy::without_runs("load", &result.target, program, load);
    Ok(vec![study])
}

/// `iosonde pts --format json`.
fn pts(text: &str) -> Result<Vec<KeptStudy>, String> {
    #[derive(Deserialize)]
    struct Document {
        program: String,
        pts: Value,
    }
    let Document { program, pts } = read(text, iosonde_study::pts::FORMAT)?;
    let result: PtsResult = serde_json::from_value(pts.clone()).map_err(damaged)?;
    let study = KeptStudy::without_runs("pts", &result.target, program, pts);
    Ok(vec![study])
}

/// A document of a format that this program reads, `newest` at most.
fn read<Document: DeserializeOwned>(text: &str, newest: u32) -> Result<Document, String> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let Versioned { format } = serde_json::from_str(text).map_err(damaged)?;
    if format > newest {
        return Err(format!(
            "the result has format {format}, which is newer than {newest}, the newest that this program reads"
        ));
    }
    serde_json::from_str(text).map_err(damaged)
}

fn damaged(error: serde_json::Error) -> String {
    format!("the result is damaged: {error}")
}

fn own_run(text: &str) -> Result<Vec<KeptStudy>, String> {
    let result: RunResult = document::read(text).map_err(|error| error.to_string())?;
    Ok(vec![KeptStudy::of_run(result)])
}

fn fio(text: &str) -> Result<Vec<KeptStudy>, String> {
    match import(text) {
        Ok(found) if found.parts.iter().all(|part| part.figures.is_empty()) => {
            let errors = match found.errors.is_empty() {
                true => String::new(),
                false => format!(": {}", found.errors.join("; ")),
            };
            Err(format!("its jobs moved nothing{errors}"))
        }
        Ok(found) => Ok(vec![KeptStudy::of_fio(found)]),
        Err(ImportError::NotFio) => {
            Err("it is neither a result of iosonde nor fio's JSON".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
