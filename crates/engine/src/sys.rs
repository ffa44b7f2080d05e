//! The only unsafe code of the engine: memory that the kernel writes to, and system calls on it.
//!
//! Everything here is a thin, safe face over one kernel concept. Addresses never leave this module as anything but
//! [`memory::IoMemory`] slots, so that a caller cannot make the kernel write where no buffer is.
#![allow(unsafe_code)]

pub mod aio;
#[cfg(feature = "ceph")]
mod arrivals;
pub mod block;
mod bus_error;
pub mod mapping;
pub mod memory;
#[cfg(feature = "ceph")]
pub(crate) mod patience;
pub mod posix_aio;
#[cfg(feature = "ceph")]
pub mod rados;
#[cfg(feature = "ceph")]
pub mod rbd;
pub mod ring;
pub mod rw;
pub mod thread;
