//! `iosonde import`: stores results of files in the history.

use crate::args::ImportArgs;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{
    HistoryCopy, HistoryPath, Imported, ImportedStudies, ImportedStudy, Store, StoreError,
    StudyRecord, is_history, read_documents,
};
use iosonde_machine::bounded_read;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of files that are stored in one transaction.
const AT_ONCE: usize = 25;

/// Contents of a file.
enum ImportedFile {
    Results(Vec<StudyRecord>),
    History(HistoryCopy),
}

/// Errors of files, which do not stop the import of the others.
#[derive(Default)]
struct FailedFiles {
    texts: Vec<String>,
    /// The error of the last history.
    of_history: Option<StoreError>,
}

impl FailedFiles {
    fn add_history(&mut self, text: String, error: StoreError) {
        self.texts.push(text);
        self.of_history = Some(error);
    }

    fn finish(self) -> Result<(), CommandError> {
        match (&self.texts[..], self.of_history) {
            ([], _) => Ok(()),
            ([_], Some(error @ (StoreError::NotAStore(_) | StoreError::Damaged { .. }))) => {
                Err(CommandError::usage(
                    error.to_string(),
                    "write the history with `iosonde export --history` on the other machine",
                ))
            }
            // It has a remedy of its own.
            ([_], Some(error)) => Err(error.into()),
            (texts, _) => Err(CommandError::usage(
                texts.join("\n"),
                "iosonde writes results with --format json, fio with --output-format=json or json+",
            )),
        }
    }
}

/// Imports all files. Unreadable files are reported and do not stop the import of the others.
pub(crate) fn run(args: &ImportArgs) -> Result<(), CommandError> {
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let opened = Store::open_or_make(&place)?;
    if let Some(aside) = &opened.put_aside {
        eprintln!(
            "note: the history {} was damaged and is now {}",
            place.path.display(),
            aside.display()
        );
    }
    let mut store = opened.store;
    let labels: BTreeMap<String, String> = args.labels.iter().cloned().collect();
    let mut failed = FailedFiles::default();
    // One synchronisation of the disk per file would take most of the time.
    for paths in args.files.chunks(AT_ONCE) {
        let mut found = Vec::new();
        let mut of_histories = String::new();
        for path in paths {
            let name = path.display().to_string();
            match read_file(&store, path, &mut failed) {
                Some(ImportedFile::Results(studies)) => {
                    found.extend(studies.into_iter().map(|study| (study, name.clone())));
                }
                // Its copy is removed before the next one needs room.
                Some(ImportedFile::History(copy)) => {
                    match store.import_history(&copy, &name, &labels) {
                        Ok(imported) => of_histories.push_str(&history_lines(&imported, &name)),
                        Err(error) => failed.add_history(format!("{name}: {error}"), error),
                    }
                }
                None => {}
            }
        }
        let lines = import(&mut store, &mut found, &labels)?;
        Output::Standard.write(&(lines + &of_histories))?;
    }
    failed.finish()
}

/// Reads a file or standard input. A problem is added to `failed`.
fn read_file(store: &Store, path: &Path, failed: &mut FailedFiles) -> Option<ImportedFile> {
    let is_file = path != Path::new("-");
    let found = match is_file.then(|| store.copy_history(path)).flatten() {
        Some(copied) => copied.map(ImportedFile::History),
        None => match read_bytes(path) {
            Ok(bytes) if is_history(&bytes) => {
                HistoryCopy::from_bytes(&bytes).map(ImportedFile::History)
            }
            read => match read.and_then(|bytes| documents(&bytes)) {
                Ok(studies) => return Some(ImportedFile::Results(studies)),
                Err(problem) => {
                    failed.texts.push(format!("{}: {problem}", path.display()));
                    return None;
                }
            },
        },
    };
    match found {
        Ok(history) => Some(history),
        Err(error) => {
            failed.add_history(error.to_string(), error);
            None
        }
    }
}

/// Reads the results in a file. The error describes the problem.
pub(crate) fn studies(path: &Path) -> Result<Vec<StudyRecord>, String> {
    documents(&read_bytes(path)?)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let bytes_max = bounded_read::document_bytes_max();
    let read = match path == Path::new("-") {
        true => bounded_read::standard_input(bytes_max),
        false => bounded_read::read_file(path, bytes_max),
    };
    read.map_err(|error| iosonde_job::errno::describe(&error))
}

fn documents(bytes: &[u8]) -> Result<Vec<StudyRecord>, String> {
    if is_history(bytes) {
        return Err("this is a history: add it to yours with `iosonde import`".to_owned());
    }
    read_documents(&String::from_utf8_lossy(bytes))
}

/// A line for each new result of a history, and one for those that were known.
fn history_lines(imported: &ImportedStudies, from: &str) -> String {
    let mut lines = String::new();
    for study in &imported.new {
        let ImportedStudy {
            id, kind, target, ..
        } = study;
        let machine = study.machine.as_ref();
        let machine = machine.map_or(String::new(), |name| format!(" on {name}"));
        lines.push_str(&format!("{id}  {kind} of {target}{machine}, from {from}\n"));
    }
    if imported.known > 0 {
        let results = match imported.known {
            1 => "1 result".to_owned(),
            count => format!("{count} results"),
        };
        lines.push_str(&format!("{from}: {results} already in the history\n"));
    }
    lines
}

/// Labels and stores results. Returns a line for each.
fn import(
    store: &mut Store,
    found: &mut [(StudyRecord, String)],
    labels: &BTreeMap<String, String>,
) -> Result<String, CommandError> {
    for (study, _) in found.iter_mut() {
        study.label(labels);
    }
    let imported = store.import(found)?;
    let lines = imported
        .into_iter()
        .zip(found)
        .map(|(imported, (study, from))| {
            let (id, remark) = match imported {
                Imported::New(id) => (id, ""),
                Imported::Known(id) => (id, " (already in the history)"),
            };
            let StudyRecord { kind, target, .. } = study;
            format!("{id}  {kind} of {target}, from {from}{remark}\n")
        });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_history_is_listed_by_study() {
        let study = |machine: Option<&str>| ImportedStudy {
            id: "3fa9c10000".to_owned(),
            kind: "probe".to_owned(),
            target: "/data".to_owned(),
            machine: machine.map(str::to_owned),
        };
        let imported = ImportedStudies {
            new: vec![study(Some("n1")), study(None)],
            known: 2,
        };
        let expected = "3fa9c10000  probe of /data on n1, from n1.db\n\
                        3fa9c10000  probe of /data, from n1.db\n\
                        n1.db: 2 results already in the history\n";
        assert_eq!(history_lines(&imported, "n1.db"), expected);
    }
}
