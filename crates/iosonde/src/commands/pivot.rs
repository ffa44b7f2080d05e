//! `iosonde show --pivot`: one figure of all stored results, by two of their labels.

use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::pivot::{self, Cell, Pivot};
use crate::store::{Filter, Place, Store, Summary};
use iosonde_job::diagnostic::nearest;
use iosonde_result::compare::{Measure, Part, Subject};
use iosonde_study::suite::{Asked, FigureName, Found, FoundKind, Named, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// What can stand for a label: what is known of every result.
const KNOWN: [&str; 3] = ["target", "machine", "kind"];

/// Prints the table.
pub(super) fn run(args: &ShowArgs, words: &[String]) -> Result<(), Failure> {
    let (rows, columns) = axes(words)?;
    let value = args.value.as_deref().unwrap_or_default();
    let figure = FigureName::parse(value)
        .map_err(|error| Failure::usage(format!("--value {error}"), error.help.clone()))?;
    let place = Place::find(args.store.store.as_deref())?;
    let store = Store::open(&place)?;
    let studies = store.list(&Filter {
        labels: args.labels.clone(),
        ..Filter::default()
    })?;
    check_labels(&studies, [&rows, &columns])?;
    let mut cells: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    let mut simulated = false;
    for study in &studies {
        let Some(found) = measured(&store, study, &figure)? else {
            continue;
        };
        simulated |= study.target.starts_with("sim:");
        let at = (label(study, &rows), label(study, &columns));
        cells.entry(at).or_default().push(found);
    }
    if cells.is_empty() {
        return Err(Failure::usage(
            format!("no result has {value}"),
            "name a job, a phase or a pattern with its figure, e.g. randread.iops; `iosonde list` shows what there is",
        ));
    }
    let pivot = Pivot {
        figure: value.to_owned(),
        unit: figure.asked.unit(),
        rows,
        columns,
        cells: cells
            .into_iter()
            .map(|(at, all)| (at, mean(&all)))
            .collect(),
        simulated,
    };
    Output::Standard.write(pivot::text(&pivot, args.format)?.as_bytes())
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

fn mean(all: &[f64]) -> Cell {
    let logs: f64 = all.iter().map(|value| value.ln()).sum();
    Cell {
        value: (logs / all.len() as f64).exp(),
        results: all.len(),
    }
}

/// Parts as names look for them.
struct OfPart<'a>(&'a Part);

impl Named for OfPart<'_> {
    fn name(&self) -> &str {
        &self.0.name
    }
    fn workload(&self) -> &str {
        &self.0.name
    }
    fn rw(&self) -> &str {
        &self.0.pattern.rw
    }
}

/// What a study found, as names look for it.
struct OfFound(Found);

impl Named for OfFound {
    fn name(&self) -> &str {
        &self.0.part
    }
    fn workload(&self) -> &str {
        &self.0.part
    }
    fn rw(&self) -> &str {
        &self.0.rw
    }
}

/// The figure of one result; `None` where it has none.
fn measured(store: &Store, study: &Summary, figure: &FigureName) -> Result<Option<f64>, Failure> {
    let kind = match figure.asked {
        Asked::Measure(_) => return of_parts(study, figure),
        Asked::MaxIops => FoundKind::MaxIops,
        Asked::MaxBandwidth => FoundKind::MaxBytesPerS,
        Asked::Knee => FoundKind::Knee,
        Asked::Rate => FoundKind::Rate,
    };
    // What a search found is surer than the best of its short cells.
    if matches!(study.kind.as_str(), "suite" | "sweep") {
        let loaded = store.load(&study.id)?;
        let found = match (loaded.study.suite(None), loaded.study.sweep(None)) {
            (Some(suite), _) => suite
                .steps
                .into_iter()
                .flat_map(|step| step.found)
                .collect(),
            (None, Some(sweep)) => Found::of_sweep("", &sweep),
            (None, None) => Vec::new(),
        };
        let found: Vec<OfFound> = found
            .into_iter()
            .filter(|one| one.kind == kind)
            .map(OfFound)
            .collect();
        let picked = figure
            .pick(&found)
            .map(|(picked, _)| picked)
            .unwrap_or_default();
        let highest = picked.iter().map(|one| one.0.value).fold(0.0, f64::max);
        if highest > 0.0 {
            return Ok(Some(highest));
        }
    }
    of_parts(study, figure)
}

fn of_parts(study: &Summary, figure: &FigureName) -> Result<Option<f64>, Failure> {
    let Some(measure) = figure.asked.measure() else {
        return Ok(None);
    };
    let parts: Vec<OfPart<'_>> = study.parts.iter().map(OfPart).collect();
    let Some((picked, subject)) = figure.pick(&parts) else {
        return Ok(None);
    };
    let mut values: Vec<(&str, f64)> = Vec::new();
    for part in picked {
        let subjects = [Subject::Read, Subject::Write, Subject::Mixed, Subject::Trim];
        let subjects = subject.map_or(subjects.to_vec(), |subject| vec![subject]);
        for subject in subjects {
            if let Some(value) = value(part.0, subject, measure) {
                values.push((part.name(), value));
            }
        }
    }
    let names: BTreeSet<&str> = values.iter().map(|(name, _)| *name).collect();
    if !figure.asked.is_highest() && names.len() > 1 && figure.asked.unit() != Unit::Depth {
        let names: Vec<&str> = names.into_iter().take(8).collect();
        return Err(Failure::usage(
            format!(
                "{} has several parts of that name: {}",
                study.short_id,
                names.join(", ")
            ),
            "name one of them, or ask for the highest: max_iops, max_bw",
        ));
    }
    let highest = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    Ok((highest > 0.0).then_some(highest))
}

fn value(part: &Part, subject: Subject, measure: Measure) -> Option<f64> {
    let completion = Measure::ALL
        .into_iter()
        .find(|each| each.of_total() == Some(measure));
    let figure = part.figure(subject, measure);
    let figure = figure.or_else(|| part.figure(subject, completion?));
    figure.map(|figure| figure.value)
}
