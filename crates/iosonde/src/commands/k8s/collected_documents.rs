//! Documents of the pods of a rendered manifest: prints them and adds them to the history.

use crate::args::CollectArgs;
use crate::commands::finish_command;
use crate::failure::{CommandError, status};
use crate::output::Output;
use iosonde_cluster::{CollectedDocuments, PodDocument};
use iosonde_history::{HistoryPath, Imported, Store, StudyRecord, read_documents};
use iosonde_report as report;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};

/// A study with the name of its pod.
type PodStudy = (StudyRecord, String);

/// Prints the documents, stores them, and fails as the commands in the pods did.
pub(super) fn report_documents(
    collected: &CollectedDocuments,
    args: &CollectArgs,
    output: Output,
) -> Result<(), CommandError> {
    for note in &collected.notes {
        eprintln!("note: {note}");
    }
    if args.output_format.terse.is_some() {
        return Err(CommandError::usage(
            "only fio jobs have the output format terse",
            "use --output-format normal or --output-format json",
        ));
    }
    let mut studies = studies(collected)?;
    let text = match args.output_format.json {
        Some(_) => json_lines(&collected.documents),
        None => tables(&studies),
    };
    let printed = output.save(&text);
    let kept = match args.keep.is_wanted() {
        true => add_to_history(args, &mut studies),
        false => Ok(()),
    };
    finish_command([printed, kept, concluded(collected)], Ok(()))
}

/// Returns the studies of all documents, with the labels and the target of their pods.
fn studies(collected: &CollectedDocuments) -> Result<Vec<PodStudy>, CommandError> {
    let mut studies = Vec::new();
    for document in &collected.documents {
        let read = read_documents(&document.rendered.document).map_err(|problem| {
            eprintln!("note: {}: {problem}", document.pod);
            let object = FailedObject::named_pod(&document.pod);
            RunError::lost(object, FailureCondition::KeptResultInvalid)
        })?;
        for mut study in read {
            study.target.clone_from(&collected.target);
            if study.started_at_ms == 0 {
                study.started_at_ms = document.rendered.started_at_ms;
            }
            study.label(&document.labels);
            studies.push((study, document.pod.clone()));
        }
    }
    Ok(studies)
}

/// One document per line, in the order of the pods. A line break in JSON is outside of strings.
fn json_lines(documents: &[PodDocument]) -> String {
    let lines = documents.iter().map(|document| {
        let line = document.rendered.document.replace(['\n', '\r'], " ");
        format!("{line}\n")
    });
    lines.collect()
}

fn tables(studies: &[PodStudy]) -> String {
    let mut text = String::new();
    for (study, pod) in studies {
        if studies.len() > 1 {
            let node = study.labels.get("node");
            let node = node.map_or(String::new(), |node| format!(" on {node}"));
            text.push_str(&format!("{pod}{node}\n"));
        }
        text.push_str(&table(study));
        if studies.len() > 1 {
            text.push('\n');
        }
    }
    text
}

fn table(study: &StudyRecord) -> String {
    if let Some(probe) = study.probe(None) {
        report::probe::table::probe_table(&probe)
    } else if let Some(sweep) = study.sweep(None) {
        report::sweep::table(&sweep)
    } else if let Some(load) = study.load(None) {
        report::load::table(&load)
    } else if let Some(pts) = study.pts(None) {
        report::pts::table(&pts)
    } else if let Some(suite) = study.suite(None) {
        report::suite::table_with_verdicts(&suite, Output::Standard.style())
    } else {
        let parts = study.runs.iter().flat_map(|run| run.parts.clone());
        report::figures::table(&parts.collect::<Vec<_>>())
    }
}

/// Adds the studies to the history. A manifest that is collected again is already there.
fn add_to_history(args: &CollectArgs, studies: &mut [PodStudy]) -> Result<(), CommandError> {
    let labels = args.keep.options().labels;
    for (study, _) in studies.iter_mut() {
        study.label(&labels);
    }
    let place = HistoryPath::find(args.keep.store.as_deref())?;
    let mut store = Store::open_or_make(&place)?.store;
    for imported in store.import(studies)? {
        match imported {
            Imported::New(id) => eprintln!("stored in the history as {id}"),
            Imported::Known(id) => eprintln!("already in the history as {id}"),
        }
    }
    Ok(())
}

/// The failure of a pod that was terminated early, else that of the first command that failed.
fn concluded(collected: &CollectedDocuments) -> Result<(), CommandError> {
    if let Some(cut) = &collected.cut {
        return Err(cut.clone().into());
    }
    let mut documents = collected.documents.iter();
    let Some(failed) = documents.find(|document| document.rendered.status != 0) else {
        return Ok(());
    };
    let error = failed.rendered.error.as_deref().unwrap_or_default();
    let problem = format!("{}: {error}", failed.pod);
    Err(match failed.rendered.status {
        status::BROKEN => CommandError::Broken(problem),
        status::MISSED => CommandError::Missed(problem),
        status::UNDECIDED => CommandError::Undecided(problem),
        _ => CommandError::Io(problem),
    })
}

