//! The two sides of a comparison, as results with matching parts.

use super::described;
use super::mixed_targets::mixed_targets;
use crate::commands::result_ref::ResultRef;
use crate::commands::show_command::store_option;
use crate::failure::CommandError;
use iosonde_history::{HistoryPath, Loaded, RunDocument, RunRecord, StudyRecord, StudySummary};
use iosonde_job::quote_shell_word;
use iosonde_report::comparison::runs_on;
use iosonde_report::probe::row;
use iosonde_result::compare::{
    Bounds, Figure, IoPattern, Measure, MeasuredResult, ResultPart, Subject,
};
use iosonde_result::storage::StorageUsed;
use iosonde_study::load::{LatencyCurve, LoadMeasurement, LoadResult};
use iosonde_study::probe::{ProbeResult, maximum_rate_parts, most_of};
use iosonde_study::sweep::{ComparedPart, SweepResult, compared};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One side: its title and its results.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) results: Vec<MeasuredResult>,
    /// Studies whose documents add figures to those of their runs, with the chosen run.
    studies: Vec<(StudyRecord, Option<u32>)>,
    /// How the runs accessed their storage, where known.
    ways: Vec<StorageUsed>,
    /// The stored result, if the side is a single one.
    pub(super) stored: Option<Box<Loaded>>,
    /// The label and its targets, if its results are of several targets.
    mixed_targets: Option<String>,
}

impl Chosen {
    /// Reads a file that exists, a label, or the name of a stored result.
    pub(super) fn resolve(word: &str, store: Option<&Path>) -> Result<Chosen, CommandError> {
        match ResultRef::resolve(word, store)? {
            ResultRef::File(found) => Chosen::file(word, found, store),
            ResultRef::Label(store, found) => {
                let says_more = |study: &StudySummary| {
                    matches!(study.kind.as_str(), "probe" | "sweep" | "load")
                };
                let say_more = found.iter().all(says_more);
                let mut chosen = Chosen::labelled(word, &found);
                for summary in &found {
                    // Summaries have the figures of runs: unreadable documents are skipped.
                    let study = match store.load(&summary.id) {
                        Ok(loaded) => loaded.study,
                        Err(error) if say_more => return Err(error.into()),
                        Err(_) => continue,
                    };
                    chosen.ways.extend(storage(&study, None));
                    if say_more {
                        chosen.studies.push((study, None));
                    }
                }
                Ok(chosen)
            }
            ResultRef::Stored(loaded) => Ok(Chosen::stored(*loaded)),
        }
    }

    fn file(
        word: &str,
        mut found: Vec<StudyRecord>,
        store: Option<&Path>,
    ) -> Result<Chosen, CommandError> {
        let (Some(study), true) = (found.pop(), found.is_empty()) else {
            let (file, options) = (quote_shell_word(word), store_option(store));
            return Err(CommandError::usage(
                format!("{word} holds results of several targets"),
                format!(
                    "import them with `iosonde import {file}{options}`, then compare two results \
                     of `iosonde list{options}`"
                ),
            ));
        };
        Ok(Chosen {
            name: format!("{word}: {}", described(&study)),
            results: vec![study.measured(word)],
            ways: storage(&study, None),
            studies: vec![(study, None)],
            stored: None,
            mixed_targets: None,
        })
    }

    #[cfg(test)]
    pub(super) fn kept(name: &str, study: StudyRecord) -> Chosen {
        Chosen {
            name: name.to_owned(),
            results: vec![study.measured(name)],
            ways: storage(&study, None),
            studies: vec![(study, None)],
            stored: None,
            mixed_targets: None,
        }
    }

    fn stored(loaded: Loaded) -> Chosen {
        Chosen {
            name: format!("{}: {}", loaded.name(), described(&loaded.study)),
            results: vec![loaded.measured()],
            ways: storage(&loaded.study, loaded.run),
            studies: vec![(loaded.study.clone(), loaded.run)],
            stored: Some(Box::new(loaded)),
            mixed_targets: None,
        }
    }

