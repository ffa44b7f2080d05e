//! Runs a plan on this Linux machine and returns the measurements.

#[cfg(feature = "ceph")]
pub mod ceph;
#[cfg(not(feature = "ceph"))]
#[path = "ceph/absent.rs"]
mod ceph;
pub mod files;
pub mod interrupt;
pub mod io;
pub mod placed;
pub mod runner;
pub mod slot;
pub mod sys;
pub mod worker;
