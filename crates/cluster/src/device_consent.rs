//! Decides whether a target's block device may be written, from the agents' inspection of it.
//!
//! A device provisioned for the run holds no data of others. An existing claim may, and so may a
//! reused volume of a new claim: only a pod can inspect it. Each run request carries the consent.

use crate::manifest::DEVICE;
use crate::options::ClusterOptions;
use crate::volume_origin::VolumeOrigin;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use iosonde_result::wire::{DeviceConsent, Place};

/// Option by which the user accepts the loss of data on a claim.
const CONSENT_OPTION: &str = "--allow-overwrite";

/// The block device of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceTarget {
    /// The target as the user named it.
    target: Target,
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
        found: &[Place],
    ) -> Result<DeviceTarget, RunError> {
        let target = options.target.clone();
        let refuse = |problem: String, remedy: String| {
            Err(RunError::Target {
                path: target.to_string(),
                problem,
                remedy,
            })
        };
        let used = found.iter().find_map(|place| match place {
            Place::Existing { used, .. } => used.clone(),
            Place::Directory { .. } => None,
        });
        let carries = found.iter().find_map(|place| match place {
            Place::Existing { carries, .. } => carries.clone(),
            Place::Directory { .. } => None,
        });
        if let Some(used) = used {
            return refuse(
                format!("this block device is in use: {used}"),
                remedy_of_use(&target),
            );
        }
        let is_agreed = options.allow_overwrite || is_made_for_the_run(&target, origin);
        if let (Some(what), false) = (carries, is_agreed) {
            return refuse(
                format!("this block device carries {what}"),
                remedy_of_contents(&target, origin),
            );
        }
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
        match error {
            RunError::Refused { device, found, .. } if device == DEVICE => RunError::Refused {
                device: self.target.to_string(),
                found,
                remedy: match self.consent {
                    // With consent, only use of the device is refused.
                    Some(_) => remedy_of_use(&self.target),
                    None => remedy_of_contents(&self.target, self.origin),
                },
            },
            other => other,
        }
    }
}

/// Whether the target requests new volumes. The volume it gets may still be an old one.
fn is_of_a_class(target: &Target) -> bool {
    matches!(target, Target::StorageClass(_) | Target::Ephemeral(_))
}

fn is_made_for_the_run(target: &Target, origin: VolumeOrigin) -> bool {
    is_of_a_class(target) && origin == VolumeOrigin::Provisioned
}

fn remedy_of_use(target: &Target) -> String {
    match is_of_a_class(target) {
        true => "end what uses it on the node: lsblk shows mounts and devices made of it",
        false => {
            "end what uses it on the node, or measure a claim of your own: sc://CLASS with --volume-mode block"
        }
    }
    .to_owned()
}

