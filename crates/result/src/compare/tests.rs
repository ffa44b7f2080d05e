//! Tests of comparisons on seeded series with known means.

use super::confidence_interval::{
    bounds_of_mean, bounds_of_percentile, bounds_of_rates, bounds_of_samples,
};
use super::*;
use crate::families::{
    FAMILIES, ProcessFamily, Random, TRUTH, chance_deviation, draws, normal, uniform,
};
use crate::histogram::Histogram;
use crate::littles_law::SlotTime;
use crate::stats::Moments;
use proptest::prelude::*;
use rand::SeedableRng;

/// Returns rates per second around `mean`, with relative noise and lag-1 correlation `rho`.
fn noisy(mean: f64, noise: f64, rho: f64, seconds: usize, random: &mut Random) -> Vec<f64> {
    let mut deviation = normal(random);
    let series = (0..seconds).map(|_| {
        let rate = mean * (1.0 + noise * deviation);
        deviation = rho * deviation + (1.0 - rho * rho).sqrt() * normal(random);
        rate
    });
    series.collect()
}

fn measured(machine: Option<&str>, parts: Vec<ResultPart>) -> MeasuredResult {
    MeasuredResult {
        name: "run".into(),
        machine: machine.map(str::to_owned),
        parts,
    }
}

fn part(name: &str, figures: Vec<Figure>) -> ResultPart {
    ResultPart {
        name: name.into(),
        pattern: IoPattern {
            rw: "randread".into(),
            bs: "4096".into(),
            iodepth: 64,
            numjobs: 1,
        },
        figures,
        role: Default::default(),
    }
}

fn figure(measure: Measure, value: f64, bounds: Option<Bounds>) -> Figure {
    Figure {
        subject: Subject::Read,
        measure,
        value,
        bounds,
        settled: None,
    }
}

fn one(value: f64) -> MeasuredResult {
    measured(
        Some("n1"),
        vec![part("a", vec![figure(Measure::Iops, value, None)])],
    )
}

fn of_rates(rates: &[f64]) -> MeasuredResult {
    let value = rates.iter().sum::<f64>() / rates.len() as f64;
    let bounds = bounds_of_rates(value, rates, 1 << 40, &SlotTime::default());
    measured(
        None,
        vec![part("a", vec![figure(Measure::Iops, value, bounds)])],
    )
}

/// Returns how many of 1000 pairs of devices are called different, with 3 % noise of correlation
/// 0.5 and 60 s per device.
fn called_different(ratio: f64, seed: u64) -> usize {
    let mut random = Random::seed_from_u64(seed);
    let is_called = |_: &usize| {
        let a = of_rates(&noisy(10_000.0, 0.03, 0.5, 60, &mut random));
        let b = of_rates(&noisy(10_000.0 * ratio, 0.03, 0.5, 60, &mut random));
        let verdict = compare(&[a], &[b]).rows[0].verdict;
        assert_ne!(verdict, ComparisonVerdict::Undecided);
        verdict != ComparisonVerdict::NoDifferenceShown
    };
    (0..1000).filter(is_called).count()
}

#[test]
fn equal_devices_differ_in_at_most_5_of_100_comparisons() {
    for seed in [1, 2, 3] {
        let called = called_different(1.0, seed);
        assert!(called <= 50, "{called} of 1000 with seed {seed}");
    }
}

/// Returns two stretches of a device with slow variation: its level hardly changes within seconds,
/// but does within a minute.
fn wandering(samples: usize, random: &mut Random) -> [Vec<f64>; 2] {
    // The sum of processes of 1, 4, 16, 64 and 256 intervals, each with the same variance, is
    // flicker noise over that range.
    let octaves = [1, 4, 16, 64, 256].map(|step| {
        let rho = (-1.0 / f64::from(step)).exp();
        noisy(1.0, 0.02, rho, 2 * samples, random)
    });
    let level = |index: usize| octaves.iter().map(|octave| octave[index]).product::<f64>();
    let all: Vec<f64> = (0..2 * samples)
        .map(|index| 10_000.0 * level(index))
        .collect();
    [all[..samples].to_vec(), all[samples..].to_vec()]
}

