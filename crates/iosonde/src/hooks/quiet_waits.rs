//! Sum and limit of the waits for quiet storage before runs.

use iosonde_study::sweep::QUIET_WAIT_CELL_MAX;
use iosonde_study::words;
use std::ffi::OsStr;
use std::time::Duration;

/// Sampling time of the device.
pub(super) const SAMPLING_TIME: Duration = Duration::from_millis(100);
/// Number of timeouts after which waiting stops: other programs use the device all the time.
pub(super) const TIMEOUTS_MAX: u32 = 3;
/// Environment variable that skips the waits, for tests on a machine with other I/O.
const SKIP_VARIABLE: &str = "IOSONDE_NO_IDLE_WAIT";

/// Sum of the waits, and the number of timeouts.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub(super) waited: Duration,
    /// Limit on the sum of the waits.
    pub(super) most: Duration,
    /// Number of runs, layouts included, that started while the device was busy.
    pub(super) timeouts: u32,
    /// Whether runs start after one sample. The sample shows whether the device was busy.
    pub(super) is_skipped: bool,
}

impl Waits {
    /// Waits of at most this sum, or none with [`SKIP_VARIABLE`] in the environment.
    pub(super) fn limited_to(most: Duration) -> Waits {
        let value = std::env::var_os(SKIP_VARIABLE);
        Waits {
            most,
            is_skipped: value.is_some_and(|value| is_switched_on(&value)),
            ..Waits::default()
        }
    }

    /// Calls `sample` until it reports the end, or until the limit. `sample` returns the time too.
    pub(super) fn until_quiet(&mut self, mut sample: impl FnMut() -> (bool, Duration)) {
        if self.is_skipped {
            let (is_over, _) = sample();
            self.timeouts += u32::from(!is_over);
            return;
        }
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

    /// Notes that runs started without a wait in this state, if they did.
    pub(super) fn skip_note(&self, state: &str) -> Option<String> {
        let is_noted = self.is_skipped && self.timeouts > 0;
        is_noted.then(|| {
            let runs = words::counted(self.timeouts as usize, "run");
            format!("{runs} started without a wait while {state}: {SKIP_VARIABLE} is set")
        })
    }
}

/// Whether the value of a variable switches it on. An empty value and 0 do not.
fn is_switched_on(value: &OsStr) -> bool {
    !value.is_empty() && value != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_is_off_when_empty_or_zero() {
        let is_on = |value: &str| is_switched_on(OsStr::new(value));
        assert_eq!(["", "0", "1"].map(is_on), [false, false, true]);
    }

    #[test]
    fn skipped_wait_takes_one_sample_and_is_noted_if_busy() {
        let mut waits = Waits {
            most: Duration::MAX,
            is_skipped: true,
            ..Waits::default()
        };
        let mut samples = 0;
        let mut sample_once = |waits: &mut Waits, is_quiet: bool| {
            waits.until_quiet(|| {
                samples += 1;
                (is_quiet, SAMPLING_TIME)
            });
            samples
        };
        assert_eq!(sample_once(&mut waits, true), 1);
        assert_eq!(waits.skip_note("it was busy"), None);
        // Waits end after some timeouts, samples do not.
        for run in 2..8 {
            assert_eq!(sample_once(&mut waits, false), run);
        }
        let note = "6 runs started without a wait while it was busy: IOSONDE_NO_IDLE_WAIT is set";
        assert_eq!(waits.skip_note("it was busy").as_deref(), Some(note));
        assert_eq!(waits.waited, Duration::ZERO);
    }
}
