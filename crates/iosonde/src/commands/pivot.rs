//! `iosonde show --pivot`: figures of all stored results, by two of their labels or facts.

mod combined_figure;
mod figure;
mod promised;

use super::list::unknown_key;
use crate::args::{PivotFormat, ShowArgs};
use crate::failure::CommandError;
use crate::output::Output;
use combined_figure::combine_results;
use figure::{PivotFigure, measured, there_is};
use iosonde_history::{Filter, HistoryPath, Store, StudySummary, known_keys};
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_report::format::PivotOf;
use iosonde_report::html::HtmlReportBuilder;
use iosonde_report::pivot::{self, PivotTable, PivotTableCell};
use iosonde_suite::FigureName;
use promised::Promises;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

/// Prints the tables, or writes a page with their charts.
pub(super) fn run(args: &ShowArgs, words: &[String]) -> Result<(), CommandError> {
    let axes = parse_axes(words)?;
    let format = format(args)?;
    let figures = figures(&args.values)?;
    let promises = Promises::from_args(&args.expect)?;
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let store = crate::commands::open_history(&place)?;
    let filter = Filter {
        labels: args.labels.clone(),
        ..Filter::default()
    };
    let studies = store.list(&filter)?;
    if studies.is_empty() {
        return Err(nothing_selected(&filter, &store.keys()?));
    }
    check_keys(&studies, [&axes.0, &axes.1])?;
    let mut pivots = Vec::new();
    for (text, figure) in &figures {
        let of = args.of.unwrap_or_default();
        pivots.push(table(
            &store,
            &studies,
            (text, figure),
            (&axes, of),
            &promises,
        )?);
    }
    let cells = pivots.iter().flat_map(|pivot| pivot.cells.keys());
    let names = cells.flat_map(|(row, column)| [row.as_str(), column.as_str()]);
    promises.all_used(&names.collect())?;
    let used = |study: &&StudySummary| {
        let (row, column) = (label(study, &axes.0), label(study, &axes.1));
        let at = (row, column);
        pivots.iter().any(|pivot| pivot.cells.contains_key(&at))
    };
    let output = Output::open_report(args.output.as_deref())?;
    let text = match format {
        PivotFormat::Html => {
            let mut report = HtmlReportBuilder::default();
            for pivot in &pivots {
                report.pivot(pivot);
            }
            studies
                .iter()
                .filter(used)
                .for_each(|study| report.kept(study));
            report.html(None)?
        }
        PivotFormat::Table => pivot::tables(&pivots, output.style()),
        PivotFormat::Csv => pivot::pivot_csv(&pivots),
        PivotFormat::Markdown => pivot::markdown(&pivots),
        PivotFormat::Json => pivot::pivot_json(&pivots)?,
    };
    output.save(&text)
}

/// The format of the options, otherwise that of the file's name.
fn format(args: &ShowArgs) -> Result<PivotFormat, CommandError> {
    let is_page = |path: &std::path::PathBuf| {
        let ending = path.extension().unwrap_or_default();
        ending.eq_ignore_ascii_case("html") || ending.eq_ignore_ascii_case("htm")
    };
    let named = match args.output.as_ref().is_some_and(is_page) {
        true => PivotFormat::Html,
        false => PivotFormat::Table,
    };
    let format = args.format.unwrap_or(named);
    if format == PivotFormat::Html && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(CommandError::usage(
            "--format html writes a page for a browser, not for a terminal",
            "write the page to a file: --output pivot.html",
        ));
    }
    Ok(format)
}

/// Parses `region x device`.
fn parse_axes(words: &[String]) -> Result<(String, String), CommandError> {
    let text = words.join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [rows, "x", columns] => Ok((rows.to_owned(), columns.to_owned())),
        _ => Err(CommandError::usage(
            format!("--pivot {text}: expected two labels or facts"),
            "write e.g. --pivot region x device",
        )),
    }
}

