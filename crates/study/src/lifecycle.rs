//! Life cycle of volumes of storage classes: how long each stage takes, for one volume and for
//! several at the same time, and where the cluster works on them one after the other.
//!
//! Rounds of the classes alternate, so that slow changes of the cluster affect all of them.

mod lifecycle_parts;
mod lifecycle_result;
mod lifecycle_run;
mod serial_stages;
mod stage_summary;

pub use lifecycle_parts::lifecycle_parts;
pub use lifecycle_result::{
    FORMAT, FailureCount, LifecycleDocument, LifecycleGroup, LifecycleResult, schema,
};
pub use lifecycle_run::{LifecycleOptions, run_lifecycle};
pub use serial_stages::SerialStage;
pub(crate) use stage_summary::interval_of_mean;
pub use stage_summary::{StageFigure, StageSummary};
