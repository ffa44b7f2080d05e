//! Questions that take several runs to answer.
//!
//! A study makes plans, has them run by whatever [`Session`](iosonde_result::session::Session) it is given, and draws its
//! conclusions. It neither knows nor cares where the session runs them.

pub mod ceiling;
mod cut;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod layout_time;
pub mod limits;
pub mod load;
pub mod probe;
pub mod pts;
pub mod saturation;
mod stopped;
pub mod suite;
pub mod sweep;
mod time_range;
pub mod warmup;

pub use cut::CutShort;
pub use iosonde_result::words;
pub use time_range::TimeRange;
