//! `iosonde show RUN --from --to --percentiles`: figures computed anew from a stored run.

use super::numbered_runs::one_run_remedy;
use super::show_command::store_option;
use crate::args::{PivotFormat, ShowArgs};
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{Loaded, RunDocument};
use iosonde_report::format::TextFormat;
use iosonde_report::stored_figures::{StoredFigures, USUAL_PERCENTILES};
use iosonde_result::run::RunResult;
use iosonde_result::time_window::{TimeWindow, TimeWindowError};

/// Whether the arguments ask for a window or for percentiles.
pub(super) fn is_requested(args: &ShowArgs) -> bool {
    window(args).is_some() || args.percentiles.is_some()
}

fn window(args: &ShowArgs) -> Option<TimeWindow> {
    let window = TimeWindow {
        from_ns: args.from,
        to_ns: args.to,
    };
    (window != TimeWindow::default()).then_some(window)
}

/// Prints the figures of all runs of a result, or of the one that a window is of.
pub(super) fn run(args: &ShowArgs, loaded: &Loaded) -> Result<(), CommandError> {
    let name = loaded.name();
    let window = window(args);
    if let Some(TimeWindow {
        from_ns: Some(from_ns),
        to_ns: Some(to_ns),
    }) = window
        && from_ns >= to_ns
    {
        let reversed = TimeWindowError::Reversed { from_ns, to_ns };
        return Err(CommandError::usage(reversed.to_string(), reversed.remedy()));
    }
    let runs = own_runs(loaded)?;
    if let Some(window) = window.filter(|_| runs.len() > 1) {
        return Err(CommandError::usage(
            format!(
                "{name} has {} runs, each with a time of its own",
                runs.len()
            ),
            window_remedy(args, loaded, &runs, window),
        ));
    }
    let usual = USUAL_PERCENTILES.to_vec();
    let percents = args
        .percentiles
        .as_ref()
        .map_or(usual, |list| list.0.clone());
    let figures = StoredFigures::compute(&name, &runs, window, &percents).map_err(|error| {
        CommandError::usage(
            format!("{}: {}", error.run, error.cause),
            error.cause.remedy(),
        )
    })?;
    let text = figures.text(text_format(args.format)?);
    Output::Standard.write(&text.map_err(anyhow::Error::from)?)
}

/// Returns the command for the window of one run: the first one that has figures there. If no run
/// has any, the command shows the first run without a window.
fn window_remedy(
    args: &ShowArgs,
    loaded: &Loaded,
    runs: &[(String, &RunResult)],
    window: TimeWindow,
) -> String {
    let mut results = runs.iter().map(|(_, run)| run);
    let number = results.position(|run| window.figures(run).is_ok());
    let bounds = [("from", window.from_ns), ("to", window.to_ns)].into_iter();
    let bounds = bounds.filter(|_| number.is_some());
    let bounds = bounds.filter_map(|(name, ns)| Some(format!(" --{name} {}s", ns? as f64 / 1e9)));
    let (bounds, store) = (bounds.collect::<String>(), args.store.store.as_deref());
    let number = number.map_or(1, |index| index + 1);
    let (name, options) = (loaded.name(), store_option(store));
    let example = format!("`iosonde show {name}.{number}{bounds}{options}`");
    one_run_remedy(
        (example.as_str(), number),
        (name.as_str(), &loaded.study),
        store,
    )
}

/// Returns the runs of iosonde with their names. Results of fio have no histograms.
fn own_runs(loaded: &Loaded) -> Result<Vec<(String, &RunResult)>, CommandError> {
    let name = loaded.name();
    let mut runs = Vec::new();
    for (number, run) in (1..).zip(&loaded.study.runs) {
        let RunDocument::Run(result) = &run.document else {
            return Err(CommandError::usage(
                format!("{name} is a result of fio, which iosonde stores without histograms"),
                "run the job with `iosonde fio`, which stores the histograms and the series",
            ));
        };
        let run_name = match loaded.run {
            Some(_) => name.clone(),
            None if loaded.study.runs.len() == 1 => name.clone(),
            None => format!("{name}.{number}"),
        };
        runs.push((run_name, &**result));
    }
    match runs.is_empty() {
        true => Err(CommandError::usage(
            format!("{name} is stored without its runs"),
            "name a result that `iosonde` measured, not one that was imported from a file",
        )),
        false => Ok(runs),
    }
}

fn text_format(format: Option<PivotFormat>) -> Result<TextFormat, CommandError> {
    match format {
        None | Some(PivotFormat::Table) => Ok(TextFormat::Table),
        Some(PivotFormat::Json) => Ok(TextFormat::Json),
        Some(PivotFormat::Csv) => Ok(TextFormat::Csv),
        Some(PivotFormat::Markdown) => Ok(TextFormat::Markdown),
        Some(PivotFormat::Html) => Err(CommandError::usage(
            "--format html shows figures of --pivot, not a window or percentiles",
            "use --format table, json, csv or markdown",
        )),
    }
}
