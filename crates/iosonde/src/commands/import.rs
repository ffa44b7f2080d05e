//! `iosonde import`: results from files into the history.

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{Imported, KeptStudy, Place, Store, read_documents};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

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
    for path in &args.files {
        match studies(path) {
            Ok(studies) => {
                for study in studies {
                    let line = import(&mut store, study, &labels, path)?;
                    Output::Standard.write(line.as_bytes())?;
                }
            }
            Err(problem) => wrong.push(format!("{}: {problem}", path.display())),
        }
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
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    read_documents(&text)
}

fn import(
    store: &mut Store,
    mut study: KeptStudy,
    labels: &BTreeMap<String, String>,
    path: &Path,
) -> Result<String, Failure> {
    study.label(labels);
    let from = path.display().to_string();
    let (id, remark) = match store.import(&study, &from)? {
        Imported::New(id) => (id, ""),
        Imported::Known(id) => (id, " (was in the history already)"),
    };
    Ok(format!(
        "{id}  {} of {}, from {from}{remark}\n",
        study.kind, study.target
    ))
}
