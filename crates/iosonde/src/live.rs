//! What is shown while something runs, on standard error. Displays read what the engine offers them and never change what
//! is measured.

pub(crate) mod cluster;
pub(crate) mod fio;
pub(crate) mod load;
pub(crate) mod probe;
pub(crate) mod pts;
pub(crate) mod suite;
pub(crate) mod sweep;
