//! Document that the page draws. `web/src/document.ts` has the same types.
//!
//! The document is made for drawing: series are thinned, histograms are coarse, and data that runs
//! share (hosts, plans, targets) is in it once. iosonde's own JSON keeps everything.

use iosonde_job::plan::Plan;
use iosonde_result::host::{Host, TargetInfo};
use iosonde_result::run::{BackendUsed, CpuUse, DiskUtil, RunEvent, Verdict};
use iosonde_study::load::CellState;
use iosonde_study::sweep::CellBasis;
use serde::Serialize;
use std::collections::BTreeMap;

/// All data of the page.
#[derive(Debug, Serialize)]
pub(super) struct PageReport {
    pub(super) program: &'static str,
    pub(super) title: String,
    /// Machines, referenced by [`PageRun::host`].
    pub(super) hosts: Vec<Host>,
    /// Lists of targets, referenced by [`PageRun::targets`].
    pub(super) targets: Vec<Vec<TargetInfo>>,
    /// Plans, referenced by [`PageRun::plan`].
    pub(super) plans: Vec<Plan>,
    pub(super) studies: Vec<PageStudy>,
    pub(super) runs: Vec<PageRun>,
    pub(super) promises: Vec<PagePromise>,
    pub(super) spreads: Vec<PageSpread>,
    pub(super) sweeps: Vec<PageSweep>,
    /// Knee searches of probes.
    pub(super) knees: Vec<PageSweep>,
    pub(super) loads: Vec<PageLoad>,
    pub(super) pivots: Vec<PagePivot>,
    /// Stored results that the pivot tables use.
    pub(super) kept: Vec<PageResult>,
}

/// Pivot table: one figure of many results, by two labels.
#[derive(Debug, Serialize)]
pub(super) struct PagePivot {
    /// The figure as requested: `randread.max_iops`.
    pub(super) figure: String,
    /// Title of the figure.
    pub(super) title: String,
    pub(super) unit: PageUnit,
    pub(super) row_label: String,
    pub(super) column_label: String,
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// Cells by row and column. `None` if nothing was measured.
    pub(super) cells: Vec<Vec<Option<PivotCell>>>,
    /// Whether a result is simulated.
    pub(super) simulated: bool,
}

/// Results of a pair of label values.
#[derive(Debug, Serialize)]
pub(super) struct PivotCell {
    /// Figure of all results, by the function that `note` names.
    pub(super) value: f64,
    /// 95 % interval, if known.
    pub(super) between: Option<(f64, f64)>,
    pub(super) results: usize,
    /// Function and range of several results.
    pub(super) note: Option<String>,
    /// Published value.
    pub(super) promised: Option<f64>,
    /// Product, and source of the published value.
    pub(super) product: Option<String>,
    /// Whether the promise was kept. `None` if unknown.
    pub(super) kept: Option<bool>,
}

/// A stored result that a pivot table uses.
#[derive(Debug, Serialize)]
pub(super) struct PageResult {
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
pub(super) struct PageSweep {
    /// File or id of the result.
    pub(super) source: String,
    /// Name of the target.
    pub(super) target: String,
    /// Target, and number of measured cells.
    pub(super) headline: String,
    /// Axes. The last is `iodepth`.
    pub(super) axes: Vec<SweepAxis>,
    pub(super) curves: Vec<SweepCurve>,
    pub(super) notes: Vec<String>,
}

/// An option and its values.
#[derive(Debug, Serialize)]
pub(super) struct SweepAxis {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// All depths of one combination of the other axes.
#[derive(Debug, Serialize)]
pub(super) struct SweepCurve {
    /// Value of each axis but the last.
    pub(super) values: Vec<String>,
    /// Block size in bytes. The largest if it varies.
    pub(super) block_bytes: u64,
    /// Result in a sentence.
    pub(super) sentence: Option<String>,
    /// Lowest depth that reaches the maximum.
    pub(super) knee: Option<u32>,
    pub(super) cells: Vec<PageSweepCell>,
}

/// A depth.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageSweepCell {
    pub(super) iodepth: u32,
    /// `measured`, `predicted` or `unknown`.
    pub(super) basis: CellBasis,
    pub(super) iops: Option<PageRate>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) mean_ns: Option<f64>,
    /// Percentiles 50, 99 and 99.9. `None` if too few I/Os were measured.
    pub(super) percentiles_ns: [Option<u64>; 3],
    /// Longest latency, if measured.
    pub(super) max_ns: Option<f64>,
}