fn figures(values: &[String]) -> Result<Vec<(String, FigureName)>, CommandError> {
    let figure = |text: &String| {
        let figure = FigureName::parse(text)
            .map_err(|error| CommandError::usage(format!("--value {error}"), error.help.clone()))?;
        Ok((text.clone(), figure))
    };
    values.iter().map(figure).collect()
}

/// The error for filters that no result matches, with the filters.
fn nothing_selected(filter: &Filter, keys: &[String]) -> CommandError {
    let labels = filter.labels.iter();
    let given: Vec<String> = labels
        .map(|(key, value)| format!("--label {key}={value}"))
        .collect();
    let problem = match given.is_empty() {
        true => "the history has no results".to_owned(),
        false => format!("no result matches {}", given.join(" ")),
    };
    let help = unknown_key(filter, keys);
    let help = help.unwrap_or_else(|| "`iosonde list` lists all results with their labels".into());
    CommandError::usage(problem, help)
}

/// Fails for a key that no result has, as it may be a typing error.
fn check_keys(studies: &[StudySummary], axes: [&String; 2]) -> Result<(), CommandError> {
    let known: BTreeSet<&str> = studies.iter().flat_map(StudySummary::keys).collect();
    for axis in axes {
        if !known.contains(axis.as_str()) {
            return Err(CommandError::usage(
                format!("--pivot: no result has the key `{axis}`"),
                known_keys(axis, known.iter().copied()),
            ));
        }
    }
    Ok(())
}

fn label(study: &StudySummary, key: &str) -> String {
    study.value_of(key).unwrap_or_else(|| "-".to_owned())
}

/// The table of one figure over all results, with promises.
fn table(
    store: &Store,
    studies: &[StudySummary],
    (text, figure): (&str, &FigureName),
    ((rows, columns), of): (&(String, String), PivotOf),
    promises: &Promises,
) -> Result<PivotTable, CommandError> {
    let mut found: BTreeMap<(String, String), Vec<(&StudySummary, PivotFigure)>> = BTreeMap::new();
    for study in studies {
        let results = measured(store, study, figure)?;
        if !results.is_empty() {
            let at = (label(study, rows), label(study, columns));
            let results = results.into_iter().map(|measured| (study, measured));
            found.entry(at).or_default().extend(results);
        }
    }
    if found.is_empty() {
        return Err(CommandError::usage(
            format!("no result has the figure {text}"),
            there_is(store, studies)?,
        ));
    }
    let mut pivot = PivotTable {
        figure: text.to_owned(),
        title: figure.to_string(),
        unit: figure.asked.unit(),
        rows: rows.clone(),
        columns: columns.clone(),
        of,
        cells: BTreeMap::new(),
        simulated: found
            .values()
            .flatten()
            .any(|(study, _)| is_simulated_name(&study.target)),
    };
    for (at, results) in found {
        let Some(side) = combine_results(&results, of, figure.asked) else {
            continue;
        };
        let values = results.iter().map(|(_, measured)| measured.value);
        let range = (
            values.clone().fold(f64::INFINITY, f64::min),
            values.fold(0.0, f64::max),
        );
        let promised = promises.of_cell(store, &at, &results, &side, pivot.unit)?;
        let cell = PivotTableCell {
            value: side.value,
            bounds: side.bounds.map(|bounds| (bounds.low, bounds.high)),
            results: results.len(),
            range,
            promised,
        };
        pivot.cells.insert(at, cell);
    }
    Ok(pivot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_without_a_match_are_named() {
        let keys = ["disk", "kind"].map(str::to_owned);
        let text = |filter: &Filter| nothing_selected(filter, &keys).text(false);
        insta::assert_snapshot!(text(&Filter::label("disk", "old")), @r"
        error: no result matches --label disk=old
        help: `iosonde list` lists all results with their labels
        ");
        let unknown = text(&Filter::label("disc", "old"));
        assert!(
            unknown.contains("no result has the key `disc`"),
            "{unknown}"
        );
        let none = nothing_selected(&Filter::default(), &keys);
        assert_eq!(none.usage_parts().0, "the history has no results");
    }
}
