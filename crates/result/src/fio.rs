//! fio's formats for a [`crate::run::RunResult`]: normal, terse, JSON, JSON+, status line and logs.
//!
//! The formats contain every path, type and unit that fio 3.33 prints for the same job, with the
//! same meaning. They state [`VERSION`], because tools select the format by it. The member
//! `iosonde` at the root of the JSON identifies the actual program.

pub mod bins;
pub mod eta;
pub mod header;
pub mod import;
pub mod json;
pub mod log;
pub mod output;
pub mod terse;

mod aggregate;
mod disks;
#[cfg(test)]
mod fio_aggregate_tests;
#[cfg(test)]
mod fio_formats_tests;
mod idle;
mod latency_lines;
mod levels;
mod number;
mod steady;
mod text;
mod time;

pub use eta::eta_line;
pub use header::header;
pub use json::{fio_json, write_json};
pub use output::{Formats, write, write_so_far};

/// fio version whose formats are reproduced.
pub const VERSION: &str = "fio-3.33";
