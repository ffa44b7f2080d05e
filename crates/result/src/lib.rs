//! crate result
