//! [`PhaseProgress`]: decides when the wait for a phase of a round ends without all of its volumes.
//! Pure.

use super::round_state::RoundPhase;
use std::time::{Duration, Instant};

/// Time without progress of any volume after which volumes with a warning have failed.
const WARNED_STALL: Duration = Duration::from_secs(60);
/// The same for expansions. A kubelet grows a file system when it synchronizes the pod, and it does
/// so up to 90 s after the driver has grown the volume.
const WARNED_EXPANSION_STALL: Duration = Duration::from_secs(150);
/// Longest time between two synchronizations of a pod by a kubelet with default settings.
const POD_SYNC_S_MAX: u64 = 90;

const _: () = assert!(WARNED_EXPANSION_STALL.as_secs() > POD_SYNC_S_MAX);

/// Progress of the volumes in a phase. The timeout counts from the last progress of any volume: a
/// provisioner may make one volume after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseProgress {
    phase: RoundPhase,
    begun: Instant,
    progress_at: Instant,
    timeout: Duration,
}

impl PhaseProgress {
    /// Begins a phase.
    pub(super) fn begin(phase: RoundPhase, now: Instant, timeout: Duration) -> PhaseProgress {
        PhaseProgress {
            phase,
            begun: now,
            progress_at: now,
            timeout,
        }
    }

    /// Records that a volume has made progress.
    pub(super) fn record(&mut self, now: Instant) {
        debug_assert!(now >= self.progress_at, "times of one clock");
        self.progress_at = now;
    }

    /// Whether the volumes that have not ended the phase have failed. `are_warned`: each of them
    /// has a warning.
    pub(super) fn is_over(&self, now: Instant, are_warned: bool) -> bool {
        let limit = match (are_warned, self.phase) {
            (true, RoundPhase::Expand) => WARNED_EXPANSION_STALL.min(self.timeout),
            (true, _) => WARNED_STALL.min(self.timeout),
            (false, _) => self.timeout,
        };
        self.stall(now) >= limit
    }

    /// Describes the failure of a volume that has not ended the phase.
    pub(super) fn failure(&self, now: Instant) -> String {
        let seconds = now.saturating_duration_since(self.begun).as_secs();
        let stalled = self.stall(now).as_secs();
        let words = self.phase.words();
        match stalled < seconds {
            true => format!(
                "not {words} after {seconds} s, the last {stalled} s without progress of any volume"
            ),
            false => format!("not {words} after {seconds} s"),
        }
    }

    fn stall(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.progress_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(300);

    #[test]
    fn phase_timeout_counts_from_the_last_progress_of_any_volume() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut progress = PhaseProgress::begin(RoundPhase::Claim, begun, TIMEOUT);
        // A serial provisioner makes 100 volumes, one in ten seconds.
        for volume in 1..=100 {
            assert!(!progress.is_over(after(volume * 10), false), "{volume}");
            progress.record(after(volume * 10));
        }
        assert!(!progress.is_over(after(1299), false));
        assert!(progress.is_over(after(1300), false));
        let failure = progress.failure(after(1300));
        let expected = "not bound after 1300 s, the last 300 s without progress of any volume";
        assert_eq!(failure, expected);
    }

    #[test]
    fn volumes_with_warnings_fail_after_a_minute_without_progress() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let progress = PhaseProgress::begin(RoundPhase::Start, begun, TIMEOUT);
        assert!(!progress.is_over(after(59), true));
        assert!(progress.is_over(after(60), true) && !progress.is_over(after(60), false));
        let failure = progress.failure(after(60));
        assert_eq!(failure, "not written after 60 s");
        let short = PhaseProgress::begin(RoundPhase::Start, begun, Duration::from_secs(5));
        assert!(short.is_over(after(5), true) && !short.is_over(after(4), true));
    }
    #[test]
    fn expansion_with_warnings_has_the_time_of_a_pod_sync() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let progress = PhaseProgress::begin(RoundPhase::Expand, begun, TIMEOUT);
        assert!(!progress.is_over(after(POD_SYNC_S_MAX), true));
        assert!(progress.is_over(after(WARNED_EXPANSION_STALL.as_secs()), true));
    }
}
