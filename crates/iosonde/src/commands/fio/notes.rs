//! Notes of `iosonde fio`: advice that changes nothing in what was measured.
//!
//! Clients of fio (bench-fio, kubestr) take any text on standard error for a failure, and notes depend on the machine's load.
//! So notes are part of the result: a list in JSON, lines below the report in the normal text, and nothing in terse output.
//! Standard error has those of a command that fails, beside its error, and those of a history that could not be written: a result
//! is printed before it is kept.

use crate::report::facts;
use iosonde_result::fio::Formats;
use iosonde_result::run::RunResult;
use iosonde_result::session::RunError;
use iosonde_result::storage::StorageUsed;

/// The result with the notes that were made before the run. A run without a result prints them beside its error.
pub(super) fn into_result(
    outcome: Result<RunResult, RunError>,
    notes: Vec<String>,
) -> Result<RunResult, RunError> {
    match outcome {
        Ok(mut result) => {
            result.notes.extend(notes);
            Ok(result)
        }
        Err(error) => {
            for note in notes {
                eprintln!("note: {note}");
            }
            Err(error)
        }
    }
}

/// All advice on a result: its storage, its verdicts, its notes.
pub(super) fn of_result(result: &RunResult) -> Vec<String> {
    // A local disk needs no note: the job names it.
    let storage = StorageUsed::of(result).filter(StorageUsed::is_service);
    let storage = storage.map(|used| ("storage", used.words()));
    let unknown = result.ceph.as_ref().and_then(facts::ceph_unknown);
    let told = storage.into_iter().chain(facts::nfs(&result.nfs));
    let told = told.chain(unknown);
    let told = told.map(|(name, fact)| format!("{name}: {fact}"));
    let told = told.chain(result.findings());
    told.chain(result.notes.iter().cloned()).collect()
}

/// The lines below the report. Only the normal text has them.
pub(super) fn text(notes: &[String], formats: Formats) -> String {
    let shown = notes.iter().filter(|_| formats.normal);
    shown.map(|note| format!("note: {note}\n")).collect()
}

/// The same below a command line, as comments of the shell: the output can still be run.
pub(super) fn comments(notes: &[String]) -> String {
    let lines = notes.iter().map(|note| format!("# note: {note}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_in_formats_other_than_normal_are_not_printed() {
        let notes = ["a: 1".to_owned(), "b".to_owned()];
        assert_eq!(text(&notes, Formats::default()), "note: a: 1\nnote: b\n");
        for formats in ["json", "json+", "terse", "terse,json"] {
            assert_eq!(text(&notes, formats.parse().unwrap()), "", "{formats}");
        }
    }
}
