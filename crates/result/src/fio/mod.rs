//! fio's formats, written from a [`crate::run::RunResult`]: normal text, terse, JSON and JSON+, the status line, the logs.
//!
//! Every path, type and unit that fio 3.33 prints for the same job is here with the same meaning. Where fio prints its
//! version, these formats say [`VERSION`], because tools tell formats apart by it; which program really ran is told by the
//! member `iosonde` at the root of the JSON.

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

/// The fio version whose formats these are.
pub const VERSION: &str = "fio-3.33";
