//! Document that the page draws. `web/src/document.ts` has the same types.
//!
//! The document is made for drawing: series are thinned, histograms are coarse, and data that runs
//! share (hosts, plans, targets) is in it once. iosonde's own JSON keeps everything.

pub(crate) use super::page_figure_texts::PageFigureTexts;
pub(crate) use super::page_rate::PageRate;
use crate::load::objective_limits::ObjectiveLimit;
pub(crate) use crate::load::rate_state::RateState;
use iosonde_job::plan::Plan;
use iosonde_result::compare::Subject;
use iosonde_result::host::{Host, TargetInfo};
use iosonde_result::run::{BackendUsed, CpuUse, DiskUtil, RunEvent, Verdict};
use iosonde_study::load::CellState;
use iosonde_study::probe::ProbePhase;
use iosonde_study::sweep::CellBasis;
use serde::Serialize;
use std::collections::BTreeMap;

/// All data of the page.
#[derive(Debug, Serialize)]
pub(crate) struct PageReport {
    pub(crate) program: &'static str,
    pub(crate) title: String,
    /// Machines, referenced by [`PageRun::host`].
    pub(crate) hosts: Vec<Host>,
    /// Lists of targets, referenced by [`PageRun::targets`].
    pub(crate) targets: Vec<Vec<TargetInfo>>,
    /// Plans, referenced by [`PageRun::plan`].
    pub(crate) plans: Vec<Plan>,
    pub(crate) studies: Vec<PageStudy>,
    /// Each further study compared with the first.
    pub(crate) winners: Vec<PageWinner>,
    pub(crate) runs: Vec<PageRun>,
    pub(crate) suites: Vec<PageSuite>,
    /// Expectations of suites, those that are not met first.
    pub(crate) expectations: Vec<PageExpectation>,
    pub(crate) promises: Vec<PagePromise>,
    pub(crate) spreads: Vec<PageSpread>,
    pub(crate) sweeps: Vec<PageSweep>,
    /// Knee searches of probes.
    pub(crate) knees: Vec<PageSweep>,
    pub(crate) loads: Vec<PageLoad>,
    pub(crate) pivots: Vec<PagePivot>,
    /// Stored results that the pivot tables use.
    pub(crate) kept: Vec<PageResult>,
}

/// Comparison of two probes. In its texts, `[first]` and `[second]` stand for the targets' names.
#[derive(Debug, Serialize)]
pub(crate) struct PageWinner {
    /// Indexes of the studies.
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// The winner, by how much, and how certain that is.
    pub(crate) sentence: String,
    /// The faster target by each main figure, or that no difference is shown; one sentence each.
    pub(crate) figures: Vec<String>,
    /// Facts that the comparison depends on, such as patterns that differ.
    pub(crate) notes: Vec<String>,
}

/// A suite on one target.
#[derive(Debug, Serialize)]
pub(crate) struct PageSuite {
    pub(crate) name: String,
    /// Labels of the target, or its name.
    pub(crate) target: String,
    /// Verdict on all expectations: `failed: 3 met, 1 missed`.
    pub(crate) verdict: String,
    /// Whether all expectations are met. `None` without an expectation or without a decision.
    pub(crate) passed: Option<bool>,
    /// Limits of the verdict, one sentence each.
    pub(crate) cautions: Vec<String>,
}

/// Verdict on an expectation of a suite.
#[derive(Debug, Serialize)]
pub(crate) struct PageExpectation {
    pub(crate) suite: String,
    /// Labels of the target, or its name.
    pub(crate) target: String,
    pub(crate) expectation: String,
    pub(crate) figure: String,
    /// `met`, `missed`, `undecided` or `not measured`.
    pub(crate) verdict: &'static str,
    /// Tick, cross or question mark.
    pub(crate) mark: char,
    pub(crate) evidence: String,
}

/// Pivot table: one figure of many results, by two labels.
#[derive(Debug, Serialize)]
pub(crate) struct PagePivot {
    /// The figure as requested: `randread.max_iops`.
    pub(crate) figure: String,
    pub(crate) title: String,
    pub(crate) unit: PageUnit,
    pub(crate) row_label: String,
    pub(crate) column_label: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// Cells by row and column. `None` if nothing was measured.
    pub(crate) cells: Vec<Vec<Option<PivotCell>>>,
    /// Whether a result is simulated.
    pub(crate) simulated: bool,
}

