//! The remedy for two results without a common figure.

use super::sides::{Chosen, Studies};
use crate::commands::show_command::store_option;
use crate::failure::CommandError;
use iosonde_history::{Filter, HistoryPath, Loaded};
use iosonde_result::compare::compare;
use std::path::Path;

/// Most results of the history that are tried, the latest first.
const TRIED_MAX: usize = 20;

/// Returns the command that compares a stored result with another one of the same kind. `file` is
/// that of the history.
pub(super) fn comparable_remedy(stored: Option<&Loaded>, file: Option<&Path>) -> String {
    let found = stored.and_then(|loaded| {
        let other = comparable(loaded, file).ok().flatten()?;
        Some((loaded.name(), other))
    });
    let options = store_option(file);
    match found {
        Some((name, other)) => format!("for example `iosonde compare {name} {other}{options}`"),
        None => format!("compare two results of one kind that `iosonde list{options}` lists"),
    }
}

/// The latest result of the same kind that has a figure in common with this one.
fn comparable(loaded: &Loaded, file: Option<&Path>) -> Result<Option<String>, CommandError> {
    let store = crate::commands::open_history(&HistoryPath::find(file)?)?;
    let studies = store.list(&Filter::default())?;
    let (id, kind) = (&loaded.summary.id, &loaded.summary.kind);
    let others = studies.iter().rev();
    let others = others.filter(|study| study.id != *id && study.kind == *kind);
    for other in others.take(TRIED_MAX) {
        let mut a = Chosen::resolve(&loaded.name(), file)?;
        let mut b = Chosen::resolve(&other.short_id, file)?;
        Studies::from_sides(&mut a, &mut b);
        if !compare(&a.results, &b.results).rows.is_empty() {
            return Ok(Some(other.short_id.clone()));
        }
    }
    Ok(None)
}
