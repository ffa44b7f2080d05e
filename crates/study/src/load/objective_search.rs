//! Search for the highest rate that keeps an objective.
//!
//! Latencies vary between runs, most of all near the border. The answer is therefore an interval:
//! from the highest rate that is kept with confidence, to the lowest that is broken. Rates between
//! them are undecided, and are offered again until they are decided or the effort is used up. A
//! fitted line would narrow the interval, but only if the device followed that line.

use super::decision::{Judgement, Tried};
use serde::{Deserialize, Serialize};

/// Runs after which a broken rate counts although a higher rate is kept: a run may be disturbed.
const RUNS_AGAINST_HIGHER: u32 = 3;

/// Interval that contains the border.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Highest rate that is kept with confidence. `None`: no offered rate is.
    pub held: Option<f64>,
    /// Lowest rate above it that is broken with confidence. `None`: no offered rate is.
    pub failed: Option<f64>,
    /// Highest undecided rate between the two, or beyond the only known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<f64>,
    /// Whether the ends are decided with confidence, so that the border lies between them. In older
    /// results, each end is from a single run.
    #[serde(default)]
    pub is_interval: bool,
}

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateSearchLimits {
    /// Relative width of the interval that ends the search, e.g. 0.05.
    pub(super) precision: f64,
    /// Maximum number of runs.
    pub(super) most: usize,
    /// Lowest rate to try if no rate is kept.
    pub(super) least: f64,
}

/// Offers rates within the effort. `offer` returns all rates so far, or `None` to end the search.
pub(super) fn search(
    mut tried: Vec<Tried>,
    effort: RateSearchLimits,
    mut offer: impl FnMut(f64) -> Option<Vec<Tried>>,
) -> Answer {
    for _ in 0..effort.most {
        let Some(rate) = next_rate(&tried, effort) else {
            break;
        };
        match offer(rate) {
            Some(all) => tried = all,
            None => break,
        }
    }
    answer(&tried, effort.least)
}

/// Returns the answer so far. If no rate is kept, rates below `least` remain undecided.
pub(super) fn answer(tried: &[Tried], least: f64) -> Answer {
    let border = Border::from_rates(tried);
    let undecided = border.undecided.iter().map(|one| one.rate);
    let too_low = border
        .failed
        .filter(|_| border.held.is_none() && least >= 2.0);
    let too_low = too_low.map(|failed| failed.min(least));
    Answer {
        held: border.held,
        failed: border.failed,
        untold: undecided.reduce(f64::max).or(too_low),
        is_interval: true,
    }
}

/// Rates around the border.
struct Border<'a> {
    held: Option<f64>,
    failed: Option<f64>,
    /// Undecided rates between the two, in ascending order.
    undecided: Vec<&'a Tried>,
    /// A broken rate below a kept one, with too few runs to count.
    doubted: Option<f64>,
}

impl Border<'_> {
    fn from_rates(tried: &[Tried]) -> Border<'_> {
        let rates = |wanted: Judgement| {
            let all = tried.iter();
            all.filter(move |one| one.judgement == wanted)
        };
        let lowest = rates(Judgement::Broken).min_by(|a, b| a.rate.total_cmp(&b.rate));
        let failed = lowest.map(|one| one.rate);
        let kept = || rates(Judgement::Kept).map(|one| one.rate);
        let is_below = |rate: &f64| failed.is_none_or(|failed| *rate < failed);
        let held = kept().filter(is_below).reduce(f64::max);
        let is_inside =
            |one: &&Tried| is_below(&one.rate) && held.is_none_or(|held| one.rate > held);
        let mut undecided: Vec<&Tried> = rates(Judgement::Undecided).filter(is_inside).collect();
        undecided.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let doubted = lowest
            .filter(|one| one.runs < RUNS_AGAINST_HIGHER && kept().any(|kept| kept > one.rate));
        Border {
            held,
            failed,
            undecided,
            doubted: doubted.map(|one| one.rate),
        }
    }

    /// Estimates the border: below the lowest undecided rate that seems broken, above the next.
    fn seeming(&self, held: f64, failed: f64) -> f64 {
        let fails = self.undecided.iter().position(|one| !one.seems_kept);
        let (below, from) = self
            .undecided
            .split_at(fails.unwrap_or(self.undecided.len()));
        let low = below.last().map_or(held, |one| one.rate);
        let high = from.first().map_or(failed, |one| one.rate);
        (low * high).sqrt()
    }

    /// Returns an undecided rate near to this one, to be offered again instead.
    fn near(&self, rate: f64, apart: f64) -> Option<f64> {
        let distance = |other: f64| (other / rate).ln().abs();
        let rates = self.undecided.iter().map(|one| one.rate);
        let nearest = rates.min_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
        (distance(nearest) < apart.ln()).then_some(nearest)
    }
}