/// Load study: latency over offered rate.
#[derive(Debug, Serialize)]
pub(super) struct PageLoad {
    /// File or id of the result.
    pub(super) source: String,
    /// Name of the target.
    pub(super) target: String,
    /// Target and offered load.
    pub(super) headline: String,
    /// I/Os per second in closed loop.
    pub(super) capacity_iops: Option<f64>,
    pub(super) points: Vec<LoadPoint>,
    /// Results of the objectives and further notes, each one sentence.
    pub(super) notes: Vec<String>,
    pub(super) matrix: Option<LoadMatrix>,
}

/// An offered rate.
#[derive(Debug, Serialize)]
pub(super) struct LoadPoint {
    pub(super) offered_per_s: f64,
    pub(super) achieved_per_s: f64,
    /// Whether I/Os completed at the offered rate.
    pub(super) kept_up: bool,
    /// Percentiles 50, 95, 99 and 99.9.
    pub(super) percentiles_ns: [Option<f64>; 4],
    pub(super) max_ns: f64,
}

/// Matrix of read and write rates.
#[derive(Debug, Serialize)]
pub(super) struct LoadMatrix {
    /// Read rate of each column.
    pub(super) reads_per_s: Vec<f64>,
    /// Write rate of each row.
    pub(super) writes_per_s: Vec<f64>,
    /// Rows of cells.
    pub(super) cells: Vec<Vec<LoadCell>>,
}

/// A pair of rates.
#[derive(Debug, Serialize)]
pub(super) struct LoadCell {
    /// `measured`, `not_reached`, `predicted`, `predicted_not_reached` or `unknown`.
    pub(super) state: CellState,
    pub(super) p99_ns: Option<f64>,
}

/// Spread of the results of one label.
#[derive(Debug, Serialize)]
pub(super) struct PageSpread {
    /// `disk=old: 6 runs on 3 machines`.
    pub(super) title: String,
    pub(super) rows: Vec<SpreadRow>,
}

/// A figure of all results of a label.
#[derive(Debug, Serialize)]
pub(super) struct SpreadRow {
    /// Name of the figure, e.g. `random_read read IOPS`.
    pub(super) what: String,
    pub(super) unit: PageUnit,
    /// Geometric mean, in which each machine has the same weight.
    pub(super) mean: f64,
    pub(super) runs: usize,
    pub(super) machines: usize,
    /// Standard deviation of a machine's runs, in per cent of the mean. `None` if each has one run.
    pub(super) within_percent: Option<f64>,
    /// Further deviation between machines, in per cent of the mean. `None` for a single machine.
    pub(super) between_percent: Option<f64>,
}

/// A probe: several runs and their classification.
#[derive(Debug, Serialize)]
pub(super) struct PageStudy {
    /// File or id of the result.
    pub(super) source: String,
    pub(super) target: String,
    /// Classification of the target in one sentence.
    pub(super) sentence: String,
    /// Limits of the rate of each kind of I/O, one sentence each.
    pub(super) ceilings: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Whether the probe ended before all phases had run.
    pub(super) interrupted: bool,
    /// Bytes that were laid out and used.
    pub(super) working_set_bytes: u64,
}

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct PageRun {
    /// Names of the jobs, or the phase of a probe. The page tells runs apart.
    pub(super) name: String,
    pub(super) source: String,
    /// Index of the study that contains the run.
    pub(super) study: Option<usize>,
    /// Target as the user named it.
    pub(super) place: String,
    /// Whether the run only prepared others. Its figures are no headline.
    pub(super) preparation: bool,
    /// Whether the run belongs to a sweep or a load study, which is drawn as a whole.
    pub(super) of_grid: bool,
    pub(super) program: String,
    pub(super) started_at_ms: u64,
    pub(super) elapsed_ns: u64,
    /// `None` for a run of another program.
    pub(super) host: Option<usize>,
    /// Available memory, the one fact of the machine that differs between runs.
    pub(super) memory_available_bytes: Option<u64>,
    pub(super) targets: Option<usize>,
    /// `None` for a run of another program.
    pub(super) plan: Option<usize>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) figures: Vec<PageFigure>,
    pub(super) series: Vec<PageSeries>,
    pub(super) disks: Vec<DiskUtil>,
    /// Backends of the workers without duplicates.
    pub(super) backends: Vec<BackendUsed>,
    /// Sum over the workers.
    pub(super) cpu: Option<CpuUse>,
    pub(super) events: Vec<RunEvent>,
    pub(super) verdicts: Vec<Verdict>,
    /// Errors, each one sentence.
    pub(super) failures: Vec<String>,
}

