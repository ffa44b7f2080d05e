//! Runs a plan on this Linux machine and returns the measurements.
//!
//! The feature `local` is the I/O on this machine. A build without it compiles on other systems
//! too, and refuses all plans but those on simulated devices. `sys` is the border: it replaces what
//! only Linux has.
#![cfg_attr(not(feature = "local"), allow(dead_code))]

mod clock;
mod counters;
pub mod error_policy;
pub mod files;
pub mod interrupt;
pub mod io;
mod loop_switches;
mod process_stops;
mod remedies;
pub mod remote_storage;
pub mod runner;
pub mod slot;
pub mod sys;
pub mod worker;
mod worker_files;
