//! The highest rate at which something holds, by bisection.

use serde::{Deserialize, Serialize};

/// Where the border lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Highest rate at which it held; `None` when it held at none that was tried.
    pub held: Option<f64>,
    /// Lowest rate above it at which it did not; `None` when it held at all that were tried.
    pub failed: Option<f64>,
    /// Highest rate between the two, or below `failed` where it held at none, at which too few I/Os came to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<f64>,
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// How close the ends of the border must be, as a share, e.g. 0.02.
    pub precision: f64,
    /// Most further tries.
    pub most: usize,
    /// No rate below this one is tried where none held.
    pub least: f64,
}

/// Narrows the border between `known` rates down as far as the effort goes. `holds` answers `None` to end the search.
///
/// Chance may make a rate fail that lies below one that holds. Such a rate is tried again, twice at most, and fails for good
/// only if it fails again; the border is then sought below it, because a promise that is not kept at a lower rate is not one.
pub fn highest(
    known: &[(f64, bool)],
    Effort {
        precision,
        most,
        least,
    }: Effort,
    mut holds: impl FnMut(f64) -> Option<bool>,
) -> Answer {
    let Some(known) = without_chance(known, &mut holds) else {
        return border(known);
    };
    let mut answer = border(&known);
    for _ in 0..most {
        let Some(failed) = answer.failed else { break };
        // Nothing held yet: a quarter of what failed.
        let held = answer
            .held
            .unwrap_or((failed / 16.0).max(least * least / failed));
        if answer.held.is_some() && failed <= held * (1.0 + precision) || failed < 2.0 {
            break;
        }
        let rate = (held * failed).sqrt();
        if answer.held.is_none() && rate >= failed / (1.0 + precision) {
            answer.untold = (least >= 2.0).then_some(failed.min(least));
            break;
        }
        match holds(rate) {
            Some(true) => answer.held = Some(rate),
            Some(false) => answer.failed = Some(rate),
            None => break,
        }
    }
    answer
}

/// What is known after a second look at rates that failed below one that held. `None` if the search was ended.
fn without_chance(
    known: &[(f64, bool)],
    holds: &mut impl FnMut(f64) -> Option<bool>,
) -> Option<Vec<(f64, bool)>> {
    let mut known = known.to_vec();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let top = known.iter().rposition(|(_, held)| *held).unwrap_or(0);
    for (rate, held) in known[..top].iter_mut().filter(|(_, held)| !held) {
        *held = holds(*rate)? && holds(*rate)?;
        if !*held {
            break;
        }
    }
    Some(known)
}

/// The highest that held below the lowest that failed.
fn border(known: &[(f64, bool)]) -> Answer {
    let rates = |wanted: bool| {
        known
            .iter()
            .filter(move |(_, held)| *held == wanted)
            .map(|(rate, _)| *rate)
    };
    let failed = rates(false).reduce(f64::min);
    let below = |rate: &f64| failed.is_none_or(|failed| *rate < failed);
    Answer {
        held: rates(true).filter(below).reduce(f64::max),
        failed,
        untold: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn effort(most: usize) -> Effort {
        Effort {
            precision: 0.02,
            most,
            least: 0.0,
        }
    }

    #[test]
    fn below_the_least_rate_nothing_is_tried() {
        let effort = Effort {
            least: 100.0,
            ..effort(40)
        };
        let mut tried = Vec::new();
        let answer = highest(&[(1000.0, false)], effort, |rate| {
            tried.push(rate);
            Some(false)
        });
        assert!(tried.len() > 1, "{tried:?}");
        assert!(tried.iter().all(|rate| *rate >= 99.999), "{tried:?}");
        assert_eq!((answer.held, answer.untold), (None, Some(100.0)));
    }

    proptest! {
        #[test]
        fn the_border_is_found_to_the_precision_asked_for(border in 20f64..1e6, low in 1.0f64..1e3, high in 1e3f64..1e7) {
            let known: Vec<_> = [low, high].map(|rate| (rate, rate <= border)).into();
            let mut tries = 0;
            let answer = highest(&known, effort(40), |rate| { tries += 1; Some(rate <= border) });
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
    fn what_failed_below_one_that_held_gets_a_second_look() {
        let known = [(10.0, true), (20.0, false), (30.0, true), (40.0, false)];
        let mut tried = Vec::new();
        let mut again = |held: &[bool]| {
            tried.clear();
            let mut held = held.iter();
            let answer = highest(&known, effort(0), |rate| {
                tried.push(rate);
                held.next().copied()
            });
            (answer.held, answer.failed, tried.len())
        };
        assert_eq!(again(&[true, true]), (Some(30.0), Some(40.0), 2));
        assert_eq!(again(&[true, false]), (Some(10.0), Some(20.0), 2));
        assert_eq!(again(&[false]), (Some(10.0), Some(20.0), 1));
        assert_eq!(again(&[]), (Some(10.0), Some(20.0), 1));
    }

    #[test]
    fn a_search_can_be_ended() {
        let answer = highest(&[(1e3, true), (1e4, false)], effort(40), |_| None);
        assert_eq!((answer.held, answer.failed), (Some(1e3), Some(1e4)));
    }
}
