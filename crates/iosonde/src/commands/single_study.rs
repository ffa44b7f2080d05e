//! Runs a study of one target whose runs are all stored in the history.

use iosonde_history::{HistoryHook, HistoryWriter, StoredRuns};
use iosonde_result::session::Session;
use iosonde_study::{StudyDriver, StudyError, StudyNeighbour, StudyObserver};

/// Begins a study in the history and measures it. `study` is its kind and the name of its target.
///
/// # Errors
/// If the study has no result.
pub(super) fn run_single_study<R>(
    study: (&str, &str),
    session: &mut dyn Session,
    neighbours: Vec<StudyNeighbour>,
    observer: &mut dyn StudyObserver,
    history_writer: &mut HistoryWriter,
    measure: impl FnOnce(&mut StudyDriver<'_>) -> Result<R, StudyError>,
) -> Result<R, StudyError> {
    let (kind, target_name) = study;
    history_writer.begin(kind, target_name);
    let mut history_hook = HistoryHook {
        writer: history_writer,
        stored: StoredRuns::All,
    };
    let driver = StudyDriver::new(session, observer).with_neighbours(neighbours);
    let mut driver = driver.with_hook(&mut history_hook);
    measure(&mut driver)
}
