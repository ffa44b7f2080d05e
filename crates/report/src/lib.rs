//! Reports of results: tables for people, documents for programs.

mod axis_numbers;
pub mod cache_comparison;
mod column_groups;
pub mod comparison;
pub mod csi;
pub mod csv;
pub mod doctor;
pub mod facts;
pub mod figures;
pub mod format;
mod hanging_lines;
pub mod history;
pub mod html;
pub mod intervals;
pub mod json_document;
pub mod k8s;
mod known_digits;
pub mod lifecycle;
mod listed_names;
pub mod load;
pub mod markdown_table;
pub mod nodes;
pub mod pivot;
pub mod plot;
pub mod pods;
pub mod probe;
mod promise;
pub mod pts;
pub mod rados;
pub mod rbd;
pub mod series_table;
pub mod spread;
pub mod stored_figures;
pub mod suite;
pub mod sweep;
pub mod text_style;
pub mod text_table;

use iosonde_study::CutShort;

/// Describes the error that ended a study early.
fn ended_by(error: &CutShort) -> String {
    format!("ended by an error: {}; {}", error.message, error.remedy)
}

/// Note of a study that the user interrupted.
const INTERRUPTED: &str = "interrupted: figures up to the interruption";

/// Notes on a study that ended early, by the user or by an error.
fn early_ending(interrupted: bool, error: Option<&CutShort>) -> Vec<String> {
    let by_user = interrupted.then(|| INTERRUPTED.to_owned());
    by_user.into_iter().chain(error.map(ended_by)).collect()
}

/// Returns each value once, in the order of the first occurrences.
fn unique<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut met = Vec::new();
    for value in values {
        if !met.contains(&value) {
            met.push(value);
        }
    }
    met
}

/// Returns the values of each key, in the order of the first occurrences.
fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERRUPTED, early_ending, grouped, unique};

    #[test]
    fn early_ending_names_the_user() {
        assert_eq!(early_ending(true, None), [INTERRUPTED]);
        assert_eq!(early_ending(false, None), [""; 0]);
    }

    #[test]
    fn unique_values_keep_their_order() {
        assert_eq!(unique([3, 1, 3, 2, 1]), [3, 1, 2]);
    }

    #[test]
    fn grouped_values_keep_the_order_of_their_keys() {
        let groups = grouped([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(groups, [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