    fn labelled(word: &str, studies: &[StudySummary]) -> Chosen {
        let machines: BTreeSet<_> = studies.iter().map(|study| &study.machine).collect();
        Chosen {
            name: format!("{word}: {}", runs_on(studies.len(), machines.len())),
            results: studies.iter().map(|study| study.measured()).collect(),
            studies: Vec::new(),
            ways: Vec::new(),
            stored: None,
            mixed_targets: mixed_targets(word, studies),
        }
    }

    /// Warning that the side, `A` or `B`, is a mean over different targets.
    pub(super) fn warning_of_targets(&self, side: &str) -> Option<String> {
        let mixed = self.mixed_targets.as_ref()?;
        Some(format!("{side}: {mixed}"))
    }

    /// Whether the side's parts are those of runs, comparable with earlier runs of the plan.
    fn is_of_runs(&self) -> bool {
        let kind = |loaded: &Loaded| {
            loaded.run.is_some() || matches!(loaded.study.kind.as_str(), "fio" | "probe")
        };
        self.stored.as_ref().is_some_and(|loaded| kind(loaded))
    }

    /// The probe, if the side is a single one.
    pub(super) fn probe(&self) -> Option<ProbeResult> {
        let [(study, run)] = &self.studies[..] else {
            return None;
        };
        study.probe(*run)
    }

    /// How the runs accessed their storage. `None` if unknown or not the same for all.
    fn storage(&self) -> Option<&StorageUsed> {
        let (first, rest) = self.ways.split_first()?;
        let is_same = |used: &StorageUsed| used.way == first.way;
        rest.iter().all(is_same).then_some(first)
    }

    /// Note that the other side used another path to its storage, or other caches.
    pub(super) fn other_way(&self, other: &Chosen) -> Option<String> {
        self.storage()?.difference(other.storage()?)
    }

    fn is_of_probes(&self) -> bool {
        let all = self.studies.iter().all(|(study, _)| study.kind == "probe");
        all && !self.studies.is_empty()
    }

    /// The values that `read` returns from all studies of the side. `None` if one has no value.
    fn read_all<Found>(
        &self,
        read: fn(&StudyRecord, Option<u32>) -> Option<Found>,
    ) -> Option<Vec<Found>> {
        let found = self.studies.iter().map(|(study, run)| read(study, *run));
        let found: Option<Vec<Found>> = found.collect();
        found.filter(|found| !found.is_empty())
    }
}

/// Earlier runs in the history with the plans and targets of two single stored results. For a
/// common target only runs before both count, as the change between the two is in question.
pub(super) fn earlier_runs(
    a: &Chosen,
    b: &Chosen,
    store: Option<&Path>,
) -> Result<[Vec<ResultPart>; 2], CommandError> {
    let (Some(mine), Some(theirs), true) = (&a.stored, &b.stored, a.is_of_runs() && b.is_of_runs())
    else {
        return Ok([Vec::new(), Vec::new()]);
    };
    let target = |loaded: &Loaded| {
        let summary = &loaded.summary;
        (summary.target.clone(), summary.machine.clone())
    };
    let started = [mine, theirs].map(|loaded| loaded.summary.started_at_ms);
    let before = match target(mine) == target(theirs) {
        true => [started[0].min(started[1]); 2],
        false => started,
    };
    let store = crate::commands::open_history(&HistoryPath::find(store)?)?;
    Ok([
        store.earlier_runs(mine, before[0])?,
        store.earlier_runs(theirs, before[1])?,
    ])
}

/// Storage access of a study's runs, or of the chosen one. Preparing runs are not counted.
fn storage(study: &StudyRecord, run: Option<u32>) -> Vec<StorageUsed> {
    if let Some(sweep) = study.sweep(run) {
        return sweep.storage().into_iter().cloned().collect();
    }
    let found = study.runs.iter().filter_map(|run| match &run.document {
        RunDocument::Run(result) if !run.parts.is_empty() => StorageUsed::from_run(result),
        _ => None,
    });
    found.collect()
}