/// Results of a pair of label values.
#[derive(Debug, Serialize)]
pub(crate) struct PivotCell {
    /// Figure of all results, by the function that `note` names.
    pub(crate) value: f64,
    /// 95 % interval, if known.
    pub(crate) between: Option<(f64, f64)>,
    pub(crate) results: usize,
    /// Function and range of several results.
    pub(crate) note: Option<String>,
    /// Published value.
    pub(crate) promised: Option<f64>,
    /// Product, and source of the published value.
    pub(crate) product: Option<String>,
    /// Whether the promise was kept. `None` if unknown.
    pub(crate) kept: Option<bool>,
}

/// A stored result that a pivot table uses.
#[derive(Debug, Serialize)]
pub(crate) struct PageResult {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) machine: Option<String>,
    pub(crate) program: String,
    pub(crate) started_at_ms: u64,
    pub(crate) labels: BTreeMap<String, String>,
}

/// A grid of measurements.
#[derive(Debug, Serialize)]
pub(crate) struct PageSweep {
    /// File or id of the result.
    pub(crate) source: String,
    /// Name of the target.
    pub(crate) target: String,
    /// Target, and number of measured cells.
    pub(crate) headline: String,
    /// Axes. The last is `iodepth`.
    pub(crate) axes: Vec<SweepAxis>,
    pub(crate) curves: Vec<SweepCurve>,
    pub(crate) notes: Vec<String>,
}

/// An option and its values.
#[derive(Debug, Serialize)]
pub(crate) struct SweepAxis {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

/// All depths of one combination of the other axes.
#[derive(Debug, Serialize)]
pub(crate) struct SweepCurve {
    /// Value of each axis but the last.
    pub(crate) values: Vec<String>,
    /// Block size in bytes. The largest if it varies.
    pub(crate) block_bytes: u64,
    /// Result in a sentence.
    pub(crate) sentence: Option<String>,
    /// Lowest depth that reaches the maximum.
    pub(crate) knee: Option<u32>,
    /// Notes on this curve alone.
    pub(crate) notes: Vec<String>,
    pub(crate) cells: Vec<PageSweepCell>,
}

/// A depth.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PageSweepCell {
    pub(crate) iodepth: u32,
    /// `measured`, `predicted` or `unknown`.
    pub(crate) basis: CellBasis,
    pub(crate) iops: Option<PageRate>,
    pub(crate) bytes_per_s: Option<f64>,
    pub(crate) mean_ns: Option<f64>,
    /// Percentiles 50, 99 and 99.9. `None` if too few I/Os were measured.
    pub(crate) percentiles_ns: [Option<u64>; 3],
    /// Interval of the percentile 99, if it is informative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_between_ns: Option<(u64, u64)>,
    /// Longest latency, if measured.
    pub(crate) max_ns: Option<f64>,
    /// Figures as all screens print them. `None`: a round of a PTS test, without an interval.
    pub(crate) shown: Option<PageCellTexts>,
}

/// Figures of a sweep's cell as all screens print them, with the mark of predicted ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct PageCellTexts {
    /// I/Os per second: `93.4k`, `~3.1k`. `None`: not known.
    pub(crate) iops: Option<String>,
    pub(crate) bandwidth: Option<String>,
    /// Half the intervals of a measured cell's rate and bandwidth.
    pub(crate) iops_half: Option<String>,
    pub(crate) bandwidth_half: Option<String>,
    /// Reason why a measured rate has no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<&'static str>,
    /// Mean latency.
    pub(crate) mean: Option<String>,
    /// Percentiles 50 and 99. `None`: too few I/Os were measured.
    pub(crate) p50: Option<String>,
    pub(crate) p99: Option<String>,
}

/// Load study: latency over offered rate.
#[derive(Debug, Serialize)]
pub(crate) struct PageLoad {
    /// File or id of the result.
    pub(crate) source: String,
    /// Name of the target.
    pub(crate) target: String,
    /// Step of a suite with its repetition, if the study is one.
    pub(crate) step: Option<String>,
    /// Target and offered load.
    pub(crate) headline: String,
    /// I/Os per second in closed loop.
    pub(crate) capacity_iops: Option<f64>,
    /// The knee in words, or the highest sustained rate of a study that shows none.
    pub(crate) knee: String,
    /// Offered rate at the knee. `None` if the study shows none.
    pub(crate) knee_per_s: Option<f64>,
    /// Highest offered rate that the target sustained, if any.
    pub(crate) sustained_per_s: Option<f64>,
    /// Results of the objectives, each one sentence.
    pub(crate) objectives: Vec<String>,
    pub(crate) limits: Vec<ObjectiveLimit>,
    pub(crate) points: Vec<LoadPoint>,
    /// Further notes, each one sentence.
    pub(crate) notes: Vec<String>,
    pub(crate) matrix: Option<LoadMatrix>,
}

