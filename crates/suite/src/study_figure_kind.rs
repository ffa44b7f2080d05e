//! Kinds of figures that a study has beyond those of its runs.

use serde::{Deserialize, Serialize};

/// Kinds of figures of studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyFigureKind {
    /// The highest IOPS of a curve.
    MaxIops,
    /// The highest bandwidth of a curve, in bytes per second.
    MaxBytesPerS,
    /// The lowest depth that reaches the maximum.
    Knee,
    /// The highest rate that keeps the objective.
    Rate,
    /// The IOPS at which the target is saturated.
    Capacity,
    /// The figure that a command printed.
    CommandFigure,
}