/// Comparison data of two studies beyond, or instead of, the figures of their runs.
#[derive(Default)]
pub(super) struct Studies {
    /// Parts of the first sweep in order. Empty if the sides are not sweeps.
    pub(super) sweep: Vec<ComparedPart>,
    /// Titles of parts, by their names.
    pub(super) titles: BTreeMap<String, String>,
    /// Notes, each one sentence.
    pub(super) notes: Vec<String>,
    /// Whether one side is of probes and the other of sweeps.
    pub(super) is_of_two_kinds: bool,
}

impl Studies {
    /// Replaces parts of runs by cells or rates if both sides are sweeps or load studies. For
    /// probes, adds the maxima of searches.
    pub(super) fn from_sides(a: &mut Chosen, b: &mut Chosen) -> Studies {
        if a.is_of_probes() && b.is_of_probes() {
            return probes(a, b);
        }
        if let Some(studies) = probes_with_sweeps(a, b) {
            return studies;
        }
        if let (Some(mine), Some(theirs)) = (
            a.read_all(StudyRecord::sweep),
            b.read_all(StudyRecord::sweep),
        ) {
            return sweeps((a, mine), (b, theirs));
        }
        if let (Some(mine), Some(theirs)) =
            (a.read_all(StudyRecord::load), b.read_all(StudyRecord::load))
        {
            return loads((a, mine), (b, theirs));
        }
        Studies {
            titles: titles_of_runs(a, b),
            ..Studies::default()
        }
    }
}

fn probes(a: &mut Chosen, b: &mut Chosen) -> Studies {
    add_maxima(a);
    add_maxima(b);
    Studies {
        titles: titles_of_probes(&[&*a, &*b]),
        ..Studies::default()
    }
}

/// Adds the maxima of searches to the parts of probes. An interrupted probe has only its phases.
fn add_maxima(chosen: &mut Chosen) {
    for (result, (study, run)) in chosen.results.iter_mut().zip(&chosen.studies) {
        if let Some(probe) = study.probe(*run) {
            let most = maximum_rate_parts(&probe, &result.parts);
            result.parts.extend(most);
        }
    }
}

/// Titles of the parts of probes, those of the first side before those of the others.
fn titles_of_probes(sides: &[&Chosen]) -> BTreeMap<String, String> {
    let studies = sides.iter().flat_map(|chosen| &chosen.studies);
    let all: Vec<Option<ProbeResult>> = studies.map(|(study, run)| study.probe(*run)).collect();
    let mut titles = match all.iter().all(Option::is_some) {
        true => BTreeMap::new(),
        // A single run, or a document that cannot be read.
        false => row::usual_titles(),
    };
    let probes: Vec<&ProbeResult> = all.iter().flatten().collect();
    titles.extend(row::titles_of_probes(&probes));
    titles
}

/// Titles of the parts of runs of probes, of sides that are compared by their runs.
fn titles_of_runs(a: &Chosen, b: &Chosen) -> BTreeMap<String, String> {
    match a.is_of_probes() || b.is_of_probes() {
        true => row::usual_titles(),
        false => BTreeMap::new(),
    }
}

