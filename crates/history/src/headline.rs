//! The figures of a stored result that a list shows: those of the result, not of its single runs.

use super::record::StudyRecord;
use iosonde_job::plan::{Direction, ReadWrite, ReadWriteMode};
use iosonde_result::compare::{
    Figure, Measure, ResultPart, Subject, informative_interval, without_neighbours,
};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult, RateEstimate};
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::{CurveState, SweepResult, compared};
use iosonde_suite::{combined_part, run_repetitions};

/// The highest rates of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headline {
    /// Reads per second.
    pub read: Option<HeadlineRate>,
    /// Writes per second.
    pub write: Option<HeadlineRate>,
    /// Bytes per second in one direction, or in both of a mix.
    pub bandwidth: Option<HeadlineRate>,
    /// Figure of the first command of a suite, with its unit.
    pub command: Option<String>,
}

/// A rate of a result, and the workload that it was measured with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeadlineRate {
    /// I/Os or bytes per second.
    pub per_s: f64,
    /// Half the 95 % interval: infinite if the interval is not known. `None`: the result has no
    /// intervals.
    pub error: Option<f64>,
    /// The workload, named as in fio, or the direction of a fio job's I/O: `reads of a mix`.
    /// `None`: the result names no more than the direction of the rate.
    pub workload: Option<String>,
    /// Depths of the workload. `None`: they are not known, or the I/O was in open loop. Those of
    /// fio jobs and of suites are not known: `iodepth` is a maximum, which synchronous engines and
    /// jobs in open loop do not use.
    pub depths: Option<HeadlineDepths>,
    /// Whether the workload is known to have run alone. If not, reads and writes may be parts of
    /// one rate.
    pub is_alone: bool,
    /// Whether the rate drifted or jumped during the run, or its test reached no steady state.
    pub is_unsteady: bool,
    /// Whether it is a maximum of a sweep. Its bandwidth does not have the digits of its rate.
    pub is_of_sweep: bool,
}

/// I/Os in flight of a rate: one depth, or several with one rate, of which it is the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadlineDepths {
    /// Number of jobs. Each has the depth.
    pub jobs: u32,
    /// Shallowest depth.
    pub from: u32,
    /// Deepest depth.
    pub to: u32,
}

