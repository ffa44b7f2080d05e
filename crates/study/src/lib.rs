//! Studies: questions answered by several runs.
//!
//! A study makes plans, runs them on a [`Session`](iosonde_result::session::Session) and draws
//! conclusions. It is independent of the place where the session runs them.

mod announcement;
pub mod ceiling;
pub mod csi;
mod cut;
mod driver;
mod error;
mod event;
#[cfg(any(test, feature = "fake-session"))]
pub mod fake_session;
mod figures;
mod job_template;
mod layout_time;
pub mod lifecycle;
pub mod load;
pub mod probe;
mod probe_budget;
mod probe_phase;
pub mod promise_check;
pub mod pts;
mod random_order;
mod relocation_error;
mod run_hook;
pub mod saturation;
mod stop_rule;
mod stopped;
mod study_neighbour;
mod study_target;
pub mod sweep;
mod sweep_axis;
mod sweep_target;
#[cfg(any(test, feature = "fake-session"))]
pub mod test_targets;
mod time_range;
mod warmup;
mod working_set;

pub use announcement::Announcement;
pub use cut::CutShort;
pub use driver::{Study, StudyDriver, StudyEnding};
pub use error::{StudyError, WritingStudy};
pub use event::{StudyEvent, StudyFinding, StudyObserver, StudyStep};
pub use iosonde_result::words;
pub use run_hook::{InnerRun, RunHook, RunPurpose, run_with_hooks};
pub use stop_rule::StopRule;
pub use study_neighbour::StudyNeighbour;
pub use time_range::TimeRange;
