//! Conditions `KEY=VALUE` on studies: given labels, facts of their runs, and what all studies have.

use super::read::StudySummary;
use super::{Store, StoreError};
use iosonde_result::property_values::PropertyValues;

/// Keys that all studies have besides labels and facts.
pub(super) const STUDY_KEYS: [&str; 3] = ["target", "machine", "kind"];

impl StudySummary {
    /// Returns the value of a key: that of a given label, else that of a fact, else `target`,
    /// `machine` or `kind` of the study.
    pub fn value_of(&self, key: &str) -> Option<String> {
        let label = self.labels.get(key).cloned();
        let label = label.or_else(|| self.facts.get(key).map(PropertyValues::to_string));
        label.or_else(|| self.property(key).map(str::to_owned))
    }

    /// The value of a key that all studies have.
    fn property(&self, key: &str) -> Option<&str> {
        match key {
            "target" => Some(&self.target),
            "machine" => self.machine.as_deref(),
            "kind" => Some(&self.kind),
            _ => None,
        }
    }

    /// Returns the keys of the study: labels, facts, and those that all studies have.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let own = self.labels.keys().chain(self.facts.keys());
        own.map(String::as_str).chain(STUDY_KEYS)
    }

    /// Whether the value of a key matches. `*` and `?` stand for other characters. Values that
    /// were not given as labels also match by their first words, regardless of case.
    pub(super) fn has_value(&self, key: &str, pattern: &str) -> bool {
        if let Some(label) = self.labels.get(key) {
            return label == pattern || has_form(label, pattern);
        }
        let pattern = pattern.to_lowercase();
        let matches = |value: &str| {
            let value = value.to_lowercase();
            let rest = value.strip_prefix(&pattern);
            let starts = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            starts || has_form(&value, &pattern)
        };
        match self.facts.get(key) {
            Some(values) => values.iter().any(matches) || matches(&values.to_string()),
            None => self.property(key).is_some_and(matches),
        }
    }
}

/// Whether a text has the form of a pattern, where `*` is any text and `?` is any character.
fn has_form(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut at, mut next) = (0, 0);
    // After a mismatch, the last `*` takes one more character.
    let mut last_star = None;
    while at < text.len() {
        match pattern.get(next) {
            Some('*') => {
                last_star = Some((next, at));
                next += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[at] => {
                next += 1;
                at += 1;
            }
            _ => match &mut last_star {
                Some((star, taken)) => {
                    *taken += 1;
                    (next, at) = (*star + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[next..].iter().all(|letter| *letter == '*')
}

impl Store {
    /// Returns the keys of all studies, in alphabetical order.
    pub fn keys(&self) -> Result<Vec<String>, StoreError> {
        let mut keys = self.strings("SELECT key FROM label UNION SELECT key FROM fact_value")?;
        keys.extend(STUDY_KEYS.map(str::to_owned));
        keys.sort();
        keys.dedup();
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use crate::tests::{TestHistory, run_on};

    #[test]
    fn patterns_match_whole_values() {
        for (text, pattern, expected) in [
            ("6.8.0-45-generic", "6.8*", true),
            ("6.8.0-45-generic", "6.8", false),
            ("6.8.0-45-generic", "*-generic", true),
            ("6.8.0-45-generic", "6.?.0-*ric", true),
            ("6.18.0", "6.?.0", false),
            ("aXbXc", "a*X*c", true),
            ("aab", "*ab", true),
            ("", "*", true),
            ("", "?", false),
            ("a[1]", "a[1]", true),
        ] {
            assert_eq!(has_form(text, pattern), expected, "{text} {pattern}");
        }
    }

    fn targets(history: &TestHistory, key: &str, value: &str) -> Vec<String> {
        let found = history.store().list(&Filter::label(key, value)).unwrap();
        let os = |study: &StudySummary| study.facts["os"].to_string();
        found.iter().map(os).collect()
    }

    #[test]
    fn facts_select_studies_as_labels_do() {
        let history = TestHistory::new("facts-select");
        history.import(run_on("debian", "12", "6.1.0-21-amd64"));
        history.import(run_on("debian", "13", "6.12.9"));
        history.import(run_on("centos", "7", "3.10.0-327.36.2.el7"));
        assert_eq!(
            targets(&history, "os", "debian"),
            ["debian 12", "debian 13"]
        );
        assert_eq!(targets(&history, "os", "Debian 12"), ["debian 12"]);
        assert_eq!(targets(&history, "os", "deb"), [""; 0]);
        assert_eq!(
            targets(&history, "kernel", "6.1*"),
            ["debian 12", "debian 13"]
        );
        assert_eq!(targets(&history, "kernel", "3.10.0-*.el7"), ["centos 7"]);
        assert_eq!(targets(&history, "kind", "fio").len(), 3);
        let keys = history.store().keys().unwrap();
        assert_eq!(keys, ["kernel", "kind", "machine", "os", "target"]);
    }

    #[test]
    fn given_label_wins_over_fact() {
        let history = TestHistory::new("facts-label");
        let mut study = run_on("debian", "12", "6.1.0-21-amd64");
        study.label(&[("os".to_owned(), "hardened".to_owned())].into());
        history.import(study);
        assert_eq!(targets(&history, "os", "debian"), [""; 0]);
        assert_eq!(targets(&history, "os", "hard*"), ["debian 12"]);
        // A label is not abbreviated.
        assert_eq!(targets(&history, "os", "Hardened"), [""; 0]);
        let [study] = &history.list_studies()[..] else {
            panic!("not one study");
        };
        assert_eq!(study.value_of("os").as_deref(), Some("hardened"));
        let kernel = study.value_of("kernel");
        assert_eq!(kernel.as_deref(), Some("6.1.0-21-amd64"));
        assert_eq!(study.value_of("region"), None);
    }

    #[test]
    fn unknown_label_key_lists_the_keys() {
        let history = TestHistory::new("facts-unknown");
        history.import(run_on("debian", "12", "6.1.0-21-amd64"));
        let store = history.store();
        let unknown = store.no_such_label("kernl=6.8*");
        assert_eq!(unknown.to_string(), "no result has the label kernl=6.8*");
        assert_eq!(
            unknown.remedy().unwrap(),
            "did you mean `kernel`? The keys are kernel, kind, machine, os, target"
        );
        let near = store.no_such_label("os=debian 11");
        assert!(
            near.remedy().unwrap().contains("'os=debian 12'"),
            "{near:?}"
        );
    }
}
