//! Claims on the block devices that a run writes: no other program can use them meanwhile.
//!
//! A descriptor opened with `O_EXCL` claims the device. Until it is closed, the kernel refuses to
//! mount the device, to swap to it and to build another device on it (`EBUSY`). A claim excludes
//! all others, including those of the same process. The workers of a run therefore share a claim.
//!
//! The kernel allows claims on several partitions of one disk, but not on a disk and one of its
//! partitions. Of these the first one written is claimed.

use super::block_device::BlockDevice;
use super::consent::Consent;
use super::identify::PathFacts;
use super::proc_root::System;
use super::write_obstacles::{CheckedDevice, Obstacle, Refusal, WriteTerms, check};
use iosonde_result::host::DeviceNumber;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The devices that one run holds.
#[derive(Debug, Default)]
pub struct DeviceHolds {
    held: Mutex<HeldDevices>,
}

type HeldDevices = BTreeMap<DeviceNumber, Weak<HeldDevice>>;

#[derive(Debug)]
struct HeldDevice {
    checked: CheckedDevice,
    /// Whether an obstacle was found that consent overrides.
    is_overridden: bool,
    /// Whether that consent was `allow_mounted_write=1` of the job.
    is_mounted_allowed: bool,
}

/// The devices that one worker writes. Each is held until the last clone of this value is dropped.
#[derive(Debug, Clone, Default)]
pub struct WriteHold {
    devices: Vec<Arc<HeldDevice>>,
}

impl WriteHold {
    /// Whether a device was checked and is held.
    pub fn has(&self, number: DeviceNumber) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|device| device.checked.number == number)
    }

    /// Adds the devices of `other`.
    pub fn extend(&mut self, other: WriteHold) {
        self.devices.extend(other.devices);
    }
}

impl DeviceHolds {
    /// Checks whether `path` may be written, as [`check`] does, and holds it if it is a block
    /// device. A device already held is not checked again: no other program can have mounted or
    /// claimed it since. Returns the obstacles that consent overrides.
    ///
    /// # Errors
    ///
    /// Fails as [`check`] does.
    pub fn hold(
        &self,
        path: &Path,
        consent: &Consent,
        is_mounted_allowed: bool,
    ) -> Result<(Vec<Obstacle>, WriteHold), Refusal> {
        // The lock is held until the claim is recorded: clones start together and would conflict.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, device| device.strong_count() > 0);
        let number = PathFacts::query(path).ok().and_then(|facts| facts.is);
        let known = number.and_then(|number| held.get(&number)?.upgrade());
        // Consent of one job does not apply to another.
        let is_settled = |known: &&Arc<HeldDevice>| {
            !known.is_overridden || known.is_mounted_allowed == is_mounted_allowed
        };
        if let Some(known) = known.as_ref().filter(is_settled) {
            let devices = vec![known.clone()];
            return Ok((Vec::new(), WriteHold { devices }));
        }
        let terms = WriteTerms {
            consent,
            is_mounted_allowed,
            is_claimed: number.is_some_and(|number| is_claimed(&held, number)),
        };
        let checked = check(path, &terms)?;
        let is_overridden = !checked.overridden.is_empty();
        let device = known.or_else(|| {
            let device = Arc::new(HeldDevice {
                checked: checked.device?,
                is_overridden,
                is_mounted_allowed,
            });
            held.insert(device.checked.number, Arc::downgrade(&device));
            Some(device)
        });
        let devices = device.into_iter().collect();
        Ok((checked.overridden, WriteHold { devices }))
    }
}

/// Whether a device, its disk or one of its partitions is held.
fn is_claimed(held: &HeldDevices, number: DeviceNumber) -> bool {
    let system = System::live();
    let mut related = vec![number];
    if let Some(node) = BlockDevice::from_number(&system, number) {
        let partitions = node.partitions(&system);
        let others = partitions.into_iter().chain(node.disk(&system));
        related.extend(others.map(|node| node.number));
    }
    related.iter().any(|number| held.contains_key(number))
}
