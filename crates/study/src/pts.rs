//! Preconditioning and steady state, after the Solid State Storage Performance Test Specification of SNIA (PTS 2.0.2).
//!
//! A flash device that is new or empty writes faster than it will ever again. So a test purges it, writes it twice from end to
//! end, and then repeats its workloads round by round until five rounds in a row agree ([`SteadyStateTest`]), at most 25 times.
//! Only those five count. `docs/snia.md` is the same for users.
//!
//! [`SteadyStateTest`]: iosonde_result::series::SteadyStateTest

mod deviations;
mod outcome;
mod plan;
mod preset;
mod relay;
mod study;
mod times;

pub use outcome::{
    FORMAT, PtsCell, PtsDocument, PtsResult, Round, SeriesResult, Steady, TrackedSteady, WINDOW,
    schema,
};
pub use preset::{Preset, PtsTest, Series, Tracked, Workload};
pub use study::{MINUTE_NS, PtsError, PtsOptions, PtsWatcher, Purge, pts};
pub use times::PtsAnnouncement;
