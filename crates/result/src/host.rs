//! Where a run took place: the machine, and what its targets are.

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Host {}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct TargetInfo {}
