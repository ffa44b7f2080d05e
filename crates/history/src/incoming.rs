//! Results from files: documents of iosonde, and fio's JSON.

use super::record::StudyRecord;
use iosonde_job::read_json;
use iosonde_result::fio::import::{ImportError, import};
use iosonde_result::{document, run::RunResult};
use iosonde_study::csi::CsiResult;
use iosonde_study::lifecycle::LifecycleResult;
use iosonde_study::load::LoadResult;
use iosonde_study::probe::ProbeResult;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use iosonde_suite::SuiteResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the studies of a document, or an error that names the fault of the document.
pub fn read_documents(text: &str) -> Result<Vec<StudyRecord>, String> {
    match read_json::<DocumentHead>(text) {
        Ok(head) if head.kind.as_deref() == Some("probe") => probes(text),
        Ok(head) if head.kind.as_deref() == Some("sweep") => sweep(text),
        Ok(head) if head.kind.as_deref() == Some("load") => studies_of_load(text),
        Ok(head) if head.kind.as_deref() == Some("pts") => studies_of_pts(text),
        Ok(head) if head.kind.as_deref() == Some("suite") => suites(text),
        Ok(head) if head.kind.as_deref() == Some("lifecycle") => lifecycle(text),
        Ok(head) if head.kind.as_deref() == Some("csi") => studies_of_csi(text),
        Ok(head) if head.plan.is_some() => own_run(text),
        Ok(DocumentHead {
            kind: Some(kind), ..
        }) => Err(format!("unknown kind of document: {kind:?}")),
        _ => studies_of_fio(text),
    }
}

/// The fields that distinguish the kinds of documents.
#[derive(Deserialize)]
struct DocumentHead {
    kind: Option<String>,
    plan: Option<serde::de::IgnoredAny>,
}

/// `iosonde probe --format json`.
fn probes(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct ProbesFile {
        probes: Vec<ProbeResult>,
    }
    let ProbesFile { probes } = read_document(text, iosonde_study::probe::FORMAT)?;
    Ok(probes.into_iter().map(StudyRecord::from_probe).collect())
}

/// `iosonde sweep --format json`.
fn sweep(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct SweepFile {
        program: String,
        sweep: Value,
    }
    #[derive(Deserialize)]
    struct TypedSweepFile {
        sweep: SweepResult,
    }
    let SweepFile { program, sweep } = read_document(text, iosonde_study::sweep::FORMAT)?;
    let TypedSweepFile { sweep: result } = read_json(text).map_err(damaged)?;
    let target = match &result.job_file {
        Some(file) => file.clone(),
        None => result.targets.join(", "),
    };
    let study = StudyRecord::without_runs("sweep", &target, program, sweep);
    Ok(vec![study])
}

/// `iosonde load --format json`.
fn studies_of_load(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct LoadFile {
        program: String,
        load: Value,
    }
    #[derive(Deserialize)]
    struct TypedLoadFile {
        load: LoadResult,
    }
    let LoadFile { program, load } = read_document(text, 1)?;
    let TypedLoadFile { load: result } = read_json(text).map_err(damaged)?;
    let study = StudyRecord::without_runs("load", &result.target, program, load);
    Ok(vec![study])
}

/// `iosonde pts --format json`.
fn studies_of_pts(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct PtsFile {
        program: String,
        pts: Value,
    }
    #[derive(Deserialize)]
    struct TypedPtsFile {
        pts: PtsResult,
    }
    let PtsFile { program, pts } = read_document(text, iosonde_study::pts::FORMAT)?;
    let TypedPtsFile { pts: result } = read_json(text).map_err(damaged)?;
    let study = StudyRecord::without_runs("pts", &result.target, program, pts);
    Ok(vec![study])
}

/// `iosonde run --format json`: the suite on each of its targets.
fn suites(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct SuitesFile {
        program: String,
        suites: Vec<Value>,
    }
    #[derive(Deserialize)]
    struct TypedSuitesFile {
        suites: Vec<SuiteResult>,
    }
    let SuitesFile { program, suites } = read_document(text, iosonde_suite::FORMAT)?;
    let TypedSuitesFile { suites: results } = read_json(text).map_err(damaged)?;
    let found = suites.into_iter().zip(results);
    Ok(found
        .map(|(suite, result)| {
            let labels = result.labels.clone();
            StudyRecord {
                labels,
                ..StudyRecord::without_runs("suite", &result.target, program.clone(), suite)
            }
        })
        .collect())
}

