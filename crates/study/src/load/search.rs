//! The highest rate at which something holds, by bisection.

use serde::{Deserialize, Serialize};

/// Where the border lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Highest rate at which it held; `None` when it held at none that was tried.
    pub held: Option<f64>,
    /// Lowest rate above it at which it did not; `None` when it held at all that were tried.
    pub failed: Option<f64>,
}

/// Narrows the border between `known` rates down until its ends are within `precision` (a share, e.g. 0.02) of each other,
/// in at most `most` further tries. `holds` answers `None` to end the search.
///
/// Chance may make a point hold that lies above one that does not. The border is sought below the lowest that fails, because
/// a promise that failed once is not one.
pub fn highest(
    known: &[(f64, bool)],
    precision: f64,
    most: usize,
    mut holds: impl FnMut(f64) -> Option<bool>,
) -> Answer {
    let mut answer = Answer {
        failed: known
            .iter()
            .filter(|(_, held)| !held)
            .map(|(rate, _)| *rate)
            .reduce(f64::min),
        held: None,
    };
    let below = |rate: f64, limit: Option<f64>| limit.is_none_or(|limit| rate < limit);
    answer.held = known
        .iter()
        .filter(|(rate, held)| *held && below(*rate, answer.failed))
        .map(|(rate, _)| *rate)
        .reduce(f64::max);
    for _ in 0..most {
        let Some(failed) = answer.failed else { break };
        // Nothing held yet: a quarter of what failed.
        let held = answer.held.unwrap_or(failed / 16.0);
        if answer.held.is_some() && failed <= held * (1.0 + precision) || failed < 2.0 {
            break;
        }
        let rate = (held * failed).sqrt();
        match holds(rate) {
            Some(true) => answer.held = Some(rate),
            Some(false) => answer.failed = Some(rate),
            None => break,
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_border_is_found_to_the_precision_asked_for(border in 20f64..1e6, low in 1.0f64..1e3, high in 1e3f64..1e7) {
            let known: Vec<_> = [low, high].map(|rate| (rate, rate <= border)).into();
            let mut tries = 0;
            let answer = highest(&known, 0.02, 40, |rate| { tries += 1; Some(rate <= border) });
            match (answer.held, answer.failed) {
                (Some(held), Some(failed)) => {
                    prop_assert!(held <= border && border < failed);
                    prop_assert!(failed <= held * 1.02 || tries == 40);
                }
                (Some(held), None) => prop_assert!(high <= border && held == high && tries == 0),
                (None, _) => prop_assert!(false, "the border is above 20 and every search reaches it"),
            }
        }
    }

    #[test]
    fn a_rate_that_held_by_chance_above_one_that_failed_does_not_count() {
        let known = [(10.0, true), (20.0, false), (30.0, true)];
        let answer = highest(&known, 0.02, 0, |_| unreachable!());
        assert_eq!((answer.held, answer.failed), (Some(10.0), Some(20.0)));
    }

    #[test]
    fn a_search_can_be_ended() {
        let answer = highest(&[(1e3, true), (1e4, false)], 0.02, 40, |_| None);
        assert_eq!((answer.held, answer.failed), (Some(1e3), Some(1e4)));
    }
}
