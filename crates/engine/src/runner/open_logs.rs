//! The log files of a run, which several workers may share.

use crate::files::target_error;
use iosonde_result::run_error::{PathAction, RunError};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// First line of a trace.
const TRACE_HEADER: &str = "fio version 3 iolog";

/// A log file, which several workers may write.
pub(super) type SharedLogFile = Arc<Mutex<BufWriter<File>>>;

/// All open logs of a run. With `per_job_logs=0` workers share files; the first truncates them.
#[derive(Debug, Default)]
pub(super) struct OpenLogs(Mutex<BTreeMap<PathBuf, SharedLogFile>>);

impl OpenLogs {
    /// Opens and truncates a log file.
    pub(super) fn open_log(&self, path: &Path) -> Result<SharedLogFile, RunError> {
        self.open_shared(path, |path| File::create(path))
    }

    /// Opens the file of a trace. As in fio, an existing file is appended to.
    pub(super) fn open_trace(&self, path: &Path) -> Result<SharedLogFile, RunError> {
        self.open_shared(path, |path| {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            writeln!(file, "{TRACE_HEADER}")?;
            Ok(file)
        })
    }

    fn open_shared(
        &self,
        path: &Path,
        open: impl FnOnce(&Path) -> std::io::Result<File>,
    ) -> Result<SharedLogFile, RunError> {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = logs.get(path) {
            return Ok(known.clone());
        }
        let file = open(path).map_err(|error| target_error(path, PathAction::Write, &error))?;
        let file = Arc::new(Mutex::new(BufWriter::new(file)));
        logs.insert(path.to_owned(), file.clone());
        Ok(file)
    }
}