/// The interval of a mean understates how much the next run differs.
#[test]
fn runs_of_a_wandering_device_are_compared_by_how_they_repeat() {
    let mut random = Random::seed_from_u64(11);
    let (mut called, mut called_by_means) = (0, 0);
    let trials = 300;
    for _ in 0..trials {
        let [a, b] = wandering(60, &mut random).map(|rates| of_rates(&rates));
        let row = compare(std::slice::from_ref(&a), std::slice::from_ref(&b)).rows[0].clone();
        called += u32::from(row.ratio.is_shown());
        let by_means = |mut side: MeasuredResult| {
            let bounds = side.parts[0].figures[0].bounds.as_mut().unwrap();
            bounds.repeat_factor = 1.0;
            side
        };
        let row = compare(&[by_means(a)], &[by_means(b)]).rows[0].clone();
        called_by_means += u32::from(row.ratio.is_shown());
    }
    assert!(called * 100 <= trials * 15, "{called} of {trials}");
    assert!(
        called_by_means * 10 >= called * 12,
        "{called_by_means} and {called}"
    );
}

#[test]
fn interval_that_reaches_zero_or_twice_the_value_is_not_known() {
    let rates = [10.0, 300.0, 20.0, 950.0, 15.0];
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    assert_eq!(
        bounds_of_rates(mean, &rates, 1000, &SlotTime::default()),
        None
    );
    let comparison = compare(&[of_rates(&rates)], &[of_rates(&rates)]);
    assert_eq!(comparison.rows[0].verdict, ComparisonVerdict::Undecided);
    let decides = comparison.find_deciding_effort().unwrap();
    let start = "To decide undecided figures";
    assert!(decides.starts_with(start), "{decides}");
    assert!(decides.contains("`--runtime`"), "{decides}");
}

/// The runs are a quarter as long as an interval needs, but their difference is shown.
#[test]
fn decided_rows_get_no_advice() {
    let side = |value: f64| {
        let bounds = Bounds {
            low: value * 0.99,
            high: value * 1.01,
            freedom: 2.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Thirds,
        };
        let figures = vec![figure(Measure::Iops, value, Some(bounds))];
        measured(None, vec![part("a", figures)])
    };
    let mut comparison = compare(&[side(100.0)], &[side(200.0)]);
    assert_eq!(comparison.rows[0].verdict, ComparisonVerdict::Faster);
    assert_eq!(comparison.find_deciding_effort(), None);
    comparison.rows[0].verdict = ComparisonVerdict::Undecided;
    let advice = comparison.find_deciding_effort().unwrap();
    assert!(advice.contains("4 times as long"), "{advice}");
}

#[test]
fn rows_look_slower_only_if_no_row_is_decided() {
    let mut comparison = compare(&[one(763e3)], &[one(399.0)]);
    assert_eq!(comparison.rows[0].verdict, ComparisonVerdict::Undecided);
    assert!(comparison.slower_by(0.05).is_empty());
    assert_eq!(comparison.looks_slower_by(0.05).len(), 1);
    let equal = compare(&[one(399.0)], &[one(399.0)]);
    assert!(equal.looks_slower_by(0.0).is_empty());
    let faster = compare(&[one(399.0)], &[one(763e3)]);
    assert!(faster.looks_slower_by(0.05).is_empty());
    let mut decided = comparison.rows[0].clone();
    decided.verdict = ComparisonVerdict::NoDifferenceShown;
    comparison.rows.push(decided);
    assert!(comparison.looks_slower_by(0.05).is_empty());
}

#[test]
fn difference_of_five_percent_is_found_in_95_of_100() {
    for (ratio, seed) in [(0.95, 4), (1.05, 5)] {
        let called = called_different(ratio, seed);
        assert!(called >= 950, "{called} of 1000 with ratio {ratio}");
    }
}

