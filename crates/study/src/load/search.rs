//! Between which rates the highest lies that keeps an objective.
//!
//! Latencies at one rate vary from run to run, and near the border most of all. So the answer is an interval: its lower end is
//! the highest rate that surely keeps the objective, its upper end the lowest that surely does not. Rates that are neither lie
//! inside, and are offered again until they are decided or the effort is used up. A line through the steps would narrow it
//! further, but only as far as the latency of an unknown device follows that line.

use super::decision::{Judgement, Tried};
use serde::{Deserialize, Serialize};

/// So often a rate that fails below one that holds is offered before it counts: it may have been disturbed.
const RUNS_AGAINST_HIGHER: u32 = 3;

/// Where the border lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Highest rate that surely keeps it; `None` where none of those that were offered does.
    pub held: Option<f64>,
    /// Lowest rate above it that surely does not; `None` where all that were offered may keep it.
    pub failed: Option<f64>,
    /// Highest rate between the two, or beside the one that is known, that is not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<f64>,
    /// Whether the ends are sure, so that the border lies between them. In results of earlier versions each end was what a
    /// single run said.
    #[serde(default)]
    pub is_interval: bool,
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effort {
    /// How near the ends of the interval must be, as a share, e.g. 0.05.
    pub(super) precision: f64,
    /// Most further runs.
    pub(super) most: usize,
    /// No rate below this one is tried where none held.
    pub(super) least: f64,
}

/// Offers rates as far as the effort goes. `offer` runs one, and returns all that were offered by then, or `None` to end the search.
pub(super) fn search(
    mut tried: Vec<Tried>,
    effort: Effort,
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

/// What is known by now. Where nothing holds, rates below `least` cannot be judged.
pub(super) fn answer(tried: &[Tried], least: f64) -> Answer {
    let border = Border::of(tried);
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

/// What was tried, about the border.
struct Border<'a> {
    held: Option<f64>,
    failed: Option<f64>,
    /// Those between the two, by rate.
    undecided: Vec<&'a Tried>,
    /// One that fails below one that holds, and has not been offered often enough to count.
    doubted: Option<f64>,
}

impl Border<'_> {
    fn of(tried: &[Tried]) -> Border<'_> {
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

    /// Where the border seems to be: between the lowest undecided rate that seems to fail and the highest below it that does not.
    fn seeming(&self, held: f64, failed: f64) -> f64 {
        let fails = self.undecided.iter().position(|one| !one.seems_kept);
        let (below, from) = self
            .undecided
            .split_at(fails.unwrap_or(self.undecided.len()));
        let low = below.last().map_or(held, |one| one.rate);
        let high = from.first().map_or(failed, |one| one.rate);
        (low * high).sqrt()
    }

    /// An undecided rate so near to this one that it is offered again instead.
    fn near(&self, rate: f64, apart: f64) -> Option<f64> {
        let distance = |other: f64| (other / rate).ln().abs();
        let rates = self.undecided.iter().map(|one| one.rate);
        let nearest = rates.min_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
        (distance(nearest) < apart.ln()).then_some(nearest)
    }
}

/// The rate to offer next; `None` when there is none that would tell more.
fn next_rate(tried: &[Tried], effort: Effort) -> Option<f64> {
    let border = Border::of(tried);
    if border.doubted.is_some() {
        return border.doubted;
    }
    let Some(failed) = border.failed else {
        return border.undecided.last().map(|one| one.rate);
    };
    let lowest = border.undecided.first().map_or(failed, |one| one.rate);
    let apart = 1.0 + effort.precision;
    let Some(held) = border.held else {
        // Nothing holds yet: a quarter of the lowest that was offered.
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
    // What is decided on the wider side of it narrows the interval most.
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

    const EFFORT: Effort = Effort {
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

    /// Searches a device that keeps the objective up to a border. Of rates nearer to it than a share of `blur`, divided by how
    /// often they were offered, nothing is known.
    fn search_of(border: f64, blur: f64, known: &[f64], effort: Effort) -> (Answer, Vec<f64>) {
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
    fn below_the_least_rate_nothing_is_tried() {
        let effort = Effort {
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
        fn interval_holds_the_border_and_is_as_narrow_as_asked_for(
            border in 20f64..1e6, low in 1.0f64..20.0, high in 1e6f64..1e7, blur in 0.0f64..0.3,
        ) {
            let (answer, offered) = search_of(border, blur, &[low, high], EFFORT);
            let (held, failed) = (answer.held.unwrap(), answer.failed.unwrap());
            prop_assert!(held <= border && border <= failed);
            prop_assert!(failed <= held * 1.05001 || offered.len() == EFFORT.most, "{:?}", offered);
        }
    }

    #[test]
    fn undecided_rates_lie_inside_of_the_interval() {
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
        let told = answer(&rates, 0.0);
        assert_eq!((told.held, told.failed), (Some(30.0), Some(60.0)));
        assert_eq!(told.untold, Some(50.0));
    }

    #[test]
    fn rate_that_fails_below_one_that_holds_is_offered_thrice() {
        use Judgement::{Broken, Kept};
        let mut rates = vec![tried(10.0, Kept), tried(20.0, Broken), tried(30.0, Kept)];
        assert_eq!(next_rate(&rates, EFFORT), Some(20.0));
        rates[1].runs = RUNS_AGAINST_HIGHER;
        let next = next_rate(&rates, EFFORT).unwrap();
        assert!((10.0..20.0).contains(&next), "{next}");
    }

    #[test]
    fn where_all_rates_may_be_kept_the_highest_is_offered_until_it_is_decided() {
        let (answer, offered) = search_of(2e3, 3.0, &[500.0, 1000.0], EFFORT);
        assert!(offered.iter().all(|rate| *rate == 1000.0), "{offered:?}");
        assert_eq!((answer.held, answer.failed), (Some(1000.0), None));
        assert_eq!(answer.untold, None);
    }

    #[test]
    fn search_can_be_ended() {
        let known = vec![tried(1e3, Judgement::Kept), tried(1e4, Judgement::Broken)];
        let answer = search(known, EFFORT, |_| None);
        assert_eq!((answer.held, answer.failed), (Some(1e3), Some(1e4)));
    }
}
