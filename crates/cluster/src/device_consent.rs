//! Decides whether a target's block device may be written, from the agents' inspection of it.
//!
//! A device provisioned for the run holds no data of others. An existing claim may, and so may a
//! reused volume of a new claim: only a pod can inspect it. Each run request carries the consent.

use crate::manifest::DEVICE;
use crate::options::ClusterOptions;
use crate::refusal::refuse_target;
use crate::volume_origin::VolumeOrigin;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{DeviceVolume, RunError, VolumeProblem, WriteRefusal};
use iosonde_result::wire::{DeviceConsent, PathInfo};

/// The block device of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceTarget {
    /// The target as the user named it.
    target: TargetUri,
    origin: VolumeOrigin,
    /// Consent given to the agents.
    pub(crate) consent: Option<DeviceConsent>,
}

impl DeviceTarget {
    /// Decides on the consent, from the inspection of each agent.
    ///
    /// # Errors
    /// If a process uses the device, or it holds data and the user did not consent to the loss.
    pub(crate) fn judge(
        options: &ClusterOptions,
        origin: VolumeOrigin,
        found: &[PathInfo],
    ) -> Result<DeviceTarget, RunError> {
        let target = options.target.clone();
        let used = found.iter().find_map(|place| match place {
            PathInfo::Existing { used, .. } => used.clone(),
            PathInfo::Directory { .. } => None,
        });
        let carries = found.iter().find_map(|place| match place {
            PathInfo::Existing { carries, .. } => carries.clone(),
            PathInfo::Directory { .. } => None,
        });
        if let Some(used) = used {
            let volume = device_volume(&target, origin);
            return refuse_target(&target, VolumeProblem::DeviceInUse { used, volume });
        }
        let has_data = carries.is_some();
        let is_agreed = options.allow_overwrite || is_made_for_the_run(&target, origin);
        if let (Some(carries), false) = (carries, is_agreed) {
            let problem = VolumeProblem::DeviceHasData {
                carries,
                volume: device_volume(&target, origin),
                consent_name: target.to_string(),
            };
            return refuse_target(&target, problem);
        }
        debug_assert!(!has_data || is_agreed, "data are only lost with consent");
        let is_shared = found.len() > 1 && options.is_one_volume();
        let consent = match (is_shared, is_agreed) {
            // The agents check again before each write, so data that arrived meanwhile are safe.
            (_, false) => None,
            (true, true) => Some(DeviceConsent::Shared),
            (false, true) => Some(DeviceConsent::Overwrite),
        };
        Ok(DeviceTarget {
            target,
            origin,
            consent,
        })
    }

    /// Rewrites an agent's refusal with the target and the options that the user knows.
    pub(crate) fn explain(&self, error: RunError) -> RunError {
        let found = match &error {
            RunError::NoWriteConsent { device, cause } if device == DEVICE => cause.to_string(),
            RunError::Refused { device, found, .. } if device == DEVICE => found.clone(),
            _ => return error,
        };
        let target = self.target.to_string();
        let cause = WriteRefusal::PodDevice {
            found,
            volume: device_volume(&self.target, self.origin),
            // With consent, only use of the device is refused.
            consent_name: self.consent.is_none().then(|| target.clone()),
        };
        RunError::write_refused(target, cause)
    }
}

/// Whether the target requests new volumes. The volume it gets may still be an old one.
fn is_of_a_class(target: &TargetUri) -> bool {
    matches!(target, TargetUri::StorageClass(_) | TargetUri::Ephemeral(_))
}

fn is_made_for_the_run(target: &TargetUri, origin: VolumeOrigin) -> bool {
    is_of_a_class(target) && origin == VolumeOrigin::Provisioned
}

