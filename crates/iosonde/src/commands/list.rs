//! `iosonde list`: what is in the history.

use crate::args::{ListArgs, TextFormat};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::history;
use crate::store::{Filter, Place, Store, StoreError};
use jiff::tz::TimeZone;

/// Lists the results that are asked for, the oldest first.
pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref())?;
    let filter = Filter {
        labels: args.labels.clone(),
        target: args.target.clone(),
        since_ms: args.since,
        ..Filter::default()
    };
    let studies = match Store::open(&place) {
        Ok(store) => store.list(&filter)?,
        // Nothing has been measured yet: that is an empty list.
        Err(StoreError::Empty(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if studies.is_empty() && args.format == TextFormat::Table {
        eprintln!("no results in {}", place.path.display());
        return Ok(());
    }
    let text = history::list(&studies, args.format, &TimeZone::system());
    Output::Standard.write(text.as_bytes())
}
