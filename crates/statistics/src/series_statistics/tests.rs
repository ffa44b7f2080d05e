//! Coverage and width of confidence intervals, on simulated series with a known mean.

use super::families::{
    FAMILIES, ProcessFamily, Random, TRUTH, chance_deviation, draws, normal, uniform,
};
use super::*;
use proptest::prelude::*;
use rand::SeedableRng;

/// A run is long if it has at least this many integrated autocorrelation times.
const LONG_TIMES: f64 = 30.0;

/// Least share of short series whose interval contains the true mean, or that are reported as too
/// short.
fn least_of_short(family: ProcessFamily) -> f64 {
    match family {
        // Few of these series show the slow noise, which is a third of the variance.
        ProcessFamily::Hidden(..) => 0.85,
        // One series in seven contains no burst, so its interval cannot account for bursts.
        ProcessFamily::Bursts(_) => 0.72,
        _ => 0.90,
    }
}

/// Coverage and width of the intervals of many draws.
#[derive(Debug)]
struct IntervalCoverage {
    /// Share of intervals that contain the true mean.
    covered: f64,
    /// Mean width, relative to an estimator that knows the process.
    width: f64,
    /// Share of series whose interval contains the true mean, or that are reported as too short or
    /// drifting.
    covered_or_declined: f64,
}

fn coverage(family: ProcessFamily, samples: usize, draws: usize) -> IntervalCoverage {
    let mut random = Random::seed_from_u64(samples as u64 * 7919 + 13);
    let (mut covered, mut either) = (0, 0);
    let (mut squares, mut widths) = (0.0, 0.0);
    for _ in 0..draws {
        let series = family.draw(samples, &mut random);
        let estimate = mean_with_confidence(&series, 0.95).unwrap();
        let error = estimate.mean - TRUTH;
        let is_covered = error.abs() <= estimate.half_width;
        let is_declined = estimate.evidence != SeriesEvidence::Autocorrelation;
        covered += usize::from(is_covered);
        either += usize::from(is_covered || is_declined);
        squares += error * error;
        widths += estimate.half_width;
    }
    let share = |count: usize| count as f64 / draws as f64;
    IntervalCoverage {
        covered: share(covered),
        width: widths / draws as f64 / (NORMAL_97_5 * (squares / draws as f64).sqrt()),
        covered_or_declined: share(either),
    }
}

/// Largest permitted width, relative to the best estimator. The best width is estimated from the
/// spread of the draws.
fn width_max(draws: usize) -> f64 {
    match draws {
        2000 => 1.25,
        few => 1.25 * (1.0 + 3.0 / (2.0 * few as f64).sqrt()),
    }
}

#[test]
fn interval_of_a_long_stationary_series_is_calibrated_and_sharp() {
    let draws = draws();
    for family in FAMILIES {
        for samples in [30, 100, 300] {
            let times = samples as f64 / family.time();
            if times < LONG_TIMES {
                continue;
            }
            let found = coverage(family, samples, draws);
            println!("{family:?} {samples} samples, {times:.0} times: {found:?}");
            let limits = 0.93 - chance_deviation(draws)..=0.97 + chance_deviation(draws);
            assert!(
                limits.contains(&found.covered),
                "{family:?} {samples}: {found:?}"
            );
            assert!(
                found.width <= width_max(draws),
                "{family:?} {samples}: {found:?}"
            );
        }
    }
}

#[test]
fn interval_of_a_short_series_is_wide_or_says_that_it_is_short() {
    let draws = draws();
    for family in FAMILIES {
        for samples in [30, 100, 300] {
            let times = samples as f64 / family.time();
            if !(SHORT_TIMES..LONG_TIMES).contains(&times) {
                continue;
            }
            let found = coverage(family, samples, draws);
            println!("{family:?} {samples} samples, {times:.1} times: {found:?}");
            let least = least_of_short(family) - chance_deviation(draws);
            assert!(
                found.covered_or_declined >= least,
                "{family:?} {samples}: {found:?}"
            );
        }
    }
}

/// Shorter series usually contain none of the slow variation, and cannot show it.
const SHORT_TIMES: f64 = 7.0;

#[test]
fn series_that_drifts_says_so_and_stays_wide() {
    let mut random = Random::seed_from_u64(5);
    let drifting: Vec<f64> = (0..100)
        .map(|index| 100.0 + 0.4 * f64::from(index) + 2.0 * normal(&mut random))
        .collect();
    let estimate = mean_with_confidence(&drifting, 0.95).unwrap();
    assert_eq!(estimate.evidence, SeriesEvidence::Drift);
    assert!(estimate.half_width > 10.0, "{estimate:?}");
    let still = ProcessFamily::White.draw(100, &mut random);
    let estimate = mean_with_confidence(&still, 0.95).unwrap();
    assert_eq!(estimate.evidence, SeriesEvidence::Autocorrelation);
    assert!(estimate.half_width < 1.5, "{estimate:?}");
}