/// An offered rate.
#[derive(Debug, Serialize)]
pub(crate) struct LoadPoint {
    pub(crate) offered_per_s: f64,
    pub(crate) achieved_per_s: f64,
    /// Outcome of the runs at the rate.
    pub(crate) state: RateState,
    /// Percentiles 50, 95, 99 and 99.9.
    pub(crate) percentiles_ns: [Option<f64>; 4],
    /// The percentiles as all screens print them.
    pub(crate) shown: [String; 4],
    pub(crate) max_ns: Option<f64>,
}

/// Matrix of read and write rates.
#[derive(Debug, Serialize)]
pub(crate) struct LoadMatrix {
    /// Read rate of each column.
    pub(crate) reads_per_s: Vec<f64>,
    /// Write rate of each row.
    pub(crate) writes_per_s: Vec<f64>,
    pub(crate) cells: Vec<Vec<LoadCell>>,
    /// Whether a cell has the mark of an unknown interval. Only charts use it.
    #[serde(skip)]
    pub(crate) lacks_interval: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct LoadCell {
    /// `measured`, `not_reached`, `predicted`, `predicted_not_reached` or `unknown`.
    pub(crate) state: CellState,
    pub(crate) p99_ns: Option<f64>,
    /// The percentile, or the sign of a pair that fell behind, as all screens print it.
    pub(crate) shown: Option<String>,
}

/// Spread of the results of one label.
#[derive(Debug, Serialize)]
pub(crate) struct PageSpread {
    /// `disk=old: 6 runs on 3 machines`.
    pub(crate) title: String,
    pub(crate) rows: Vec<SpreadRow>,
}

/// A figure of all results of a label.
#[derive(Debug, Serialize)]
pub(crate) struct SpreadRow {
    /// Name of the figure, e.g. `random_read read IOPS`.
    pub(crate) what: String,
    /// Geometric mean with its known digits. Each machine has the same weight.
    pub(crate) mean: String,
    pub(crate) runs: usize,
    pub(crate) machines: usize,
    /// Standard deviation of a machine's runs, in per cent of the mean. `None` if each has one run.
    pub(crate) within_percent: Option<f64>,
    /// Further deviation between machines, in per cent of the mean. `None` for a single machine.
    pub(crate) between_percent: Option<f64>,
}

/// A probe: several runs and their classification.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct PageStudy {
    /// File or id of the result.
    pub(crate) source: String,
    pub(crate) target: String,
    /// Classification of the target in one sentence.
    pub(crate) sentence: String,
    /// Limits of the rate of each kind of I/O, one sentence each.
    pub(crate) ceilings: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Patterns whose maximum the search did not find, each with the result in words.
    pub(crate) unknown_maxima: Vec<(&'static str, String)>,
    /// Whether the probe ended before all phases had run.
    pub(crate) interrupted: bool,
    /// Bytes that were laid out and used.
    pub(crate) working_set_bytes: u64,
}

/// A run.
#[derive(Debug, Serialize)]
pub(crate) struct PageRun {
    /// Names of the jobs, or the phase of a probe. The page tells runs apart.
    pub(crate) name: String,
    pub(crate) source: String,
    /// Index of the study that contains the run.
    pub(crate) study: Option<usize>,
    /// Phase of a probe. The page has its name only.
    #[serde(skip)]
    pub(crate) phase: Option<ProbePhase>,
    /// Target as the user named it.
    pub(crate) place: String,
    /// Whether the run only prepared others. Its figures are no headline.
    pub(crate) preparation: bool,
    /// Whether the run belongs to a sweep or a load study, which is drawn as a whole.
    pub(crate) of_grid: bool,
    pub(crate) program: String,
    pub(crate) started_at_ms: u64,
    pub(crate) elapsed_ns: u64,
    /// `None` for a run of another program.
    pub(crate) host: Option<usize>,
    /// Available memory, the one fact of the machine that differs between runs.
    pub(crate) memory_available_bytes: Option<u64>,
    pub(crate) targets: Option<usize>,
    /// `None` for a run of another program.
    pub(crate) plan: Option<usize>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) figures: Vec<PageFigure>,
    pub(crate) series: Vec<PageSeries>,
    pub(crate) disks: Vec<DiskUtil>,
    /// Backends of the workers without duplicates.
    pub(crate) backends: Vec<BackendUsed>,
    /// Sum over the workers.
    pub(crate) cpu: Option<CpuUse>,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) verdicts: Vec<Verdict>,
    /// Errors, each one sentence.
    pub(crate) failures: Vec<String>,
}

