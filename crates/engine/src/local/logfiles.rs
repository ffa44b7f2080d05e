//! The thread that writes a worker's logs.

use super::Member;
use crate::iolog::{LogBatch, LogEntry, LogKind as Kind};
use crate::prepare::target_error;
use iosonde_job::plan::{Logs, Plan};
use iosonde_result::fio::log::{LogKind, LogRecord, file_name, write_histogram};
use iosonde_result::histogram::Histogram;
use iosonde_result::session::RunError;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;

/// The open log files of one worker, by kind.
pub(super) struct LogFiles {
    files: Vec<(LogKind, PathBuf, BufWriter<File>)>,
    logs: Logs,
    /// Added to all times: the Unix epoch's milliseconds with `log_unix_epoch`.
    base_ms: u64,
    block_bytes: u64,
}

impl LogFiles {
    /// Opens the logs that the job writes; `None` when it writes none.
    pub(super) fn open(
        plan: &Plan,
        clone: &Member,
        epoch_ms: u64,
    ) -> Result<Option<LogFiles>, RunError> {
        let job = &plan.jobs[clone.job];
        let logs = job.measure.logs.clone();
        let mut files = Vec::new();
        for kind in LogKind::ALL {
            let Some(name) = file_name(plan, clone.job, clone.clone, kind) else {
                continue;
            };
            let path = PathBuf::from(name);
            // Without per_job_logs the workers of a run share a file: the first one empties it.
            let fresh = logs.per_job || clone.number == 0;
            let mut options = OpenOptions::new();
            options
                .create(true)
                .write(true)
                .truncate(fresh)
                .append(!fresh);
            let file = options
                .open(&path)
                .map_err(|error| target_error(&path, "write", &error))?;
            files.push((kind, path, BufWriter::new(file)));
        }
        let base_ms = if logs.unix_epoch { epoch_ms } else { 0 };
        let block_bytes = job.workload.block_size.read.max();
        Ok((!files.is_empty()).then_some(LogFiles {
            files,
            logs,
            base_ms,
            block_bytes,
        }))
    }

    /// Writes all that arrives, until the worker hangs up.
    pub(super) fn write(mut self, receiver: Receiver<LogBatch>) -> Result<(), RunError> {
        for batch in receiver {
            let written = match batch {
                LogBatch::Entries(entries) => {
                    entries.iter().try_for_each(|entry| self.entry(entry))
                }
                LogBatch::Histogram {
                    direction,
                    at_ns,
                    counts,
                } => {
                    let mut histogram = Histogram::default();
                    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0)
                    {
                        histogram.add_bucket(index, *count);
                    }
                    let (at_ms, block) = (self.base_ms + at_ns / 1_000_000, self.block_bytes);
                    let coarseness = self.logs.hist_coarseness;
                    self.with_file(LogKind::ClatHistogram, |file, _| {
                        write_histogram(file, at_ms, direction, block, &histogram, coarseness)
                    })
                }
            };
            written.map_err(|(path, error)| target_error(&path, "write", &error))?;
        }
        for (_, path, file) in &mut self.files {
            file.flush()
                .map_err(|error| target_error(path, "write", &error))?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &LogEntry) -> Result<(), (PathBuf, std::io::Error)> {
        let kind = match entry.kind {
            Kind::Slat => LogKind::Slat,
            Kind::Clat => LogKind::Clat,
            Kind::Lat => LogKind::Lat,
            Kind::Bw => LogKind::Bandwidth,
            Kind::Iops => LogKind::Iops,
        };
        let record = LogRecord {
            at_ms: self.base_ms + entry.at_ns / 1_000_000,
            value: entry.value,
            direction: entry.direction,
            block_size_bytes: entry.block_bytes.into(),
            offset_bytes: entry.offset,
            priority: if entry.high_priority { 1 << 13 } else { 0 },
        };
        self.with_file(kind, |file, logs| record.write(file, logs))
    }

    fn with_file(
        &mut self,
        kind: LogKind,
        write: impl FnOnce(&mut BufWriter<File>, &Logs) -> std::io::Result<()>,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        match self.files.iter_mut().find(|(other, _, _)| *other == kind) {
            Some((_, path, file)) => write(file, &self.logs).map_err(|error| (path.clone(), error)),
            None => Ok(()),
        }
    }
}
