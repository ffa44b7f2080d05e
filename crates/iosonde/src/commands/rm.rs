//! `iosonde rm`: removes stored results.

use crate::args::RmArgs;
use crate::failure::CommandError;
use iosonde_history::HistoryPath;

/// Removes all named results, or none if one of them does not exist.
pub(crate) fn run(args: &RmArgs) -> Result<(), CommandError> {
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let mut store = crate::commands::open_history(&place)?;
    let mut ids = Vec::new();
    for run in &args.runs {
        if run.contains('.') {
            return Err(CommandError::usage(
                format!("{run}: a run cannot be removed alone, only its whole result"),
                "name the ID before the dot",
            ));
        }
        let id = store.find(run)?;
        if store.is_running(&id) {
            return Err(CommandError::usage(
                format!("{id} cannot be removed: its measurement is not finished"),
                "wait until the measurement ends, or stop it, then remove the result",
            ));
        }
        ids.push(id);
    }
    store.remove(&ids)?;
    for id in &ids {
        eprintln!("removed {id}");
    }
    Ok(())
}
