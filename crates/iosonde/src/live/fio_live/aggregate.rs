//! `--bandwidth-log`: the total bandwidth of all jobs, as fio's `agg-read_bw.log`,
//! `agg-write_bw.log` and `agg-trim_bw.log`.

use crate::failure::CommandError;
use crate::output::Output;
use iosonde_job::plan::{Direction, LogPrefixes, PerDirection};
use iosonde_result::fio::log::{LogRecord, bandwidth_of_window};
use iosonde_result::observer::{RunProgress, WorkerState};
use std::path::Path;

/// Length of a window.
const WINDOW_NS: u64 = 500_000_000;

/// The three logs.
pub(super) struct AggregateLog {
    files: Vec<(Direction, Output)>,
    /// Start of the window, and the bytes moved until then.
    window: Option<(u64, PerDirection<u64>)>,
}

impl AggregateLog {
    /// Creates or truncates the files `PREFIX-read_bw.log`, `PREFIX-write_bw.log` and so on.
    pub(super) fn create(prefix: &str) -> Result<AggregateLog, CommandError> {
        let file = |direction: Direction| {
            let name = format!("{prefix}-{}_bw.log", direction.name());
            let mut output = Output::open(Some(Path::new(&name)))?;
            output.stream()?;
            Ok::<_, CommandError>((direction, output))
        };
        Ok(AggregateLog {
            files: Direction::ALL
                .into_iter()
                .map(file)
                .collect::<Result<_, _>>()?,
            window: None,
        })
    }

    /// Writes a line to each log at the end of a window. As in fio, ramps are left out.
    pub(super) fn write_line(&mut self, progress: &RunProgress<'_>) -> Result<(), CommandError> {
        let states = || progress.workers.iter().map(|worker| worker.state);
        let ramps = states().any(|state| state == WorkerState::Ramp);
        let runs =
            states().any(|state| matches!(state, WorkerState::Running | WorkerState::Verifying));
        let bytes = PerDirection::from_fn(|direction| {
            let workers = progress.workers.iter();
            workers.map(|worker| worker.counts[direction].bytes).sum()
        });
        let Some((start_ns, before)) = self.window.filter(|_| !ramps) else {
            self.window = runs.then_some((progress.at_ns, bytes));
            return Ok(());
        };
        let length_ns = progress.at_ns.saturating_sub(start_ns);
        if length_ns < WINDOW_NS {
            return Ok(());
        }
        self.window = runs.then_some((progress.at_ns, bytes));
        for (direction, file) in &mut self.files {
            let moved = bytes[*direction] - before[*direction];
            let record = LogRecord {
                at_ms: progress.at_ns / 1_000_000,
                value: bandwidth_of_window(moved, length_ns / 1_000_000),
                direction: *direction,
                block_size_bytes: 0,
                offset_bytes: 0,
                priority: 0,
            };
            let mut line = Vec::new();
            record
                .write(&mut line, &LogPrefixes::default())
                .expect("a vector takes all");
            file.write_unchanged(&line)?;
        }
        Ok(())
    }
}
