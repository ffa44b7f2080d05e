//! How the rate of a phase ran over time: one word, and a sparkline.

use crate::text_style::{SparkScale, TextRole, TextStyle};
use crate::text_table::added_columns;
use iosonde_result::interval::Interval;
use iosonde_result::run::RunResult;
use iosonde_result::series_statistics::SteadyStateTest;
use iosonde_study::probe::{PhaseFigure, ProbePhase};

/// Bars of a sparkline. A wide terminal adds one for each column beyond 80.
const SPARK_BARS: usize = 8;
/// Rounds of SNIA's steady-state test.
const ROUNDS: usize = 5;
/// Change of the fitted line from which a rate falls or rises: SNIA's limit of the trend.
const TREND_MIN: f64 = 0.10;
/// Standard deviation between intervals, as a share of the rate, from which a rate is noisy.
const NOISY_SPREAD_MIN: f64 = 0.20;
/// Half-width of the interval, as a share of the rate, up to which a rate can be steady.
const STEADY_ERROR_MAX: f64 = 0.05;

/// How the rate of a phase ran over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunShape {
    /// The rate is steady, and its interval narrow.
    Steady,
    /// The rate is steady, but its interval is not known or wide, or it varies much.
    Noisy,
    /// The rate is not steady and has no trend.
    Drifting,
    /// The rate is not steady and falls.
    Falling,
    /// The rate is not steady and rises.
    Rising,
    /// The phase was too short to decide.
    Short,
    /// An error ended the phase.
    Failed,
}

impl RunShape {
    /// Judges a figure by its marks, and by the rates of its run.
    pub(super) fn from_figure(figure: &PhaseFigure, rates: &[f64]) -> RunShape {
        if figure.failure.is_some() {
            return RunShape::Failed;
        }
        let rate = &figure.iops;
        let is_wide = |error: f64| error > STEADY_ERROR_MAX * rate.mean;
        let is_noisy = rate.error.is_none_or(is_wide)
            || rate.spread.is_some_and(|spread| spread >= NOISY_SPREAD_MIN);
        match figure.settled {
            None => RunShape::Short,
            Some(true) if is_noisy => RunShape::Noisy,
            Some(true) => RunShape::Steady,
            Some(false) => match trend(rates) {
                trend if trend <= -TREND_MIN => RunShape::Falling,
                trend if trend >= TREND_MIN => RunShape::Rising,
                _ => RunShape::Drifting,
            },
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            RunShape::Steady => "steady",
            RunShape::Noisy => "noisy",
            RunShape::Drifting => "drifting",
            RunShape::Falling => "falling",
            RunShape::Rising => "rising",
            RunShape::Short => "short",
            RunShape::Failed => "failed",
        }
    }

    pub(super) fn meaning(self) -> TextRole {
        match self {
            RunShape::Steady => TextRole::Good,
            RunShape::Noisy | RunShape::Short => TextRole::Unsure,
            RunShape::Drifting | RunShape::Falling | RunShape::Rising | RunShape::Failed => {
                TextRole::Bad
            }
        }
    }
}

/// Rates of the measured intervals, without the ramp and without a last one that was cut short.
pub(super) fn rates(result: &RunResult, phase: ProbePhase) -> Vec<f64> {
    let lengths = result.intervals.iter().map(|interval| interval.length_ns);
    let longest_ns = lengths.max().unwrap_or(0);
    let is_whole = |interval: &Interval| !interval.ramp && interval.length_ns > longest_ns / 2;
    let direction = phase.direction();
    let mut rates = Vec::new();
    for interval in &result.intervals {
        if is_whole(&interval) {
            let ios = interval.directions[direction].ios;
            rates.push(ios as f64 * 1e9 / interval.length_ns as f64);
        }
    }
    rates
}

