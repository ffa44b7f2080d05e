//! Health checks of a Ceph cluster.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Stands between name and message in documents.
const SEPARATOR: &str = ": ";

/// A health check that failed. Documents have it as one text: `OSD_DOWN: 1 osds down`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct HealthCheck {
    /// Name of the check.
    pub name: String,
    /// Its message. `None`: the cluster reports none.
    pub message: Option<String>,
}

impl fmt::Display for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{}{SEPARATOR}{message}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl From<HealthCheck> for String {
    fn from(check: HealthCheck) -> String {
        check.to_string()
    }
}

/// Reads the text of a document.
impl From<String> for HealthCheck {
    fn from(text: String) -> HealthCheck {
        match text.split_once(SEPARATOR) {
            Some((name, message)) => HealthCheck {
                name: name.to_owned(),
                message: Some(message.to_owned()),
            },
            None => HealthCheck {
                name: text,
                message: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_check_is_one_text_in_documents() {
        for text in ["OSD_DOWN: 1 osds down: osd.2", "OSDMAP_FLAGS"] {
            let check = HealthCheck::from(text.to_owned());
            assert_eq!(serde_json::to_value(&check).unwrap(), text);
            let read: HealthCheck = serde_json::from_value(text.into()).unwrap();
            assert_eq!(read, check);
        }
        let check = HealthCheck::from("OSD_DOWN: 1 osds down: osd.2".to_owned());
        assert_eq!(check.name, "OSD_DOWN");
    }
}
