//! crate engine
