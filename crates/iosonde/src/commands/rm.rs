//! `iosonde rm`: removes stored results.

use crate::args::RmArgs;
use crate::commands::consent::is_yes;
use crate::commands::show_command::store_option;
use crate::failure::CommandError;
use iosonde_history::{Filter, HistoryPath, Store, is_from_the_end};
use iosonde_job::{escape_control_characters, quote_shell_word};
use iosonde_report::history::list_time_text;
use jiff::tz::TimeZone;
use std::io::{IsTerminal, stderr, stdin};

/// Removes all named results, or none if one of them does not exist or the user refuses.
pub(crate) fn run(args: &RmArgs) -> Result<(), CommandError> {
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let mut store = crate::commands::open_history(&place)?;
    let mut ids = Vec::new();
    for run in &args.runs {
        if let Some((whole, _)) = run.split_once('.') {
            let options = store_option(args.store.store.as_deref());
            return Err(CommandError::usage(
                format!("{run}: a run cannot be removed alone, only its whole result"),
                format!(
                    "remove the result: `iosonde rm {}{options}`",
                    quote_shell_word(whole)
                ),
            ));
        }
        let id = store.find(run)?;
        if store.is_running(&id) {
            return Err(CommandError::usage(
                format!("{id} cannot be removed: its measurement is not finished"),
                "wait until the measurement ends, or stop it, then remove the result",
            ));
        }
        let is_known = ids.contains(&id);
        if !args.yes && !is_known && !is_agreed(&store, run, &id)? {
            eprintln!("no result was removed");
            return Ok(());
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    store.remove(&ids)?;
    for id in &ids {
        eprintln!("removed {id}");
    }
    Ok(())
}

/// Asks whether to remove the result that a short prefix of its ID or `latest` names. Other names
/// need no consent. Without a terminal, such a name is an error.
fn is_agreed(store: &Store, name: &str, id: &str) -> Result<bool, CommandError> {
    let filter = Filter {
        id: Some(id.to_owned()),
        ..Filter::default()
    };
    let Some(study) = store.list(&filter)?.pop() else {
        return Ok(true);
    };
    if !is_from_the_end(name) && !is_short_prefix(name, id, &study.short_id) {
        return Ok(true);
    }
    let started = list_time_text(study.started_at_ms, &TimeZone::system());
    let result = format!(
        "{} ({} of {}, {started})",
        study.short_id, study.kind, study.target
    );
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(CommandError::usage(
            format!("{name} stands for {result}, and there is no terminal to ask"),
            format!("name the ID {}, or add --yes", study.short_id),
        ));
    }
    let result = escape_control_characters(&result);
    eprint!("{name} stands for {result}. Remove this result? [y/N] ");
    is_yes(&|| 0)
}

/// Whether a name is a prefix of an ID with fewer digits than `iosonde list` shows.
fn is_short_prefix(name: &str, id: &str, shown: &str) -> bool {
    debug_assert!(id.starts_with(shown));
    name.len() < shown.len() && id.starts_with(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_below_the_shown_digits_is_short() {
        let is_short = |name: &str| is_short_prefix(name, "3fa9c1b2d3", "3fa9c1");
        for name in ["3", "3FA9", "3fa9c"] {
            assert!(is_short(name), "{name}");
        }
        for name in ["3fa9c1", "3fa9c1b2", "3fa9c1b2d3", "latest", "~1"] {
            assert!(!is_short(name), "{name}");
        }
    }
}
