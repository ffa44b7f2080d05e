//! Results from files: our own documents, and fio's.

use super::record::KeptStudy;
use iosonde_result::fio::import::{ImportError, import};
use iosonde_result::{document, run::RunResult};
use iosonde_study::probe::ProbeResult;
use serde::Deserialize;

/// The studies that a document holds. The error says what is wrong with it.
pub(crate) fn read_documents(text: &str) -> Result<Vec<KeptStudy>, String> {
    match serde_json::from_str::<Head>(text) {
        Ok(head) if head.kind.as_deref() == Some("probe") => probes(text),
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
    struct Versioned {
        format: u32,
    }
    #[derive(Deserialize)]
    struct Probes {
        probes: Vec<ProbeResult>,
    }
    let damaged = |error: serde_json::Error| format!("the result is damaged: {error}");
    let Versioned { format } = serde_json::from_str(text).map_err(damaged)?;
    if format > iosonde_study::probe::FORMAT {
        return Err(format!(
            "the result has format {format}, which is newer than {}, the newest that this program reads",
            iosonde_study::probe::FORMAT
        ));
    }
    let Probes { probes } = serde_json::from_str(text).map_err(damaged)?;
    Ok(probes.into_iter().map(KeptStudy::of_probe).collect())
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