impl HeadlineDepths {
    fn from_depth(jobs: u32, iodepth: u32) -> HeadlineDepths {
        HeadlineDepths {
            jobs,
            from: iodepth,
            to: iodepth,
        }
    }
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
        let suite = study.suite(None);
        // The repetitions of a suite have one figure, as in its table.
        let repetitions = suite.as_ref().map(run_repetitions).unwrap_or_default();
        for part in without_neighbours(runs) {
            for figure in &combined_part(part, &repetitions).figures {
                headline.take(&part.pattern.rw, figure);
            }
        }
        if let Some(suite) = suite {
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
            let (from, to) = found.maximum_depths();
            let jobs = found.jobs;
            let rate = HeadlineRate {
                depths: Some(HeadlineDepths { jobs, from, to }),
                is_of_sweep: true,
                ..HeadlineRate::from_workload(&curve.rw, estimated(iops))
            };
            headline.take_rate(rate, estimated(bytes_per_s));
        }
        headline
    }

    /// Takes the means of the phases, as all reports on a probe show them. A maximum at any depth
    /// comes from shorter runs. Writes that wait for a flush are another workload.
    fn from_probe(probe: &ProbeResult) -> Headline {
        let mut headline = Headline::default();
        let is_plain = |figure: &&PhaseFigure| figure.phase != ProbePhase::SyncedWrite;
        for figure in probe.figures.iter().filter(is_plain) {
            let rw = match (figure.phase.direction(), figure.phase.is_random()) {
                (Direction::Read, true) => "randread",
                (Direction::Read, false) => "read",
                (_, true) => "randwrite",
                (_, false) => "write",
            };
            let rate = HeadlineRate {
                depths: Some(HeadlineDepths::from_depth(1, figure.iodepth)),
                is_unsteady: figure.settled == Some(false),
                ..HeadlineRate::from_workload(rw, estimated(figure.iops))
            };
            headline.take_rate(rate, estimated(figure.bytes_per_s));
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
        let rate = HeadlineRate::from_workload(load.options.rw(), (iops, None));
        headline.take_rate(rate, (bytes_per_s, None));
        headline
    }

    fn from_pts(pts: &PtsResult) -> Headline {
        let mut headline = Headline::default();
        let options = &pts.options;
        let planned = options.test.series(options.preset);
        for (number, series) in pts.series.iter().enumerate() {
            let planned = planned.get(number);
            let is_random = planned.is_some_and(|series| series.random);
            let depths = planned.map(|series| {
                let (iodepth, jobs) = options.in_flight(series);
                HeadlineDepths::from_depth(jobs, iodepth)
            });
            for (index, workload) in series.workloads.iter().enumerate() {
                let rw = match (workload.read_percent, is_random) {
                    (100, true) => "randread",
                    (100, false) => "read",
                    (0, true) => "randwrite",
                    (0, false) => "write",
                    (_, true) => "randrw",
                    (_, false) => "rw",
                };
                if let Some(cell) = series.figure(index) {
                    let rate = HeadlineRate {
                        depths,
                        is_unsteady: series.steady.is_none(),
                        ..HeadlineRate::from_workload(rw, (cell.iops, None))
                    };
                    headline.take_rate(rate, (cell.bytes_per_s, None));
                }
            }
        }
        headline
    }

    /// Adds the rate of a named workload, with its bandwidth. A mix adds only its bandwidth.
    fn take_rate(&mut self, rate: HeadlineRate, (per_s, error): RateWithError) {
        let bandwidth = HeadlineRate {
            per_s,
            error,
            ..rate.clone()
        };
        raise(&mut self.bandwidth, bandwidth);
        let workload = rate.workload.as_deref().and_then(ReadWrite::from_rw);
        match workload.map(|rw| rw.mode) {
            Some(ReadWriteMode::Read) => raise(&mut self.read, rate),
            Some(ReadWriteMode::Write) => raise(&mut self.write, rate),
            _ => {}
        }
    }

    /// Adds a figure of a job with fio's `rw`, whose depth is not known.
    fn take(&mut self, rw: &str, figure: &Figure) {
        let bounds = figure.bounds;
        let error = bounds.and_then(|bounds| {
            let (low, high) = informative_interval(figure.value, (bounds.low, bounds.high))?;
            Some((figure.value - low).max(high - figure.value))
        });
        let is_mix = is_mix(rw);
        // The rate itself names a direction without a mix.
        let workload = match (figure.measure, is_mix) {
            (Measure::Iops, false) => None,
            _ => moved_direction(figure.subject, is_mix),
        };
        let rate = HeadlineRate {
            per_s: figure.value,
            error: Some(error.unwrap_or(f64::INFINITY)),
            workload: workload.map(str::to_owned),
            is_unsteady: figure.settled == Some(false),
            ..HeadlineRate::default()
        };
        match (figure.measure, figure.subject) {
            (Measure::Iops, Subject::Read) => raise(&mut self.read, rate),
            (Measure::Iops, Subject::Write) => raise(&mut self.write, rate),
            (Measure::BytesPerS, _) => raise(&mut self.bandwidth, rate),
            _ => {}
        }
    }
}

impl HeadlineRate {
    /// Returns a steady rate of a workload that is named as in fio, at an unknown depth.
    fn from_workload(rw: &str, (per_s, error): RateWithError) -> HeadlineRate {
        HeadlineRate {
            per_s,
            error,
            workload: Some(rw.to_owned()),
            is_alone: true,
            ..HeadlineRate::default()
        }
    }
}

/// Whether fio's `rw` is a mix of directions.
fn is_mix(rw: &str) -> bool {
    ReadWrite::from_rw(rw).is_some_and(|rw| rw.mode.only_direction().is_none())
}

/// Names the direction of a figure. `None`: it moves no data.
fn moved_direction(subject: Subject, is_mix: bool) -> Option<&'static str> {
    match (subject, is_mix) {
        (Subject::Read, false) => Some("reads"),
        (Subject::Read, true) => Some("reads of a mix"),
        (Subject::Write, false) => Some("writes"),
        (Subject::Write, true) => Some("writes of a mix"),
        (Subject::Trim, false) => Some("trims"),
        (Subject::Trim, true) => Some("trims of a mix"),
        (Subject::Mixed, _) => Some("all directions"),
        (Subject::Sync | Subject::LifecycleStage | Subject::Command, _) => None,
    }
}

/// A rate and half its interval, as in [`HeadlineRate`].
type RateWithError = (f64, Option<f64>);

/// Converts an estimate, whose interval may not be known.
fn estimated(rate: RateEstimate) -> RateWithError {
    (rate.mean, Some(rate.error.unwrap_or(f64::INFINITY)))
}

/// Replaces a rate by a higher one.
fn raise(highest: &mut Option<HeadlineRate>, rate: HeadlineRate) {
    let is_higher = |highest: &HeadlineRate| rate.per_s > highest.per_s;
    if highest.as_ref().is_none_or(is_higher) {
        *highest = Some(rate);
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
mod tests;