fn remedy_of_contents(target: &Target, origin: VolumeOrigin) -> String {
    let other = match (is_of_a_class(target), origin) {
        (false, _) => "measure a claim of your own (sc://CLASS with --volume-mode block)",
        (true, VolumeOrigin::Unknown) => {
            "whether it is new cannot be seen: ask for the right to `list` persistentvolumeclaims and to `get` persistentvolumes"
        }
        (true, _) => {
            "the class has handed out a volume that was there before: measure one whose provisioner makes new ones"
        }
    };
    format!("{other}; to destroy what is on this one, say so: {CONSENT_OPTION}={target}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Placement, Pods, VolumeMode};

    fn found(carries: Option<&str>, used: Option<&str>) -> Place {
        Place::Existing {
            bytes: 1 << 30,
            device: true,
            carries: carries.map(str::to_owned),
            used: used.map(str::to_owned),
        }
    }

    fn options(target: &str, is_agreed: bool, count: u32) -> ClusterOptions {
        let several = Pods {
            count: Some(count),
            placement: Placement::Any,
            shared: false,
        };
        ClusterOptions {
            volume_mode: VolumeMode::Block,
            allow_overwrite: is_agreed,
            pods: (count > 1).then_some(several),
            ..ClusterOptions::new(target.parse().unwrap())
        }
    }

    fn judge(options: &ClusterOptions, found: &[Place]) -> Result<Option<DeviceConsent>, RunError> {
        DeviceTarget::judge(options, VolumeOrigin::Provisioned, found).map(|device| device.consent)
    }

    #[test]
    fn volume_of_a_class_that_was_there_before_is_judged_by_what_it_carries() {
        let (empty, swap) = (found(None, None), found(Some("swap space"), None));
        for target in ["sc://local", "ephemeral://local"] {
            for origin in [VolumeOrigin::Existing, VolumeOrigin::Unknown] {
                let judge = |is_agreed, found: &Place| {
                    let found = std::slice::from_ref(found);
                    DeviceTarget::judge(&options(target, is_agreed, 1), origin, found)
                };
                assert_eq!(judge(false, &empty).unwrap().consent, None);
                let error = judge(false, &swap).unwrap_err();
                let remedy = error.remedy();
                assert!(error.to_string().contains("carries swap"), "{error}");
                let option = format!("--allow-overwrite={target}");
                assert!(remedy.ends_with(&option), "{remedy}");
                let names_right = remedy.contains("persistentvolumes");
                assert_eq!(names_right, origin == VolumeOrigin::Unknown, "{remedy}");
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
        assert_eq!(
            error.to_string(),
            "pvc://raw: this block device carries swap space"
        );
        assert!(error.remedy().ends_with("--allow-overwrite=pvc://raw"));
        // The volume is provisioned for the run, so its data belong to no other user.
        let own = options("sc://fast", false, 1);
        assert_eq!(judge(&own, &[swap]), Ok(overwrite));
    }

    #[test]
    fn devices_in_use_are_refused_whatever_was_agreed() {
        let used = found(
            Some("an ext4 file system"),
            Some("/dev/sdb is mounted at /srv"),
        );
        for target in ["pvc://raw", "sc://fast", "ephemeral://fast"] {
            let error = judge(&options(target, true, 1), std::slice::from_ref(&used)).unwrap_err();
            assert!(error.to_string().contains("mounted at /srv"), "{error}");
            assert!(!error.remedy().contains("--allow"), "{error:?}");
        }
        // Also if only one of several pods sees the use.
        let several = options("pvc://raw", true, 2);
        assert!(judge(&several, &[found(None, None), used]).is_err());
    }

    #[test]
    fn pods_share_the_device_of_one_claim_and_not_those_of_a_claim_each() {
        let two = [found(None, None), found(None, None)];
        let shared = Some(DeviceConsent::Shared);
        assert_eq!(judge(&options("pvc://raw", true, 2), &two), Ok(shared));
        assert_eq!(judge(&options("pvc://raw", false, 2), &two), Ok(None));
        let each = Some(DeviceConsent::Overwrite);
        assert_eq!(judge(&options("sc://fast", false, 2), &two), Ok(each));
        let mut one = options("sc://fast", false, 2);
        one.pods = one.pods.map(|pods| Pods {
            shared: true,
            ..pods
        });
        assert_eq!(judge(&one, &two), Ok(shared));
    }

    #[test]
    fn refusals_of_an_agent_name_the_claim_and_its_option() {
        let refused = RunError::Refused {
            device: DEVICE.to_owned(),
            found: "it carries swap space".to_owned(),
            remedy: format!("to destroy what is on it, say so: --allow-overwrite={DEVICE}"),
        };
        let claim = |consent| DeviceTarget {
            target: "pvc://raw".parse().unwrap(),
            origin: VolumeOrigin::Existing,
            consent,
        };
        let error = claim(None).explain(refused.clone());
        assert_eq!(
            error.to_string(),
            "refusing to write to pvc://raw: it carries swap space"
        );
        assert!(error.remedy().contains("--allow-overwrite=pvc://raw"));
        let error = claim(Some(DeviceConsent::Overwrite)).explain(refused);
        assert!(!error.remedy().contains("--allow"), "{error:?}");
        let other = RunError::Interrupted;
        assert_eq!(claim(None).explain(other.clone()), other);
    }
}
