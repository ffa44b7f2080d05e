//! `iosonde export`: one stored result as a document.

use super::expect::{add_promise_checks, promises};
use crate::args::ExportArgs;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{HistoryPath, LATEST, Loaded, RunDocument};
use iosonde_report::format::Format;
use iosonde_report::{figures, history};
use iosonde_result::compare::ResultPart;
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::csi::CsiResult;
use iosonde_study::lifecycle::LifecycleResult;
use iosonde_study::load::LoadResult;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use jiff::tz::TimeZone;
use std::io::IsTerminal;
use std::path::Path;

/// Writes one stored result in the requested format.
pub(crate) fn run(args: &ExportArgs) -> Result<(), CommandError> {
    let promises = promises(&args.expect)?;
    let place = HistoryPath::find(args.store.store.as_deref())?;
    if args.history {
        return export_history(args, &place);
    }
    let store = crate::commands::open_history(&place)?;
    let mut loaded = store.load(args.run.as_deref().unwrap_or(LATEST))?;
    let expected = (&args.expect, args.store.store.as_deref());
    add_promise_checks(&mut loaded, &promises, expected)?;
    let output = Output::open_report(args.output.as_deref())?;
    let text = match args.series {
        true => series(&loaded, args.format)?,
        false => exported(&loaded, args.format.unwrap_or(Format::Json))?,
    };
    output.save(&text)
}

/// Writes the whole history as one file.
fn export_history(args: &ExportArgs, place: &HistoryPath) -> Result<(), CommandError> {
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(CommandError::usage(
            "a history is a file for `iosonde import`, not for a terminal",
            "write it to a file: --output history.db",
        ));
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let to = args.output.as_deref().and_then(real);
    if to.is_some() && to == real(&place.path) {
        return Err(CommandError::usage(
            format!("{}: this file is the history itself", place.path.display()),
            "name another file with --output",
        ));
    }
    let history = crate::commands::open_history(place)?.exported()?;
    Output::open(args.output.as_deref())?.save_unchanged(&history)
}

/// The time series of all runs, as CSV.
fn series(loaded: &Loaded, format: Option<Format>) -> Result<String, CommandError> {
    match format {
        None | Some(Format::Csv) => {}
        Some(Format::Json) => {
            return Err(CommandError::usage(
                "--series has no effect on JSON, which always contains the series".to_owned(),
                "leave out --series; the JSON members are `intervals` and `series`".to_owned(),
            ));
        }
        Some(_) => {
            return Err(CommandError::usage(
                "--series writes only CSV".to_owned(),
                "leave out --format, or use --format csv".to_owned(),
            ));
        }
    }
    let runs = loaded.study.runs.iter();
    let runs: Vec<(&str, &RunResult)> = runs
        .filter_map(|run| match &run.document {
            RunDocument::Run(result) => Some((run.name.as_str(), &**result)),
            RunDocument::Fio(_) => None,
        })
        .collect();
    if runs.is_empty() {
        return Err(CommandError::usage(
            format!(
                "{} is a result of fio, which contains no series",
                loaded.name()
            ),
            "fio writes series to log files: write_bw_log, write_lat_log".to_owned(),
        ));
    }
    Ok(iosonde_report::series_table::intervals_csv(&runs))
}

