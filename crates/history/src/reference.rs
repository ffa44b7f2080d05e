//! Names of results: a prefix of an id, or a position from the end of the list.

use super::{Store, StoreError, id};
use iosonde_job::diagnostic::nearest;

/// The last result that began and measured something.
pub const LATEST: &str = "latest";
/// Most suggestions for an unknown name.
const MOST_NEAR: usize = 3;
const FROM_THE_END: &str = "SELECT id FROM study ORDER BY started_at_ms DESC, rowid DESC";
/// As above, without studies that were cut off before they measured anything.
const RESULTS_FROM_THE_END: &str = "SELECT id FROM study \
     WHERE kind = 'fio' OR document IS NOT NULL \
     OR EXISTS (SELECT 1 FROM run JOIN part ON part.run = run.id \
                JOIN figure ON figure.run = part.run AND figure.part = part.number \
                WHERE run.study = study.id AND part.name <> 'layout') \
     ORDER BY started_at_ms DESC, rowid DESC";

/// All labels and facts, as `KEY=VALUE`.
const LABELS_AND_FACTS: &str = "SELECT key || '=' || value AS text FROM label \
     UNION SELECT key || '=' || value FROM fact_value ORDER BY text";

/// Returns how far a name counts back: 0 for `latest`, 2 for `latest~2`, 1 for `latest~`.
fn parse_latest_offset(word: &str) -> Option<usize> {
    let rest = word.to_ascii_lowercase();
    match rest.strip_prefix(LATEST)?.strip_prefix('~') {
        Some("") => Some(1),
        Some(number) => number.parse().ok(),
        None => (rest.len() == LATEST.len()).then_some(0),
    }
}

/// Whether a name counts from the end of the list.
pub fn is_from_the_end(word: &str) -> bool {
    parse_latest_offset(word).is_some()
}

/// Returns the candidates most similar to an unknown name, the nearest first.
fn similar_names<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut left: Vec<&str> = candidates.into_iter().collect();
    let mut found = Vec::new();
    while let Some(one) = nearest(word, left.iter().copied()) {
        if found.len() == MOST_NEAR {
            break;
        }
        found.push(one.to_owned());
        left.retain(|candidate| *candidate != one);
    }
    found
}

impl Store {
    /// Returns the id that a prefix or a position from the end names.
    pub fn find(&self, name: &str) -> Result<String, StoreError> {
        match parse_latest_offset(name) {
            Some(back) => self.counted_back(name, back),
            None => self.begins(name),
        }
    }

    fn counted_back(&self, name: &str, back: usize) -> Result<String, StoreError> {
        let ids = self.strings(RESULTS_FROM_THE_END)?;
        ids.get(back).cloned().ok_or_else(|| StoreError::TooFew {
            name: name.to_owned(),
            has: ids.len(),
        })
    }

    fn begins(&self, prefix: &str) -> Result<String, StoreError> {
        let ids = self.strings(FROM_THE_END)?;
        let digits = id::shown_digits(&ids);
        let shown = |id: &String| id[..digits.min(id.len())].to_owned();
        let lower = prefix.to_ascii_lowercase();
        let matching: Vec<&String> = ids
            .iter()
            .filter(|id| !prefix.is_empty() && id.starts_with(&lower))
            .collect();
        match &matching[..] {
            [] => {
                let short: Vec<String> = ids.iter().map(shown).collect();
                let known = short.iter().map(String::as_str).chain([LATEST]);
                Err(StoreError::Unknown {
                    name: prefix.to_owned(),
                    near: similar_names(prefix, known),
                })
            }
            [id] => Ok((*id).clone()),
            several => Err(StoreError::Ambiguous {
                prefix: prefix.to_owned(),
                candidates: several.iter().map(|id| shown(id)).collect(),
            }),
        }
    }

    /// The error for an unknown run of a study, with similar names.
    pub(super) fn no_such_run<'a>(
        study: &str,
        run: &str,
        runs: impl ExactSizeIterator<Item = &'a str>,
    ) -> StoreError {
        let count = runs.len();
        let near = similar_names(run, runs).into_iter();
        StoreError::NoSuchRun {
            study: study.to_owned(),
            run: run.to_owned(),
            count,
            near: near.map(|run| format!("{study}.{run}")).collect(),
        }
    }

    /// The error for a label or fact that no result has, with suggestions: the same key, a similar
    /// one, or all keys.
    pub fn no_such_label(&self, label: &str) -> StoreError {
        let known = self.strings(LABELS_AND_FACTS).unwrap_or_default();
        let wanted = label.split_once('=').map_or(label, |(key, _)| key);
        let mut keys = self.keys().unwrap_or_default();
        if keys.iter().any(|key| key == wanted) {
            keys.clear();
        }
        let mut near = similar_names(label, known.iter().map(String::as_str));
        let key = label.split_once('=').map(|(key, _)| format!("{key}="));
        let same_key = known
            .into_iter()
            .filter(|known| key.as_ref().is_some_and(|key| known.starts_with(key)));
        near.extend(same_key);
        let mut seen = std::collections::BTreeSet::new();
        near.retain(|label| seen.insert(label.clone()));
        near.truncate(MOST_NEAR);
        StoreError::UnknownLabel {
            label: label.to_owned(),
            near,
            keys,
        }
    }

    /// Returns the rows of a query for one text column.
    pub(super) fn strings(&self, query: &str) -> Result<Vec<String>, StoreError> {
        let found = || -> rusqlite::Result<Vec<String>> {
            let mut select = self.connection.prepare(query)?;
            select.query_map([], |row| row.get(0))?.collect()
        };
        found().map_err(|error| self.wrong(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_reference_parses_count_back() {
        assert_eq!(parse_latest_offset("latest"), Some(0));
        assert_eq!(parse_latest_offset("LATEST~12"), Some(12));
        assert_eq!(parse_latest_offset("latest~"), Some(1));
        for other in ["latest~x", "latest1", "late", "latest~-1", "3fa9c1", ""] {
            assert_eq!(parse_latest_offset(other), None, "{other}");
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        let ids = ["3fa9c1", "3fa9d1", "7be001", LATEST];
        assert_eq!(similar_names("3fa9c2", ids), ["3fa9c1", "3fa9d1"]);
        assert_eq!(similar_names("lastest", ids), [LATEST]);
        assert_eq!(similar_names("c0ffee", ids), [""; 0]);
    }
}
