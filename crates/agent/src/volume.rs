//! Permissions of plans on the pod's volume, and consent to overwrite its device.

use iosonde_engine::runner::Permissions;
use iosonde_machine::consent::Consent;
use iosonde_result::wire::DeviceConsent;
use std::path::Path;

/// Permits jobs only the volume, by scratch directory or device. Commands and logs are forbidden.
pub(crate) fn permissions<'a>(volume: impl IntoIterator<Item = &'a Path>) -> Permissions {
    let targets = volume.into_iter().map(|path| path.to_string_lossy());
    Permissions {
        targets: Some(targets.map(|path| path.into_owned()).collect()),
        ..Permissions::default()
    }
}

/// Returns the consent: for the device only, and as far as the client gave it.
pub(crate) fn consent_to(device: Option<&Path>, agreed: Option<DeviceConsent>) -> Consent {
    let device = device.filter(|_| agreed.is_some());
    let shared = device.filter(|_| agreed == Some(DeviceConsent::Shared));
    Consent::to_overwrite(device).and_in_use(shared)
}