/// Figures of a job in one direction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageFigure {
    /// Name of the job, if the run has several.
    pub(super) job: Option<String>,
    /// `read`, `write`, `trim` or `sync`.
    pub(super) direction: &'static str,
    /// fio's name of the workload, e.g. `randread`. Empty for a sum of different jobs.
    pub(super) rw: String,
    /// Smallest and largest I/O in bytes. Both are 0 for syncs.
    pub(super) block_bytes: [u64; 2],
    /// I/Os in flight per worker. 0 for a sum of different jobs.
    pub(super) iodepth: u32,
    /// Number of workers.
    pub(super) workers: u32,
    /// Engine that issued the I/O. Empty if several did.
    pub(super) engine: String,
    /// Whether O_DIRECT was in use. `None` if unknown.
    pub(super) direct: Option<bool>,
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) iops: PageRate,
    pub(super) bytes_per_s: PageRate,
    /// Whether the rate was stable. `None` if unknown.
    pub(super) settled: Option<bool>,
    /// Whether the rate's interval is as narrow as requested. `None` without a request.
    pub(super) sure: Option<bool>,
    /// `total` or `completion`.
    pub(super) latency_kind: &'static str,
    pub(super) latency: PageLatency,
}

/// A mean and half of its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct PageRate {
    pub(super) mean: f64,
    pub(super) error: Option<f64>,
}

impl PageRate {
    /// Creates a rate. An interval that reaches zero is dropped.
    pub(super) fn new(mean: f64, error: Option<f64>) -> PageRate {
        PageRate {
            mean,
            error: error.filter(|error| *error < mean),
        }
    }
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PageLatency {
    /// Number of measured I/Os. 0 if unknown; then the extremes are unknown too.
    pub(super) count: u64,
    pub(super) mean_ns: f64,
    pub(super) min_ns: f64,
    pub(super) max_ns: f64,
    /// Percentiles at the shares of `curve::tails`.
    pub(super) curve_ns: Vec<u64>,
    /// Shares of slower I/Os and their percentiles, as in tables.
    pub(super) marks: Vec<(f64, f64)>,
    /// Index and count of each coarse bucket that is not empty.
    pub(super) buckets: Vec<(usize, u64)>,
}

/// Several quantities over the same points in time.
#[derive(Debug, Serialize)]
pub(super) struct PageSeries {
    /// Subject: the run, a device, or the machine.
    pub(super) of: String,
    /// Start of each slice, in seconds since the start of the run.
    pub(super) at_s: Vec<f64>,
    /// End of the last slice.
    pub(super) end_s: f64,
    /// Number of slices at the beginning that belong to the ramp.
    pub(super) ramp: usize,
    pub(super) tracks: Vec<Track>,
}

/// One quantity over time.
#[derive(Debug, Serialize)]
pub(super) struct Track {
    /// Tracks of one group share a chart: `IOPS`, `bandwidth`, `latency`, or a device's column.
    pub(super) group: String,
    pub(super) name: String,
    pub(super) unit: PageUnit,
    pub(super) values: Vec<Option<f64>>,
}

/// Unit of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PageUnit {
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

/// A vendor's promise and the figures measured on one target.
#[derive(Debug, Serialize)]
pub(super) struct PagePromise {
    pub(super) product: String,
    pub(super) place: String,
    /// Source and date of publication.
    pub(super) source: String,
    /// Result of the comparison with a probe, in one sentence.
    pub(super) sentence: Option<String>,
    /// Conditions that were not measured or checked, each one sentence.
    pub(super) conditions: Vec<String>,
    /// A row per figure.
    pub(super) rows: Vec<PromiseRow>,
}

/// A promised figure.
#[derive(Debug, Serialize)]
pub(super) struct PromiseRow {
    /// Name of the figure, e.g. `read IOPS`.
    pub(super) what: String,
    pub(super) unit: PageUnit,
    pub(super) promised: f64,
    pub(super) measured: PageRate,
    /// Verdict in a few words.
    pub(super) verdict: String,
    /// Whether the promise was kept. `None` if unknown.
    pub(super) kept: Option<bool>,
}
