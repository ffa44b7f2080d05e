//! Permissions of plans on the pod's volume, from clients and manifests.

use iosonde_engine::runner::Permissions;
use std::path::Path;

/// Permits jobs only the volume, by scratch directory or device. Commands and logs are forbidden.
pub(crate) fn permissions<'a>(volume: impl IntoIterator<Item = &'a Path>) -> Permissions {
    let targets = volume.into_iter().map(|path| path.to_string_lossy());
    Permissions {
        targets: Some(targets.map(|path| path.into_owned()).collect()),
        logs: None,
        commands: false,
    }
}