/// Compares the phases and maxima of probes with the cells and maxima of sweeps of the same
/// pattern. `None` if the sides are of other kinds, or a sweep has several targets.
fn probes_with_sweeps(a: &mut Chosen, b: &mut Chosen) -> Option<Studies> {
    let (probes, sweeps, kinds) = match (a.is_of_probes(), b.is_of_probes()) {
        (true, false) => (a, b, "A is a probe, B a sweep"),
        (false, true) => (b, a, "A is a sweep, B a probe"),
        _ => return None,
    };
    let found = sweeps.read_all(StudyRecord::sweep)?;
    if found.iter().any(|sweep| sweep.targets.len() > 1) {
        return None;
    }
    add_maxima(probes);
    let titles = titles_of_probes(&[&*probes]);
    for (result, (study, run)) in probes.results.iter_mut().zip(&probes.studies) {
        // Sweeps know no flushes, so a phase with flushes has no partner.
        let has_flushes = |part: &ResultPart| {
            let mut figures = part.figures.iter();
            figures.any(|figure| figure.subject == Subject::Sync)
        };
        result.parts.retain(|part| !has_flushes(part));
        if let Some(probe) = study.probe(*run) {
            set_patterns_of_maxima(&probe, &mut result.parts);
        }
    }
    // Both sides have the names of the probe.
    let parts = probes.results.iter().flat_map(|result| &result.parts);
    let names: Vec<(IoPattern, String)> = parts
        .map(|part| (part.pattern.clone(), part.name.clone()))
        .collect();
    let parts = parts_of_sweeps(sweeps, &found);
    for (result, parts) in sweeps.results.iter_mut().zip(parts) {
        // Curves that differ in another option than the pattern are no partners of a phase.
        let is_single = |part: &&ComparedPart| {
            let same = |each: &&ComparedPart| each.part.pattern == part.part.pattern;
            parts.iter().filter(same).count() == 1
        };
        let single = parts.iter().filter(is_single);
        result.parts = single
            .map(|each| with_name_of(&each.part, &names))
            .collect();
    }
    Some(Studies {
        titles,
        notes: vec![format!("{kinds}: only what both measured is compared")],
        is_of_two_kinds: true,
        ..Studies::default()
    })
}

/// Returns the part with the name that `names` has for its pattern, if there is one.
fn with_name_of(part: &ResultPart, names: &[(IoPattern, String)]) -> ResultPart {
    let found = names.iter().find(|(pattern, _)| *pattern == part.pattern);
    ResultPart {
        name: found.map_or_else(|| part.name.clone(), |(_, name)| name.clone()),
        ..part.clone()
    }
}

/// Gives each maximum of a probe the pattern of a sweep's maximum: depth 0, and its jobs.
fn set_patterns_of_maxima(probe: &ProbeResult, parts: &mut [ResultPart]) {
    for knee in &probe.knees {
        let phase = parts.iter().find(|part| part.name == knee.phase.key());
        let Some(pattern) = phase.map(|part| part.pattern.clone()) else {
            continue;
        };
        let name = most_of(knee.phase);
        if let Some(most) = parts.iter_mut().find(|part| part.name == name) {
            most.pattern = IoPattern {
                iodepth: 0,
                numjobs: knee.saturation.jobs,
                ..pattern
            };
        }
    }
}

/// Maxima and cells of each sweep of a side.
fn parts_of_sweeps(chosen: &Chosen, found: &[SweepResult]) -> Vec<Vec<ComparedPart>> {
    let studies = chosen.studies.iter().zip(found);
    let parts = studies.map(|((study, _), found)| {
        compared(found, &|job, iodepth| p99_bounds(&study.runs, job, iodepth))
    });
    parts.collect()
}

fn sweeps(a: (&mut Chosen, Vec<SweepResult>), b: (&mut Chosen, Vec<SweepResult>)) -> Studies {
    let depths = [deepest(&a.1), deepest(&b.1)];
    let is_same_range = depths[0] == depths[1];
    let mut sides: Vec<Vec<ComparedPart>> = Vec::new();
    for (chosen, found) in [a, b] {
        let mut parts = parts_of_sweeps(chosen, &found);
        if !is_same_range {
            // A maximum at any depth depends on the depths that were measured.
            let cells = |parts: &mut Vec<ComparedPart>| parts.retain(|each| each.iodepth.is_some());
            parts.iter_mut().for_each(cells);
        }
        for (result, parts) in chosen.results.iter_mut().zip(&parts) {
            result.parts = parts.iter().map(|each| each.part.clone()).collect();
        }
        sides.push(parts.remove(0));
    }
    let mut notes = knees(&sides[0], &sides[1]);
    if let ([Some(mine), Some(theirs)], false) = (depths, is_same_range) {
        notes.push(format!(
            "A has depths up to {mine}, B up to {theirs}: only cells that both measured are \
             compared"
        ));
    }
    Studies {
        sweep: sides.remove(0),
        notes,
        ..Studies::default()
    }
}

