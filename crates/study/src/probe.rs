//! "How fast is it?" The headline figures of one target in about a minute.
//!
//! A probe lays out a working set, then runs seven short phases on it, reads before writes: latency at depth 1, random
//! I/O of 4 KiB at depth, sequential I/O of 1 MiB, and small writes made durable one by one. What comes out is a
//! [`ProbeResult`]: a [`Figure`] for each phase, which ends when it is sure or its time is over, the [`Classification`]
//! of the target, and the runs themselves.

mod class;
mod compared;
#[cfg(test)]
mod coverage;
mod durable_writes;
mod evidence;
mod figure;
mod knee;
mod observer;
mod outcome;
mod phase;
mod second_size;
mod slow;
mod study;
mod sure;
mod target;
mod turns;
mod watcher;

pub use class::{Classification, classify};
pub(crate) use compared::figure as compared_figure;
pub use compared::{MOST_SUFFIX, most, most_of};
pub use durable_writes::{DurableWrites, NOT_MEASURED};
pub use evidence::Evidence;
pub use figure::{Estimate, Figure, Latency};
pub use iosonde_result::device_class::DeviceClass;
pub use knee::{Knee, is_search};
pub use outcome::{FORMAT, PhaseRun, ProbeOptions, ProbeResult, schema};
pub use phase::{Budget, Phase};
pub use second_size::SecondSize;
pub(crate) use study::is_direct_refused;
pub use study::{ProbeError, probe, working_set};
pub(crate) use target::{GRAIN_BYTES, available_bytes, planned_bytes, usable_bytes};
pub use target::{ProbeTarget, TargetKind, WorkingSet, WorkingSetError};
pub use turns::{Present, Taking, Turns};
pub use watcher::{Announcement, Watcher};
