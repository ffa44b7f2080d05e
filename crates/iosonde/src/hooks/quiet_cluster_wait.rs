//! Waits before a run until a Ceph cluster has left `HEALTH_ERR` and moves no data.

use super::quiet_waits::{TIMEOUTS_MAX, Waits};
use crate::signals::StopSignal;
use iosonde_ceph::{ClusterDisturbance, cluster_disturbance};
use iosonde_job::plan::CephAccess;
use iosonde_study::sweep::QUIET_WAIT_CELL_MAX;
use iosonde_study::words;
use std::time::{Duration, Instant};

/// Time between two queries of the cluster.
const QUERY_INTERVAL: Duration = Duration::from_millis(500);

/// Waits for a cluster, and adds up the waits.
pub(super) struct QuietClusterWait {
    access: CephAccess,
    /// Expected identity of the cluster, if the target has it.
    fsid: Option<String>,
    waits: Waits,
    /// Reason of the last wait.
    seen: Option<ClusterDisturbance>,
}

impl QuietClusterWait {
    /// All waits together are limited by `most`.
    pub(super) fn new(
        access: CephAccess,
        fsid: Option<String>,
        most: Duration,
    ) -> QuietClusterWait {
        QuietClusterWait {
            access,
            fsid,
            waits: Waits::limited_to(most),
            seen: None,
        }
    }

    /// Returns when the cluster is quiet, on a timeout, or on an interrupt.
    pub(super) fn wait(&mut self, stop: &StopSignal) {
        let (access, fsid) = (self.access.clone(), self.fsid.clone());
        self.wait_for(stop, &mut || cluster_disturbance(&access, fsid.as_deref()));
    }

    fn wait_for(
        &mut self,
        stop: &StopSignal,
        query: &mut dyn FnMut() -> Option<ClusterDisturbance>,
    ) {
        let began = Instant::now();
        let seen = &mut self.seen;
        let mut is_first = true;
        self.waits.until_quiet(|| {
            if !std::mem::replace(&mut is_first, false) {
                std::thread::sleep(QUERY_INTERVAL);
            }
            let disturbance = query();
            *seen = disturbance.or(*seen);
            let is_over = disturbance.is_none() || stop.interrupt.is_requested();
            (is_over, began.elapsed())
        });
    }

    /// Notes on the waits for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let (aim, state) = match self.seen {
            None => return Vec::new(),
            Some(ClusterDisturbance::HealthError) => ("to leave HEALTH_ERR", "was in HEALTH_ERR"),
            Some(ClusterDisturbance::Recovery) => (
                "to finish recovery",
                "was moving data (recovery or backfill)",
            ),
        };
        if let Some(note) = self.waits.skip_note(&format!("the Ceph cluster {state}")) {
            return vec![note];
        }
        let mut notes = Vec::new();
        if self.waits.waited >= Duration::from_secs(1) {
            let waited = words::whole_seconds_text(self.waits.waited.as_nanos() as u64);
            notes.push(format!("waited {waited} for the Ceph cluster {aim}"));
        }
        match self.waits.timeouts {
            0 => {}
            TIMEOUTS_MAX.. => notes.push(format!(
                "the Ceph cluster {state} all the time: after {TIMEOUTS_MAX} failed waits of {}, \
                 runs started without waiting",
                words::whole_seconds_text(QUIET_WAIT_CELL_MAX.as_nanos() as u64)
            )),
            1 => notes.push(format!("1 run started while the Ceph cluster {state}")),
            runs => notes.push(format!(
                "{runs} runs started while the Ceph cluster {state}"
            )),
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait without a limit, whatever the environment of the tests says.
    fn waiting() -> QuietClusterWait {
        let mut wait = QuietClusterWait::new(CephAccess::default(), None, Duration::MAX);
        wait.waits.is_skipped = false;
        wait
    }

    #[test]
    fn skipped_wait_queries_once_and_is_noted() {
        let mut wait = waiting();
        wait.waits.is_skipped = true;
        let mut queries = 0;
        wait.wait_for(&StopSignal::default(), &mut || {
            queries += 1;
            Some(ClusterDisturbance::Recovery)
        });
        assert_eq!(queries, 1);
        let expected = "1 run started without a wait while the Ceph cluster was moving data \
                        (recovery or backfill): IOSONDE_NO_IDLE_WAIT is set";
        assert_eq!(wait.notes(), [expected]);
    }

    #[test]
    fn recovery_of_the_cluster_is_awaited_and_noted() {
        let mut wait = waiting();
        let stop = StopSignal::default();
        wait.wait_for(&stop, &mut || None);
        assert!(wait.notes().is_empty());
        let mut left = 3;
        wait.wait_for(&stop, &mut || {
            left -= 1;
            (left > 0).then_some(ClusterDisturbance::Recovery)
        });
        assert_eq!(left, 0, "asked until the cluster moves no data");
        wait.waits.waited = Duration::from_secs(4);
        wait.waits.timeouts = 1;
        assert_eq!(
            wait.notes(),
            [
                "waited 4 s for the Ceph cluster to finish recovery",
                "1 run started while the Ceph cluster was moving data (recovery or backfill)"
            ]
        );
    }

    #[test]
    fn interrupt_ends_the_wait_for_a_cluster() {
        let mut wait = waiting();
        let stop = StopSignal::default();
        stop.interrupt.request();
        let mut queries = 0;
        wait.wait_for(&stop, &mut || {
            queries += 1;
            Some(ClusterDisturbance::HealthError)
        });
        assert_eq!(queries, 1);
    }
}
