//! The document that the page draws. `web/src/document.ts` has the same types.
//!
//! It is made for drawing, not for keeping: series are thinned out, histograms are coarse, and what many runs share (their
//! machine, plans and targets) is in it once. Our own JSON is the format that keeps everything.

use iosonde_job::plan::Plan;
use iosonde_result::host::{Host, TargetInfo};
use iosonde_result::run::{BackendUsed, CpuUse, DiskUtil, Event, Verdict};
use iosonde_study::load::CellState;
use iosonde_study::sweep::Basis;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything on the page.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) program: &'static str,
    pub(super) title: String,
    /// Machines that [`Run::host`] points to.
    pub(super) hosts: Vec<Host>,
    /// Lists of targets that [`Run::targets`] points to.
    pub(super) targets: Vec<Vec<TargetInfo>>,
    /// Plans that [`Run::plan`] points to.
    pub(super) plans: Vec<Plan>,
    pub(super) studies: Vec<Study>,
    pub(super) runs: Vec<Run>,
    pub(super) promises: Vec<Promise>,
    pub(super) spreads: Vec<Spread>,
    pub(super) sweeps: Vec<Sweep>,
    /// The searches of probes for the most at any depth.
    pub(super) knees: Vec<Sweep>,
    pub(super) loads: Vec<Load>,
    pub(super) pivots: Vec<Pivot>,
    /// Results that the pivots are made of.
    pub(super) kept: Vec<Kept>,
}

/// One figure of many results, by two of their labels.
#[derive(Debug, Serialize)]
pub(super) struct Pivot {
    /// As it was asked for: `randread.max_iops`.
    pub(super) figure: String,
    /// For people.
    pub(super) title: String,
    pub(super) unit: Unit,
    pub(super) row_label: String,
    pub(super) column_label: String,
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// By row and column; `None` where nothing was measured.
    pub(super) cells: Vec<Vec<Option<PivotCell>>>,
    /// Whether any of it was simulated.
    pub(super) simulated: bool,
}

/// Results of one pair of labels.
#[derive(Debug, Serialize)]
pub(super) struct PivotCell {
    /// Of several results what `note` says.
    pub(super) value: f64,
    /// Its 95 % interval, where it is known.
    pub(super) between: Option<(f64, f64)>,
    pub(super) results: usize,
    /// What it is of several results, and between what they lie.
    pub(super) note: Option<String>,
    /// What is promised of it.
    pub(super) promised: Option<f64>,
    /// By whom, and where that was published.
    pub(super) product: Option<String>,
    /// Whether it was kept; `None` when that cannot be told.
    pub(super) kept: Option<bool>,
}

/// A stored result that a figure is of.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: String,
    pub(super) machine: Option<String>,
    pub(super) program: String,
    pub(super) started_at_ms: u64,
    pub(super) labels: BTreeMap<String, String>,
}

/// A grid of measurements.
#[derive(Debug, Serialize)]
pub(super) struct Sweep {
    /// File or id that it came from.
    pub(super) source: String,
    /// The target, and how many cells were measured.
    pub(super) headline: String,
    /// The axes; the last is `iodepth`.
    pub(super) axes: Vec<SweepAxis>,
    pub(super) curves: Vec<SweepCurve>,
    pub(super) notes: Vec<String>,
}

/// An option, and its values.
#[derive(Debug, Serialize)]
pub(super) struct SweepAxis {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// All depths of one combination of the other axes.
#[derive(Debug, Serialize)]
pub(super) struct SweepCurve {
    /// The value of each axis but the last.
    pub(super) values: Vec<String>,
    /// Bytes of each I/O; the largest where they vary.
    pub(super) block_bytes: u64,
    /// What was found.
    pub(super) sentence: Option<String>,
    /// The lowest depth that reaches the maximum.
    pub(super) knee: Option<u32>,
    pub(super) cells: Vec<SweepCell>,
}

/// One depth.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SweepCell {
    pub(super) iodepth: u32,
    /// `measured`, `predicted` or `unknown`.
    pub(super) basis: Basis,
    pub(super) iops: Option<Rate>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) mean_ns: Option<f64>,
    /// Percentiles 50, 99 and 99.9; `None` where too few I/Os were measured.
    pub(super) percentiles_ns: [Option<u64>; 3],
    /// The longest, where it was measured.
    pub(super) max_ns: Option<f64>,
}

