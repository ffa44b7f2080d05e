//! [`HistoryHook`]: stores the runs of a study as they end.

use super::HistoryWriter;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_study::{InnerRun, RunHook, RunPurpose};

/// Which runs of a study are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredRuns {
    /// All runs but trials.
    All,
    /// No cells: a probe stores them in the knee of their phase.
    NoCells,
}

impl StoredRuns {
    /// Whether a run is stored.
    pub fn is_stored(self, purpose: RunPurpose) -> bool {
        purpose != RunPurpose::Trial && (self == StoredRuns::All || !purpose.is_cell())
    }
}

/// Stores the runs of a study as they end.
pub struct HistoryHook<'a> {
    /// The writer that stores the runs.
    pub writer: &'a mut HistoryWriter,
    /// The runs to store.
    pub stored: StoredRuns,
}

impl RunHook for HistoryHook<'_> {
    fn around_run(
        &mut self,
        plan: &Plan,
        purpose: RunPurpose,
        observer: &mut dyn Observer,
        run: &mut InnerRun<'_>,
    ) -> Result<RunResult, RunError> {
        match self.stored.is_stored(purpose) {
            true => self.writer.write_during(plan, observer, run),
            false => run(observer),
        }
    }

    fn after_run(&mut self, purpose: RunPurpose, result: &mut RunResult) {
        if self.stored.is_stored(purpose) {
            self.writer.label_run(result);
            self.writer.store_run(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_stores_phases_and_sweep_stores_cells() {
        let cells = [RunPurpose::SearchCell, RunPurpose::GridCell];
        let others = [RunPurpose::Layout, RunPurpose::Phase, RunPurpose::SuiteJob];
        for purpose in cells {
            assert!(StoredRuns::All.is_stored(purpose));
            assert!(!StoredRuns::NoCells.is_stored(purpose));
        }
        for stored in [StoredRuns::All, StoredRuns::NoCells] {
            assert!(others.iter().all(|purpose| stored.is_stored(*purpose)));
            assert!(!stored.is_stored(RunPurpose::Trial));
        }
    }
}
