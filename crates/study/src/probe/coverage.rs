//! Coverage of confidence intervals with early stopping, over seeds of simulated devices.
//!
//! `IOSONDE_TEST_FULL=yes` tries 1000 seeds, otherwise 120.

use super::early_stop::EarlyStop;
use super::phase::{self, ProbeJobs};
use crate::driver::StudyDriver;
use crate::figures::phase_figure::PhaseFigure;
use crate::job_template::JobTemplate;
use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use crate::run_hook::RunPurpose;
use iosonde_engine::runner::LocalRunner;

/// Mean rate of the device with any noise: its only server takes a millisecond for each read.
const TRUTH: f64 = 1000.0;

fn figure(noise: &str, seed: u64, budget: &ProbeBudget) -> (PhaseFigure, usize) {
    let device = format!("read_us=1000,parallel=1,read_dist=fixed,seed={seed},{noise}");
    let jobs = ProbeJobs {
        template: JobTemplate {
            path: "sim",
            bytes: 1 << 30,
            direct: true,
            seed: Some(seed),
            sim: Some(&device),
            consent: false,
        },
        slow: None,
    };
    let plan = phase::phase_plan(ProbePhase::ReadLatency, &jobs, budget);
    let (mut session, observer) = (LocalRunner::default().open(), &mut ());
    let mut driver = StudyDriver::new(&mut session, observer);
    let mut rule = EarlyStop::new(ProbePhase::ReadLatency, budget);
    let result = driver.run(&plan, RunPurpose::Phase, &mut rule).unwrap();
    let figure = PhaseFigure::from_result(ProbePhase::ReadLatency, &result, budget.width).unwrap();
    (figure, result.intervals.len())
}

/// The number of seeds to try.
fn seeds() -> u64 {
    match std::env::var("IOSONDE_TEST_FULL").as_deref() {
        Ok("yes") => 1000,
        _ => 120,
    }
}

/// Percentage of seeds whose interval contains the true rate, and of seeds that stopped early.
fn coverage(noise: &str, width: f64) -> (f64, f64) {
    let budget = ProbeBudget {
        width,
        ..ProbeBudget::NORMAL
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

/// Expects `least` to 97 %, with 2.5 standard deviations of tolerance for few seeds.
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
fn noise_autocorrelated_over_seconds_is_covered() {
    let (covered, _) = coverage("noise=0.03,noise_rho=0.5", 0.01);
    // The phase lasts two correlation times, too short to show how slowly the device varies.
    assert_covers(covered, 85.0);
}

#[test]
fn early_stop_keeps_coverage() {
    let noise = "noise=0.03,noise_rho=0.5,noise_period_us=100000";
    let (covered, early) = coverage(noise, 0.03);
    assert!(early > 40.0, "{early} % ended early");
    assert_covers(covered, 93.0);
}
