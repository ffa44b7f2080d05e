//! The only unsafe code of this crate: system calls that no library wraps.
#![allow(unsafe_code)]

pub(crate) mod fiemap;
pub(crate) mod getrusage;
