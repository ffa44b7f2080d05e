//! Figures computed anew from a stored run: those of a time window, and any percentile.
//!
//! Percentiles of a whole run come from the histogram of each job and direction. Those of a window
//! come from the intervals, which hold one histogram for all jobs and directions together. Figures
//! that the intervals cannot give are named, not estimated.

mod stored_figure_text;
#[cfg(test)]
mod tests;

use crate::format::TextFormat;
use crate::json_document::json_document_without_program;
use iosonde_job::plan::Direction;
use iosonde_result::histogram::Histogram;
use iosonde_result::run::RunResult;
use iosonde_result::stored_latencies::{LatencyKind, StoredLatency, stored_latencies};
use iosonde_result::time_window::{TimeWindow, TimeWindowError, WindowFigures, values_needed};
use serde::Serialize;

/// Percentiles of a window, unless others are given.
pub const USUAL_PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Figures of the runs of one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredFigures {
    /// Name of the result in the history.
    pub result: String,
    /// Its runs.
    pub runs: Vec<RunFigures>,
}

/// Figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFigures {
    /// Name of the run in the history.
    pub run: String,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// The window. `None`: the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRates>,
    /// Percentiles.
    pub latencies: Vec<LatencyPercentiles>,
    /// Figures that the stored run does not have, one sentence each.
    pub missing: Vec<String>,
}

/// Rates of a time window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowRates {
    /// Start of the first interval, since the start of the run.
    pub from_ns: u64,
    /// End of the last interval.
    pub to_ns: u64,
    /// Time that the intervals cover.
    pub measured_ns: u64,
    /// Number of intervals.
    pub intervals: usize,
    /// Intervals of the window that are left out because they belong to the ramp.
    pub ramp_intervals: usize,
    /// Rates of each direction with I/O.
    pub directions: Vec<DirectionRate>,
}

/// Rates of one direction in a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionRate {
    /// The direction.
    pub direction: Direction,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

/// Percentiles of one latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyPercentiles {
    /// The job. `None`: all jobs together.
    pub part: Option<String>,
    /// The I/O that was timed: `read`, `write`, `trim`, `sync`, or `all` for all directions.
    pub subject: String,
    /// Name of the latency: `lat`, `clat`, `slat` or `started_lat`.
    pub kind: &'static str,
    /// Words for the latency.
    #[serde(skip)]
    words: &'static str,
    /// Number of latencies.
    pub count: u64,
    /// The percentiles, in the order that was asked for.
    pub percentiles: Vec<PercentileValue>,
}

/// One percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PercentileValue {
    /// The percentile, e.g. 99.9.
    pub percent: f64,
    /// The latency, correct to 0.4 %. `None`: fewer than ten latencies lie beyond it.
    pub ns: Option<u64>,
    /// Number of latencies that the percentile needs.
    pub needed: u64,
}

/// Why a stored run has no figures, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFiguresError {
    /// Name of the run.
    pub run: String,
    /// The cause.
    pub cause: TimeWindowError,
}

