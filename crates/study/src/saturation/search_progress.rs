//! [`SearchProgress`]: the state from which an interrupted search resumes.

use crate::figures::cell::CellRecord;
use serde::{Deserialize, Serialize};

/// State of an interrupted search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchProgress {
    /// Measurements of each cell.
    pub records: Vec<CellRecord>,
    /// Time of all runs in nanoseconds.
    pub spent_ns: u64,
}