/// Formats the result as a document.
pub(crate) fn exported(loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    if format == Format::Table {
        return Ok(history::stored_result_text(
            loaded,
            &TimeZone::system(),
            Output::Standard.style(),
        ));
    }
    if let Some(probe) = loaded.study.probe(loaded.run) {
        return Ok(iosonde_report::probe::remaining_output(&[probe], format)?);
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
    if let Some(lifecycle) = loaded.study.lifecycle(loaded.run) {
        return lifecycle_in(&lifecycle, loaded, format);
    }
    if let Some(csi) = loaded.study.csi(loaded.run) {
        return csi_in(&csi, loaded, format);
    }
    let parts = || -> Vec<ResultPart> {
        let runs = loaded.study.runs.iter();
        runs.flat_map(|run| run.parts.clone()).collect()
    };
    match format {
        Format::Csv => Ok(figures::figures_csv(&parts())),
        Format::Markdown => Ok(figures::markdown(&parts())),
        _ => document(loaded, format),
    }
}

fn sweep_in(sweep: &SweepResult, loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    match format {
        Format::Table => Ok(iosonde_report::sweep::table(sweep)),
        Format::Json => Ok(iosonde_report::sweep::sweep_json(sweep)?),
        Format::Csv => Ok(iosonde_report::sweep::sweep_cells_csv(sweep)),
        Format::Markdown => Ok(iosonde_report::sweep::markdown(sweep)),
        Format::FioJson => Err(many_runs(loaded, "a sweep has one run per cell")),
    }
}

fn load_in(load: &LoadResult, loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    match format {
        Format::Table => Ok(iosonde_report::load::table(load)),
        Format::Json => Ok(iosonde_report::load::load_result_json(load)?),
        Format::Csv => Ok(iosonde_report::load::load_result_csv(load)),
        Format::Markdown => Ok(iosonde_report::load::markdown(load)),
        Format::FioJson => Err(many_runs(loaded, "a load study has one run per rate")),
    }
}

fn pts_in(pts: &PtsResult, loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    match format {
        Format::Table => Ok(iosonde_report::pts::table(pts)),
        Format::Json => Ok(iosonde_report::pts::pts_json(pts)?),
        Format::Csv => Ok(iosonde_report::pts::pts_csv(pts)),
        Format::Markdown => Ok(iosonde_report::pts::markdown(pts)),
        Format::FioJson => Err(many_runs(
            loaded,
            "a SNIA test has one run per workload and round",
        )),
    }
}

fn csi_in(csi: &CsiResult, loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    match format {
        Format::Table => Ok(iosonde_report::csi::table(csi)),
        Format::Json => Ok(iosonde_report::csi::csi_json(csi)?),
        Format::Csv => Ok(iosonde_report::csi::csi_csv(csi)),
        Format::Markdown => Ok(iosonde_report::csi::markdown(csi)),
        Format::FioJson => Err(CommandError::usage(
            format!("{} has data services, without a job of fio", loaded.name()),
            "use --format json, csv or markdown",
        )),
    }
}

fn lifecycle_in(
    lifecycle: &LifecycleResult,
    loaded: &Loaded,
    format: Format,
) -> Result<String, CommandError> {
    match format {
        Format::Table => Ok(iosonde_report::lifecycle::table(lifecycle)),
        Format::Json => Ok(iosonde_report::lifecycle::lifecycle_json(lifecycle)?),
        Format::Csv => Ok(iosonde_report::lifecycle::lifecycle_csv(lifecycle)),
        Format::Markdown => Ok(iosonde_report::lifecycle::markdown(lifecycle)),
        Format::FioJson => Err(CommandError::usage(
            format!(
                "{} is a life cycle of volumes, without a job of fio",
                loaded.name()
            ),
            "use --format json, csv or markdown",
        )),
    }
}

fn many_runs(loaded: &Loaded, what: &str) -> CommandError {
    CommandError::usage(
        format!("{} has no fio JSON of its own: {what}", loaded.name()),
        format!("export one run, e.g. {}.1", loaded.name()),
    )
}

fn document(loaded: &Loaded, format: Format) -> Result<String, CommandError> {
    let [run] = &loaded.study.runs[..] else {
        return Err(CommandError::usage(
            format!("{} was cut off: only its runs are stored", loaded.name()),
            format!("export one run, e.g. {}.1", loaded.name()),
        ));
    };
    let json = match (&run.document, format) {
        (RunDocument::Run(result), Format::Json) => {
            let text = serde_json::to_string_pretty(result).map_err(anyhow::Error::from)?;
            return Ok(text + "\n");
        }
        (RunDocument::Run(result), _) => &fio::fio_json(result, true),
        (RunDocument::Fio(json), Format::FioJson) => json,
        (RunDocument::Fio(_), _) => {
            return Err(CommandError::usage(
                format!(
                    "{} is a result of fio, without iosonde's JSON",
                    loaded.name()
                ),
                "use --format fio-json, csv or markdown",
            ));
        }
    };
    let mut text = Vec::new();
    fio::write_json(&mut text, json).map_err(anyhow::Error::from)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