#[cfg(test)]
mod tests {
    use super::super::in_pod::measure;
    use super::*;
    use iosonde_result::wire::RenderedDocument;
    use std::collections::BTreeMap;
    use std::ffi::{OsStr, OsString};

    /// A simulated device for tests with a steady state.
    const SMALL: &str = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";
    /// A simulated device for the other commands.
    const NETWORK: &str = "sim:read_us=500,write_us=300,parallel=4,fsync_us=2ms";

    fn collected(rendered: RenderedDocument) -> CollectedDocuments {
        CollectedDocuments {
            run: "01234567".to_owned(),
            target: "sc://fast".to_owned(),
            documents: vec![PodDocument {
                pod: "iosonde-01234567-0".to_owned(),
                labels: BTreeMap::from([("node".to_owned(), "n1".to_owned())]),
                rendered,
            }],
            notes: Vec::new(),
            cut: None,
        }
    }

    fn document(status: u8, text: &str) -> RenderedDocument {
        RenderedDocument {
            started_at_ms: 1_700_000_000_000,
            status,
            error: (status != 0).then(|| "too slow".to_owned()),
            is_cut: false,
            document: text.to_owned(),
        }
    }

    /// The log is that of a pod whose volume is a simulated device.
    #[test]
    fn documents_of_all_commands_are_collected_from_logs() {
        for (kind, line, device) in [
            ("probe", "probe --quick", NETWORK),
            ("sweep", "sweep --iodepth=1,2 --runtime=1", NETWORK),
            ("load", "load --rates=500 --runtime=1", NETWORK),
            (
                "pts",
                "pts --size=64m --time-scale=0.01 --purge=discard throughput",
                SMALL,
            ),
            ("suite", "run --beside=none --var=size=1m etcd", NETWORK),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (rendered, _) = measure(&words, OsStr::new(device), "sc://fast");
            let log = format!("progress\n{}", rendered.unwrap().log_lines());
            let read = RenderedDocument::from_log(&log).unwrap();
            let studies = studies(&collected(read)).unwrap();
            let [(study, pod)] = &studies[..] else {
                panic!("{kind}: {} studies", studies.len());
            };
            assert_eq!(
                (study.kind.as_str(), study.target.as_str()),
                (kind, "sc://fast")
            );
            assert_eq!(study.machine.as_deref(), Some("n1"), "{kind}");
            assert_eq!(pod, "iosonde-01234567-0");
            assert!(study.started_at_ms > 0, "{kind}");
            let text = table(study);
            assert!(!text.is_empty(), "{kind}");
            let has_counts = text.contains("\n\nverdicts   ");
            assert_eq!(has_counts, kind == "suite", "{text}");
        }
    }

    #[test]
    fn status_of_a_command_in_a_pod_is_that_of_collect() {
        let status_of = |status| match concluded(&collected(document(status, "{}"))) {
            Ok(()) => 0,
            Err(failure) => failure.status(),
        };
        for status in [
            0,
            status::IO,
            status::BROKEN,
            status::MISSED,
            status::UNDECIDED,
        ] {
            assert_eq!(status_of(status), status);
        }
        assert_eq!(status_of(status::INTERNAL), status::IO);
        let failure = concluded(&collected(document(status::MISSED, "{}"))).unwrap_err();
        let CommandError::Missed(problem) = &failure else {
            panic!("{failure:?}");
        };
        assert_eq!(problem, "iosonde-01234567-0: too slow");
    }

    #[test]
    fn damaged_document_names_its_pod() {
        let failure = studies(&collected(document(0, "{\"kind\": \"probe\"}"))).unwrap_err();
        let CommandError::Run(error) = &failure else {
            panic!("{failure:?}");
        };
        let pod = FailedObject::named_pod("iosonde-01234567-0");
        let expected = RunError::lost(pod, FailureCondition::KeptResultInvalid);
        assert_eq!(*error, expected);
    }

    #[test]
    fn documents_are_printed_as_one_line_each() {
        let mut several = collected(document(0, "{\"kind\": \"probe\"}"));
        several.documents.push(several.documents[0].clone());
        several.documents[1].rendered.document = "{\"kind\":\n\"probe\"}".to_owned();
        let expected = "{\"kind\": \"probe\"}\n{\"kind\": \"probe\"}\n";
        assert_eq!(json_lines(&several.documents), expected);
    }
}