/// `iosonde k8s lifecycle --format json`.
fn lifecycle(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct LifecycleFile {
        program: String,
        lifecycle: Value,
    }
    #[derive(Deserialize)]
    struct TypedLifecycleFile {
        lifecycle: LifecycleResult,
    }
    let LifecycleFile { program, lifecycle } =
        read_document(text, iosonde_study::lifecycle::FORMAT)?;
    let TypedLifecycleFile { lifecycle: result } = read_json(text).map_err(damaged)?;
    let study = StudyRecord::without_runs("lifecycle", &result.target(), program, lifecycle);
    Ok(vec![study])
}

/// `iosonde k8s csi --format json`.
fn studies_of_csi(text: &str) -> Result<Vec<StudyRecord>, String> {
    #[derive(Deserialize)]
    struct CsiFile {
        program: String,
        csi: Value,
    }
    #[derive(Deserialize)]
    struct TypedCsiFile {
        csi: CsiResult,
    }
    let CsiFile { program, csi } = read_document(text, iosonde_study::csi::FORMAT)?;
    let TypedCsiFile { csi: result } = read_json(text).map_err(damaged)?;
    let study = StudyRecord::without_runs("csi", result.target(), program, csi);
    Ok(vec![study])
}

/// Reads a document, unless its format is newer than `newest`.
fn read_document<T: DeserializeOwned>(text: &str, newest: u32) -> Result<T, String> {
    #[derive(Deserialize)]
    struct FormatVersion {
        format: u32,
    }
    let FormatVersion { format } = read_json(text).map_err(damaged)?;
    if format > newest {
        return Err(format!(
            "the result has format {format}, but this iosonde reads formats up to {newest}"
        ));
    }
    read_json(text).map_err(damaged)
}

fn damaged(error: serde_json::Error) -> String {
    format!("the result is damaged: {error}")
}

fn own_run(text: &str) -> Result<Vec<StudyRecord>, String> {
    let result: RunResult = document::read_run_result(text).map_err(|error| error.to_string())?;
    Ok(vec![StudyRecord::from_run(result)])
}

fn studies_of_fio(text: &str) -> Result<Vec<StudyRecord>, String> {
    match import(text) {
        Ok(found) if found.parts.iter().all(|part| part.figures.is_empty()) => {
            let errors = match found.errors.is_empty() {
                true => String::new(),
                false => format!(": {}", found.errors.join("; ")),
            };
            Err(format!("its jobs transferred no data{errors}"))
        }
        Ok(found) => Ok(vec![StudyRecord::from_fio(found)]),
        Err(ImportError::NotFio) => Err("neither a result of iosonde nor fio's JSON".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::read_documents;

    #[test]
    fn damaged_study_is_reported_with_its_line_in_the_file() {
        for kind in ["sweep", "load", "pts", "lifecycle", "csi"] {
            let head = format!("\"kind\": \"{kind}\", \"format\": 1, \"program\": \"p\"");
            let text = format!("{{{head},\n\"{kind}\": {{}}}}\n");
            let error = read_documents(&text).err().unwrap();
            let expected = "the result is damaged: missing field";
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains(" at line 2 "), "{error}");
        }
    }

    #[test]
    fn suite_is_imported_once_for_each_target() {
        let suite = |target: &str| {
            format!(
                "{{\"format\": 1, \"suite\": \"s\", \"about\": null, \"target\": \"{target}\", \
                 \"labels\": {{\"a\": \"b\"}}, \"steps\": [], \"judged\": [], \
                 \"interrupted\": false}}"
            )
        };
        let text = format!(
            "{{\"format\": 1, \"kind\": \"suite\", \"program\": \"p\", \"suites\": [{}, {}]}}",
            suite("/a"),
            suite("/b")
        );
        let found = read_documents(&text).unwrap();
        let targets: Vec<&str> = found.iter().map(|study| study.target.as_str()).collect();
        assert_eq!(targets, ["/a", "/b"]);
        assert_eq!(found[0].labels["a"], "b");
        let suite = found[1].suite(None).unwrap();
        assert_eq!((suite.suite.as_str(), suite.target.as_str()), ("s", "/b"));
    }
}