/// Figures of a job in one direction.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PageFigure {
    /// Name of the job, if the run has several.
    pub(crate) job: Option<String>,
    /// The I/O of the figure.
    pub(crate) direction: Subject,
    /// fio's name of the workload, e.g. `randread`. Empty for a sum of different jobs.
    pub(crate) rw: String,
    /// Smallest and largest I/O in bytes. Both are 0 for syncs.
    pub(crate) block_bytes: [u64; 2],
    /// I/Os in flight per worker. 0 for a sum of different jobs.
    pub(crate) iodepth: u32,
    /// Number of workers.
    pub(crate) workers: u32,
    /// Engine that issued the I/O. Empty if several did.
    pub(crate) engine: String,
    /// Whether O_DIRECT was in use. `None` if unknown.
    pub(crate) direct: Option<bool>,
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    pub(crate) iops: PageRate,
    pub(crate) bytes_per_s: PageRate,
    /// Whether the rate was stable. `None` if unknown.
    pub(crate) settled: Option<bool>,
    /// Whether the rate's interval is as narrow as requested. `None` without a request.
    pub(crate) sure: Option<bool>,
    pub(crate) latency_kind: PageLatencyKind,
    pub(crate) latency: PageLatency,
    /// Course of a probe's rate in one word, as in the terminal: `steady`, `falling`.
    pub(crate) shape: Option<&'static str>,
    /// Intervals of the percentiles 50, 99 and 99.9, if they are informative.
    pub(crate) percentile_bounds: [Option<(f64, f64)>; 3],
    /// Interval of the mean latency, if it is informative.
    pub(crate) mean_bounds: Option<(f64, f64)>,
    /// Rates and percentiles as all screens print them.
    pub(crate) shown: PageFigureTexts,
}

/// The part of an I/O that the latencies of a figure cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PageLatencyKind {
    /// Submission and completion.
    Total,
    /// The time after submission.
    Completion,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PageLatency {
    /// Number of measured I/Os. 0 if unknown; then the extremes are unknown too.
    pub(crate) count: u64,
    pub(crate) mean_ns: f64,
    pub(crate) min_ns: f64,
    pub(crate) max_ns: f64,
    /// Percentiles at the shares of `curve::tails`.
    pub(crate) curve_ns: Vec<u64>,
    /// Shares of slower I/Os and their percentiles, as in tables.
    pub(crate) marks: Vec<(f64, f64)>,
    /// Index and count of each coarse bucket that is not empty.
    pub(crate) buckets: Vec<(usize, u64)>,
}

/// Several quantities over the same points in time.
#[derive(Debug, Serialize)]
pub(crate) struct PageSeries {
    /// Subject: the run, a device, or the machine.
    pub(crate) of: String,
    /// Start of each slice, in seconds since the start of the run.
    pub(crate) at_s: Vec<f64>,
    /// End of the last slice.
    pub(crate) end_s: f64,
    /// Number of slices at the beginning that belong to the ramp.
    pub(crate) ramp: usize,
    pub(crate) tracks: Vec<Track>,
}

/// One quantity over time.
#[derive(Debug, Serialize)]
pub(crate) struct Track {
    /// Tracks of one group share a chart: `IOPS`, `bandwidth`, `latency`, or a device's column.
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) unit: PageUnit,
    pub(crate) values: Vec<Option<f64>>,
}

/// Unit of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PageUnit {
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
pub(crate) struct PagePromise {
    pub(crate) product: String,
    pub(crate) place: String,
    /// Source and date of publication.
    pub(crate) source: String,
    /// Result of the comparison with a probe, in one sentence.
    pub(crate) sentence: Option<String>,
    /// Conditions that were not measured or checked, each one sentence.
    pub(crate) conditions: Vec<String>,
    /// A row per figure.
    pub(crate) rows: Vec<PromiseRow>,
}

/// A promised figure.
#[derive(Debug, Serialize)]
pub(crate) struct PromiseRow {
    /// Name of the figure, e.g. `read IOPS`.
    pub(crate) what: String,
    pub(crate) unit: PageUnit,
    pub(crate) promised: f64,
    pub(crate) measured: PageRate,
    /// Verdict in a few words.
    pub(crate) verdict: String,
    /// Whether the promise was kept. `None` if unknown.
    pub(crate) kept: Option<bool>,
}
