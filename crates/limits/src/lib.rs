//! Limits that vendors publish for their volumes: IOPS and bandwidth for a size and a machine.
//!
//! The figures and their sources are in `data/limits.toml`. docs/limits.md describes the format,
//! which a user's own file shares. [`Limits::evaluate`] is a pure function of the file and a
//! [`Query`]. A [`Promise`] judges measured figures.

mod catalogue;
mod check;
mod disks;
mod error;
mod evaluate;
mod example_values;
mod limits_file;
mod local_disks;
mod metric;
mod parameter_examples;
mod promise;
mod published;
mod queried_machine;
mod query;
mod term;
#[cfg(test)]
mod tests;
mod types;
mod verdict;

pub use catalogue::{Limits, Listed};
pub use error::{LimitsError, LimitsFileError};
pub use limits_file::{Delivery, SharedBudget, SourceKind};
pub use metric::{Metric, VendorUnit, exact};
pub use promise::{Bound, BurstLength, Limiter, LimitsSource, Promise, PromisedFigure};
pub use query::{ChosenBandwidth, Query, bandwidth, count, parse_date, parse_iops, size_gib};
pub use verdict::{MeasuredFigure, PromiseComparison, PromiseVerdict};
