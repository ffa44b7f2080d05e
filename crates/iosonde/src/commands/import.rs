//! `iosonde import`: results from files into the history.

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{Imported, KeptStudy, Place, Store, read_documents};
use iosonde_machine::bounded_read;
use std::collections::BTreeMap;
use std::path::Path;

/// Files that are kept together.
const AT_ONCE: usize = 25;

/// Imports all files. One that cannot be read does not keep the others out.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref())?;
    let opened = Store::open_or_make(&place)?;
    if let Some(aside) = &opened.put_aside {
        eprintln!(
            "note: {} was damaged; it is now {}",
            place.path.display(),
            aside.display()
        );
    }
    let mut store = opened.store;
    let labels: BTreeMap<String, String> = args.labels.iter().cloned().collect();
    let mut wrong = Vec::new();
    // Several files are kept at once: synchronising the disk for each would be most of the time.
    for paths in args.files.chunks(AT_ONCE) {
        let mut found = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            match studies(path) {
                Ok(studies) => found.extend(studies.into_iter().map(|study| (study, name.clone()))),
                Err(problem) => wrong.push(format!("{name}: {problem}")),
            }
        }
        let lines = import(&mut store, &mut found, &labels)?;
        Output::Standard.write(&lines)?;
    }
    match &wrong[..] {
        [] => Ok(()),
        wrong => Err(Failure::usage(
            wrong.join("\n"),
            "iosonde writes results with --format json, fio with --output-format=json or json+",
        )),
    }
}

/// What a file holds. The error says what is wrong with it.
pub(crate) fn studies(path: &Path) -> Result<Vec<KeptStudy>, String> {
    let bytes_max = bounded_read::document_bytes_max();
    let read = match path == Path::new("-") {
        true => bounded_read::standard_input(bytes_max),
        false => bounded_read::file(path, bytes_max),
    };
    let bytes = read.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    read_documents(&text)
}

/// Keeps what was found: a line for each.
fn import(
    store: &mut Store,
    found: &mut [(KeptStudy, String)],
    labels: &BTreeMap<String, String>,
) -> Result<String, Failure> {
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
                Imported::Known(id) => (id, " (was in the history already)"),
            };
            let KeptStudy { kind, target, .. } = study;
            format!("{id}  {kind} of {target}, from {from}{remark}\n")
        });
    Ok(lines.collect())
}
