//! The only unsafe code of the engine: memory that the kernel writes to, and system calls on it.
//!
//! Each module wraps one kernel concept in a safe interface. Buffer addresses never leave `sys`:
//! callers name [`memory::IoMemory`] slots, so the kernel only writes to buffers.
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
