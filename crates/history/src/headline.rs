//! The figures of a stored result that a list shows: those of the result, not of its single runs.

use super::record::StudyRecord;
use iosonde_job::plan::Direction;
use iosonde_result::compare::{Figure, Measure, ResultPart, Subject, without_neighbours};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::ProbeResult;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::{CurveState, SweepResult, compared};

/// The highest rates of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headline {
    /// Reads per second.
    pub read_iops: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// Bytes per second in one direction, or in both of a mix.
    pub bytes_per_s: Option<f64>,
    /// Figure of the first command of a suite, with its unit.
    pub command: Option<String>,
}

impl Headline {
    /// Computes the headline from the document of a study, or from its runs if it was cut off. The
    /// runs of a search are samples, which are no results on their own. Neighbours do not count.
    pub(super) fn from_study(study: &StudyRecord, runs: &[ResultPart]) -> Headline {
        if let Some(sweep) = study.sweep(None) {
            return Headline::from_sweep(&sweep);
        }
        if let Some(load) = study.load(None) {
            return Headline::from_load(&load);
        }
        if let Some(pts) = study.pts(None) {
            return Headline::from_pts(&pts);
        }
        let mut headline = Headline::default();
        if matches!(study.kind.as_str(), "sweep" | "load" | "pts") {
            return headline;
        }
        without_neighbours(runs)
            .into_iter()
            .flat_map(|part| &part.figures)
            .for_each(|figure| headline.take(figure));
        if let Some(probe) = study.probe(None) {
            headline.take_maxima(&probe);
        }
        if let Some(suite) = study.suite(None) {
            let mut whole = suite.steps.iter().filter(|step| step.is_whole());
            let first = whole.find_map(|step| step.command.as_deref());
            headline.command = first.map(|command| command.shown(command.value));
        }
        headline
    }

    fn from_sweep(sweep: &SweepResult) -> Headline {
        let mut headline = Headline::default();
        let measured = sweep.curves.iter();
        for curve in measured.filter(|curve| curve.state != CurveState::NotMeasured) {
            let found = curve.saturation.as_ref();
            let Some((found, iops)) = found.and_then(|found| Some((found, found.known_maximum()?)))
            else {
                continue;
            };
            headline.take_rate(&curve.rw, iops.mean, found.maximum_bytes_per_s.mean);
        }
        headline
    }

    fn from_load(load: &LoadResult) -> Headline {
        let kept_up = load
            .points
            .iter()
            .filter(|point| point.kept_up && !point.interrupted);
        let achieved = kept_up.map(|point| point.achieved_per_s());
        let Some(iops) = achieved.chain(load.capacity_iops).reduce(f64::max) else {
            return Headline::default();
        };
        let mut headline = Headline::default();
        let bytes_per_s = iops * load.options.pattern.block_bytes as f64;
        headline.take_rate(load.options.rw(), iops, bytes_per_s);
        headline
    }

    fn from_pts(pts: &PtsResult) -> Headline {
        let mut headline = Headline::default();
        for series in &pts.series {
            for (index, workload) in series.workloads.iter().enumerate() {
                let rw = match workload.read_percent {
                    100 => "read",
                    0 => "write",
                    _ => "rw",
                };
                if let Some(cell) = series.figure(index) {
                    headline.take_rate(rw, cell.iops, cell.bytes_per_s);
                }
            }
        }
        headline
    }

    /// Adds the maximum over all depths of each pattern of a probe.
    fn take_maxima(&mut self, probe: &ProbeResult) {
        for knee in &probe.knees {
            let found = &knee.saturation;
            if let Some(iops) = found.known_maximum() {
                let rw = match knee.phase.direction() {
                    Direction::Read => "read",
                    _ => "write",
                };
                self.take_rate(rw, iops.mean, found.maximum_bytes_per_s.mean);
            }
        }
    }

    /// Adds the rate of a workload, named as in fio. A mix adds only its bandwidth.
    fn take_rate(&mut self, rw: &str, iops: f64, bytes_per_s: f64) {
        match rw.trim_start_matches("rand") {
            "read" => raise(&mut self.read_iops, iops),
            "write" => raise(&mut self.write_iops, iops),
            _ => {}
        }
        raise(&mut self.bytes_per_s, bytes_per_s);
    }

    fn take(&mut self, figure: &Figure) {
        match (figure.measure, figure.subject) {
            (Measure::Iops, Subject::Read) => raise(&mut self.read_iops, figure.value),
            (Measure::Iops, Subject::Write) => raise(&mut self.write_iops, figure.value),
            (Measure::BytesPerS, _) => raise(&mut self.bytes_per_s, figure.value),
            _ => {}
        }
    }
}

fn raise(highest: &mut Option<f64>, value: f64) {
    *highest = Some(highest.map_or(value, |highest| highest.max(value)));
}

/// Returns the cells of a sweep, whose runs are samples of them, or the figures of a study's
/// document, else the parts of the runs.
pub(crate) fn shown_parts(study: &StudyRecord, runs: &[ResultPart]) -> Vec<ResultPart> {
    if let Some(parts) = study.parts_of_document() {
        return parts;
    }
    match study.sweep(None) {
        Some(sweep) => {
            let cells = compared(&sweep, &|_, _| None).into_iter();
            cells.map(|each| each.part).collect()
        }
        None => runs.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{IoPattern, name_beside};
    use std::collections::BTreeMap;

    /// A part that writes blocks of `block_bytes`.
    fn writer(name: &str, iops: f64, block_bytes: f64) -> ResultPart {
        let figure = |measure, value| Figure {
            subject: Subject::Write,
            measure,
            value,
            bounds: None,
            settled: None,
        };
        ResultPart {
            name: name.to_owned(),
            pattern: IoPattern::default(),
            figures: vec![
                figure(Measure::Iops, iops),
                figure(Measure::BytesPerS, iops * block_bytes),
            ],
        }
    }

    fn of_parts(parts: &[ResultPart]) -> (Option<f64>, Option<f64>) {
        let study = StudyRecord {
            kind: "suite".to_owned(),
            target: "/data".to_owned(),
            machine: None,
            program: String::new(),
            started_at_ms: 0,
            labels: BTreeMap::new(),
            document: None,
            runs: Vec::new(),
        };
        let headline = Headline::from_study(&study, parts);
        (headline.write_iops, headline.bytes_per_s)
    }

    #[test]
    fn neighbours_of_a_suite_are_left_out() {
        let mut parts = vec![
            writer(&name_beside("wal"), 300.0, 4096.0),
            writer("neighbour of wal", 800.0, 65536.0),
        ];
        // No part was measured alone.
        assert_eq!(of_parts(&parts), (Some(300.0), Some(300.0 * 4096.0)));
        parts.push(writer("wal", 200.0, 4096.0));
        assert_eq!(of_parts(&parts), (Some(200.0), Some(200.0 * 4096.0)));
    }

    #[test]
    fn job_named_like_a_neighbour_counts_without_one() {
        let parts = [
            writer("wal", 200.0, 4096.0),
            writer("copy of wal", 800.0, 4096.0),
        ];
        assert_eq!(of_parts(&parts).0, Some(800.0));
    }
}
