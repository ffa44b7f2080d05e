//! The rules for plans on the pod's volume: those of a client and those of a manifest.

use iosonde_engine::runner::Permissions;
use std::path::Path;

/// Permits jobs the volume alone: its scratch directory or its device. They run no commands and write no logs.
pub(crate) fn permissions<'a>(volume: impl IntoIterator<Item = &'a Path>) -> Permissions {
    let targets = volume.into_iter().map(|path| path.to_string_lossy());
    Permissions {
        targets: Some(targets.map(|path| path.into_owned()).collect()),
        logs: None,
        commands: false,
    }
}
