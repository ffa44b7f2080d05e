//! Results of the pods of a rendered manifest: a fio job together, or a document each.

use iosonde_result::pods::{PodRun, combined};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{ClusterObstacle, RunError};
use iosonde_result::wire::RenderedDocument;
use std::collections::BTreeMap;

/// Collected results.
#[derive(Debug, Clone)]
pub enum CollectedOutput {
    /// The result of a fio job.
    Job(Box<CollectedResult>),
    /// The documents of another command, one for each pod.
    Documents(CollectedDocuments),
}

/// The collected result of a fio job and its circumstances.
#[derive(Debug, Clone)]
pub struct CollectedResult {
    /// Result of the only pod, or of all pods combined.
    pub result: RunResult,
    /// Target of the manifest.
    pub target: String,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Reason why the result does not cover the whole job. `None` if it does.
    pub cut: Option<RunError>,
}

/// The collected documents of a command and their circumstances.
#[derive(Debug, Clone)]
pub struct CollectedDocuments {
    /// Id of the manifest.
    pub run: String,
    /// Target of the manifest.
    pub target: String,
    /// One document for each pod, in the order of the names of the pods.
    pub documents: Vec<PodDocument>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Reason why a document does not cover the whole command. `None` if all do.
    pub cut: Option<RunError>,
}

/// The document of one pod.
#[derive(Debug, Clone)]
pub struct PodDocument {
    /// Name of the pod.
    pub pod: String,
    /// Labels of the result: namespace, context, node and the id of the manifest.
    pub labels: BTreeMap<String, String>,
    /// The document.
    pub rendered: RenderedDocument,
}

/// Result in the log of one pod.
pub(super) enum PodOutput {
    /// Result of a fio job.
    Job(Box<RunResult>),
    /// Document of another command.
    Document(RenderedDocument),
}

impl PodOutput {
    /// Returns the labels that the pod gave its result.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        match self {
            PodOutput::Job(result) => result.labels.clone(),
            PodOutput::Document(_) => BTreeMap::new(),
        }
    }

    /// Returns the start of the first fio job. `None` for documents, which are not summed.
    pub(super) fn began_ms(&self) -> Option<u64> {
        match self {
            PodOutput::Job(result) => Some(began_ms(result)),
            PodOutput::Document(_) => None,
        }
    }
}

/// Returns the start of the first job, in milliseconds by the clock of its node.
fn began_ms(result: &RunResult) -> u64 {
    let workers = result.workers.iter().map(|worker| worker.started_at_ms);
    workers.min().unwrap_or(result.started_at_ms)
}

/// Combines the outputs of all pods. Each has the name of its pod and its labels.
pub(super) fn combine_outputs(
    run: &str,
    target: String,
    outputs: Vec<(String, BTreeMap<String, String>, PodOutput)>,
    (mut notes, cut): (Vec<String>, Option<RunError>),
) -> Result<CollectedOutput, RunError> {
    let began = outputs.iter().filter_map(|(.., output)| output.began_ms());
    let first_ms = began.min().unwrap_or(0);
    let (mut runs, mut documents) = (Vec::new(), Vec::new());
    for (name, labels, output) in outputs {
        match output {
            PodOutput::Job(mut result) => {
                let started_ms = began_ms(&result) - first_ms;
                let started_ns = started_ms.saturating_mul(1_000_000);
                result.labels = labels;
                runs.push(PodRun {
                    name,
                    node: result.labels.get("node").cloned().unwrap_or_default(),
                    started_ns,
                    clock_error_ns: 0,
                    result: *result,
                });
            }
            PodOutput::Document(rendered) => documents.push(PodDocument {
                pod: name,
                labels,
                rendered,
            }),
        }
    }
    if !documents.is_empty() {
        // Every pod with the label of the run is read, also of other users.
        for PodRun { name, .. } in &runs {
            notes.push(format!(
                "{name} has the result of a fio job, which is left out"
            ));
        }
        return Ok(CollectedOutput::Documents(CollectedDocuments {
            run: run.to_owned(),
            target,
            documents,
            notes,
            cut,
        }));
    }
    let result = match runs.len() {
        1 => runs.pop().map(|run| run.result),
        _ => combined(runs),
    };
    let result = result.ok_or_else(|| ClusterObstacle::RenderedPodsRemoved {
        run: run.to_owned(),
    })?;
    Ok(CollectedOutput::Job(Box::new(CollectedResult {
        result,
        target,
        notes,
        cut,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(kind: &str) -> PodOutput {
        PodOutput::Document(RenderedDocument {
            started_at_ms: 1,
            status: 0,
            error: None,
            is_cut: false,
            document: format!("{{\"kind\": \"{kind}\"}}"),
        })
    }

    #[test]
    fn documents_of_pods_stay_separate_with_their_labels() {
        let labels = |node: &str| BTreeMap::from([("node".to_owned(), node.to_owned())]);
        let outputs = vec![
            ("iosonde-a-0".to_owned(), labels("n1"), document("probe")),
            ("iosonde-a-1".to_owned(), labels("n2"), document("probe")),
        ];
        let notes = vec!["a note".to_owned()];
        let combined = combine_outputs("a", "sc://fast".to_owned(), outputs, (notes, None));
        let Ok(CollectedOutput::Documents(found)) = combined else {
            panic!("{combined:?}");
        };
        assert_eq!(
            (found.run.as_str(), found.target.as_str()),
            ("a", "sc://fast")
        );
        assert_eq!(found.notes, ["a note"]);
        let nodes: Vec<&str> = found
            .documents
            .iter()
            .map(|d| d.labels["node"].as_str())
            .collect();
        assert_eq!(nodes, ["n1", "n2"]);
    }

    #[test]
    fn manifest_without_outputs_is_an_error() {
        let combined = combine_outputs("a", String::new(), Vec::new(), (Vec::new(), None));
        let expected = ClusterObstacle::RenderedPodsRemoved {
            run: "a".to_owned(),
        };
        assert_eq!(combined.err(), Some(expected.into()));
    }
}
