//! Runs a plan on this Linux machine and returns the measurements.

mod clock;
mod counters;
pub mod files;
pub mod interrupt;
pub mod io;
mod process_stops;
mod remedies;
pub mod remote_storage;
pub mod runner;
pub mod slot;
pub mod sys;
pub mod worker;
mod worker_files;
