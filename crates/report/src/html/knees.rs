//! Knee searches of a probe for the page: a curve per pattern and number of jobs.

use super::document::{PageSweep, PageSweepCell, SweepAxis, SweepCurve};
use super::page_sweep::convert_cell;
use crate::probe::limits;
use iosonde_study::probe::{Knee, ProbeResult};
use iosonde_study::sweep::SweepCell;
use std::collections::BTreeSet;

/// Returns the knee searches of a probe from `source`, or `None` if there are none.
pub(super) fn convert_knees(source: &str, result: &ProbeResult) -> Option<PageSweep> {
    let curves = result.knees.iter();
    let curves = curves.flat_map(|knee| knee_curves(result, knee));
    let curves: Vec<SweepCurve> = curves.collect();
    if curves.is_empty() {
        return None;
    }
    let depths: BTreeSet<u32> = curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(|cell| cell.iodepth))
        .collect();
    let axis = |name: &str, values: Vec<String>| SweepAxis {
        name: name.to_owned(),
        values,
    };
    let patterns = curves.iter().map(|curve| curve.values[0].clone()).collect();
    Some(PageSweep {
        source: source.to_owned(),
        target: result.target.clone(),
        headline: result.target.clone(),
        axes: vec![
            axis("rw", patterns),
            axis("iodepth", depths.iter().map(u32::to_string).collect()),
        ],
        curves,
        notes: Vec::new(),
    })
}

/// Curves of a knee search: one per number of jobs with more than one depth.
fn knee_curves(result: &ProbeResult, knee: &Knee) -> Vec<SweepCurve> {
    let found = &knee.saturation;
    let jobs: BTreeSet<u32> = found.cells.iter().map(|cell| cell.jobs).collect();
    let of_jobs = |jobs: u32| -> Vec<PageSweepCell> {
        let cells = found.cells.iter().filter(|cell| cell.jobs == jobs);
        cells
            .map(|cell| convert_cell(&SweepCell::measured(cell)))
            .collect()
    };
    let title = knee.phase.title();
    let note = limits::write_cache_note(result, knee);
    jobs.into_iter()
        .map(|jobs| (jobs, of_jobs(jobs)))
        .filter(|(_, cells)| cells.len() > 1)
        .map(|(jobs, cells)| {
            let is_best = jobs == found.jobs;
            SweepCurve {
                values: vec![match jobs {
                    1 => title.to_owned(),
                    jobs => format!("{title}, {jobs} jobs"),
                }],
                block_bytes: knee.phase.block_bytes(),
                sentence: is_best
                    .then(|| format!("{title}: {}", limits::knee_in_words(result, knee))),
                knee: found
                    .known_knee()
                    .filter(|_| is_best)
                    .map(|knee| knee.iodepth),
                notes: note.iter().cloned().collect(),
                cells,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::simulated::probed;
    use iosonde_study::probe::{ProbeBudget, ProbePhase};

    #[test]
    fn note_on_a_write_cache_belongs_to_the_curves_of_its_pattern() {
        let knees = convert_knees("file", &probed("nvme", ProbeBudget::NORMAL)).unwrap();
        assert!(knees.notes.is_empty(), "{:?}", knees.notes);
        let of_phase = |phase: ProbePhase| {
            let curves = knees.curves.iter();
            let curves = curves.filter(|curve| curve.values[0].starts_with(phase.title()));
            curves.collect::<Vec<_>>()
        };
        let writes = of_phase(ProbePhase::RandomWrite);
        assert!(!writes.is_empty(), "nothing is tested");
        for curve in writes {
            let [note] = &curve.notes[..] else {
                panic!("{:?}", curve.notes);
            };
            assert!(note.starts_with(ProbePhase::RandomWrite.title()), "{note}");
        }
        let mut reads = of_phase(ProbePhase::RandomRead).into_iter();
        assert!(reads.all(|curve| curve.notes.is_empty()));
    }
}
