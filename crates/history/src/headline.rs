//! The figures of a stored result that a list shows: those of the result, not of its single runs.

use super::record::StudyRecord;
use iosonde_job::plan::Direction;
use iosonde_result::compare::{
    Figure, Measure, ResultPart, Subject, informative_interval, without_neighbours,
};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{ProbeResult, RateEstimate};
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::{CurveState, SweepResult, compared};

/// The highest rates of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headline {
    /// Reads per second.
    pub read_iops: Option<f64>,
    /// Half the 95 % interval of `read_iops`: infinite if the interval is not known. `None`: the
    /// result has no intervals.
    pub read_iops_error: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// As `read_iops_error`.
    pub write_iops_error: Option<f64>,
    /// Bytes per second in one direction, or in both of a mix.
    pub bytes_per_s: Option<f64>,
    /// As `read_iops_error`.
    pub bytes_per_s_error: Option<f64>,
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
        let probe = study.probe(None);
        if let Some(probe) = probe.filter(|probe| !probe.figures.is_empty()) {
            return Headline::from_probe(&probe);
        }
        let mut headline = Headline::default();
        if matches!(study.kind.as_str(), "sweep" | "load" | "pts") {
            return headline;
        }
        without_neighbours(runs)
            .into_iter()
            .flat_map(|part| &part.figures)
            .for_each(|figure| headline.take(figure));
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
            let bytes_per_s = found.maximum_bytes_per_s;
            headline.take_rate(&curve.rw, estimated(iops), estimated(bytes_per_s));
        }
        headline
    }

    /// Takes the means of the phases, as all reports on a probe show them. A maximum at any depth
    /// comes from shorter runs.
    fn from_probe(probe: &ProbeResult) -> Headline {
        let mut headline = Headline::default();
        for figure in &probe.figures {
            let rw = match figure.phase.direction() {
                Direction::Read => "read",
                _ => "write",
            };
            headline.take_rate(rw, estimated(figure.iops), estimated(figure.bytes_per_s));
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
        headline.take_rate(load.options.rw(), (iops, None), (bytes_per_s, None));
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
                    headline.take_rate(rw, (cell.iops, None), (cell.bytes_per_s, None));
                }
            }
        }
        headline
    }

    /// Adds the rate of a workload, named as in fio. A mix adds only its bandwidth.
    fn take_rate(&mut self, rw: &str, iops: RateWithError, bytes_per_s: RateWithError) {
        match rw.trim_start_matches("rand") {
            "read" => raise(&mut self.read_iops, &mut self.read_iops_error, iops),
            "write" => raise(&mut self.write_iops, &mut self.write_iops_error, iops),
            _ => {}
        }
        self.raise_bandwidth(bytes_per_s);
    }

    fn take(&mut self, figure: &Figure) {
        let bounds = figure.bounds;
        let error = bounds.and_then(|bounds| {
            let (low, high) = informative_interval(figure.value, (bounds.low, bounds.high))?;
            Some((figure.value - low).max(high - figure.value))
        });
        let rate = (figure.value, Some(error.unwrap_or(f64::INFINITY)));
        match (figure.measure, figure.subject) {
            (Measure::Iops, Subject::Read) => {
                raise(&mut self.read_iops, &mut self.read_iops_error, rate);
            }
            (Measure::Iops, Subject::Write) => {
                raise(&mut self.write_iops, &mut self.write_iops_error, rate);
            }
            (Measure::BytesPerS, _) => self.raise_bandwidth(rate),
            _ => {}
        }
    }

    fn raise_bandwidth(&mut self, rate: RateWithError) {
        raise(&mut self.bytes_per_s, &mut self.bytes_per_s_error, rate);
    }
}

/// A rate and half its interval, as in [`Headline`].
type RateWithError = (f64, Option<f64>);

/// Converts an estimate, whose interval may not be known.
fn estimated(rate: RateEstimate) -> RateWithError {
    (rate.mean, Some(rate.error.unwrap_or(f64::INFINITY)))
}

/// Replaces a rate and half its interval by those of a higher rate.
fn raise(highest: &mut Option<f64>, highest_error: &mut Option<f64>, rate: RateWithError) {
    let (value, error) = rate;
    if highest.is_none_or(|highest| value > highest) {
        (*highest, *highest_error) = (Some(value), error);
    }
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
    use iosonde_result::compare::{Bounds, IntervalBasis, IoPattern, name_beside};
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

    fn headline_of(parts: &[ResultPart]) -> Headline {
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
        Headline::from_study(&study, parts)
    }

    fn of_parts(parts: &[ResultPart]) -> (Option<f64>, Option<f64>) {
        let headline = headline_of(parts);
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
    fn highest_rate_keeps_its_own_interval() {
        let mut slow = writer("slow", 200.0, 4096.0);
        let mut fast = writer("fast", 800.0, 4096.0);
        for (part, half) in [(&mut slow, 1.0), (&mut fast, 20.0)] {
            let figure = &mut part.figures[0];
            figure.bounds = Some(Bounds {
                low: figure.value - half,
                high: figure.value + half,
                freedom: 20.0,
                repeat_factor: 1.0,
                basis: IntervalBasis::Series,
            });
        }
        let headline = headline_of(&[fast, slow]);
        assert_eq!(headline.write_iops, Some(800.0));
        assert_eq!(headline.write_iops_error, Some(20.0));
        // The interval of the bandwidth is not known.
        assert_eq!(headline.bytes_per_s_error, Some(f64::INFINITY));
        assert_eq!(headline.read_iops_error, None);
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
