//! What a test found, round by round, and whether it had settled.

use super::preset::{PtsTest, Series, Tracked, Workload};
use super::study::PtsOptions;
use crate::CutShort;
use crate::probe::TargetKind;
use crate::saturation::Cell;
use iosonde_result::run::IoFailure;
use iosonde_result::series::SteadyStateTest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A test as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsDocument {
    /// Version of the document; counts up when a member changes its meaning.
    pub format: u32,
    /// `pts`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// What was found.
    pub pts: PtsResult,
}

impl PtsDocument {
    /// The document that a program writes.
    pub fn of(pts: PtsResult, program: &str) -> PtsDocument {
        PtsDocument {
            format: FORMAT,
            kind: "pts".to_owned(),
            program: program.to_owned(),
            pts,
        }
    }
}

/// JSON Schema (2020-12) of [`PtsDocument`]. `docs/schema/pts.json` is its copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(PtsDocument).to_value()
}

/// Rounds that must agree.
pub const WINDOW: usize = 5;
/// Version of [`PtsResult`] and [`PtsDocument`] as JSON; counts up when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// A test of the specification on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsResult {
    /// The format of the program that wrote it.
    pub format: u32,
    /// The target as the user wrote it.
    pub target: String,
    /// What the target is.
    pub kind: TargetKind,
    /// How it was to be done.
    pub options: PtsOptions,
    /// Bytes from the start of the target that were used: the active range.
    pub bytes: u64,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// What was run, each after a purge and a fill of its own.
    pub series: Vec<SeriesResult>,
    /// In what it was not as the specification asks, each in one sentence.
    pub deviations: Vec<String>,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The I/O error that ended it early.
    pub failure: Option<IoFailure>,
    /// The error of a run without a result that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
    /// What else the user should know, each in one sentence.
    pub notes: Vec<String>,
}

impl PtsResult {
    pub(super) fn test(&self) -> PtsTest {
        self.options.test
    }

    /// Whether every series came to rest.
    pub fn is_steady(&self) -> bool {
        self.test() == PtsTest::WriteSaturation
            || self.series.iter().all(|one| one.steady.is_some())
    }
}

/// Rounds of the same workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesResult {
    /// Whether it was purged before.
    pub purged: bool,
    /// Bytes that were written before the first round.
    pub filled_bytes: u64,
    /// The workloads of each round.
    pub workloads: Vec<Workload>,
    /// What a steady state is told from.
    pub value: Tracked,
    /// Every round that was completed.
    pub rounds: Vec<Round>,
    /// The first five rounds that agree, with the figures of the test; `None` if it did not come to rest.
    pub steady: Option<Steady>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// One for each workload; `None` where the target refuses it.
    pub cells: Vec<Option<PtsCell>>,
    /// Bytes written in all rounds so far.
    pub written_bytes: f64,
}

/// One workload of one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsCell {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub mean_ns: f64,
    /// 99th percentile; `None` where too few I/Os were made for it to mean anything.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest.
    pub max_ns: f64,
}

impl PtsCell {
    pub(super) fn of(cell: &Cell) -> PtsCell {
        PtsCell {
            iops: cell.iops.mean,
            bytes_per_s: cell.bytes_per_s.mean,
            mean_ns: cell.latency.mean_ns,
            p99_ns: cell.latency.p99_ns,
            p99_9_ns: cell.latency.p99_9_ns,
            max_ns: cell.latency.max_ns,
        }
    }

    /// The figure that is tracked.
    pub fn value(&self, tracked: Tracked) -> f64 {
        match tracked {
            Tracked::Iops => self.iops,
            Tracked::Bandwidth => self.bytes_per_s,
            Tracked::Latency => self.mean_ns,
        }
    }
}

/// Five rounds that agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// The first of them, counted from 1.
    pub first_round: usize,
    /// The last.
    pub last_round: usize,
    /// How well they agree.
    pub tracked: Vec<TrackedSteady>,
}

/// How well one workload's values agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackedSteady {
    /// The workload.
    pub workload: Workload,
    /// Mean over the window.
    pub mean: f64,
    /// Largest minus smallest, as a share of the mean: 20 % at most.
    pub range: f64,
    /// How far the fitted line rises or falls over the window, as a share of the mean: 10 % at most.
    pub excursion: f64,
}

impl SeriesResult {
    pub(super) fn new(series: &Series) -> SeriesResult {
        SeriesResult {
            purged: false,
            filled_bytes: 0,
            workloads: series.workloads(),
            value: series.value,
            rounds: Vec::new(),
            steady: None,
        }
    }

    /// The rounds whose figures are the result: those that agree, else the last five.
    pub fn window(&self) -> std::ops::Range<usize> {
        match &self.steady {
            Some(steady) => steady.first_round - 1..steady.last_round,
            None => self.rounds.len().saturating_sub(WINDOW)..self.rounds.len(),
        }
    }

