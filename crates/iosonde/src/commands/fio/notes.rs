//! Notes of `iosonde fio`: advice that changes no figure.
//!
//! Clients of fio (bench-fio, kubestr) take any text on standard error for a failure, and notes
//! depend on the machine's load. So notes are part of the result: a list in JSON, lines below the
//! normal report, none in terse output. Standard error has only the notes of a failed command,
//! those of a history that could not be written, as a result is printed before it is stored, and,
//! with `--target`, that on replaced file names: it is printed before the target is used.

use iosonde_report::facts;
use iosonde_result::cache_state::LayerCache;
use iosonde_result::fio::Formats;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::storage::StorageUsed;

/// Adds the notes made before the run to the result. Without a result they go to standard error.
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
    let storage = StorageUsed::from_run(result).filter(StorageUsed::is_service);
    let storage = storage.map(|used| ("storage", used.words()));
    let unknown = result.ceph.as_ref().and_then(facts::ceph_unknown);
    // As in fio, a job's own cold start needs no note.
    let is_news = result.caches.iter().any(LayerCache::is_news);
    let caches = facts::caches(&result.caches).filter(|_| is_news);
    let reported = storage.into_iter().chain(facts::nfs_facts(&result.nfs));
    let reported = reported.chain(result.shared_file.iter().flat_map(facts::shared_file));
    let reported = reported.chain(caches).chain(unknown);
    let tier = result.ceph.as_ref().and_then(|side| side.cache_tier);
    let reported = reported.chain(tier.map(|tier| ("cache tier", tier.to_string())));
    let reported = reported.map(|(name, fact)| format!("{name}: {fact}"));
    let reported = reported.chain(result.findings());
    reported.chain(result.notes.iter().cloned()).collect()
}

/// The lines below the report. Only the normal text has them.
pub(super) fn notes_text(notes: &[String], formats: Formats) -> String {
    let shown = notes.iter().filter(|_| formats.normal);
    shown.map(|note| format!("note: {note}\n")).collect()
}

/// The notes as shell comments below a command line, so that the output remains executable.
pub(super) fn comments(notes: &[String]) -> String {
    let lines = notes.iter().map(|note| format!("# note: {note}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_printed_only_in_normal_format() {
        let notes = ["a: 1".to_owned(), "b".to_owned()];
        assert_eq!(
            notes_text(&notes, Formats::default()),
            "note: a: 1\nnote: b\n"
        );
        for formats in ["json", "json+", "terse", "terse,json"] {
            assert_eq!(
                notes_text(&notes, formats.parse().unwrap()),
                "",
                "{formats}"
            );
        }
    }
}
