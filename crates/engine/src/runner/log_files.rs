//! The thread that writes a worker's logs.

use super::JobClone;
use super::open_logs::{LimitedLog, OpenLogs, SharedLogFile};
use super::trace_file::TraceFile;
use crate::files::target_error;
use crate::remedies::no_thread;
use crate::worker::io_log::{FromWorker, IoLogKind, LogBatch, LogEntry};
use iosonde_job::plan::{Direction, LogPrefixes, Plan};
use iosonde_result::fio::log::{LogKind, LogRecord, file_name, write_histogram};
use iosonde_result::histogram::Histogram;
use iosonde_result::run_error::{PathAction, RunError};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// A thread that writes the logs of one worker.
pub(super) struct LogWriterThread<'scope>(ScopedJoinHandle<'scope, Result<(), RunError>>);

impl LogWriterThread<'_> {
    /// Waits until all logs are written, after the worker has ended. There is no deadline: the logs
    /// belong to the result, and a write to a file cannot be cancelled.
    pub(super) fn join(self) -> Result<(), RunError> {
        self.0.join().expect("the log writer does not panic")
    }
}

/// The open log files of one worker, by kind.
pub(super) struct LogFiles {
    files: Vec<(LogKind, PathBuf, SharedLogFile)>,
    trace: Option<TraceFile>,
    logs: LogPrefixes,
    /// Added to all times: the Unix time in milliseconds with `log_unix_epoch`.
    base_ms: u64,
    block_bytes: u64,
}

impl LogFiles {
    /// Opens the logs that the job writes; `None` if it writes none.
    pub(super) fn open(
        open_logs: &OpenLogs,
        plan: &Plan,
        clone: &JobClone,
    ) -> Result<Option<LogFiles>, RunError> {
        let job = &plan.jobs[clone.job];
        let logs = job.measure.logs.clone();
        let mut files = Vec::new();
        for kind in LogKind::ALL {
            let measure = &plan.jobs[clone.job].measure;
            let is_off = match kind {
                LogKind::Slat => !measure.slat,
                LogKind::Clat => !measure.clat,
                LogKind::Lat => !measure.lat,
                _ => false,
            };
            if is_off {
                continue;
            }
            if let Some(name) = file_name(plan, clone.job, clone.clone, kind) {
                let path = PathBuf::from(name);
                let file = open_logs.open_log(&path)?;
                files.push((kind, path, file));
            }
        }
        let trace = match &logs.trace {
            Some(path) => Some(TraceFile::begin(open_logs, path, clone)?),
            None => None,
        };
        let block_bytes = job.workload.block_size.read.max();
        Ok((!files.is_empty() || trace.is_some()).then_some(LogFiles {
            files,
            trace,
            logs,
            base_ms: 0,
            block_bytes,
        }))
    }

    /// Sets the origin of the log times to `epoch_ms` of the Unix epoch: the end of the ramp.
    pub(super) fn counted_from(self, epoch_ms: u64) -> LogFiles {
        LogFiles {
            base_ms: if self.logs.unix_epoch { epoch_ms } else { 0 },
            ..self
        }
    }

    /// Writes the logs in a thread of its own.
    pub(super) fn spawn_writer<'scope>(
        self,
        from_worker: FromWorker,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<LogWriterThread<'scope>, RunError> {
        Builder::new()
            .spawn_scoped(scope, move || self.write(from_worker))
            .map(LogWriterThread)
            .map_err(|error| no_thread("that writes a job's logs", &error))
    }

    /// Iterates over all files of these logs.
    fn list_files(&self) -> impl Iterator<Item = (&PathBuf, &SharedLogFile)> {
        let logs = self.files.iter().map(|(_, path, file)| (path, file));
        logs.chain(self.trace.iter().map(|trace| (&trace.path, &trace.file)))
    }

    /// Writes all batches until the worker has ended.
    fn write(mut self, from_worker: FromWorker) -> Result<(), RunError> {
        while let Some(batch) = from_worker.take() {
            let written = match &batch {
                LogBatch::Entries(entries) => {
                    entries.iter().try_for_each(|entry| self.entry(entry))
                }
                LogBatch::Histogram {
                    direction,
                    at_ns,
                    counts,
                } => self.histogram(*direction, *at_ns, counts),
            };
            written.map_err(|(path, error)| target_error(&path, PathAction::Write, &error))?;
            from_worker.return_batch(batch);
        }
        if let Some(trace) = &mut self.trace {
            trace
                .close_files()
                .map_err(|error| target_error(&trace.path, PathAction::Write, &error))?;
        }
        for (path, file) in self.list_files() {
            file.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .flush()
                .map_err(|error| target_error(path, PathAction::Write, &error))?;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        direction: Direction,
        at_ns: u64,
        counts: &[u64],
    ) -> Result<(), (PathBuf, std::io::Error)> {
        let mut histogram = Histogram::default();
        for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.add_bucket(index, *count);
        }
        let (at_ms, block) = (self.base_ms + at_ns / 1_000_000, self.block_bytes);
        let coarseness = self.logs.hist_coarseness;
        self.with_file(LogKind::ClatHistogram, |file, _| {
            write_histogram(file, at_ms, direction, block, &histogram, coarseness)
        })
    }

    fn entry(&mut self, entry: &LogEntry) -> Result<(), (PathBuf, std::io::Error)> {
        let kind = match entry.kind {
            IoLogKind::Issued => {
                let Some(trace) = &mut self.trace else {
                    return Ok(());
                };
                return trace
                    .write_line(entry)
                    .map_err(|error| (trace.path.clone(), error));
            }
            IoLogKind::Slat => LogKind::Slat,
            IoLogKind::Clat => LogKind::Clat,
            IoLogKind::Lat => LogKind::Lat,
            IoLogKind::Bw => LogKind::Bandwidth,
            IoLogKind::Iops => LogKind::Iops,
        };
        let Some(direction) = entry.op.direction() else {
            return Ok(());
        };
        let record = LogRecord {
            at_ms: self.base_ms + entry.at_ns / 1_000_000,
            value: entry.value,
            direction,
            block_size_bytes: entry.block_bytes.into(),
            offset_bytes: entry.offset,
            priority: entry.priority,
        };
        self.with_file(kind, |file, logs| record.write(file, logs))
    }

    fn with_file(
        &mut self,
        kind: LogKind,
        write: impl FnOnce(&mut BufWriter<LimitedLog>, &LogPrefixes) -> std::io::Result<()>,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        let Some((_, path, file)) = self.files.iter().find(|(other, _, _)| *other == kind) else {
            return Ok(());
        };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut file, &self.logs).map_err(|error| (path.clone(), error))
    }
}