/// Mean of each of at most `groups` groups of neighbouring rates.
fn means_of_groups(rates: &[f64], groups: usize) -> Vec<f64> {
    let groups = groups.min(rates.len());
    let bound = |group: usize| group * rates.len() / groups;
    let mean = |group: usize| {
        let rates = &rates[bound(group)..bound(group + 1)];
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    (0..groups).map(mean).collect()
}

/// Change of the fitted line over the rounds, as a share of the mean. Negative: the rate falls.
fn trend(rates: &[f64]) -> f64 {
    let rounds = means_of_groups(rates, ROUNDS);
    let Some(test) = SteadyStateTest::from_window(&rounds) else {
        return 0.0;
    };
    let half = rounds.len() / 2;
    let first: f64 = rounds[..half].iter().sum();
    let last: f64 = rounds[rounds.len() - half..].iter().sum();
    test.excursion.copysign(last - first)
}

/// Sparkline of the means of neighbouring rates.
pub(super) fn sparkline_of_rates(rates: &[f64], style: TextStyle) -> String {
    let bars = SPARK_BARS + added_columns();
    style.sparkline(&means_of_groups(rates, bars), SparkScale::Amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::simulated::probed;
    use iosonde_study::probe::ProbeBudget;

    fn figure() -> PhaseFigure {
        let result = probed("nvme", ProbeBudget::QUICK);
        let mut figure = result.figure(ProbePhase::RandomRead).unwrap().clone();
        figure.settled = Some(true);
        figure.sure = Some(true);
        figure.iops.spread = Some(0.01);
        figure
    }

    #[test]
    fn word_keeps_what_the_marks_say() {
        let steady = figure();
        let even = [100.0; 20];
        let shape = |figure: &PhaseFigure, rates: &[f64]| {
            RunShape::from_figure(figure, rates).word().to_owned()
        };
        assert_eq!(shape(&steady, &even), "steady");
        // An interval that is wider than requested, but narrow, is no sign of noise.
        let mut unsure = PhaseFigure {
            sure: Some(false),
            ..steady.clone()
        };
        unsure.iops.error = Some(0.04 * unsure.iops.mean);
        assert_eq!(shape(&unsure, &even), "steady");
        unsure.iops.error = Some(0.06 * unsure.iops.mean);
        assert_eq!(shape(&unsure, &even), "noisy");
        let mut uneven = steady.clone();
        uneven.iops.spread = Some(0.4);
        assert_eq!(shape(&uneven, &even), "noisy");
        // Without a requested width, an unknown interval is no steady rate either.
        let mut unknown = steady.clone();
        (unknown.sure, unknown.iops.error) = (None, None);
        assert_eq!(shape(&unknown, &even), "noisy");
        let unsettled = PhaseFigure {
            settled: Some(false),
            ..unsure
        };
        assert_eq!(shape(&unsettled, &even), "drifting");
        let falls: Vec<f64> = (0..20).map(|i| if i < 8 { 200.0 } else { 90.0 }).collect();
        assert_eq!(shape(&unsettled, &falls), "falling");
        let rises: Vec<f64> = falls.iter().rev().copied().collect();
        assert_eq!(shape(&unsettled, &rises), "rising");
        let short = PhaseFigure {
            settled: None,
            ..steady
        };
        assert_eq!(shape(&short, &[]), "short");
    }

    #[test]
    fn sparkline_spans_the_rates_and_has_eight_bars() {
        let style = TextStyle::for_locale("C.UTF-8", false);
        let ascii = TextStyle::for_locale("C", false);
        let falls: Vec<f64> = (0..33).map(|i| if i < 12 { 8.0 } else { 4.0 }).collect();
        assert_eq!(sparkline_of_rates(&falls, style), "▇▇▇▁▁▁▁▁");
        assert_eq!(sparkline_of_rates(&falls, ascii), "###.....");
        assert_eq!(sparkline_of_rates(&[0.0, 5.0, 5.0], ascii), ".##");
        assert_eq!(sparkline_of_rates(&[0.0; 9], ascii), "........");
        assert_eq!(sparkline_of_rates(&[], ascii), "");
    }

    #[test]
    fn sparkline_on_a_wide_terminal_has_more_points_of_its_rates() {
        let ascii = TextStyle::for_locale("C", false);
        let bars = |count: u32| {
            let rates: Vec<f64> = (0..count).map(f64::from).collect();
            sparkline_of_rates(&rates, ascii).len()
        };
        assert_eq!([5, 33, 100].map(bars), [5, 8, 8]);
        crate::text_table::set_columns(120);
        let wide = [5, 33, 100].map(bars);
        crate::text_table::set_columns(80);
        // A short series has no more bars than rates.
        assert_eq!(wide, [5, 33, 48]);
    }

    #[test]
    fn rates_of_run_have_mean_of_figure() {
        let result = probed("hdd", ProbeBudget::QUICK);
        let phase = ProbePhase::RandomRead;
        let run = result.runs.iter().find(|run| run.phase == phase).unwrap();
        let rates = rates(&run.result, phase);
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let figure = result.figure(phase).unwrap().iops.mean;
        assert!((mean / figure - 1.0).abs() < 0.1, "{mean} {figure}");
    }
}
