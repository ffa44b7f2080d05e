//! The only unsafe code of the engine: memory that the kernel writes to, and system calls on it.
//!
//! Each module wraps one kernel concept in a safe interface. Buffer addresses never leave `sys`:
//! callers name [`memory::IoMemory`] slots, so the kernel only writes to buffers.
#![allow(unsafe_code)]

pub(crate) mod aio;
mod aio_ring;
pub(crate) mod block;
mod bus_error;
#[cfg(not(feature = "local"))]
pub(crate) mod c_library;
#[cfg(feature = "local")]
pub(crate) use libc as c_library;
pub(crate) mod mapping;
pub mod memory;
pub(crate) mod posix_aio;
#[cfg(feature = "local")]
pub mod ring;
#[cfg(not(feature = "local"))]
#[path = "sys/absent_ring.rs"]
pub mod ring;
mod ring_options;
pub(crate) mod rw;
pub(crate) mod thread;
pub(crate) mod time_stamp;