/// Deepest depth of the sweeps, measured or not.
fn deepest(found: &[SweepResult]) -> Option<u32> {
    let curves = found.iter().flat_map(|sweep| &sweep.curves);
    let cells = curves.flat_map(|curve| &curve.cells);
    cells.map(|cell| cell.iodepth).max()
}

/// Bounds of a cell's 99th percentile, from the last of its runs.
fn p99_bounds(runs: &[RunRecord], job: &str, iodepth: u32) -> Option<Bounds> {
    let parts = runs.iter().rev().flat_map(|run| &run.parts);
    let mut of_cell = parts.filter(|part| part.name == job && part.pattern.iodepth == iodepth);
    let mut figures = of_cell.next()?.figures.iter();
    figures
        .find(|figure| figure.measure == Measure::LatP99)?
        .bounds
}

/// Notes on curves of the same name whose knees are at different depths.
fn knees(a: &[ComparedPart], b: &[ComparedPart]) -> Vec<String> {
    let of = |parts: &[ComparedPart], curve: &str| {
        let most = parts
            .iter()
            .find(|each| each.knee.is_some() && each.curve == curve);
        most.and_then(|each| each.knee)
    };
    let reported = a.iter().filter_map(|each| {
        let (mine, theirs) = (each.knee?, of(b, &each.curve)?);
        let differ = mine != theirs;
        differ.then(|| {
            format!(
                "{}: A reaches its maximum at iodepth {mine}, B at iodepth {theirs}",
                each.curve
            )
        })
    });
    reported.collect()
}

fn loads(a: (&mut Chosen, Vec<LoadResult>), b: (&mut Chosen, Vec<LoadResult>)) -> Studies {
    let curves = |(chosen, found): (&Chosen, &Vec<LoadResult>)| -> Vec<LatencyCurve> {
        let studies = chosen.studies.iter().zip(found);
        studies
            .map(|((study, _), found)| {
                LatencyCurve::from_result(found, &|point, subject, measure| {
                    latency_of_run(&study.runs, point, subject, measure)
                })
            })
            .collect()
    };
    let (first, second) = (curves((a.0, &a.1)), curves((b.0, &b.1)));
    let rates: Vec<f64> = first[0].rates().collect();
    let mut drawn = 0;
    for (chosen, curves) in [(a.0, first), (b.0, second)] {
        for (result, curve) in chosen.results.iter_mut().zip(curves) {
            let (parts, count) = curve.at(&rates);
            result.parts = parts;
            drawn += count;
        }
    }
    let mut notes = Vec::new();
    if drawn > 0 {
        notes.push(
            "Latencies are those at the rates offered to A. Where B was offered other rates, its \
             latencies are interpolated between the two nearest rates; above the rate that B \
             sustained there are none"
                .to_owned(),
        );
    }
    Studies {
        notes,
        ..Studies::default()
    }
}

/// A latency of the last run that offered this load.
fn latency_of_run(
    runs: &[RunRecord],
    point: &LoadMeasurement,
    subject: Subject,
    measure: Measure,
) -> Option<Figure> {
    let is_of = |run: &&RunRecord| match &run.document {
        RunDocument::Run(result) => point.is_of(&result.plan, result.pods.len() as u32),
        RunDocument::Fio(_) => false,
    };
    let run = runs.iter().rev().find(is_of)?;
    let mut parts = run.parts.iter();
    parts.find_map(|part| part.figure(subject, measure).copied())
}