    /// The mean of a workload over the window; the longest of its longest latencies.
    pub fn figure(&self, workload: usize) -> Option<PtsCell> {
        let rounds = &self.rounds[self.window()];
        let cells: Vec<PtsCell> = rounds
            .iter()
            .filter_map(|round| round.cells[workload])
            .collect();
        let mean = |of: fn(&PtsCell) -> f64| cells.iter().map(of).sum::<f64>() / cells.len() as f64;
        let most = |of: fn(&PtsCell) -> Option<u64>| cells.iter().map(of).max().flatten();
        (!cells.is_empty()).then(|| PtsCell {
            iops: mean(|cell| cell.iops),
            bytes_per_s: mean(|cell| cell.bytes_per_s),
            mean_ns: mean(|cell| cell.mean_ns),
            p99_ns: most(|cell| cell.p99_ns),
            p99_9_ns: most(|cell| cell.p99_9_ns),
            max_ns: cells.iter().map(|cell| cell.max_ns).fold(0.0, f64::max),
        })
    }

    /// Whether the last rounds agree in everything that is tracked.
    pub(super) fn settled(&self, series: &Series) -> Option<Steady> {
        let first = self.rounds.len().checked_sub(WINDOW)?;
        let tracked: Option<Vec<TrackedSteady>> = series
            .tracked
            .iter()
            .map(|(read_percent, block_bytes)| {
                let is_it = |one: &Workload| {
                    (one.read_percent, one.block_bytes) == (*read_percent, *block_bytes)
                };
                let index = self.workloads.iter().position(is_it)?;
                let values: Option<Vec<f64>> = self.rounds[first..]
                    .iter()
                    .map(|round| Some(round.cells[index]?.value(series.value)))
                    .collect();
                let test = SteadyStateTest::of(&values?)?;
                test.is_steady().then(|| TrackedSteady {
                    workload: self.workloads[index],
                    mean: test.mean,
                    range: test.range,
                    excursion: test.excursion,
                })
            })
            .collect();
        Some(Steady {
            first_round: first + 1,
            last_round: self.rounds.len(),
            tracked: tracked?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::preset::Preset;
    use super::*;

    fn rounds(values: &[f64]) -> SeriesResult {
        let series = &PtsTest::WriteSaturation.series(Preset::Enterprise)[0];
        let cell = |iops: f64| PtsCell {
            iops,
            bytes_per_s: iops * 4096.0,
            mean_ns: 1e9 / iops,
            p99_ns: None,
            p99_9_ns: None,
            max_ns: 1e9,
        };
        let mut result = SeriesResult::new(series);
        result.rounds = values
            .iter()
            .map(|iops| Round {
                cells: vec![Some(cell(*iops))],
                written_bytes: 0.0,
            })
            .collect();
        result
    }

    #[test]
    fn five_rounds_must_agree() {
        let series = &PtsTest::WriteSaturation.series(Preset::Enterprise)[0];
        let settled = |values: &[f64]| rounds(values).settled(series);
        assert!(settled(&[100.0; 4]).is_none());
        assert!(settled(&[900.0, 100.0, 101.0, 99.0, 100.0, 100.0]).is_some());
        // 21 % apart, and 12 % of rise.
        assert!(settled(&[90.0, 100.0, 111.0, 100.0, 100.0]).is_none());
        assert!(settled(&[100.0, 103.0, 106.0, 109.0, 112.0]).is_none());
        let steady = settled(&[900.0, 100.0, 101.0, 99.0, 100.0, 100.0]).unwrap();
        assert_eq!((steady.first_round, steady.last_round), (2, 6));
        assert_eq!(steady.tracked[0].mean, 100.0);
    }

    #[test]
    fn figures_are_of_the_window() {
        let mut result = rounds(&[900.0, 100.0, 100.0, 100.0, 100.0, 100.0]);
        result.steady = result.settled(&PtsTest::WriteSaturation.series(Preset::Enterprise)[0]);
        assert_eq!(result.figure(0).unwrap().iops, 100.0);
        assert_eq!(result.window(), 1..6);
    }

    #[test]
    fn documents_follow_the_schema() {
        let result = PtsResult {
            format: FORMAT,
            target: "/dev/x".to_owned(),
            kind: TargetKind::Simulated {
                options: String::new(),
            },
            options: PtsOptions {
                test: PtsTest::WriteSaturation,
                preset: Preset::Client,
                time_scale: 1.0,
                most_rounds: 25,
                iodepth: 16,
                numjobs: 2,
                purge: crate::pts::Purge::None,
                size_bytes: None,
                seed: 1,
            },
            bytes: 1 << 30,
            direct: true,
            series: vec![rounds(&[100.0, 101.0])],
            deviations: Vec::new(),
            interrupted: false,
            failure: None,
            error: None,
            notes: Vec::new(),
        };
        let document = PtsDocument::of(result.clone(), "iosonde 0");
        let mut value = serde_json::to_value(&document).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&value), "{value}");
        // What was written before there were presets is read as what it was.
        let options = value["pts"]["options"].as_object_mut().unwrap();
        options.remove("preset");
        let earlier: PtsDocument = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(earlier.pts.options.preset, Preset::Enterprise);
        value["pts"]["series"] = serde_json::json!("many");
        assert!(!validator.is_valid(&value), "the schema allows anything");
    }
}
