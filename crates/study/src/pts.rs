//! Preconditioning and steady state by SNIA's Performance Test Specification (PTS 2.0.2).
//!
//! A new or empty flash device writes faster than in steady state. A test therefore purges the
//! device, writes it twice from end to end, and repeats its workloads in at most 25 rounds, until
//! five consecutive rounds agree ([`SteadyStateTest`]). Only these count. See `docs/snia.md`.
//!
//! [`SteadyStateTest`]: iosonde_result::series_statistics::SteadyStateTest

mod deviations;
mod plan;
mod pts_options;
mod pts_result;
mod pts_study;
mod pts_times;

pub use crate::announcement::PtsAnnouncement;
pub use crate::figures::preset::{PtsPreset, PtsSeries, PtsTest, PtsWorkload, Tracked};
pub use crate::figures::pts_series::{
    PtsCell, PtsRound, SeriesResult, Steady, TrackedSteady, WINDOW,
};
pub use pts_options::{MINUTE_NS, PtsOptions, Purge};
pub use pts_result::{FORMAT, PtsDocument, PtsResult, schema};
pub use pts_study::{measure_pts, run_pts};