fn device_volume(target: &TargetUri, origin: VolumeOrigin) -> DeviceVolume {
    match (is_of_a_class(target), origin) {
        (false, _) => DeviceVolume::ExistingClaim,
        (true, VolumeOrigin::Unknown) => DeviceVolume::UnknownOfClass,
        (true, _) => DeviceVolume::OfClass,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{PodPlacement, Pods, VolumeMode};

    fn found(carries: Option<&str>, used: Option<&str>) -> PathInfo {
        PathInfo::Existing {
            bytes: 1 << 30,
            device: true,
            carries: carries.map(str::to_owned),
            used: used.map(str::to_owned),
        }
    }

    fn options(target: &str, is_agreed: bool, count: u32) -> ClusterOptions {
        let several = Pods {
            count: Some(count),
            placement: PodPlacement::Any,
            shared: false,
            checks_shared_file: false,
        };
        ClusterOptions {
            volume_mode: VolumeMode::Block,
            allow_overwrite: is_agreed,
            pods: (count > 1).then_some(several),
            ..ClusterOptions::new(target.parse().unwrap())
        }
    }

    /// Returns the error for a device that carries swap space, where consent would be `target`.
    fn has_swap(target: &str, volume: DeviceVolume) -> RunError {
        let problem = VolumeProblem::DeviceHasData {
            carries: "swap space".to_owned(),
            volume,
            consent_name: target.to_owned(),
        };
        RunError::unusable_target(target, problem.into())
    }

    fn judge(
        options: &ClusterOptions,
        found: &[PathInfo],
    ) -> Result<Option<DeviceConsent>, RunError> {
        DeviceTarget::judge(options, VolumeOrigin::Provisioned, found).map(|device| device.consent)
    }

    #[test]
    fn existing_class_volume_needs_consent_if_it_carries_data() {
        let (empty, swap) = (found(None, None), found(Some("swap space"), None));
        for target in ["sc://local", "ephemeral://local"] {
            for (origin, volume) in [
                (VolumeOrigin::Existing, DeviceVolume::OfClass),
                (VolumeOrigin::Unknown, DeviceVolume::UnknownOfClass),
            ] {
                let judge = |is_agreed, found: &PathInfo| {
                    let found = std::slice::from_ref(found);
                    DeviceTarget::judge(&options(target, is_agreed, 1), origin, found)
                };
                assert_eq!(judge(false, &empty).unwrap().consent, None);
                let error = judge(false, &swap).unwrap_err();
                assert_eq!(error, has_swap(target, volume));
                let agreed = judge(true, &swap).unwrap().consent;
                assert_eq!(agreed, Some(DeviceConsent::Overwrite));
            }
        }
    }

    #[test]
    fn consent_of_an_existing_claim_is_what_its_user_gave() {
        let (empty, swap) = (found(None, None), found(Some("swap space"), None));
        let claim = |is_agreed| options("pvc://raw", is_agreed, 1);
        let overwrite = Some(DeviceConsent::Overwrite);
        assert_eq!(judge(&claim(false), std::slice::from_ref(&empty)), Ok(None));
        assert_eq!(
            judge(&claim(true), std::slice::from_ref(&empty)),
            Ok(overwrite)
        );
        assert_eq!(
            judge(&claim(true), std::slice::from_ref(&swap)),
            Ok(overwrite)
        );
        let error = judge(&claim(false), std::slice::from_ref(&swap)).unwrap_err();
        assert_eq!(error, has_swap("pvc://raw", DeviceVolume::ExistingClaim));
        // The volume is provisioned for the run, so its data belong to no other user.
        let own = options("sc://fast", false, 1);
        assert_eq!(judge(&own, &[swap]), Ok(overwrite));
    }

    #[test]
    fn devices_in_use_are_refused_despite_consent() {
        let used = found(
            Some("an ext4 file system"),
            Some("/dev/sdb is mounted at /srv"),
        );
        for (target, volume) in [
            ("pvc://raw", DeviceVolume::ExistingClaim),
            ("sc://fast", DeviceVolume::OfClass),
            ("ephemeral://fast", DeviceVolume::OfClass),
        ] {
            let error = judge(&options(target, true, 1), std::slice::from_ref(&used)).unwrap_err();
            let problem = VolumeProblem::DeviceInUse {
                used: "/dev/sdb is mounted at /srv".to_owned(),
                volume,
            };
            assert_eq!(error, RunError::unusable_target(target, problem.into()));
        }
        // Also if only one of several pods sees the use.
        let several = options("pvc://raw", true, 2);
        assert!(judge(&several, &[found(None, None), used]).is_err());
    }

    #[test]
    fn pods_share_a_device_only_of_a_common_claim() {
        let two = [found(None, None), found(None, None)];
        let shared = Some(DeviceConsent::Shared);
        assert_eq!(judge(&options("pvc://raw", true, 2), &two), Ok(shared));
        assert_eq!(judge(&options("pvc://raw", false, 2), &two), Ok(None));
        let each = Some(DeviceConsent::Overwrite);
        assert_eq!(judge(&options("sc://fast", false, 2), &two), Ok(each));
        let mut one = options("sc://fast", false, 2);
        one.pods = one.pods.map(|pods| Pods {
            shared: true,
            checks_shared_file: false,
            ..pods
        });
        assert_eq!(judge(&one, &two), Ok(shared));
    }

    #[test]
    fn refusals_of_an_agent_name_the_claim_and_its_option() {
        let refused = RunError::Refused {
            device: DEVICE.to_owned(),
            found: "it carries swap space".to_owned(),
            remedy: format!("to overwrite its data, use --allow-overwrite={DEVICE}"),
        };
        let claim = |consent| DeviceTarget {
            target: "pvc://raw".parse().unwrap(),
            origin: VolumeOrigin::Existing,
            consent,
        };
        let explained = |consent_name: Option<&str>| {
            let cause = WriteRefusal::PodDevice {
                found: "it carries swap space".to_owned(),
                volume: DeviceVolume::ExistingClaim,
                consent_name: consent_name.map(str::to_owned),
            };
            RunError::write_refused("pvc://raw", cause)
        };
        let error = claim(None).explain(refused.clone());
        assert_eq!(error, explained(Some("pvc://raw")));
        let error = claim(Some(DeviceConsent::Overwrite)).explain(refused);
        assert_eq!(error, explained(None));
        let other = RunError::Interrupted;
        assert_eq!(claim(None).explain(other.clone()), other);
    }
}
