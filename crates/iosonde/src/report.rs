//! Results as they are read: tables for people, documents for programs.

pub(crate) mod probe;