/// Returns how many pairs of runs `compare` calls different, and how many a test calls different
/// that knows the standard error. The true means differ by `errors` standard errors. The runs are
/// long enough for their family.
fn called_of_family(family: ProcessFamily, errors: f64, pairs: usize) -> (usize, usize) {
    let mut random = Random::seed_from_u64(10);
    let runs: Vec<Vec<f64>> = (0..2 * pairs)
        .map(|_| family.draw(300, &mut random))
        .collect();
    let mean = |run: &[f64]| run.iter().sum::<f64>() / run.len() as f64;
    let squares = runs.iter().map(|run| (mean(run) - TRUTH).powi(2));
    let error = (2.0 * squares.sum::<f64>() / runs.len() as f64).sqrt();
    let (mut found, mut known) = (0, 0);
    for pair in runs.chunks_exact(2) {
        let other: Vec<f64> = pair[1].iter().map(|rate| rate + errors * error).collect();
        let row = compare(&[of_rates(&pair[0])], &[of_rates(&other)]).rows[0].clone();
        found += usize::from(matches!(
            row.verdict,
            ComparisonVerdict::Faster | ComparisonVerdict::Slower
        ));
        known += usize::from((mean(&other) - mean(&pair[0])).abs() > 1.96 * error);
    }
    (found, known)
}

#[test]
fn differences_are_found_on_each_family_and_equals_are_not() {
    let pairs = draws() / 2;
    for family in FAMILIES {
        if 300.0 < 30.0 * family.time() {
            continue;
        }
        let (different, _) = called_of_family(family, 0.0, pairs);
        let limit = match pairs {
            1000 => 0.064,
            few => 0.064 + chance_deviation(few),
        };
        assert!(
            different as f64 <= limit * pairs as f64,
            "{family:?}: {different} of {pairs} equals"
        );
        // Noise that is a third of the variance, behind white noise, may be slower than the run
        // shows.
        let least = match family {
            ProcessFamily::Hidden(..) => 0.6,
            _ => 0.8,
        };
        for errors in [2.8, 4.0] {
            let (found, known) = called_of_family(family, errors, pairs);
            println!(
                "{family:?}, {errors} standard errors: {found} found, {known} known; {different} \
                 of {pairs} equals"
            );
            assert!(
                found as f64 >= (least - chance_deviation(pairs)) * known as f64,
                "{family:?}, {errors} standard errors: {found} of {known}"
            );
        }
    }
}

#[test]
fn ratio_interval_covers_the_true_ratio() {
    let mut random = Random::seed_from_u64(6);
    let covers = |_: &usize| {
        let a = of_rates(&noisy(100.0, 0.10, 0.5, 60, &mut random));
        let b = of_rates(&noisy(130.0, 0.02, 0.0, 60, &mut random));
        let (low, high) = compare(&[a], &[b]).rows[0].ratio.interval.unwrap();
        (low..=high).contains(&1.3)
    };
    let covered = (0..1000).filter(covers).count();
    // Conservative at most: the noisier side dominates, and the intervals hold for another run.
    assert!((930..=985).contains(&covered), "{covered} of 1000");
}

/// Returns the latencies of one run. The level of each interval is noisy, and the latencies within
/// it are exponential.
fn latencies(random: &mut Random) -> Vec<Histogram> {
    let levels = noisy(1e6, 0.10, 0.5, 60, random);
    let of_level = |level: &f64| {
        let mut histogram = Histogram::default();
        for _ in 0..200 {
            histogram.record((level * -(1.0 - uniform(random)).ln()) as u64);
        }
        histogram
    };
    levels.iter().map(of_level).collect()
}

#[test]
fn intervals_of_latencies_cover_the_truth() {
    let mut random = Random::seed_from_u64(7);
    // The true mean is that of the levels. The true 99th percentile of the mixture of exponentials
    // comes from a long run.
    let mut long = Histogram::default();
    for _ in 0..100 {
        latencies(&mut random)
            .iter()
            .for_each(|each| long.merge(each));
    }
    let truth = long.percentile(99.0).unwrap() as f64;
    let (mut means, mut percentiles) = (0, 0);
    for _ in 0..150 {
        let run = latencies(&mut random);
        let mut all = Histogram::default();
        run.iter().for_each(|each| all.merge(each));
        let value = all.percentile(99.0).unwrap() as f64;
        let each = |see: &mut dyn FnMut(&Histogram)| run.iter().for_each(see);
        let bounds = bounds_of_percentile(value, 99.0, &each).unwrap();
        percentiles += usize::from((bounds.low..=bounds.high).contains(&truth));
        let sum: f64 = all
            .buckets()
            .map(|(index, count)| crate::histogram::middle(index) as f64 * count as f64)
            .sum();
        let bounds = bounds_of_mean(sum / all.total() as f64, &each).unwrap();
        means += usize::from((bounds.low..=bounds.high).contains(&1e6));
    }
    assert!((136..=149).contains(&means), "{means} of 150 means");
    assert!(
        (136..=150).contains(&percentiles),
        "{percentiles} of 150 percentiles"
    );
}

