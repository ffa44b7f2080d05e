//! The two sides of a comparison, as results whose parts belong together.

use super::described;
use crate::commands::named::Named;
use crate::failure::Failure;
use crate::report::comparison::runs_on;
use crate::report::probe::row;
use crate::store::{Document, KeptRun, KeptStudy, Loaded, Place, Store, Summary};
use iosonde_result::compare::{Bounds, Figure, Measure, Measured, Part, Subject};
use iosonde_result::storage::StorageUsed;
use iosonde_study::load::{LatencyCurve, LoadResult, Point};
use iosonde_study::probe::{ProbeResult, most};
use iosonde_study::sweep::{ComparedPart, SweepResult, compared};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One side: what it is called, and its results.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) results: Vec<Measured>,
    /// With their documents, where those have more to compare than the figures of their runs.
    studies: Vec<(KeptStudy, Option<u32>)>,
    /// How the runs came to their storage, where that is known.
    ways: Vec<StorageUsed>,
    /// The result, where it is a single one of the history.
    stored: Option<Box<Loaded>>,
}

impl Chosen {
    /// A file that exists, a label, or the name of a stored result.
    pub(super) fn of(word: &str, store: Option<&Path>) -> Result<Chosen, Failure> {
        match Named::of(word, store)? {
            Named::File(found) => Chosen::file(word, found),
            Named::Label(store, found) => {
                let says_more =
                    |study: &Summary| matches!(study.kind.as_str(), "probe" | "sweep" | "load");
                let say_more = found.iter().all(says_more);
                let mut chosen = Chosen::labelled(word, &found);
                for summary in &found {
                    // The figures of runs are in their summaries: one that cannot be read has them all the same.
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
            Named::Stored(loaded) => Ok(Chosen::stored(*loaded)),
        }
    }

    fn file(word: &str, mut found: Vec<KeptStudy>) -> Result<Chosen, Failure> {
        let (Some(study), true) = (found.pop(), found.is_empty()) else {
            return Err(Failure::usage(
                format!("{word}: there are results of several targets in it"),
                "import it, and compare two of the results that `iosonde list` shows then",
            ));
        };
        Ok(Chosen {
            name: format!("{word}: {}", described(&study)),
            results: vec![study.measured(word)],
            ways: storage(&study, None),
            studies: vec![(study, None)],
            stored: None,
        })
    }

    #[cfg(test)]
    pub(super) fn kept(name: &str, study: KeptStudy) -> Chosen {
        Chosen {
            name: name.to_owned(),
            results: vec![study.measured(name)],
            ways: storage(&study, None),
            studies: vec![(study, None)],
            stored: None,
        }
    }

    fn stored(loaded: Loaded) -> Chosen {
        Chosen {
            name: format!("{}: {}", loaded.name(), described(&loaded.study)),
            results: vec![loaded.measured()],
            ways: storage(&loaded.study, loaded.run),
            studies: vec![(loaded.study.clone(), loaded.run)],
            stored: Some(Box::new(loaded)),
        }
    }

    fn labelled(word: &str, studies: &[Summary]) -> Chosen {
        let machines: BTreeSet<_> = studies.iter().map(|study| &study.machine).collect();
        Chosen {
            name: format!("{word}: {}", runs_on(studies.len(), machines.len())),
            results: studies.iter().map(|study| study.measured()).collect(),
            studies: Vec::new(),
            ways: Vec::new(),
            stored: None,
        }
    }

    /// Whether the parts of the side are those of its runs, so that they can be held against other runs of the same plan.
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

    /// How its runs came to their storage; `None` where that is not known, or not the same of all.
    fn storage(&self) -> Option<&StorageUsed> {
        let (first, rest) = self.ways.split_first()?;
        let is_same = |used: &StorageUsed| used.way == first.way;
        rest.iter().all(is_same).then_some(first)
    }

    /// That the other side came another way to its storage, or through other caches.
    pub(super) fn other_way(&self, other: &Chosen) -> Option<String> {
        self.storage()?.difference(other.storage()?)
    }

    fn is_of_probes(&self) -> bool {
        let all = self.studies.iter().all(|(study, _)| study.kind == "probe");
        all && !self.studies.is_empty()
    }

    /// What all studies of the side have found, if each of them is of the kind.
    fn all<Found>(&self, of: fn(&KeptStudy, Option<u32>) -> Option<Found>) -> Option<Vec<Found>> {
        let found = self.studies.iter().map(|(study, run)| of(study, *run));
        let found: Option<Vec<Found>> = found.collect();
        found.filter(|found| !found.is_empty())
    }
}

/// The parts of earlier runs in the history with the plans and targets of the two sides, where both are single stored results.
/// Of one target only runs before both sides count: what was changed between the two is what is asked about.
pub(super) fn earlier_runs(
    a: &Chosen,
    b: &Chosen,
    store: Option<&Path>,
) -> Result<[Vec<Part>; 2], Failure> {
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
    let store = Store::open(&Place::find(store)?)?;
    Ok([
        store.earlier_runs(mine, before[0])?,
        store.earlier_runs(theirs, before[1])?,
    ])
}

/// The ways to storage of a study's runs, or of the one that is meant; what prepared it is not counted.
fn storage(study: &KeptStudy, run: Option<u32>) -> Vec<StorageUsed> {
    if let Some(sweep) = study.sweep(run) {
        return sweep.storage().into_iter().cloned().collect();
    }
    let found = study.runs.iter().filter_map(|run| match &run.document {
        Document::Run(result) if !run.parts.is_empty() => StorageUsed::of(result),
        _ => None,
    });
    found.collect()
}

/// What is compared where both sides are studies: more, or something else, than the figures of their runs.
#[derive(Default)]
pub(super) struct Studies {
    /// Parts of the first sweep, in their order; none where the sides are no sweeps.
    pub(super) sweep: Vec<ComparedPart>,
    /// What people call parts whose names are keys.
    pub(super) titles: BTreeMap<String, String>,
    /// What must be known, each in one sentence.
    pub(super) notes: Vec<String>,
}

impl Studies {
    /// Puts cells and rates in the place of runs, where both sides are sweeps or both are load studies; adds the maxima
    /// that probes have searched.
    pub(super) fn of(a: &mut Chosen, b: &mut Chosen) -> Studies {
        if a.is_of_probes() && b.is_of_probes() {
            return probes(a, b);
        }
        if let (Some(mine), Some(theirs)) = (a.all(KeptStudy::sweep), b.all(KeptStudy::sweep)) {
            return sweeps((a, mine), (b, theirs));
        }
        if let (Some(mine), Some(theirs)) = (a.all(KeptStudy::load), b.all(KeptStudy::load)) {
            return loads((a, mine), (b, theirs));
        }
        Studies::default()
    }
}

fn probes(a: &mut Chosen, b: &mut Chosen) -> Studies {
    let mut titles = BTreeMap::new();
    // What both have is called what it is called in A.
    for chosen in [b, a] {
        for (result, (study, run)) in chosen.results.iter_mut().zip(&chosen.studies) {
            // One that was cut off has its phases alone.
            if let Some(probe) = study.probe(*run) {
                titles.extend(row::titles(&probe));
                let most = most(&probe, &result.parts);
                result.parts.extend(most);
            }
        }
    }
    Studies {
        titles,
        ..Studies::default()
    }
}

fn sweeps(a: (&mut Chosen, Vec<SweepResult>), b: (&mut Chosen, Vec<SweepResult>)) -> Studies {
    let mut sides: Vec<Vec<ComparedPart>> = Vec::new();
    for (chosen, found) in [a, b] {
        let studies = chosen.studies.iter().zip(&found);
        let mut parts: Vec<Vec<ComparedPart>> = studies
            .map(|((study, _), found)| {
                compared(found, &|job, iodepth| p99_bounds(&study.runs, job, iodepth))
            })
            .collect();
        for (result, parts) in chosen.results.iter_mut().zip(&parts) {
            result.parts = parts.iter().map(|each| each.part.clone()).collect();
        }
        sides.push(parts.remove(0));
    }
    let notes = knees(&sides[0], &sides[1]);
    Studies {
        sweep: sides.remove(0),
        notes,
        ..Studies::default()
    }
}

/// The interval of a cell's 99th percentile, from the last of its runs.
fn p99_bounds(runs: &[KeptRun], job: &str, iodepth: u32) -> Option<Bounds> {
    let parts = runs.iter().rev().flat_map(|run| &run.parts);
    let mut of_cell = parts.filter(|part| part.name == job && part.pattern.iodepth == iodepth);
    let mut figures = of_cell.next()?.figures.iter();
    figures
        .find(|figure| figure.measure == Measure::LatP99)?
        .bounds
}

/// Where the knees of two curves of the same name lie, if not at the same depth.
fn knees(a: &[ComparedPart], b: &[ComparedPart]) -> Vec<String> {
    let of = |parts: &[ComparedPart], curve: &str| {
        let most = parts
            .iter()
            .find(|each| each.knee.is_some() && each.curve == curve);
        most.and_then(|each| each.knee)
    };
    let told = a.iter().filter_map(|each| {
        let (mine, theirs) = (each.knee?, of(b, &each.curve)?);
        let differ = mine != theirs;
        differ.then(|| {
            format!(
                "{}: the most is reached from iodepth {mine} on in A, from {theirs} on in B",
                each.curve
            )
        })
    });
    told.collect()
}

fn loads(a: (&mut Chosen, Vec<LoadResult>), b: (&mut Chosen, Vec<LoadResult>)) -> Studies {
    let curves = |(chosen, found): (&Chosen, &Vec<LoadResult>)| -> Vec<LatencyCurve> {
        let studies = chosen.studies.iter().zip(found);
        studies
            .map(|((study, _), found)| {
                LatencyCurve::of(found, &|point, subject, measure| {
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
            "Latencies are those at the rates that were offered to A. Where B was offered other rates, they are \
             drawn between the two nearest, and none beyond what B kept up with"
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
    runs: &[KeptRun],
    point: &Point,
    subject: Subject,
    measure: Measure,
) -> Option<Figure> {
    let is_of = |run: &&KeptRun| match &run.document {
        Document::Run(result) => point.is_of(&result.plan, result.pods.len() as u32),
        Document::Fio(_) => false,
    };
    let run = runs.iter().rev().find(is_of)?;
    let mut parts = run.parts.iter();
    parts.find_map(|part| part.figure(subject, measure).copied())
}
