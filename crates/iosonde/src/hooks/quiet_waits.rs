//! Sum and limit of the waits for quiet storage before cells.

use iosonde_study::sweep::QUIET_WAIT_CELL_MAX;
use std::time::Duration;

/// Sampling time of the device.
pub(super) const SAMPLING_TIME: Duration = Duration::from_millis(100);
/// Number of timeouts after which waiting stops: other programs use the device all the time.
pub(super) const TIMEOUTS_MAX: u32 = 3;

/// Sum of the waits, and the number of timeouts.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub(super) waited: Duration,
    /// Limit on the sum of the waits.
    pub(super) most: Duration,
    /// Number of cells that started while the device was busy.
    pub(super) timeouts: u32,
}

impl Waits {
    /// Calls `sample` until it reports the end, or until the limit. `sample` returns the time too.
    pub(super) fn until_quiet(&mut self, mut sample: impl FnMut() -> (bool, Duration)) {
        let most = QUIET_WAIT_CELL_MAX.min(self.most.saturating_sub(self.waited));
        if self.timeouts >= TIMEOUTS_MAX || most < SAMPLING_TIME {
            return;
        }
        loop {
            let (is_over, elapsed) = sample();
            if !is_over && elapsed < most {
                continue;
            }
            self.timeouts += u32::from(!is_over);
            // Sampling a quiet device is not counted as a wait.
            self.waited += elapsed.saturating_sub(SAMPLING_TIME * 2);
            return;
        }
    }
}
