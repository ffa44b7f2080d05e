//! `iosonde probe`: the headline figures of one target in about a minute.
//!
//! A probe lays out a working set, then runs up to seven short phases on it, reads before writes:
//! latency at depth 1, random I/O of 4 KiB, sequential I/O of 1 MiB, and synced writes.
//! [`ProbeResult`] has a [`PhaseFigure`] for each phase, the [`Classification`] of the target, and
//! the runs. A phase ends when its rate is sure or its time is over.

mod class;
mod compared_figures;
#[cfg(test)]
mod coverage;
mod durable_writes;
mod early_stop;
mod evidence;
mod knee;
mod phase;
mod phases_of_target;
mod probe_result;
mod probe_study;
mod promise_comparison;
pub mod repetitions;
mod second_size;
mod slow;
mod sustained_rate;
mod turns;

pub use crate::announcement::ProbeAnnouncement;
pub use crate::figures::estimate::{LatencySummary, RateEstimate};
pub use crate::figures::pattern_knee::{Knee, SecondBlockSize};
pub use crate::figures::phase_figure::PhaseFigure;
pub use crate::figures::phase_run::PhaseRun;
pub use crate::probe_budget::ProbeBudget;
pub use crate::probe_phase::ProbePhase;
pub use crate::study_target::{StudyTarget, StudyTargetKind};
pub use crate::working_set::{StudyWorkingSet, WorkingSetError};
pub use class::{Classification, classify};
pub(crate) use compared_figures::figure as compared_figure;
pub use compared_figures::{maximum_rate_parts, most_of, phase_of_part};
pub use durable_writes::{DurableWrites, NOT_MEASURED};
pub use evidence::ClassEvidence;
pub use iosonde_result::device_class::DeviceClass;
pub use probe_result::{FORMAT, ProbeOptions, ProbeResult, schema};
pub use probe_study::{probe, run_probe, working_set};
pub use turns::{Present, TurnHook, TurnOrder};
