//! Whether a connection on which nothing is said still has another end: one whose server vanished may never be told so.

use std::time::{Duration, Instant};

/// An agent that says nothing for so long, though it was asked for a sign, is asked over a new connection.
const SILENCE: Duration = Duration::from_secs(30);
/// A silent agent is asked for a sign after so long: one that prepares, or waits for others, has nothing to say by itself.
const ASK: Duration = Duration::from_secs(10);

/// What silence calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing yet.
    Fine,
    /// A question that the agent answers at once.
    Ask,
    /// Another connection.
    Dead,
}

/// When a connection was last heard.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Instant,
    is_asked: bool,
}

impl Pulse {
    pub(crate) fn new(now: Instant) -> Pulse {
        Pulse {
            heard: now,
            is_asked: false,
        }
    }

    /// Something was heard, or the connection is new.
    pub(crate) fn heard(&mut self, now: Instant) {
        *self = Pulse::new(now);
    }

    /// What is to be done now. A question is to be asked once.
    pub(crate) fn beat(&mut self, now: Instant) -> Beat {
        let silence = now.saturating_duration_since(self.heard);
        if silence > SILENCE {
            return Beat::Dead;
        }
        if silence > ASK && !std::mem::replace(&mut self.is_asked, true) {
            return Beat::Ask;
        }
        Beat::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_asked_about_once_and_then_ends_the_connection() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut pulse = Pulse::new(begun);
        let beats = [9, 11, 12, 30, 31].map(|seconds| pulse.beat(at(seconds)));
        let expected = [Beat::Fine, Beat::Ask, Beat::Fine, Beat::Fine, Beat::Dead];
        assert_eq!(beats, expected);
        pulse.heard(at(31));
        let beats = [40, 42, 61, 62].map(|seconds| pulse.beat(at(seconds)));
        assert_eq!(beats, [Beat::Fine, Beat::Ask, Beat::Fine, Beat::Dead]);
    }
}
