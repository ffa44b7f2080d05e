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

use indicatif::ProgressBar;
use iosonde_job::escape_control_characters;
use iosonde_machine::write_obstacles;
use std::path::Path;

/// Sets the text of a bar, control characters as escapes: titles have names of others in them.
fn set_message(bar: &ProgressBar, text: &str) {
    bar.set_message(escape_control_characters(text).into_owned());
}

/// What is lost where the first bytes of a target are overwritten by consent; `None` where nothing speaks against it.
pub(crate) fn lost(path: &str) -> Option<String> {
    let found = write_obstacles::overridden(Path::new(path))?;
    Some(format!("warning: what is on it will be lost: {found}"))
}
