//! `iosonde list`: what is in the history.

use crate::args::{ListArgs, TextFormat};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{history, spread};
use crate::store::{Filter, Place, Store, StoreError, absolute};
use iosonde_result::compare::Measured;
use jiff::tz::TimeZone;

/// Lists the results that are asked for, the oldest first.
pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let place = Place::find(args.store.store.as_deref())?;
    let filter = Filter {
        labels: args.labels.clone(),
        targets: args.target.iter().flat_map(|name| forms(name)).collect(),
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
        let none = match filter == Filter::default() {
            true => "no results",
            false => "no results like that",
        };
        eprintln!("{none} in {}{}", place.path.display(), because(&place));
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
    Output::Standard.write(&text)
}

/// Why there can be none, where there is such a reason.
fn because(place: &Place) -> String {
    match place.obstacle() {
        Some(error) => format!(": it cannot be written there ({error})"),
        None => String::new(),
    }
}

/// The names under which a target may be kept: where it is, and as older entries and other machines wrote it.
fn forms(name: &str) -> Vec<String> {
    let mut forms = vec![absolute(name), name.to_owned()];
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_by_where_it_is_and_by_its_older_name() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(forms("."), [here.to_str().unwrap(), "."]);
        assert_eq!(forms("sc://fast"), ["sc://fast"]);
    }
}
