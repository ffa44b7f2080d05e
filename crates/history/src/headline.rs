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
    /// Workload of `read_iops`, named as in fio. `None`: the result does not name it.
    pub read_workload: Option<String>,
    /// Half the 95 % interval of `read_iops`: infinite if the interval is not known. `None`: the
    /// result has no intervals.
    pub read_iops_error: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// As `read_workload`.
    pub write_workload: Option<String>,
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
            let rw = match (figure.phase.direction(), figure.phase.is_random()) {
                (Direction::Read, true) => "randread",
                (Direction::Read, false) => "read",
                (_, true) => "randwrite",
                (_, false) => "write",
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
        let options = &pts.options;
        let planned = options.test.series(options.preset);
        for (number, series) in pts.series.iter().enumerate() {
            let is_random = planned.get(number).is_some_and(|series| series.random);
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
                    headline.take_rate(rw, (cell.iops, None), (cell.bytes_per_s, None));
                }
            }
        }
        headline
    }

    /// Adds the rate of a workload, named as in fio. A mix adds only its bandwidth.
    fn take_rate(&mut self, rw: &str, iops: RateWithError, bytes_per_s: RateWithError) {
        let workload = || Some(rw.to_owned());
        match rw.trim_start_matches("rand") {
            "read" if raise(&mut self.read_iops, &mut self.read_iops_error, iops) => {
                self.read_workload = workload();
            }
            "write" if raise(&mut self.write_iops, &mut self.write_iops_error, iops) => {
                self.write_workload = workload();
            }
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

/// Replaces a rate and half its interval by those of a higher rate. Returns whether it did.
fn raise(highest: &mut Option<f64>, highest_error: &mut Option<f64>, rate: RateWithError) -> bool {
    let (value, error) = rate;
    let is_higher = highest.is_none_or(|highest| value > highest);
    if is_higher {
        (*highest, *highest_error) = (Some(value), error);
    }
    is_higher
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
    use iosonde_study::probe::StudyTargetKind;
    use iosonde_study::pts::{
        PtsCell, PtsOptions, PtsPreset, PtsRound, PtsTest, PtsWorkload, Purge, SeriesResult,
        Tracked,
    };
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
    fn highest_rate_names_its_workload() {
        let mut headline = Headline::default();
        for (rw, iops) in [
            ("read", 5.0),
            ("randread", 10.0),
            ("read", 7.0),
            ("rw", 20.0),
        ] {
            headline.take_rate(rw, (iops, None), (iops, None));
        }
        assert_eq!(headline.read_workload.as_deref(), Some("randread"));
        assert_eq!(headline.write_workload, None);
    }

    /// A test of SNIA with one round of reads and writes, of 100 and 200 I/Os per second.
    fn pts_of(test: PtsTest) -> PtsResult {
        let workload = |read_percent| PtsWorkload {
            read_percent,
            block_bytes: 4096,
        };
        let cell = |iops: f64| {
            Some(PtsCell {
                iops,
                bytes_per_s: 4096.0 * iops,
                mean_ns: 1e6,
                p99_ns: None,
                p99_9_ns: None,
                max_ns: 1e7,
            })
        };
        PtsResult {
            format: iosonde_study::pts::FORMAT,
            target: "sim".to_owned(),
            kind: StudyTargetKind::Simulated {
                options: String::new(),
            },
            options: PtsOptions {
                test,
                preset: PtsPreset::Client,
                time_scale: 1.0,
                most_rounds: 25,
                iodepth: 16,
                numjobs: 2,
                purge: Purge::None,
                size_bytes: None,
                seed: 1,
            },
            bytes: 1 << 30,
            direct: true,
            series: vec![SeriesResult {
                purged: false,
                filled_bytes: 0,
                workloads: vec![workload(100), workload(0)],
                value: Tracked::Iops,
                rounds: vec![PtsRound {
                    cells: vec![cell(100.0), cell(200.0)],
                    written_bytes: 0.0,
                }],
                steady: None,
            }],
            deviations: Vec::new(),
            interrupted: false,
            failure: None,
            error: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn workload_of_random_test_is_named_as_in_fio() {
        let names = |test| {
            let headline = Headline::from_pts(&pts_of(test));
            [headline.read_workload, headline.write_workload]
        };
        let named = |names: [&str; 2]| names.map(|name| Some(name.to_owned()));
        assert_eq!(names(PtsTest::Iops), named(["randread", "randwrite"]));
        assert_eq!(names(PtsTest::Latency), named(["randread", "randwrite"]));
        assert_eq!(names(PtsTest::Throughput), named(["read", "write"]));
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
