//! Reads the causes of verdicts, findings and errors.

use iosonde_job::read_json_value;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a cause. Returns `None` if this version does not know its kind or its fields, so that the
/// document of a newer version stays readable: its text says the same.
pub(crate) fn read_known_cause<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let cause = Option::<Value>::deserialize(deserializer)?;
    Ok(cause.and_then(|cause| read_json_value(&cause).ok()))
}