#[test]
fn another_run_of_a_wandering_series_is_known_less_well() {
    let mut random = Random::seed_from_u64(6);
    let mut factor = |time: f64, share: f64| {
        let phi = (time - 1.0) / (time + 1.0);
        let factors = (0..40).map(|_| {
            let series = ProcessFamily::Hidden(phi, share).draw(200, &mut random);
            mean_with_confidence(&series, 0.95).unwrap().repeat_factor
        });
        factors.sum::<f64>() / 40.0
    };
    let (still, wandering) = (factor(1.0, 0.0), factor(150.0, 0.5));
    assert!(still < 1.2, "{still}");
    assert!(wandering > 1.15 * still, "{wandering} {still}");
}

#[test]
fn independent_samples_give_nearly_the_textbook_interval() {
    let series = ProcessFamily::White.draw(300, &mut Random::seed_from_u64(1));
    let estimate = mean_with_confidence(&series, 0.95).unwrap();
    let textbook = NORMAL_97_5 * 5.0 / 300f64.sqrt();
    assert!(
        (estimate.half_width / textbook - 1.0).abs() < 0.2,
        "{estimate:?} {textbook}"
    );
}

#[test]
fn correlated_samples_are_worth_fewer() {
    let series = ProcessFamily::Correlated(0.8).draw(10_000, &mut Random::seed_from_u64(1));
    let estimate = mean_with_confidence(&series, 0.95).unwrap();
    // n (1 - phi) / (1 + phi)
    assert!(
        (estimate.effective_samples / 1111.0 - 1.0).abs() < 0.3,
        "{estimate:?}"
    );
}

/// Rates of I/Os that end at even times, counted in intervals of 100 ms, on a device whose speed
/// changes each second.
fn counted(per_interval: f64, seconds: usize, random: &mut Random) -> Vec<f64> {
    let mut counts = vec![0.0; 10 * seconds];
    let (mut now, mut speed, mut second) = (uniform(random) / per_interval, 1.0, -1.0);
    while now < counts.len() as f64 {
        counts[now as usize] += 1.0;
        if (now / 10.0).floor() > second {
            second = (now / 10.0).floor();
            speed = 1.0 + 0.03 * normal(random);
        }
        now += 1.0 / per_interval / speed;
    }
    counts
}

#[test]
fn counting_of_whole_ios_makes_no_interval_wider() {
    let mut random = Random::seed_from_u64(8);
    let mut width_of = |per_interval: f64| {
        let widths = (0..30).map(|_| {
            let counts = counted(per_interval, 60, &mut random);
            let joined = join_counts(&counts, 1.0);
            let estimate = mean_with_confidence(&joined, 0.95).unwrap();
            estimate.half_width * estimate.repeat_factor / estimate.mean
        });
        widths.sum::<f64>() / 30.0
    };
    let (few, many) = (width_of(10.0), width_of(1000.0));
    assert!(few < 1.15 * many, "{few} {many}");
}

#[test]
fn counts_that_vary_by_themselves_are_not_joined() {
    let mut random = Random::seed_from_u64(9);
    let rates = ProcessFamily::White.draw(100, &mut random);
    assert_eq!(join_counts(&rates, 1.0), rates);
    assert_eq!(join_counts(&[10.0; 100], 1.0).len(), 25);
}

#[test]
fn freedom_has_the_proportion_of_its_intervals() {
    for freedom in [2.0, 4.7, 30.0] {
        let t = StudentsT::new(0.0, 1.0, freedom).unwrap();
        let found = freedom_of(t.inverse_cdf(0.995) / t.inverse_cdf(0.975));
        assert!((found / freedom - 1.0).abs() < 0.02, "{found} {freedom}");
    }
    assert!(freedom_of(1.2) > 900.0);
}

#[test]
fn interval_of_thirds_has_two_degrees_of_freedom() {
    let series: Vec<f64> = (0..100)
        .map(|index| {
            if (20..55).contains(&index) {
                90.0
            } else {
                104.0
            }
        })
        .zip(ProcessFamily::White.draw(100, &mut Random::seed_from_u64(3)))
        .map(|(level, noise)| level + 0.05 * noise)
        .collect();
    let estimate = mean_with_confidence(&series, 0.95).unwrap();
    assert_eq!(estimate.evidence, SeriesEvidence::TooShort);
    assert!((1.8..4.0).contains(&estimate.freedom), "{estimate:?}");
}

