//! [`SeriesResult`]: the rounds of a SNIA test, and whether they reached a steady state.

use super::cell::CurveCell;
use super::preset::{PtsSeries, PtsWorkload, Tracked};
use iosonde_result::series_statistics::SteadyStateTest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of consecutive rounds that must agree.
pub const WINDOW: usize = 5;

/// Rounds of the same workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesResult {
    /// Whether the target was purged before the series.
    pub purged: bool,
    /// Bytes written before the first round.
    pub filled_bytes: u64,
    /// Workloads of each round.
    pub workloads: Vec<PtsWorkload>,
    /// Figure of which the steady state is tested.
    pub value: Tracked,
    /// All completed rounds.
    pub rounds: Vec<PtsRound>,
    /// First five rounds that agree, with their figures. `None`: no steady state was reached.
    pub steady: Option<Steady>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsRound {
    /// One cell per workload. `None`: the target refuses the block size.
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
    /// Mean latency in nanoseconds.
    pub mean_ns: f64,
    /// 99th percentile of latency in nanoseconds. `None`: too few I/Os.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile of latency in nanoseconds. `None`: too few I/Os.
    pub p99_9_ns: Option<u64>,
    /// Maximum latency in nanoseconds.
    pub max_ns: f64,
}

impl PtsCell {
    pub(crate) fn from_cell(cell: &CurveCell) -> PtsCell {
        PtsCell {
            iops: cell.iops.mean,
            bytes_per_s: cell.bytes_per_s.mean,
            mean_ns: cell.latency.mean_ns,
            p99_ns: cell.latency.p99_ns,
            p99_9_ns: cell.latency.p99_9_ns,
            max_ns: cell.latency.max_ns,
        }
    }

    /// Returns the tracked figure.
    pub fn value(&self, tracked: Tracked) -> f64 {
        match tracked {
            Tracked::Iops => self.iops,
            Tracked::Bandwidth => self.bytes_per_s,
            Tracked::Latency => self.mean_ns,
        }
    }
}

/// The five rounds of a steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// First round, counted from 1.
    pub first_round: usize,
    /// Last round, counted from 1.
    pub last_round: usize,
    /// Test of each tracked workload.
    pub tracked: Vec<TrackedSteady>,
}

/// Steady-state test of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackedSteady {
    /// The workload.
    pub workload: PtsWorkload,
    /// Mean over the window.
    pub mean: f64,
    /// Largest minus smallest value, as a share of the mean: at most 20 %.
    pub range: f64,
    /// Change of the fitted line over the window, as a share of the mean: at most 10 %.
    pub excursion: f64,
}

impl SeriesResult {
    pub(crate) fn new(series: &PtsSeries) -> SeriesResult {
        SeriesResult {
            purged: false,
            filled_bytes: 0,
            workloads: series.workloads(),
            value: series.value,
            rounds: Vec::new(),
            steady: None,
        }
    }

    /// Returns the rounds whose figures count: those of the steady state, otherwise the last five.
    pub fn window(&self) -> std::ops::Range<usize> {
        match &self.steady {
            Some(steady) => steady.first_round - 1..steady.last_round,
            None => self.rounds.len().saturating_sub(WINDOW)..self.rounds.len(),
        }
    }

    /// Returns the means of a workload over the window, and the maxima of its tail latencies.
    pub fn figure(&self, workload: usize) -> Option<PtsCell> {
        let rounds = &self.rounds[self.window()];
        let cells: Vec<PtsCell> = rounds
            .iter()
            .filter_map(|round| round.cells[workload])
            .collect();
        let mean = |figure_of: fn(&PtsCell) -> f64| {
            cells.iter().map(figure_of).sum::<f64>() / cells.len() as f64
        };
        let most =
            |figure_of: fn(&PtsCell) -> Option<u64>| cells.iter().map(figure_of).max().flatten();
        (!cells.is_empty()).then(|| PtsCell {
            iops: mean(|cell| cell.iops),
            bytes_per_s: mean(|cell| cell.bytes_per_s),
            mean_ns: mean(|cell| cell.mean_ns),
            p99_ns: most(|cell| cell.p99_ns),
            p99_9_ns: most(|cell| cell.p99_9_ns),
            max_ns: cells.iter().map(|cell| cell.max_ns).fold(0.0, f64::max),
        })
    }

    /// Returns the steady state, if the last five rounds agree in all tracked figures.
    pub(crate) fn settled(&self, series: &PtsSeries) -> Option<Steady> {
        let first = self.rounds.len().checked_sub(WINDOW)?;
        let tracked: Option<Vec<TrackedSteady>> = series
            .tracked
            .iter()
            .map(|(read_percent, block_bytes)| {
                let is_it = |one: &PtsWorkload| {
                    (one.read_percent, one.block_bytes) == (*read_percent, *block_bytes)
                };
                let index = self.workloads.iter().position(is_it)?;
                let values: Option<Vec<f64>> = self.rounds[first..]
                    .iter()
                    .map(|round| Some(round.cells[index]?.value(series.value)))
                    .collect();
                let test = SteadyStateTest::from_window(&values?)?;
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
    use super::*;
    use crate::figures::preset::{PtsPreset, PtsTest};

    fn rounds(values: &[f64]) -> SeriesResult {
        let series = &PtsTest::WriteSaturation.series(PtsPreset::Enterprise)[0];
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
            .map(|iops| PtsRound {
                cells: vec![Some(cell(*iops))],
                written_bytes: 0.0,
            })
            .collect();
        result
    }

    #[test]
    fn steady_state_needs_five_agreeing_rounds() {
        let series = &PtsTest::WriteSaturation.series(PtsPreset::Enterprise)[0];
        let settled = |values: &[f64]| rounds(values).settled(series);
        assert!(settled(&[100.0; 4]).is_none());
        assert!(settled(&[900.0, 100.0, 101.0, 99.0, 100.0, 100.0]).is_some());
        // A range of 21 %, and an excursion of 12 %.
        assert!(settled(&[90.0, 100.0, 111.0, 100.0, 100.0]).is_none());
        assert!(settled(&[100.0, 103.0, 106.0, 109.0, 112.0]).is_none());
        let steady = settled(&[900.0, 100.0, 101.0, 99.0, 100.0, 100.0]).unwrap();
        assert_eq!((steady.first_round, steady.last_round), (2, 6));
        assert_eq!(steady.tracked[0].mean, 100.0);
    }

    #[test]
    fn figures_are_means_over_window() {
        let mut result = rounds(&[900.0, 100.0, 100.0, 100.0, 100.0, 100.0]);
        result.steady = result.settled(&PtsTest::WriteSaturation.series(PtsPreset::Enterprise)[0]);
        assert_eq!(result.figure(0).unwrap().iops, 100.0);
        assert_eq!(result.window(), 1..6);
    }
}
