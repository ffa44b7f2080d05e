//! Writes a trace (`write_iolog`) in version 3 of fio's format.

use super::JobClone;
use super::open_logs::{OpenLogs, SharedLogFile};
use crate::worker::io_log::LogEntry;
use iosonde_result::run_error::{PathAction, RunError};
use iosonde_workload::Op;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::PoisonError;

/// The trace of one worker.
pub(super) struct TraceFile {
    pub(super) path: PathBuf,
    pub(super) file: SharedLogFile,
    /// Names of the worker's files, by file number.
    names: Vec<String>,
    last_us: u64,
}

impl TraceFile {
    /// Opens the trace and writes the names of the files.
    pub(super) fn begin(
        open_logs: &OpenLogs,
        path: &str,
        clone: &JobClone,
    ) -> Result<TraceFile, RunError> {
        let path = PathBuf::from(path);
        let files = clone.files().files.iter();
        let mut trace = TraceFile {
            file: open_logs.open_trace(&path)?,
            path,
            names: files.map(|file| file.path.display().to_string()).collect(),
            last_us: 0,
        };
        let named = trace
            .write_action("add")
            .and_then(|()| trace.write_action("open"));
        named
            .map_err(|error| crate::files::target_error(&trace.path, PathAction::Write, &error))?;
        Ok(trace)
    }

    /// Writes the line of an I/O.
    pub(super) fn write_line(&mut self, entry: &LogEntry) -> io::Result<()> {
        let action = match entry.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Fsync => "sync",
            Op::Fdatasync => "datasync",
            Op::SyncFileRange => "sync_file_range",
        };
        self.last_us = entry.at_ns / 1000;
        let name = self.names.get(entry.value as usize);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(
            file,
            "{} {} {action} {} {}",
            self.last_us,
            name.map_or("-", String::as_str),
            entry.offset,
            entry.block_bytes
        )
    }

    /// Writes the lines after the last I/O.
    pub(super) fn close_files(&mut self) -> io::Result<()> {
        self.write_action("close")
    }

    /// Writes the same action for all files.
    fn write_action(&mut self, action: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.names
            .iter()
            .try_for_each(|name| writeln!(file, "{} {name} {action}", self.last_us))
    }
}