#[test]
fn series_that_varies_only_where_it_is_cut_off_is_constant() {
    let mut series = [100.0; 601];
    series[0] = 90.0;
    let estimate = mean_with_confidence(&series, 0.95).unwrap();
    assert_eq!((estimate.half_width, estimate.repeat_factor), (0.0, 1.0));
}

#[test]
fn rate_is_known_to_one_io_at_best() {
    let estimate = rate_with_confidence(&[20.0; 30], 60, 0.95).unwrap();
    assert!((estimate.half_width - 20.0 / 60.0).abs() < 1e-9);
    assert_eq!(estimate.repeat_factor, 1.0);
}

#[test]
fn too_few_samples_have_no_interval() {
    assert_eq!(mean_with_confidence(&[1.0; FEWEST_SAMPLES - 1], 0.95), None);
    assert_eq!(
        mean_with_confidence(&[1.0, 2.0, f64::NAN, 1.0, 1.0], 0.95),
        None
    );
    let constant = mean_with_confidence(&[7.0; 10], 0.95).unwrap();
    assert_eq!((constant.mean, constant.half_width), (7.0, 0.0));
}

#[test]
fn steady_state_needs_small_range_and_slope() {
    let test = |window: &[f64]| SteadyStateTest::from_window(window).unwrap();
    let flat = test(&[100.0, 91.0, 110.0, 91.0, 108.0]);
    assert!(
        (flat.range - 0.19).abs() < 1e-12 && flat.is_steady(),
        "{flat:?}"
    );
    let wide = test(&[100.0, 90.0, 110.5, 90.0, 109.5]);
    assert!(
        wide.range > 0.2 && wide.excursion <= 0.1 && !wide.is_steady(),
        "{wide:?}"
    );
    let rising = test(&[94.0, 97.0, 100.0, 103.0, 106.0]);
    assert!((rising.excursion - 0.12).abs() < 1e-12 && rising.range <= 0.2);
    assert!(!rising.is_steady(), "{rising:?}");
    let falling = test(&[106.0, 103.0, 100.0, 97.0, 94.0]);
    assert_eq!(falling.excursion, rising.excursion);
    assert_eq!(SteadyStateTest::from_window(&[1.0]), None);
    assert_eq!(SteadyStateTest::from_window(&[0.0, 0.0]), None);
    assert_eq!(SteadyStateTest::from_window(&[1.0, f64::INFINITY]), None);
}

#[test]
fn drift_is_not_a_steady_state() {
    assert_eq!(is_rate_steady(&[100.0; 8]), Some(true));
    let falling: Vec<f64> = (0..10).map(|i| 100.0 - 2.0 * f64::from(i)).collect();
    assert_eq!(is_rate_steady(&falling), Some(false));
    assert_eq!(
        is_rate_steady(&[100.0, 70.0, 100.0, 100.0, 100.0]),
        Some(false)
    );
    assert_eq!(is_rate_steady(&[100.0; 4]), None);
}

proptest! {
    #[test]
    fn scaling_the_samples_scales_the_interval(
        series in proptest::collection::vec(1.0f64..1e6, FEWEST_SAMPLES..400),
        factor in 0.001f64..1000.0,
    ) {
        let scaled: Vec<f64> = series.iter().map(|sample| sample * factor).collect();
        let one = mean_with_confidence(&series, 0.95).unwrap();
        let other = mean_with_confidence(&scaled, 0.95).unwrap();
        let difference = (other.half_width - one.half_width * factor).abs();
        prop_assert!(difference <= 1e-6 * other.half_width.abs() + 1e-9);
        prop_assert!(one.effective_samples <= series.len() as f64 + 1e-9);
        prop_assert!(one.half_width >= 0.0 && one.half_width.is_finite());
        prop_assert!(one.repeat_factor >= 1.0);
        let surer = mean_with_confidence(&series, 0.99).unwrap();
        prop_assert!(surer.half_width >= one.half_width);
    }

    #[test]
    fn steady_state_excursion_is_bounded_by_the_range(
        window in proptest::collection::vec(1.0f64..1e6, 2..50),
    ) {
        let test = SteadyStateTest::from_window(&window).unwrap();
        prop_assert!(test.range >= 0.0 && test.excursion >= 0.0);
        // A least-squares line rises by at most 1.5 times the range of its samples.
        prop_assert!(test.excursion <= 1.5 * test.range + 1e-9);
    }
}
