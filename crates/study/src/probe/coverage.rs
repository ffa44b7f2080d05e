//! How often the truth lies within the stated interval, with the stopping rule in force, over seeds of simulated devices.
//!
//! With `IOSONDE_FULL` set 1000 seeds are tried, else 200.

use super::Figure;
use super::observer::PhaseObserver;
use super::phase::{self, Budget, Common, Phase};
use iosonde_engine::local::LocalRunner;
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
    };
    let plan = phase::plan(Phase::ReadLatency, &common, budget);
    let mut watcher = ();
    let mut observer = PhaseObserver::new(Phase::ReadLatency, budget, &mut watcher);
    let mut session = LocalRunner::default().open();
    let result = session.run(&plan, &mut observer).unwrap();
    let figure = Figure::of(Phase::ReadLatency, &result, budget.width).unwrap();
    (figure, result.intervals.len())
}

/// Percentage of seeds whose interval holds the truth; and of those that ended before their time.
fn coverage(noise: &str, budget: &Budget) -> (f64, f64) {
    let seeds = match std::env::var_os("IOSONDE_FULL") {
        Some(_) => 1000,
        None => 200,
    };
    let (mut covered, mut early) = (0, 0);
    for seed in 1..=seeds {
        let (figure, intervals) = figure(noise, seed, budget);
        let error = figure.iops.error.unwrap();
        covered += u32::from((figure.iops.mean - TRUTH).abs() <= error);
        let whole = (budget.ramp_ns + budget.runtime_ns) / budget.interval_ns();
        early += u32::from((intervals as u64) < whole);
    }
    let percent = |count: u32| 100.0 * f64::from(count) / seeds as f64;
    (percent(covered), percent(early))
}

/// 93 to 97 of 100, and what 200 seeds may stray from it by chance: 2.5 standard deviations.
fn assert_covers(covered: f64) {
    let stray = match std::env::var_os("IOSONDE_FULL") {
        Some(_) => 0.0,
        None => 3.5,
    };
    assert!(
        (93.0 - stray..=97.0 + stray).contains(&covered),
        "{covered} %"
    );
}

#[test]
fn noise_of_seconds_that_resembles_itself_is_covered() {
    let (covered, _) = coverage("noise=0.03,noise_rho=0.5", &Budget::NORMAL);
    assert_covers(covered);
}

#[test]
fn an_early_end_does_not_cost_coverage() {
    let (covered, early) = coverage("noise=0.03,noise_period_us=100000", &Budget::NORMAL);
    assert!(early > 30.0, "{early} % ended early");
    assert_covers(covered);
}
