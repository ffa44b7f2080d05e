//! [`SweepOptions`]: what a sweep measures, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shortest time of a useful search.
pub(super) const LEAST_CURVE_NS: u64 = 2_000_000_000;
/// Smallest useful budget.
pub const LEAST_BUDGET_NS: u64 = LEAST_CURVE_NS;

/// Options of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepOptions {
    /// Whether every cell is measured.
    pub exhaustive: bool,
    /// Measured time of a cell in nanoseconds. A search takes a tenth of its cells' time.
    pub runtime_ns: u64,
    /// Limit on the time of all runs, in nanoseconds. The order then covers the grid evenly.
    pub budget_ns: Option<u64>,
    /// Seed of the order of cells and of the offsets.
    pub seed: u64,
    /// Longest warm-up of a cell in nanoseconds. If set, the working set is an axis, and every cell
    /// is measured once its caches are warm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_warmup_ns: Option<u64>,
}

impl SweepOptions {
    /// Whether every cell is measured.
    pub(super) fn is_exhaustive(&self) -> bool {
        self.exhaustive || self.most_warmup_ns.is_some()
    }
}
