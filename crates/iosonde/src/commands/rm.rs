//! `iosonde rm`: removing stored results.

use crate::args::RmArgs;
use crate::failure::Failure;
use crate::store::{Place, Store};

/// Removes all that are named, or none if one of them is not there.
pub(crate) fn run(args: &RmArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref())?;
    let mut store = Store::open(&place)?;
    let mut ids = Vec::new();
    for run in &args.runs {
        if run.contains('.') {
            return Err(Failure::usage(
                format!("{run}: a run is only removed together with its study"),
                "name the id before the dot",
            ));
        }
        let id = store.find(run)?;
        if store.is_running(&id) {
            return Err(Failure::usage(
                format!("{id} is still measured: it cannot be removed"),
                "wait for its end, or end the program that measures it, then remove it",
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