/// Latency over offered rate.
#[derive(Debug, Serialize)]
pub(super) struct Load {
    /// File or id that it came from.
    pub(super) source: String,
    /// The target, and what was offered.
    pub(super) headline: String,
    /// I/Os per second in closed loop.
    pub(super) capacity_iops: Option<f64>,
    pub(super) points: Vec<LoadPoint>,
    /// What came of the objectives, and what else should be known, each in one sentence.
    pub(super) notes: Vec<String>,
    pub(super) matrix: Option<LoadMatrix>,
}

/// One offered rate.
#[derive(Debug, Serialize)]
pub(super) struct LoadPoint {
    pub(super) offered_per_s: f64,
    pub(super) achieved_per_s: f64,
    /// Whether as much was completed as was offered.
    pub(super) kept_up: bool,
    /// Percentiles 50, 95, 99 and 99.9.
    pub(super) percentiles_ns: [Option<f64>; 4],
    pub(super) max_ns: f64,
}

/// Pairs of read and write rates.
#[derive(Debug, Serialize)]
pub(super) struct LoadMatrix {
    /// By column.
    pub(super) reads_per_s: Vec<f64>,
    /// By row.
    pub(super) writes_per_s: Vec<f64>,
    /// Rows of cells.
    pub(super) cells: Vec<Vec<LoadCell>>,
}

/// One pair of rates.
#[derive(Debug, Serialize)]
pub(super) struct LoadCell {
    /// `measured`, `not_reached`, `predicted`, `predicted_not_reached` or `unknown`.
    pub(super) state: CellState,
    pub(super) p99_ns: Option<f64>,
}

/// How far results of one label lie apart.
#[derive(Debug, Serialize)]
pub(super) struct Spread {
    /// `disk=old: 6 runs on 3 machines`.
    pub(super) title: String,
    pub(super) rows: Vec<SpreadRow>,
}

/// One figure of all results of a label.
#[derive(Debug, Serialize)]
pub(super) struct SpreadRow {
    /// Which, e.g. `random_read read IOPS`.
    pub(super) what: String,
    pub(super) unit: Unit,
    /// Geometric mean, in which each machine has the same weight.
    pub(super) mean: f64,
    pub(super) runs: usize,
    pub(super) machines: usize,
    /// Standard deviation from run to run on one machine, in per cent of the mean; `None` where no machine has two runs.
    pub(super) within_percent: Option<f64>,
    /// From machine to machine beyond that; `None` where there is only one.
    pub(super) between_percent: Option<f64>,
}

/// A probe: several runs and what they say together.
#[derive(Debug, Serialize)]
pub(super) struct Study {
    /// File or id that it came from.
    pub(super) source: String,
    pub(super) target: String,
    /// What the target is like, in one sentence.
    pub(super) sentence: String,
    pub(super) notes: Vec<String>,
    /// Whether it ended before all phases had run.
    pub(super) interrupted: bool,
    /// Bytes that were laid out and used.
    pub(super) working_set_bytes: u64,
}

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// Short, and like that of no other run.
    pub(super) name: String,
    pub(super) source: String,
    /// Index of the study that it is part of.
    pub(super) study: Option<usize>,
    /// What was measured, as the user wrote it.
    pub(super) place: String,
    /// Whether it only prepared others: its figures are no headline.
    pub(super) preparation: bool,
    /// Whether it is one of many of a sweep or a load study, which is drawn as a whole.
    pub(super) of_grid: bool,
    pub(super) program: String,
    pub(super) started_at_ms: u64,
    pub(super) elapsed_ns: u64,
    /// `None` for a run of another program.
    pub(super) host: Option<usize>,
    /// The one fact of the machine that differs from run to run.
    pub(super) memory_available_bytes: Option<u64>,
    pub(super) targets: Option<usize>,
    /// `None` for a run of another program.
    pub(super) plan: Option<usize>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) figures: Vec<Figure>,
    pub(super) series: Vec<Series>,
    pub(super) disks: Vec<DiskUtil>,
    /// Each way in which I/O was issued, once.
    pub(super) backends: Vec<BackendUsed>,
    /// Sum over the workers.
    pub(super) cpu: Option<CpuUse>,
    pub(super) events: Vec<Event>,
    pub(super) verdicts: Vec<Verdict>,
    /// Errors, each in one sentence.
    pub(super) failures: Vec<String>,
}

