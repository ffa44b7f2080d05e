//! The values of a property that several devices, processors or runs may have differently.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Stands between the values in documents and on screens.
const SEPARATOR: &str = ", ";

/// Different values of one property, in their order: `ext4, xfs`. None of them is empty. Documents
/// have them as one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct PropertyValues(Vec<String>);

impl PropertyValues {
    /// Adds a value, unless it is empty or known. Blanks around it are removed.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if !value.is_empty() && !self.contains(value) {
            self.0.push(value.to_owned());
        }
    }

    /// Returns the values.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether one of the values is this one.
    #[must_use]
    pub fn contains(&self, value: &str) -> bool {
        self.iter().any(|known| known == value)
    }

    /// Whether the property is not known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<String> for PropertyValues {
    fn from_iter<I: IntoIterator<Item = String>>(values: I) -> Self {
        let mut different = PropertyValues::default();
        for value in values {
            different.add(&value);
        }
        different
    }
}

impl fmt::Display for PropertyValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(SEPARATOR))
    }
}

impl From<PropertyValues> for String {
    fn from(values: PropertyValues) -> String {
        values.to_string()
    }
}

/// Reads the text of a document.
impl From<&str> for PropertyValues {
    fn from(text: &str) -> PropertyValues {
        text.split(SEPARATOR).map(str::to_owned).collect()
    }
}

/// Reads the text of a document.
impl From<String> for PropertyValues {
    fn from(text: String) -> PropertyValues {
        text.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_values_are_one_text_in_documents() {
        let values = ["ext4", "", "xfs", "ext4"].map(str::to_owned);
        let values: PropertyValues = values.into_iter().collect();
        assert_eq!(serde_json::to_value(&values).unwrap(), "ext4, xfs");
        let read: PropertyValues = serde_json::from_value("ext4, xfs".into()).unwrap();
        assert_eq!(read, values);
        assert!(read.contains("xfs") && !read.contains("ext4, xfs"));
    }

    #[test]
    fn property_without_values_is_empty() {
        assert!(PropertyValues::from("").is_empty());
        assert!(PropertyValues::from_iter([" ".to_owned()]).is_empty());
    }

    #[test]
    fn property_value_with_a_comma_stays_one_value() {
        let values = PropertyValues::from_iter(["Disk, 1 TB".to_owned()]);
        assert_eq!(values.iter().collect::<Vec<_>>(), ["Disk, 1 TB"]);
    }
}
