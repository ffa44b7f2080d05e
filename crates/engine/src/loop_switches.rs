//! Features of the loop that only a benchmark switches (`IOSONDE_RING_OPTIONS`).

use std::sync::OnceLock;

/// Environment variable with which `cargo xtask bench` measures a feature of the loop alone.
const LOOP_SWITCHES: &str = "IOSONDE_RING_OPTIONS";

/// Features of the loop, its ring and its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoopSwitches {
    pub(crate) no_iowait: bool,
    pub(crate) min_wait: bool,
    pub(crate) hybrid_poll: bool,
    /// Whether the workers of a job share a kernel thread. `None`: if the CPUs are too few.
    pub(crate) shares_sqpoll: Option<bool>,
    /// Calls stay small although all I/Os are complete at each reap.
    pub(crate) small_calls: bool,
    /// The submission queue keeps its array of numbers.
    pub(crate) sqarray: bool,
    /// Calls pass the plain descriptor of the ring.
    pub(crate) plain_descriptor: bool,
    /// Files are opened without O_NOATIME.
    pub(crate) atime: bool,
    /// Each discard is a system call, which blocks the worker.
    pub(crate) blocking_discard: bool,
}

impl LoopSwitches {
    /// Reads the environment variable, once per process: files are also opened during a run.
    pub(crate) fn from_environment() -> LoopSwitches {
        static SWITCHES: OnceLock<LoopSwitches> = OnceLock::new();
        *SWITCHES.get_or_init(|| {
            LoopSwitches::from_text(&std::env::var(LOOP_SWITCHES).unwrap_or_default())
        })
    }

    /// Reads names of features, separated by commas. Unknown names have no effect.
    fn from_text(text: &str) -> LoopSwitches {
        let names = |name: &str| text.split(',').any(|each| each == name);
        let shared = names("shared-sqpoll").then_some(true);
        LoopSwitches {
            no_iowait: names("no-iowait"),
            min_wait: names("min-wait"),
            hybrid_poll: names("hybrid-poll"),
            shares_sqpoll: shared.or(names("own-sqpoll").then_some(false)),
            small_calls: names("small-calls"),
            sqarray: names("sqarray"),
            plain_descriptor: names("plain-descriptor"),
            atime: names("atime"),
            blocking_discard: names("blocking-discard"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_switches_are_off_unless_named() {
        let switches = LoopSwitches::from_text;
        assert_eq!(switches(""), LoopSwitches::default());
        assert_eq!(switches("iowait"), LoopSwitches::default());
        let both = LoopSwitches {
            no_iowait: true,
            min_wait: true,
            ..LoopSwitches::default()
        };
        assert_eq!(switches("no-iowait,min-wait"), both);
        let min_wait = switches("min-wait");
        assert!(min_wait.min_wait && !min_wait.no_iowait);
        let small_calls = switches("small-calls");
        assert!(small_calls.small_calls && !small_calls.min_wait);
        let polling = LoopSwitches {
            hybrid_poll: true,
            shares_sqpoll: Some(true),
            ..LoopSwitches::default()
        };
        assert_eq!(switches("hybrid-poll,shared-sqpoll"), polling);
        assert_eq!(switches("own-sqpoll").shares_sqpoll, Some(false));
        assert_eq!(switches("hybrid-poll").shares_sqpoll, None);
    }

    #[test]
    fn features_that_are_on_are_switched_off_one_by_one() {
        let switches = LoopSwitches::from_text;
        let older = LoopSwitches {
            sqarray: true,
            plain_descriptor: true,
            atime: true,
            ..LoopSwitches::default()
        };
        assert_eq!(switches("sqarray,plain-descriptor,atime"), older);
        let sqarray = switches("sqarray");
        assert!(sqarray.sqarray && !sqarray.plain_descriptor && !sqarray.atime);
        let discard = switches("blocking-discard");
        assert!(discard.blocking_discard && !discard.sqarray);
    }
}
