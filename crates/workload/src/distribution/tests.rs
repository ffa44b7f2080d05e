use super::*;
use crate::rng::Rng;
use iosonde_job::plan::{ByteZone, PercentZone};
use proptest::prelude::*;

const DRAWS: usize = 200_000;

/// Chi-square of `DRAWS` draws against exact probabilities, in standard deviations from its mean.
/// Cells with fewer than 10 expected draws are merged with their neighbours.
fn misfit(mut draw: impl FnMut() -> u64, probabilities: &[f64]) -> f64 {
    let mut seen = vec![0u64; probabilities.len()];
    for _ in 0..DRAWS {
        seen[draw() as usize] += 1;
    }
    let (mut chi, mut cells, mut expected, mut observed) = (0.0, 0.0, 0.0, 0.0);
    for (p, n) in probabilities.iter().zip(seen) {
        expected += p * DRAWS as f64;
        observed += n as f64;
        if expected >= 10.0 {
            chi += (observed - expected).powi(2) / expected;
            cells += 1.0;
            (expected, observed) = (0.0, 0.0);
        }
    }
    let freedom: f64 = cells - 1.0;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

fn normalised(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

#[test]
fn zipf_has_its_exact_probabilities() {
    for (n, theta) in [
        (2, 0.5),
        (10, 1.0),
        (100, 0.99),
        (100, 1.2),
        (1000, 2.5),
        (50, 0.01),
    ] {
        let zipf = Zipf::new(n, theta).unwrap();
        let mut rng = Rng::new(n);
        let exact = normalised((1..=n).map(|k| (k as f64).powf(-theta)));
        let misfit = misfit(|| zipf.draw(&mut rng), &exact);
        assert!(
            misfit.abs() < 5.0,
            "n {n}, theta {theta}: {misfit} standard deviations"
        );
    }
}

#[test]
fn pareto_has_its_exact_probabilities() {
    for (n, h) in [(10u64, 0.2), (100, 0.3), (1000, 0.9), (1, 0.5)] {
        let pareto = Pareto::new(n, h).unwrap();
        let mut rng = Rng::new(n);
        let inverse = (1.0 - h).ln() / h.ln();
        let below = |k: u64| (k as f64 / n as f64).powf(inverse);
        let exact: Vec<f64> = (0..n).map(|k| below(k + 1) - below(k)).collect();
        if n == 1 {
            assert_eq!(pareto.draw(&mut rng), 0);
            continue;
        }
        let misfit = misfit(|| pareto.draw(&mut rng), &exact);
        assert!(
            misfit.abs() < 5.0,
            "n {n}, h {h}: {misfit} standard deviations"
        );
    }
}

#[test]
fn pareto_gives_the_top_fifth_most_draws() {
    let pareto = Pareto::new(1000, 0.2).unwrap();
    let mut rng = Rng::new(1);
    let hot = (0..DRAWS).filter(|_| pareto.draw(&mut rng) < 200).count();
    assert!((hot as f64 / DRAWS as f64 - 0.8).abs() < 0.005);
}

/// fio's bell has a standard deviation of a twelfth of the range, and adds a uniform draw of the
/// given width.
#[test]
fn normal_has_its_mean_and_deviation() {
    let n = 10_000u64;
    for (percent, width) in [
        (0.0, 0.0),
        (5.0, 0.05),
        (20.0, 0.2),
        (60.0, 0.5),
        (100.0, 0.5),
    ] {
        let normal = Normal::new(n, percent).unwrap();
        let mut rng = Rng::new(2);
        let drawn: Vec<f64> = (0..DRAWS).map(|_| normal.draw(&mut rng) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
        let deviation =
            (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64).sqrt();
        let expected = n as f64 * ((1.0f64 / 144.0) + width * width / 12.0).sqrt();
        assert!((mean - 5000.0).abs() < 15.0, "{percent}: {mean}");
        assert!(
            (deviation / expected - 1.0).abs() < 0.01,
            "{percent}: {deviation}"
        );
    }
}

#[test]
fn zones_get_their_shares() {
    let zone = |access_percent, size_percent| PercentZone {
        access_percent,
        size_percent,
    };
    let zones = Zones::by_percent(
        &[zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)],
        1000,
        4096,
    )
    .unwrap();
    let mut rng = Rng::new(3);
    let exact: Vec<f64> = (0..1000)
        .map(|block| match block {
            0..100 => 0.6 / 100.0,
            100..300 => 0.3 / 200.0,
            300..600 => 0.08 / 300.0,
            _ => 0.02 / 400.0,
        })
        .collect();
    assert!(misfit(|| zones.draw(&mut rng), &exact).abs() < 5.0);
}

#[test]
fn absolute_zones_take_bytes_and_the_rest() {
    let zone = |access_percent, size_bytes| ByteZone {
        access_percent,
        size_bytes,
    };
    let zones =
        Zones::by_bytes(&[zone(50, 40_960), zone(0, 40_960), zone(50, 0)], 100, 4096).unwrap();
    let mut rng = Rng::new(3);
    let exact: Vec<f64> = (0..100)
        .map(|block| match block {
            0..10 => 0.05,
            10..20 => 0.0,
            _ => 0.5 / 80.0,
        })
        .collect();
    assert!(misfit(|| zones.draw(&mut rng), &exact).abs() < 5.0);
    assert!(matches!(
        Zones::by_bytes(&[zone(100, 500_000)], 100, 4096),
        Err(DistributionError::ZonesExceedFile { .. })
    ));
    assert!(matches!(
        Zones::by_bytes(&[zone(100, 100)], 100, 4096),
        Err(DistributionError::EmptyZone { .. })
    ));
}

fn counts(distribution: &plan::Distribution, blocks: u64) -> Vec<u32> {
    let mut rng = Rng::new(4);
    let draw =
        BlockDistribution::new(distribution, Direction::Read, blocks, 4096, &mut rng).unwrap();
    let mut seen = vec![0; blocks as usize];
    for _ in 0..DRAWS {
        seen[draw.draw(&mut rng) as usize] += 1;
    }
    seen
}

/// The hottest blocks of fio 3.33 over 20,480 blocks.
#[test]
fn centre_shifts_hot_blocks_that_are_scattered_as_by_fio() {
    let zipf = |center| plan::Distribution::Zipf {
        theta: 1.2,
        center: Some(center),
    };
    let pareto = plan::Distribution::Pareto {
        h: 0.2,
        center: Some(0.5),
    };
    for (distribution, hottest) in [
        (zipf(0.2), [4096, 17_387, 10_198, 19_393]),
        (zipf(1.0), [0, 13_291, 6102, 15_297]),
        (pareto, [10_240, 3051, 16_342, 5057]),
    ] {
        let seen = counts(&distribution, 20_480);
        let mut order: Vec<usize> = (0..seen.len()).collect();
        order.sort_by_key(|block| std::cmp::Reverse(seen[*block]));
        // The fourth and the fifth rank of pareto are nearly equally hot.
        assert_eq!(order[..3], hottest[..3], "{distribution:?}");
        assert!(order[..6].contains(&hottest[3]), "{distribution:?}");
    }
}

#[test]
fn normal_centre_keeps_mean_and_deviation() {
    for center in [None, Some(0.2), Some(0.8)] {
        let normal = plan::Distribution::Normal {
            deviation_percent: 20.0,
            center,
        };
        let seen = counts(&normal, 20_480);
        let of = |value: fn(f64) -> f64| {
            let shares = seen.iter().zip(0u32..);
            shares
                .map(|(n, block)| f64::from(*n) * value(f64::from(block) / 20_480.0))
                .sum::<f64>()
                / DRAWS as f64
        };
        let mean = of(|x| x);
        assert!((mean - 0.5).abs() < 0.01, "{center:?}: {mean}");
        let deviation = (of(|x| x * x) - mean * mean).sqrt();
        assert!((deviation - 0.289).abs() < 0.01, "{center:?}: {deviation}");
    }
}

/// With a power of two every block is used. Of 4001 blocks fio 3.33 uses 3170.
#[test]
fn zipf_omits_blocks_as_fio_does() {
    let even = plan::Distribution::Zipf {
        theta: 0.01,
        center: None,
    };
    let used = |blocks| counts(&even, blocks).iter().filter(|n| **n > 0).count() as f64;
    assert!(used(4096) / 4096.0 > 0.999);
    assert_eq!(used(4001), 3170.0);
}

#[test]
fn parameters_out_of_range_are_errors() {
    assert!(Zipf::new(10, 0.0).is_err());
    assert!(Zipf::new(10, f64::NAN).is_err());
    assert!(Pareto::new(10, 1.0).is_err());
    assert!(Normal::new(10, 101.0).is_err());
}

proptest! {
    #[test]
    fn draws_stay_inside(
        blocks in 1u64..=u64::MAX >> 12,
        theta in 0.01f64..5.0,
        h in 0.01f64..0.99,
        deviation in 0.0f64..100.0,
        center in proptest::option::of(0.0f64..=1.0),
        seed: u64,
    ) {
        let distributions = [
            plan::Distribution::Zipf { theta, center },
            plan::Distribution::Pareto { h, center },
            plan::Distribution::Normal { deviation_percent: deviation, center },
        ];
        let mut rng = Rng::new(seed);
        for distribution in distributions {
            let made =
                BlockDistribution::new(&distribution, Direction::Read, blocks, 4096, &mut rng);
            let draw = made.unwrap();
            for _ in 0..100 {
                prop_assert!(draw.draw(&mut rng) < blocks);
            }
        }
    }
}
