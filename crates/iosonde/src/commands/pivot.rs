//! `iosonde show --pivot`: figures of all stored results, by two of their labels.

mod figure;
mod promised;

use crate::args::{PivotFormat, PivotOf, ShowArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::html::Builder;
use crate::report::pivot::{self, Cell, Pivot};
use crate::store::{Filter, Place, Store, Summary};
use figure::{Measured, measured, there_is, together};
use iosonde_job::diagnostic::nearest;
use iosonde_study::suite::FigureName;
use promised::Promises;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

/// What can stand for a label: what is known of every result.
const KNOWN: [&str; 3] = ["target", "machine", "kind"];

/// Prints the tables, or writes a page with their charts.
pub(super) fn run(args: &ShowArgs, words: &[String]) -> Result<(), Failure> {
    let axes = axes(words)?;
    let format = format(args)?;
    let figures = figures(&args.values)?;
    let promises = Promises::of(&args.expect)?;
    let place = Place::find(args.store.store.as_deref())?;
    let store = Store::open(&place)?;
    let studies = store.list(&Filter {
        labels: args.labels.clone(),
        ..Filter::default()
    })?;
    check_labels(&studies, [&axes.0, &axes.1])?;
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
    promises.all_used()?;
    let used = |study: &&Summary| {
        let (row, column) = (label(study, &axes.0), label(study, &axes.1));
        let at = (row, column);
        pivots.iter().any(|pivot| pivot.cells.contains_key(&at))
    };
    let text = match format {
        PivotFormat::Html => {
            let mut report = Builder::default();
            for pivot in &pivots {
                report.pivot(pivot);
            }
            studies
                .iter()
                .filter(used)
                .for_each(|study| report.kept(study));
            report.html(None)?
        }
        PivotFormat::Table => pivot::tables(&pivots),
        PivotFormat::Csv => pivot::csv(&pivots),
        PivotFormat::Markdown => pivot::markdown(&pivots),
        PivotFormat::Json => pivot::json(&pivots)?,
    };
    Output::open(args.output.as_deref())?.save(&text)
}

/// As asked, else as the file is called.
fn format(args: &ShowArgs) -> Result<PivotFormat, Failure> {
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
        return Err(Failure::usage(
            "charts are a file for a browser, not for a terminal",
            "name the file: --output pivot.html",
        ));
    }
    Ok(format)
}

/// `region x device`.
fn axes(words: &[String]) -> Result<(String, String), Failure> {
    let text = words.join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [rows, "x", columns] => Ok((rows.to_owned(), columns.to_owned())),
        _ => Err(Failure::usage(
            format!("--pivot {text}: not two labels"),
            "write for example --pivot region x device",
        )),
    }
}

fn figures(values: &[String]) -> Result<Vec<(String, FigureName)>, Failure> {
    let figure = |text: &String| {
        let figure = FigureName::parse(text)
            .map_err(|error| Failure::usage(format!("--value {error}"), error.help.clone()))?;
        Ok((text.clone(), figure))
    };
    values.iter().map(figure).collect()
}

/// A label that no result has is a slip of the pen.
fn check_labels(studies: &[Summary], axes: [&String; 2]) -> Result<(), Failure> {
    let known: BTreeSet<&str> = studies
        .iter()
        .flat_map(|study| study.labels.keys().map(String::as_str))
        .chain(KNOWN)
        .collect();
    for axis in axes {
        if !known.contains(axis.as_str()) {
            let help = match nearest(axis, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "there are {}",
                    known.into_iter().collect::<Vec<_>>().join(", ")
                ),
            };
            return Err(Failure::usage(
                format!("no result has the label `{axis}`"),
                help,
            ));
        }
    }
    Ok(())
}

fn label(study: &Summary, key: &str) -> String {
    let own = study.labels.get(key).cloned();
    own.or_else(|| match key {
        "target" => Some(study.target.clone()),
        "machine" => study.machine.clone(),
        "kind" => Some(study.kind.clone()),
        _ => None,
    })
    .unwrap_or_else(|| "-".to_owned())
}

/// One figure of all results, with what was promised of it.
fn table(
    store: &Store,
    studies: &[Summary],
    (text, figure): (&str, &FigureName),
    ((rows, columns), of): (&(String, String), PivotOf),
    promises: &Promises,
) -> Result<Pivot, Failure> {
    let mut found: BTreeMap<(String, String), Vec<(&Summary, Measured)>> = BTreeMap::new();
    for study in studies {
        let results = measured(store, study, figure)?;
        if !results.is_empty() {
            let at = (label(study, rows), label(study, columns));
            let results = results.into_iter().map(|measured| (study, measured));
            found.entry(at).or_default().extend(results);
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(
            format!("no result has {text}"),
            there_is(store, studies)?,
        ));
    }
    let mut pivot = Pivot {
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
            .any(|(study, _)| study.target.starts_with("sim:")),
    };
    for (at, results) in found {
        let Some(side) = together(&results, of, figure.asked) else {
            continue;
        };
        let values = results.iter().map(|(_, measured)| measured.value);
        let range = (
            values.clone().fold(f64::INFINITY, f64::min),
            values.fold(0.0, f64::max),
        );
        let promised = promises.of_cell(store, &at, &results, &side, pivot.unit)?;
        let cell = Cell {
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
