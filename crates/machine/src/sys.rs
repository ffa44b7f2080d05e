//! The only unsafe code of this crate: system calls that no library covers.
#![allow(unsafe_code)]

pub(crate) mod fiemap;
pub(crate) mod getrusage;
