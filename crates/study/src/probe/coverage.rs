//! How often the truth lies within the stated interval, with the stopping rule in force, over seeds of simulated devices.
//!
//! With `IOSONDE_TEST_FULL=yes` 1000 seeds are tried, else 120.

use super::Figure;
use super::observer::PhaseObserver;
use super::phase::{self, Budget, Common, Phase};
use iosonde_engine::runner::LocalRunner;
use iosonde_result::session::Session;

/// What the device does on average, whatever its noise: each read takes a millisecond of its only server.
const TRUTH: f64 = 1000.0;

fn figure(noise: &str, seed: u64, budget: &Budget) -> (Figure, usize) {
    let device = format!("read_us=1000,parallel=1,read_dist=fixed,seed={seed},{noise}");
    let common = Common {
        path: "sim",
        bytes: 1 << 30,
        direct: true,
        seed,
        sim: Some(&device),
        consent: false,
        slow: None,
    };
    let plan = phase::plan(Phase::ReadLatency, &common, budget);
    let mut watcher = ();
    let mut observer = PhaseObserver::new(Phase::ReadLatency, budget, true, &mut watcher);
    let mut session = LocalRunner::default().open();
    let result = session.run(&plan, &mut observer).unwrap();
    let figure = Figure::of(Phase::ReadLatency, &result, budget.width).unwrap();
    (figure, result.intervals.len())
}

/// Seeds that are tried.
fn seeds() -> u64 {
    match std::env::var("IOSONDE_TEST_FULL").as_deref() {
        Ok("yes") => 1000,
        _ => 120,
    }
}

/// Percentage of seeds whose interval holds the truth; and of those that ended before their time.
fn coverage(noise: &str, width: f64) -> (f64, f64) {
    let budget = Budget {
        width,
        ..Budget::NORMAL
    };
    let (mut covered, mut early) = (0, 0);
    for seed in 1..=seeds() {
        let (figure, intervals) = figure(noise, seed, &budget);
        let error = figure.iops.error.unwrap();
        covered += u32::from((figure.iops.mean - TRUTH).abs() <= error);
        let whole = (budget.ramp_ns + budget.runtime_ns) / budget.interval_ns();
        early += u32::from((intervals as u64) < whole);
    }
    let percent = |count: u32| 100.0 * f64::from(count) / seeds() as f64;
    (percent(covered), percent(early))
}

/// 93 to 97 of 100 where the phase is long; `least` where it is not. Few seeds may stray by chance: 2.5 standard deviations.
fn assert_covers(covered: f64, least: f64) {
    let stray = match seeds() {
        1000 => 0.0,
        few => 100.0 * 2.5 * (0.95 * 0.05 / few as f64).sqrt() - 2.0,
    };
    assert!(
        (least - stray..=97.0 + stray).contains(&covered),
        "{covered} %"
    );
}

#[test]
fn noise_that_resembles_itself_from_second_to_second_is_covered() {
    let (covered, _) = coverage("noise=0.03,noise_rho=0.5", 0.01);
    // The phase is as long as two correlation times: no rule tells from it how slowly the device varies.
    assert_covers(covered, 85.0);
}

#[test]
fn an_early_end_does_not_cost_coverage() {
    let noise = "noise=0.03,noise_rho=0.5,noise_period_us=100000";
    let (covered, early) = coverage(noise, 0.03);
    assert!(early > 40.0, "{early} % ended early");
    assert_covers(covered, 93.0);
}
