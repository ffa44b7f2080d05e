//! `iosonde export`: one stored result as a document.

use crate::args::{ExportArgs, Format};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{self, figures, history};
use crate::store::{Document, Loaded, Place, Store};
use iosonde_result::compare::Part;
use iosonde_result::fio;
use jiff::tz::TimeZone;

/// Writes one result in the format that is asked for.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref())?;
    let loaded = Store::open(&place)?.load(&args.run)?;
    let text = exported(&loaded, args.format)?;
    Output::open(args.output.as_deref(), false)?.write(text.as_bytes())
}

/// The document.
pub(crate) fn exported(loaded: &Loaded, format: Format) -> Result<String, Failure> {
    if format == Format::Table {
        return Ok(history::show(loaded, &TimeZone::system()));
    }
    if let Some(probe) = loaded.study.probe(loaded.run) {
        return report::probe::rest(&[probe], format);
    }
    let parts = || -> Vec<Part> {
        let runs = loaded.study.runs.iter();
        runs.flat_map(|run| run.parts.clone()).collect()
    };
    match format {
        Format::Csv => Ok(figures::csv(&parts())),
        Format::Markdown => Ok(figures::markdown(&parts())),
        _ => document(loaded, format),
    }
}

fn document(loaded: &Loaded, format: Format) -> Result<String, Failure> {
    let [run] = &loaded.study.runs[..] else {
        return Err(Failure::usage(
            format!("{} was cut off: there are only its runs", loaded.name()),
            format!("export one of them, e.g. {}.1", loaded.name()),
        ));
    };
    let json = match (&run.document, format) {
        (Document::Run(result), Format::Json) => {
            let text = serde_json::to_string_pretty(result).map_err(anyhow::Error::from)?;
            return Ok(text + "\n");
        }
        (Document::Run(result), _) => &fio::json(result, true),
        (Document::Fio(json), Format::FioJson) => json,
        (Document::Fio(_), _) => {
            return Err(Failure::usage(
                format!("{} is a result of fio", loaded.name()),
                "export it with --format fio-json, csv or markdown",
            ));
        }
    };
    let mut text = Vec::new();
    fio::write_json(&mut text, json).map_err(anyhow::Error::from)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
