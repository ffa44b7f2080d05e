//! What a word of `iosonde report` stands for.

use crate::failure::Failure;
use iosonde_result::document;
use iosonde_result::fio::import::{FioDocument, import};
use iosonde_result::run::RunResult;
use iosonde_study::probe::{FORMAT, ProbeResult};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::Read;
use std::path::Path;

/// One file, and what is in it.
#[derive(Debug)]
pub(super) struct Document {
    /// A short name for it.
    pub(super) source: String,
    /// At least one.
    pub(super) contents: Vec<Content>,
}

/// One result.
#[derive(Debug)]
pub(super) enum Content {
    Run(Box<RunResult>),
    Probe(Box<ProbeResult>),
    Fio(Box<FioDocument>),
}

/// What `iosonde probe --format json` writes.
#[derive(Deserialize)]
struct ProbeDocument {
    probes: Vec<ProbeResult>,
}

/// Reads the file that `word` names; `-` is standard input.
pub(super) fn load(word: &str) -> Result<Document, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::usage(
            format!("{word}: {error}"),
            "name files with results, as `iosonde probe --format json --output FILE` writes them",
        )
    };
    let (source, text) = if word == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        ("standard input".to_owned(), text)
    } else {
        let text = std::fs::read_to_string(word).map_err(unreadable)?;
        let name = Path::new(word).file_stem().unwrap_or(word.as_ref());
        (name.to_string_lossy().into_owned(), text)
    };
    let contents = read(&text).map_err(|problem| {
        Failure::usage(
            format!("{word}: {problem}"),
            "a report is made of results that iosonde wrote as JSON",
        )
    })?;
    Ok(Document { source, contents })
}

/// Takes a document apart by what it looks like.
fn read(text: &str) -> Result<Vec<Content>, String> {
    #[derive(Deserialize)]
    struct Look {
        format: Option<u32>,
        probes: Option<IgnoredAny>,
        figures: Option<IgnoredAny>,
        plan: Option<IgnoredAny>,
    }
    // fio's own may have other lines around its JSON.
    let Ok(look) = serde_json::from_str::<Look>(text) else {
        return fio(text);
    };
    if look.probes.is_none() && look.figures.is_none() {
        if look.format.is_none() && look.plan.is_none() {
            return fio(text);
        }
        let result = document::read(text).map_err(|error| error.to_string())?;
        return Ok(vec![Content::Run(Box::new(result))]);
    }
    if let Some(found) = look.format.filter(|format| *format > FORMAT) {
        return Err(format!(
            "the probe has format {found}, which is newer than {FORMAT}, the newest that this program reads"
        ));
    }
    let damaged = |error: serde_json::Error| format!("the probe is damaged: {error}");
    let probes = if look.probes.is_some() {
        let document: ProbeDocument = serde_json::from_str(text).map_err(damaged)?;
        document.probes
    } else {
        vec![serde_json::from_str(text).map_err(damaged)?]
    };
    if probes.is_empty() {
        return Err("there is no probe in it".to_owned());
    }
    Ok(probes
        .into_iter()
        .map(|probe| Content::Probe(Box::new(probe)))
        .collect())
}

fn fio(text: &str) -> Result<Vec<Content>, String> {
    let found =
        import(text).map_err(|error| format!("neither a result of iosonde nor of fio: {error}"))?;
    Ok(vec![Content::Fio(Box::new(found))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_result_is_told_apart() {
        let problem = |text: &str| read(text).unwrap_err();
        assert!(problem("hello").starts_with("neither"));
        assert!(problem("{}").starts_with("neither"));
        assert!(problem(r#"{"fio version": "fio-3.33"}"#).starts_with("neither"));
        assert!(problem(r#"{"format": 99}"#).contains("newer"));
        assert!(problem(r#"{"format": 1, "plan": {}}"#).contains("damaged"));
        assert!(problem(r#"{"format": 99, "kind": "probe", "probes": []}"#).contains("newer"));
        assert!(problem(r#"{"format": 1, "kind": "probe", "probes": [{}]}"#).contains("damaged"));
        assert!(problem(r#"{"format": 1, "kind": "probe", "probes": []}"#).contains("no probe"));
    }

    #[test]
    fn a_missing_file_is_named_with_a_remedy() {
        let failure = load("/does/not/exist.json").unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.text(false).contains("/does/not/exist.json"));
    }
}
