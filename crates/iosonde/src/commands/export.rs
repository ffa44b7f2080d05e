//! `iosonde export`: one stored result as a document.

use super::expect::{hold, promises};
use crate::args::{ExportArgs, Format};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{self, figures, history};
use crate::store::{Document, Loaded, Place, Store};
use iosonde_result::compare::Part;
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::load::LoadResult;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use jiff::tz::TimeZone;

/// Writes one result in the format that is asked for.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let promises = promises(&args.expect)?;
    let place = Place::find(args.store.store.as_deref())?;
    let mut loaded = Store::open(&place)?.load(&args.run)?;
    hold(&mut loaded, &promises)?;
    let text = match args.series {
        true => series(&loaded, args.format)?,
        false => exported(&loaded, args.format.unwrap_or(Format::Json))?,
    };
    Output::open(args.output.as_deref())?.save(&text)
}

/// All runs interval by interval.
fn series(loaded: &Loaded, format: Option<Format>) -> Result<String, Failure> {
    match format {
        None | Some(Format::Csv) => {}
        Some(Format::Json) => {
            return Err(Failure::usage(
                "JSON has the series in it already".to_owned(),
                "leave --series out; they are in its members intervals and series".to_owned(),
            ));
        }
        Some(_) => {
            return Err(Failure::usage(
                "--series writes CSV".to_owned(),
                "leave --format out, or write --format csv".to_owned(),
            ));
        }
    }
    let runs = loaded.study.runs.iter();
    let runs: Vec<(&str, &RunResult)> = runs
        .filter_map(|run| match &run.document {
            Document::Run(result) => Some((run.name.as_str(), &**result)),
            Document::Fio(_) => None,
        })
        .collect();
    if runs.is_empty() {
        return Err(Failure::usage(
            format!("{} is a result of fio, which has no series", loaded.name()),
            "fio writes them to files of their own: write_bw_log, write_lat_log".to_owned(),
        ));
    }
    Ok(report::series::csv(&runs))
}

/// The document.
pub(crate) fn exported(loaded: &Loaded, format: Format) -> Result<String, Failure> {
    if format == Format::Table {
        return Ok(history::show(loaded, &TimeZone::system()));
    }
    if let Some(probe) = loaded.study.probe(loaded.run) {
        return report::probe::rest(&[probe], format);
    }
    if let Some(sweep) = loaded.study.sweep(loaded.run) {
        return sweep_in(&sweep, loaded, format);
    }
    if let Some(load) = loaded.study.load(loaded.run) {
        return load_in(&load, loaded, format);
    }
    if let Some(pts) = loaded.study.pts(loaded.run) {
        return pts_in(&pts, loaded, format);
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

fn sweep_in(sweep: &SweepResult, loaded: &Loaded, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(report::sweep::table(sweep)),
        Format::Json => report::sweep::json(sweep),
        Format::Csv => Ok(report::sweep::csv(sweep)),
        Format::Markdown => Ok(report::sweep::markdown(sweep)),
        Format::FioJson => Err(many_runs(loaded, "is a sweep: it has a run for each cell")),
    }
}

fn load_in(load: &LoadResult, loaded: &Loaded, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(report::load::table(load)),
        Format::Json => report::load::json(load),
        Format::Csv => Ok(report::load::csv(load)),
        Format::Markdown => Ok(report::load::markdown(load)),
        Format::FioJson => Err(many_runs(
            loaded,
            "is a load study: it has a run for each rate",
        )),
    }
}

fn pts_in(pts: &PtsResult, loaded: &Loaded, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(report::pts::table(pts)),
        Format::Json => report::pts::json(pts),
        Format::Csv => Ok(report::pts::csv(pts)),
        Format::Markdown => Ok(report::pts::markdown(pts)),
        Format::FioJson => Err(many_runs(
            loaded,
            "is a test after SNIA PTS: it has a run for each workload of each round",
        )),
    }
}

fn many_runs(loaded: &Loaded, what: &str) -> Failure {
    Failure::usage(
        format!("{} {what}", loaded.name()),
        format!("export one of them, e.g. {}.1", loaded.name()),
    )
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