/// Returns a run whose mean latency varies between intervals as `family` does, around 1 ms. The
/// latencies within an interval are exponential.
fn varying_latencies(
    family: ProcessFamily,
    intervals: usize,
    random: &mut Random,
) -> Vec<Histogram> {
    let levels = family.draw(intervals, random);
    let of_level = |level: f64| {
        let mut histogram = Histogram::default();
        for _ in 0..100 {
            histogram.record((1e4 * level * -(1.0 - uniform(random)).ln()) as u64);
        }
        histogram
    };
    levels.into_iter().map(of_level).collect()
}

/// Returns the latency that this share of all latencies does not exceed, from many levels.
fn true_percentile(family: ProcessFamily, share: f64) -> f64 {
    let levels = family.draw(30_000, &mut Random::seed_from_u64(1));
    let (mut low, mut high) = (0.0, 1e8);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        let below = levels
            .iter()
            .map(|level| 1.0 - (-middle / (1e4 * level)).exp());
        match below.sum::<f64>() < share * levels.len() as f64 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[test]
fn intervals_of_percentiles_cover_the_truth_of_each_family() {
    let draws = draws() / 5;
    // Relative half-width of a bucket, which is the resolution of a percentile.
    let mut random = Random::seed_from_u64(9);
    for family in FAMILIES {
        let is_long = |intervals: &usize| *intervals as f64 >= 30.0 * family.time();
        let Some(intervals) = [100, 300].into_iter().find(is_long) else {
            continue;
        };
        let run = |_| varying_latencies(family, intervals, &mut random);
        let runs: Vec<Vec<Histogram>> = (0..draws).map(run).collect();
        for percent in [50.0, 99.0] {
            let truth = true_percentile(family, percent / 100.0);
            // A draw whose interval reaches 100 % states none.
            let stated = runs.iter().filter_map(|run| {
                let mut all = Histogram::default();
                run.iter().for_each(|each| all.merge(each));
                let value = all.percentile(percent).unwrap() as f64;
                let each = |see: &mut dyn FnMut(&Histogram)| run.iter().for_each(see);
                bounds_of_percentile(value, percent, &each)
            });
            let stated: Vec<Bounds> = stated.collect();
            let share = stated.len() as f64 / draws as f64;
            assert!(share >= 0.97, "{family:?} p{percent}: {share} state one");
            let covers = |bounds: &&Bounds| (bounds.low..=bounds.high).contains(&truth);
            let covered = stated.iter().filter(covers).count() as f64 / stated.len() as f64;
            println!("{family:?} p{percent}: {covered} of {share}");
            // Intervals of whole buckets have a higher coverage for some families.
            let limits = 0.93 - chance_deviation(draws)..=0.99 + chance_deviation(draws);
            assert!(
                limits.contains(&covered),
                "{family:?} p{percent}: {covered}"
            );
        }
    }
}

#[test]
fn percentiles_in_adjacent_buckets_show_no_difference() {
    let index = crate::histogram::index_of(100_000);
    let side = |index: usize| {
        let mut interval = Histogram::default();
        interval.add_bucket(index, 1000);
        let value = interval.percentile(50.0).unwrap() as f64;
        let each = |see: &mut dyn FnMut(&Histogram)| (0..30).for_each(|_| see(&interval));
        let bounds = bounds_of_percentile(value, 50.0, &each);
        measured(
            None,
            vec![part("a", vec![figure(Measure::LatP50, value, bounds)])],
        )
    };
    let verdict = |other: usize| compare(&[side(index)], &[side(other)]).rows[0].verdict;
    assert_eq!(verdict(index + 1), ComparisonVerdict::NoDifferenceShown);
    assert_eq!(verdict(index + 3), ComparisonVerdict::Slower);
}

#[test]
fn unordered_samples_rarely_show_a_false_difference() {
    let mut random = Random::seed_from_u64(8);
    let mut called = 0;
    for _ in 0..500 {
        let mut side = || {
            // Each second of noise contains two samples of half a second.
            let mut samples = Moments::default();
            for rate in noisy(10_000.0, 0.03, 0.5, 60, &mut random) {
                samples.record(rate);
                samples.record(rate);
            }
            let bounds = bounds_of_samples(samples.mean, &samples, &SlotTime::default());
            let figures = vec![figure(Measure::Iops, samples.mean, bounds)];
            measured(None, vec![part("a", figures)])
        };
        let comparison = compare(&[side()], &[side()]);
        called += usize::from(comparison.rows[0].verdict != ComparisonVerdict::NoDifferenceShown);
        assert_eq!(comparison.notes[0], ComparisonNote::NoTimeSeries);
    }
    assert!(called <= 35, "{called} of 500");
}

#[test]
fn ratio_with_a_wide_interval_is_undecided() {
    let side = |value: f64, share: f64| {
        let bounds = Bounds {
            low: value * (1.0 - share),
            high: value * (1.0 + share),
            freedom: 10.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        };
        let figures = vec![figure(Measure::Iops, value, Some(bounds))];
        measured(None, vec![part("a", figures)])
    };
    let verdict = |value: f64, share: f64| {
        let comparison = compare(&[side(100.0, share)], &[side(value, share)]);
        comparison.rows[0].verdict
    };
    assert_eq!(verdict(100.0, 0.1), ComparisonVerdict::NoDifferenceShown);
    assert_eq!(verdict(100.0, 0.6), ComparisonVerdict::Undecided);
    // The difference is shown, although its size is uncertain.
    assert_eq!(verdict(1000.0, 0.6), ComparisonVerdict::Faster);
}

#[test]
fn higher_latency_is_slower() {
    let bounds = |low, high| {
        Some(Bounds {
            low,
            high,
            freedom: 10.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        })
    };
    let side = |p99: f64| {
        let bounds = bounds(p99 * 0.99, p99 * 1.01);
        measured(
            None,
            vec![part("a", vec![figure(Measure::LatP99, p99, bounds)])],
        )
    };
    let comparison = compare(&[side(1e6)], &[side(1.1e6)]);
    let row = &comparison.rows[0];
    assert_eq!(row.verdict, ComparisonVerdict::Slower);
    assert!((row.slower_by() - 0.1).abs() < 1e-9);
    assert_eq!(comparison.slower_by(0.05).len(), 1);
    assert_eq!(comparison.slower_by(0.2).len(), 0);
    assert_eq!(
        compare(&[side(1.1e6)], &[side(1e6)]).rows[0].verdict,
        ComparisonVerdict::Faster
    );
    assert!(
        compare(&[side(1.1e6)], &[side(1e6)])
            .slower_by(0.0)
            .is_empty()
    );
}

#[test]
fn equal_sides_with_many_figures_rarely_fail() {
    let mut random = Random::seed_from_u64(9);
    let failed = |_: &usize| {
        let mut side = || {
            let parts = (0..20).map(|index| {
                let of = of_rates(&noisy(100.0, 0.03, 0.5, 60, &mut random));
                ResultPart {
                    name: format!("p{index}"),
                    ..of.parts[0].clone()
                }
            });
            measured(None, parts.collect())
        };
        !compare(&[side()], &[side()]).slower_by(0.0).is_empty()
    };
    let failed = (0..200).filter(failed).count();
    assert!(failed <= 10, "{failed} of 200");
}

#[test]
fn spread_is_split_within_and_between_machines() {
    let mut random = Random::seed_from_u64(10);
    let mut side = Vec::new();
    for machine in 0..40 {
        let level = 1000.0 * (0.20 * normal(&mut random)).exp();
        for _ in 0..10 {
            let value = level * (0.03 * normal(&mut random)).exp();
            side.push(MeasuredResult {
                machine: Some(format!("n{machine}")),
                ..one(value)
            });
        }
    }
    let comparison = compare(&side, &side);
    let row = &comparison.rows[0];
    let spread = row.a.spread.unwrap();
    assert!(
        (spread.within_machine.unwrap() - 0.03).abs() < 0.003,
        "{spread:?}"
    );
    assert!(
        (spread.between_machines.unwrap() - 0.20).abs() < 0.06,
        "{spread:?}"
    );
    assert_eq!((row.a.runs, row.a.machines), (400, 40));
    assert_eq!(row.a.bounds.unwrap().basis, IntervalBasis::Machines);
    assert_eq!(row.verdict, ComparisonVerdict::NoDifferenceShown);
}

#[test]
fn machines_of_one_kind_do_not_hide_a_difference() {
    // Machines differ by a factor of two, but each is 3 % slower than before.
    let side = |factor: f64| -> Vec<MeasuredResult> {
        let machines = [
            ("n1", 1000.0),
            ("n2", 1400.0),
            ("n3", 2000.0),
            ("n4", 1200.0),
        ];
        let each = machines
            .iter()
            .enumerate()
            .map(|(index, (name, level))| MeasuredResult {
                machine: Some((*name).to_owned()),
                ..one(level * factor * (1.0 + 0.001 * index as f64))
            });
        each.collect()
    };
    let mut after = side(0.97);
    after[2] = MeasuredResult {
        machine: Some("n3".into()),
        ..one(2000.0 * 0.971)
    };
    let comparison = compare(&side(1.0), &after);
    assert!(comparison.rows[0].paired);
    assert_eq!(comparison.rows[0].verdict, ComparisonVerdict::Slower);
    assert!(comparison.notes.contains(&ComparisonNote::SameMachines));
    // On other machines the difference is not shown.
    for (index, other) in after.iter_mut().enumerate() {
        other.machine = Some(format!("m{index}"));
    }
    let comparison = compare(&side(1.0), &after);
    assert!(!comparison.rows[0].paired);
    assert_eq!(
        comparison.rows[0].verdict,
        ComparisonVerdict::NoDifferenceShown
    );
}

#[test]
fn parts_are_matched_by_name_then_by_pattern() {
    let with = |name: &str, depth: u32| ResultPart {
        pattern: IoPattern {
            iodepth: depth,
            ..part(name, Vec::new()).pattern
        },
        ..part(name, vec![figure(Measure::Iops, 100.0, None)])
    };
    let a = measured(None, vec![with("x", 1), with("old", 8), with("gone", 3)]);
    let b = measured(None, vec![with("new", 8), with("x", 2), with("come", 5)]);
    let comparison = compare(&[a], &[b]);
    let names: Vec<&str> = comparison
        .rows
        .iter()
        .map(|row| row.part.as_str())
        .collect();
    assert_eq!(names, ["x", "old"]);
    assert_eq!(comparison.only_in_a, ["gone"]);
    assert_eq!(comparison.only_in_b, ["come"]);
    assert!(
        matches!(
            &comparison.notes[0],
            ComparisonNote::PatternsDiffer { a, b } if (a.iodepth, b.iodepth) == (1, 2)
        ),
        "{:?}",
        comparison.notes
    );
    let names = comparison.notes[1].to_string();
    assert_eq!(names, "old of A is compared with new of B");
    assert_eq!(comparison.rows[0].verdict, ComparisonVerdict::Undecided);
    // The only parts of both sides are paired, whatever their names are.
    let comparison = compare(
        &[measured(None, vec![with("a", 1)])],
        &[measured(None, vec![with("b", 2)])],
    );
    assert_eq!(comparison.rows.len(), 1);
}

proptest! {
    #[test]
    fn swapped_sides_give_the_inverse_ratio(
        a in proptest::collection::vec(10.0f64..1e6, 5..60),
        b in proptest::collection::vec(10.0f64..1e6, 5..60),
    ) {
        let (a, b) = (of_rates(&a), of_rates(&b));
        let there = compare(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let back = compare(&[b], &[a]);
        let (there, back) = (there.rows[0].ratio, back.rows[0].ratio);
        prop_assert!((there.value * back.value - 1.0).abs() < 1e-9);
        prop_assert_eq!(there.interval.is_some(), back.interval.is_some());
        if let (Some((low, high)), Some((back_low, back_high))) = (there.interval, back.interval) {
            prop_assert!(0.0 < low && low <= there.value && there.value <= high);
            prop_assert!((low * back_high - 1.0).abs() < 1e-6);
            prop_assert!((high * back_low - 1.0).abs() < 1e-6);
        }
    }
}