impl StoredFigures {
    /// Computes the figures of runs, each with its name, in a window or as a whole.
    ///
    /// # Errors
    /// Fails if a run has no figures in the window.
    pub fn compute(
        result: &str,
        runs: &[(String, &RunResult)],
        window: Option<TimeWindow>,
        percents: &[f64],
    ) -> Result<StoredFigures, StoredFiguresError> {
        let figures = runs.iter().map(|(name, run)| match window {
            None => Ok(compute_whole_run(name, run, percents)),
            Some(window) => match window.figures(run) {
                Ok(found) => Ok(compute_window(name, run, &found, percents)),
                Err(cause) => Err(StoredFiguresError {
                    run: name.clone(),
                    cause,
                }),
            },
        });
        Ok(StoredFigures {
            result: result.to_owned(),
            runs: figures.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the figures in `format`.
    ///
    /// # Errors
    /// Fails if JSON cannot represent a number.
    pub fn text(&self, format: TextFormat) -> serde_json::Result<String> {
        match format {
            TextFormat::Table => Ok(stored_figure_text::table(self)),
            TextFormat::Json => json_document_without_program("stored-figures", self),
            TextFormat::Csv => Ok(stored_figure_text::stored_figures_csv(self)),
            TextFormat::Markdown => Ok(stored_figure_text::markdown(self)),
        }
    }
}

fn job_names(run: &RunResult) -> Vec<String> {
    crate::unique(run.plan.jobs.iter().map(|job| job.name.clone()))
}

fn compute_whole_run(name: &str, run: &RunResult, percents: &[f64]) -> RunFigures {
    let stored = stored_latencies(run);
    let mut missing = Vec::new();
    let mut latencies = Vec::new();
    for latency in &stored {
        let StoredLatency {
            part,
            subject,
            kind,
            stats,
        } = latency;
        let Some(histogram) = &stats.histogram else {
            missing.push(format!(
                "{part}: {} {} has a mean but no histogram",
                subject.name(),
                kind.words()
            ));
            continue;
        };
        let values = percents.iter().map(|percent| {
            let value = percentile(histogram, *percent);
            PercentileValue {
                // The longest latency is known exactly.
                ns: value.ns.map(|ns| ns.min(stats.moments.max as u64)),
                ..value
            }
        });
        latencies.push(LatencyPercentiles {
            part: Some(part.clone()),
            subject: subject.name().to_owned(),
            kind: kind.name(),
            words: kind.words(),
            count: histogram.total(),
            percentiles: values.collect(),
        });
    }
    if stored.is_empty() {
        missing.push("the run recorded no latencies".to_owned());
    }
    RunFigures {
        run: name.to_owned(),
        jobs: job_names(run),
        window: None,
        latencies,
        missing,
    }
}

fn compute_window(
    name: &str,
    run: &RunResult,
    found: &WindowFigures,
    percents: &[f64],
) -> RunFigures {
    let directions = direction_rates(found);
    let mut missing = Vec::new();
    let mut latencies = Vec::new();
    let mut push = |subject: &str, kind: LatencyKind, histogram: &Histogram| {
        let values = percents
            .iter()
            .map(|percent| percentile(histogram, *percent));
        latencies.push(LatencyPercentiles {
            part: None,
            subject: subject.to_owned(),
            kind: kind.name(),
            words: kind.words(),
            count: histogram.total(),
            percentiles: values.collect(),
        });
    };
    let has_total = run.workers.iter().any(|worker| {
        let mut directions = worker.directions.iter();
        directions.any(|(_, stats)| stats.lat.moments.count > 0)
    });
    let kind = match has_total {
        true => LatencyKind::Total,
        false => LatencyKind::Completion,
    };
    match &directions[..] {
        _ if found.sum.latency.total() == 0 => {
            missing.push("latencies: the series has none".to_owned());
        }
        [only] => push(only.direction.name(), kind, &found.sum.latency),
        _ => {
            push("all", kind, &found.sum.latency);
            missing.push(
                "latencies of one direction: the series holds those of all directions together"
                    .to_owned(),
            );
        }
    }
    if let Some(syncs) = &found.sum.sync_latency {
        push("sync", LatencyKind::Total, syncs);
    }
    let jobs = job_names(run);
    if jobs.len() > 1 {
        missing.push("figures of one job: the series is the sum of all jobs".to_owned());
    }
    missing.push(
        "mean and longest latency, submission latency, CPU time: only known for the whole run"
            .to_owned(),
    );
    RunFigures {
        run: name.to_owned(),
        jobs,
        window: Some(WindowRates {
            from_ns: found.from_ns,
            to_ns: found.to_ns,
            measured_ns: found.measured_ns,
            intervals: found.intervals,
            ramp_intervals: found.ramp_intervals,
            directions,
        }),
        latencies,
        missing,
    }
}

/// Returns the rates of the directions with I/O.
fn direction_rates(found: &WindowFigures) -> Vec<DirectionRate> {
    let moved = Direction::ALL.into_iter().filter_map(|direction| {
        let counts = found.sum.directions[direction];
        (counts.ios > 0).then(|| DirectionRate {
            direction,
            ios: counts.ios,
            bytes: counts.bytes,
            iops: found.per_second(counts.ios),
            bytes_per_s: found.per_second(counts.bytes),
        })
    });
    moved.collect()
}

fn percentile(histogram: &Histogram, percent: f64) -> PercentileValue {
    let needed = values_needed(percent);
    let value = histogram.percentile(percent);
    PercentileValue {
        percent,
        ns: value.filter(|_| histogram.total() >= needed),
        needed,
    }
}
