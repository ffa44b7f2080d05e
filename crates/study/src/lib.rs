//! crate study