/// What one job moved in one direction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figure {
    /// Name of the job, where the run has several.
    pub(super) job: Option<String>,
    /// `read`, `write`, `trim` or `sync`.
    pub(super) direction: &'static str,
    /// fio's name of the workload, e.g. `randread`; empty for a sum of jobs that differ.
    pub(super) rw: String,
    /// Smallest and largest I/O in bytes; both 0 for syncs.
    pub(super) block_bytes: [u64; 2],
    /// I/Os that each worker keeps in flight; 0 for a sum of jobs that differ.
    pub(super) iodepth: u32,
    /// How many workers.
    pub(super) workers: u32,
    /// What issued the I/O; empty where several did.
    pub(super) engine: String,
    /// Whether O_DIRECT was in force; `None` where that is not known.
    pub(super) direct: Option<bool>,
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) iops: Rate,
    pub(super) bytes_per_s: Rate,
    /// Whether the rate held still; `None` when that cannot be told.
    pub(super) settled: Option<bool>,
    /// Whether the interval of the rate is as narrow as was asked for; `None` where nothing was.
    pub(super) sure: Option<bool>,
    /// `total` or `completion`.
    pub(super) latency_kind: &'static str,
    pub(super) latency: Latency,
}

/// A mean and half of its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Rate {
    pub(super) mean: f64,
    pub(super) error: Option<f64>,
}

impl Rate {
    /// A mean with half of its interval, where that does not reach zero.
    pub(super) fn of(mean: f64, error: Option<f64>) -> Rate {
        Rate {
            mean,
            error: error.filter(|error| *error < mean),
        }
    }
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Latency {
    /// How many were measured; 0 where that is not known, and then the extremes are not either.
    pub(super) count: u64,
    pub(super) mean_ns: f64,
    pub(super) min_ns: f64,
    pub(super) max_ns: f64,
    /// Percentiles, at the places that `curve::tails` gives.
    pub(super) curve_ns: Vec<u64>,
    /// Shares of slower I/Os and the percentiles there: those that tables show.
    pub(super) marks: Vec<(f64, f64)>,
    /// Index and count of each coarse bucket that is not empty.
    pub(super) buckets: Vec<(usize, u64)>,
}

/// Values over time, all at the same points.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    /// Of what: the run itself, a device, or the machine.
    pub(super) of: String,
    /// Start of each slice, in seconds since the start of the run.
    pub(super) at_s: Vec<f64>,
    /// End of the last slice.
    pub(super) end_s: f64,
    /// How many slices at the beginning belong to the ramp.
    pub(super) ramp: usize,
    pub(super) tracks: Vec<Track>,
}

/// One quantity over time.
#[derive(Debug, Serialize)]
pub(super) struct Track {
    /// Tracks of one group share a chart: `IOPS`, `bandwidth`, `latency`, or a device's column.
    pub(super) group: String,
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) values: Vec<Option<f64>>,
}

/// What numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerS,
    /// Nanoseconds.
    Ns,
    /// Per cent.
    Percent,
    /// No unit.
    Count,
}

/// What a vendor promises, beside what was measured in one place.
#[derive(Debug, Serialize)]
pub(super) struct Promise {
    pub(super) product: String,
    pub(super) place: String,
    /// Where it is published, and as of when.
    pub(super) source: String,
    /// What came of it in one sentence, where it was held against a probe.
    pub(super) sentence: Option<String>,
    /// What of it was not measured or not checked, each in one sentence.
    pub(super) conditions: Vec<String>,
    /// One for each figure.
    pub(super) rows: Vec<PromiseRow>,
}

/// One promised figure.
#[derive(Debug, Serialize)]
pub(super) struct PromiseRow {
    /// Which, e.g. `read IOPS`.
    pub(super) what: String,
    pub(super) unit: Unit,
    pub(super) promised: f64,
    pub(super) measured: Rate,
    /// What came of it, in a few words.
    pub(super) verdict: String,
    /// Whether the promise was kept; `None` when that cannot be told.
    pub(super) kept: Option<bool>,
}
