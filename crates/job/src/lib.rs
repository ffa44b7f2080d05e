//! crate job
