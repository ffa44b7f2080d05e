//! [`Axis`]: an option that a sweep varies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Option and the values that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Name of the option as in fio, or `target` or `job`.
    pub name: String,
    /// Values, in the order given.
    pub values: Vec<String>,
}
