//! `iosonde list`: lists the history.

use crate::args::ListArgs;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{Filter, HistoryPath, StoreError, absolute, known_keys};
use iosonde_report::format::TextFormat;
use iosonde_report::{history, spread};
use iosonde_result::compare::MeasuredResult;
use jiff::tz::TimeZone;
use std::num::NonZeroUsize;

/// Lists the matching results, oldest first.
pub(crate) fn run(args: &ListArgs) -> Result<(), CommandError> {
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let labels: Vec<(String, String)> = args.selected.iter().chain(&args.labels).cloned().collect();
    let filter = Filter {
        labels,
        targets: args.target.iter().flat_map(|name| forms(name)).collect(),
        since_ms: args.since,
        ..Filter::default()
    };
    let mut keys = Vec::new();
    let studies = match crate::commands::open_history(&place) {
        Ok(store) => {
            let mut studies = store.list(&filter)?;
            let last = args.last.map_or(studies.len(), NonZeroUsize::get);
            studies.drain(..studies.len().saturating_sub(last));
            if studies.is_empty() {
                keys = store.keys()?;
            }
            studies
        }
        // A missing history is an empty list.
        Err(StoreError::Empty(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if studies.is_empty() && args.format == TextFormat::Table {
        let none = match filter == Filter::default() {
            true => "no results",
            false => "no matching results",
        };
        eprintln!("{none} in {}{}", place.path.display(), because(&place));
        if let Some(note) = unknown_key(&filter, &keys) {
            eprintln!("{note}");
        }
        return Ok(());
    }
    let mut output = Output::Standard;
    let style = output.style();
    let mut text = history::study_list(&studies, args.format, &TimeZone::system(), style);
    if args.format == TextFormat::Table && !filter.labels.is_empty() {
        let labels = filter
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let name = labels.collect::<Vec<_>>().join(" ");
        let measured: Vec<MeasuredResult> = studies.iter().map(|study| study.measured()).collect();
        if let Some(table) = spread::table(&name, &measured) {
            text.push_str(&format!("\n{table}"));
        }
    }
    output.write(&text)
}

/// The first key of the filter that no result has, and all keys. `None`: there is no such key.
pub(super) fn unknown_key(filter: &Filter, keys: &[String]) -> Option<String> {
    let mut wanted = filter.labels.iter().map(|(key, _)| key);
    let key = wanted.find(|key| !keys.is_empty() && !keys.contains(key))?;
    let help = known_keys(key, keys.iter().map(String::as_str));
    Some(format!("no result has the key `{key}`: {help}"))
}

/// The reason for an empty history, if it cannot be written.
fn because(place: &HistoryPath) -> String {
    match place.obstacle() {
        Some(error) => {
            let error = iosonde_job::errno::describe(&error);
            format!(": the history cannot be written ({error})")
        }
        None => String::new(),
    }
}

/// Names of a stored target: absolute, and as given for older entries and other machines.
fn forms(name: &str) -> Vec<String> {
    let mut forms = vec![absolute(name), name.to_owned()];
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_key_is_reported_with_all_keys() {
        let keys = ["kernel", "os"].map(str::to_owned);
        let note = unknown_key(&Filter::label("kernl", "6*"), &keys);
        assert_eq!(
            note.as_deref(),
            Some("no result has the key `kernl`: did you mean `kernel`? The keys are kernel, os")
        );
        assert_eq!(unknown_key(&Filter::label("kernel", "7*"), &keys), None);
        assert_eq!(unknown_key(&Filter::label("kernel", "7*"), &[]), None);
    }

    #[test]
    fn target_matches_absolute_and_original_name() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(forms("."), [here.to_str().unwrap(), "."]);
        assert_eq!(forms("sc://fast"), ["sc://fast"]);
    }
}
