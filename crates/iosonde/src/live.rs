//! What is shown while something runs, on standard error. Displays read what the engine offers them and never change what
//! is measured.

pub(crate) mod cluster;
pub(crate) mod fio;
pub(crate) mod left;
pub(crate) mod load;
pub(crate) mod pods;
pub(crate) mod probe;
pub(crate) mod pts;
pub(crate) mod suite;
pub(crate) mod sweep;

use iosonde_engine::device::guard;
use std::path::Path;

/// What is lost where the first bytes of a target are overwritten by consent; `None` where nothing speaks against it.
pub(crate) fn lost(path: &str) -> Option<String> {
    let found = guard::overridden(Path::new(path))?;
    Some(format!("warning: what is on it will be lost: {found}"))
}
