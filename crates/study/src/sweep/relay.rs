//! Between a search and whoever watches the sweep.

use super::study::Standing;
use super::watch::SweepWatcher;
use crate::saturation::{Record, Watcher};
use iosonde_result::ceph;
use iosonde_result::observer::Progress;
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::storage::StorageUsed;

/// Hands on what a search tells, and keeps what it takes to go on.
pub(super) struct Relay<'a> {
    pub(super) watcher: &'a mut dyn SweepWatcher,
    pub(super) index: usize,
    pub(super) standing: &'a mut Standing,
}

impl Watcher for Relay<'_> {
    fn begin(&mut self, _jobs: u32, iodepth: u32, most_ns: u64) {
        self.watcher.cell(iodepth, most_ns);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.watcher.progress(progress);
    }

    fn record(&mut self, record: &Record, spent_ns: u64) {
        self.standing.take(record, spent_ns);
        self.watcher.record(self.index, record, spent_ns);
    }

    fn ended(&mut self, result: &RunResult) {
        if let Some(used) = StorageUsed::of(result) {
            self.standing.storage = Some(used);
        }
        if let Some(side) = &result.ceph {
            ceph::add(&mut self.standing.ceph, side);
        }
    }

    fn stopped(&mut self, note: String) {
        self.standing.stops.push(note);
    }

    fn failed(&mut self, failure: &IoFailure) {
        self.standing.failure = Some(failure.clone());
    }

    fn is_interrupted(&self) -> bool {
        self.watcher.is_interrupted()
    }
}