/// Returns the next rate to offer. `None`: no rate would narrow the interval.
fn next_rate(tried: &[Tried], effort: RateSearchLimits) -> Option<f64> {
    let border = Border::from_rates(tried);
    if border.doubted.is_some() {
        return border.doubted;
    }
    let Some(failed) = border.failed else {
        return border.undecided.last().map(|one| one.rate);
    };
    let lowest = border.undecided.first().map_or(failed, |one| one.rate);
    let apart = 1.0 + effort.precision;
    let Some(held) = border.held else {
        // No rate is kept yet: try a quarter of the lowest rate, but at least `least`.
        let below = (lowest / 16.0).max(effort.least * effort.least / lowest);
        let rate = (below * lowest).sqrt();
        return match lowest >= 2.0 && rate < lowest / apart {
            true => Some(rate),
            false => border.undecided.first().map(|one| one.rate),
        };
    };
    if failed <= held * apart {
        return None;
    }
    let seeming = border.seeming(held, failed);
    if border.undecided.is_empty() {
        return Some(seeming);
    }
    // A decision on the wider side of the estimate narrows the interval most.
    let rate = match seeming / held >= failed / seeming {
        true => (held * seeming).sqrt(),
        false => (seeming * failed).sqrt(),
    };
    Some(border.near(rate, apart.sqrt()).unwrap_or(rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EFFORT: RateSearchLimits = RateSearchLimits {
        precision: 0.05,
        most: 40,
        least: 0.0,
    };

    fn tried(rate: f64, judgement: Judgement) -> Tried {
        Tried {
            rate,
            runs: 1,
            judgement,
            seems_kept: judgement == Judgement::Kept,
        }
    }

    /// Searches a device that keeps the objective up to a border. Rates within a share of `blur`,
    /// divided by their number of runs, are undecided.
    fn search_of(
        border: f64,
        blur: f64,
        known: &[f64],
        effort: RateSearchLimits,
    ) -> (Answer, Vec<f64>) {
        let judge = |rate: f64, runs: u32| Tried {
            rate,
            runs,
            judgement: match (rate / border).ln() {
                off if off.abs() < blur / f64::from(runs) => Judgement::Undecided,
                ..0.0 => Judgement::Kept,
                _ => Judgement::Broken,
            },
            seems_kept: rate <= border,
        };
        let mut all: Vec<Tried> = known.iter().map(|rate| judge(*rate, 1)).collect();
        let mut offered = Vec::new();
        let answer = search(all.clone(), effort, |rate| {
            offered.push(rate);
            match all.iter_mut().find(|one| one.rate == rate) {
                Some(one) => *one = judge(rate, one.runs + 1),
                None => all.push(judge(rate, 1)),
            }
            Some(all.clone())
        });
        (answer, offered)
    }

    #[test]
    fn search_offers_no_rate_below_least() {
        let effort = RateSearchLimits {
            least: 100.0,
            ..EFFORT
        };
        let (answer, offered) = search_of(1.0, 0.0, &[1000.0], effort);
        assert!(offered.len() > 1, "{offered:?}");
        assert!(offered.iter().all(|rate| *rate >= 99.999), "{offered:?}");
        assert_eq!((answer.held, answer.untold), (None, Some(100.0)));
    }

    proptest! {
        #[test]
        fn search_interval_contains_border_within_precision(
            border in 20f64..1e6, low in 1.0f64..20.0, high in 1e6f64..1e7, blur in 0.0f64..0.3,
        ) {
            let (answer, offered) = search_of(border, blur, &[low, high], EFFORT);
            let (held, failed) = (answer.held.unwrap(), answer.failed.unwrap());
            prop_assert!(held <= border && border <= failed);
            prop_assert!(failed <= held * 1.05001 || offered.len() == EFFORT.most, "{:?}", offered);
        }
    }

    #[test]
    fn undecided_rates_lie_inside_interval() {
        use Judgement::{Broken, Kept, Undecided};
        let rates = [
            tried(10.0, Kept),
            tried(20.0, Undecided),
            tried(30.0, Kept),
            tried(40.0, Undecided),
            tried(50.0, Undecided),
            tried(60.0, Broken),
            tried(70.0, Undecided),
        ];
        let found = answer(&rates, 0.0);
        assert_eq!((found.held, found.failed), (Some(30.0), Some(60.0)));
        assert_eq!(found.untold, Some(50.0));
    }

    #[test]
    fn broken_rate_below_kept_rate_is_offered_three_times() {
        use Judgement::{Broken, Kept};
        let mut rates = vec![tried(10.0, Kept), tried(20.0, Broken), tried(30.0, Kept)];
        assert_eq!(next_rate(&rates, EFFORT), Some(20.0));
        rates[1].runs = RUNS_AGAINST_HIGHER;
        let next = next_rate(&rates, EFFORT).unwrap();
        assert!((10.0..20.0).contains(&next), "{next}");
    }

    #[test]
    fn highest_rate_is_repeated_until_decided_if_no_rate_is_broken() {
        let (answer, offered) = search_of(2e3, 3.0, &[500.0, 1000.0], EFFORT);
        assert!(offered.iter().all(|rate| *rate == 1000.0), "{offered:?}");
        assert_eq!((answer.held, answer.failed), (Some(1000.0), None));
        assert_eq!(answer.untold, None);
    }

    #[test]
    fn search_ends_if_offer_returns_none() {
        let known = vec![tried(1e3, Judgement::Kept), tried(1e4, Judgement::Broken)];
        let answer = search(known, EFFORT, |_| None);
        assert_eq!((answer.held, answer.failed), (Some(1e3), Some(1e4)));
    }
}
