//! Labels whose results are of several targets: a comparison then averages different storage.

use iosonde_history::StudySummary;
use std::collections::BTreeSet;

/// Most targets that the warning names.
const NAMED_TARGETS_MAX: usize = 4;

/// States that the results of a label are of several targets. `None`: they are of one.
pub(super) fn mixed_targets(word: &str, studies: &[StudySummary]) -> Option<String> {
    let targets: BTreeSet<&str> = studies.iter().map(|study| study.target.as_str()).collect();
    if targets.len() < 2 {
        return None;
    }
    let named: Vec<&str> = targets.iter().copied().take(NAMED_TARGETS_MAX).collect();
    let more = match targets.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{word} covers {} targets: {}{more}",
        targets.len(),
        named.join(", ")
    ))
}
