//! The repository that this program was built in.

use std::path::PathBuf;

/// The root of the repository.
pub(crate) fn repository_root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
