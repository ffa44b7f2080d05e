//! A plan to measurements, on this Linux machine.

pub mod backend;
#[cfg(feature = "ceph")]
pub mod ceph;
#[cfg(not(feature = "ceph"))]
#[path = "ceph/absent.rs"]
mod ceph;
pub mod clock;
pub mod cmdprio;
pub mod contents;
pub mod depth;
pub mod failure;
pub mod flow;
pub mod interrupt;
pub mod iolog;
pub mod local;
pub mod pacing;
pub mod placed;
pub mod prepare;
pub mod recorder;
pub mod replay;
pub mod sampler;
mod stops;
pub mod sys;
pub mod tally;
pub mod verifying;
pub mod worker;
