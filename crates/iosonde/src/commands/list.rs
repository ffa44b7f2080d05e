//! `iosonde list`: what is in the history.

use crate::args::{ListArgs, TextFormat};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{history, spread};
use crate::store::{Filter, Place, Store, StoreError};
use iosonde_result::compare::Measured;
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
    let mut text = history::list(&studies, args.format, &TimeZone::system());
    if args.format == TextFormat::Table && !args.labels.is_empty() {
        let labels = args
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let name = labels.collect::<Vec<_>>().join(" ");
        let measured: Vec<Measured> = studies.iter().map(|study| study.measured()).collect();
        if let Some(table) = spread::table(&name, &measured) {
            text.push_str(&format!("\n{table}"));
        }
    }
    Output::Standard.write(text.as_bytes())
}
