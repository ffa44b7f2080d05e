//! The only unsafe code of this crate: calls of librados and librbd, on buffers of a worker.
//!
//! Addresses of buffers never leave `sys`: callers name slots of an
//! [`IoMemory`](iosonde_engine::sys::memory::IoMemory), so a library only accesses buffers.
#![allow(unsafe_code)]

mod allocator;
pub(crate) mod image_requests;
pub(crate) mod image_writers;
mod images_of_pool;
pub(crate) mod io_ctx;
mod pending_ios;
pub(crate) mod rados;
pub(crate) mod rbd;
pub(crate) mod requests;
pub(crate) mod slot_buffers;
pub(crate) mod watches;
