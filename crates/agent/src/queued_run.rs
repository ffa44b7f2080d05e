//! [`QueuedRun`]: a run that a client has requested.

use iosonde_job::Plan;
use iosonde_result::cache_state::ColdLayers;
use iosonde_result::wire::DeviceConsent;

/// A plan to run, its client's consent for the block device, and the caches to drop.
pub(crate) struct QueuedRun {
    pub(crate) plan: Plan,
    pub(crate) consent: Option<DeviceConsent>,
    pub(crate) cold: ColdLayers,
}

impl QueuedRun {
    /// Creates the run. `is_cold`: the caches of this machine are dropped before the jobs.
    pub(crate) fn new(plan: Plan, consent: Option<DeviceConsent>, is_cold: bool) -> QueuedRun {
        QueuedRun {
            plan,
            consent,
            cold: ColdLayers {
                client: is_cold,
                ..ColdLayers::default()
            },
        }
    }
}
