//! The only unsafe code of this crate: system calls that no library wraps.
#![allow(unsafe_code)]

pub(crate) mod fiemap;
pub(crate) mod getrusage;
#[cfg(feature = "local")]
pub(crate) mod linux;
#[cfg(not(feature = "local"))]
#[path = "sys/not_linux.rs"]
pub(crate) mod linux;
