//! [`CurveLog`]: what the runs of a curve bring beside its figures.

use super::search_progress::SearchProgress;
use crate::driver::StudyDriver;
use crate::event::StudyEvent;
use crate::figures::cell::CellRecord;
use iosonde_result::ceph::{self, CephSide};
use iosonde_result::device_class::DeviceDescription;
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::storage::StorageUsed;

/// Log of the runs of a curve. It is kept even if the curve ends with an error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CurveLog {
    /// Index of the curve in [`StudyEvent::Recorded`].
    pub(crate) curve: usize,
    /// Prefix of the cell in notes. `None`: no notes.
    pub(crate) name: Option<String>,
    /// State from which a search can resume.
    pub(crate) so_far: SearchProgress,
    /// I/O error that ended the search.
    pub(crate) failure: Option<IoFailure>,
    /// Path to the storage of the last run that names one.
    pub(crate) storage: Option<StorageUsed>,
    /// The target, if it is in memory: `memory (tmpfs)`.
    pub(crate) in_memory: Option<String>,
    /// Statistics of the Ceph cluster over all runs.
    pub(crate) ceph: Option<CephSide>,
}

impl CurveLog {
    /// Returns the log of a search that resumes.
    pub(crate) fn resuming(so_far: SearchProgress) -> CurveLog {
        CurveLog {
            so_far,
            ..CurveLog::default()
        }
    }

    /// Adds a run, even if its measurements are discarded.
    pub(super) fn take_run(&mut self, result: &RunResult) {
        if let Some(used) = StorageUsed::from_run(result) {
            self.storage = Some(used);
        }
        let memory = DeviceDescription::memory_of_run(result);
        self.in_memory = memory.or(self.in_memory.take());
        if let Some(side) = &result.ceph {
            ceph::add_ceph_side(&mut self.ceph, side);
        }
    }

    /// Records all measurements of a cell, and the time of all runs so far. Reports the record.
    pub(crate) fn record(
        &mut self,
        driver: &mut StudyDriver<'_>,
        record: &CellRecord,
        spent_ns: u64,
    ) {
        let known = &mut self.so_far;
        known.records.retain(|known| !known.is_of_same_cell(record));
        known.records.push(record.clone());
        known.spent_ns = spent_ns;
        driver.emit(&StudyEvent::Recorded {
            curve: self.curve,
            record,
            spent_ns,
        });
    }

    /// Returns the name of a cell in notes.
    pub(crate) fn name_of(&self, record: &CellRecord) -> Option<String> {
        let prefix = self.name.as_ref()?;
        Some(format!("{prefix}depth {}", record.iodepth))
    }
}
