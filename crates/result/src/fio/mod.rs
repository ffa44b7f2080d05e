//! fio's formats for a [`crate::run::RunResult`]: normal, terse, JSON, JSON+, status line and logs.
//!
//! The formats contain every path, type and unit that fio 3.33 prints for the same job, with the
//! same meaning. They state [`VERSION`], because tools select the format by it. The member
//! `iosonde` at the root of the JSON identifies the actual program.

pub mod aggregate;
pub mod bins;
pub mod eta;
pub mod header;
pub mod import;
pub mod json;
pub mod log;
pub mod number;
pub mod output;
pub mod terse;
pub mod text;

mod disks;
mod idle;
mod levels;
mod steady;
mod time;

pub use aggregate::Report;
pub use eta::eta_line;
pub use header::header;
pub use json::{json, write_json};
pub use output::{Formats, write, write_so_far};
pub use terse::write_terse;
pub use text::write_normal;

/// fio version whose formats are reproduced.
pub const VERSION: &str = "fio-3.33";
