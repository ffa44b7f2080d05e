//! Reports of probes of simulated devices.

use super::{remaining_output, table};
use crate::format::Format;
use iosonde_engine::runner::LocalRunner;
use iosonde_limits::Limits;
use iosonde_study::probe::{DeviceClass, ProbeBudget, ProbeResult, probe};
use iosonde_study::promise_check::{PromiseCheck, PromiseOutcome};
use iosonde_study::test_targets::{probe_options, simulated_target};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Results of [`probed`] by device and budget. Several tests read the same one.
static PROBED: Mutex<BTreeMap<String, Arc<OnceLock<ProbeResult>>>> = Mutex::new(BTreeMap::new());

/// Probes a simulated device. Each probe runs once per test program.
pub(crate) fn probed(device: &str, budget: ProbeBudget) -> ProbeResult {
    let key = format!("{device} {budget:?}");
    let result = PROBED.lock().unwrap().entry(key).or_default().clone();
    let result = result.get_or_init(|| run_probe(device, budget));
    result.clone()
}

fn run_probe(device: &str, budget: ProbeBudget) -> ProbeResult {
    let target = simulated_target(device);
    let options = probe_options(budget, None);
    let mut session = LocalRunner::default().open();
    let mut result = probe(&mut session, &target, &options, &mut ()).unwrap();
    // The machine that runs the simulation must not appear in snapshots.
    for run in &mut result.runs {
        run.result.host = Default::default();
    }
    result
}

#[test]
fn simulated_device_is_named_by_its_model() {
    for device in ["hdd", "read_us=100,write_us=100,parallel=4"] {
        let found = probed(device, ProbeBudget::QUICK).classification;
        assert_eq!(found.class, DeviceClass::Simulated);
        assert_eq!(found.device, format!("a simulated device ({device})"));
    }
}

#[test]
fn simulated_probe_report_is_deterministic() {
    insta::assert_snapshot!(
        "sim_hdd",
        table::probe_table(&probed("hdd", ProbeBudget::NORMAL))
    );
    insta::assert_snapshot!(
        "sim_net_iops_cap",
        table::probe_table(&probed("net-iops-cap", ProbeBudget::NORMAL))
    );
}

/// Probes a simulated volume and compares it with a product.
fn probe_with_promise(device: &str, product: &str) -> ProbeResult {
    let budget = ProbeBudget {
        runtime_ns: 5_000_000_000,
        ..ProbeBudget::QUICK
    };
    let mut result = probed(device, budget);
    let promise = Limits::published()
        .evaluate(&product.parse().unwrap())
        .unwrap();
    result.expected = vec![PromiseCheck::from_probe(&promise, &result)];
    result
}

/// Part of the report about the promise.
fn promise_table(result: &ProbeResult) -> String {
    let text = table::probe_table(result);
    let (_, promise) = text.split_once("\nPromised: ").unwrap();
    format!("Promised: {promise}")
}

const PD_SSD: &str = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8";
/// 15,000 IOPS and 420 MiB/s.
const AS_SOLD: &str = "read_us=700,write_us=900,parallel=128,cap_iops=15k,cap_bw=420m";

#[test]
fn promise_kept_is_reported() {
    let result = probe_with_promise(AS_SOLD, PD_SSD);
    assert_eq!(result.expected[0].outcome, PromiseOutcome::Kept);
    insta::assert_snapshot!("promise_kept", promise_table(&result));
}

#[test]
fn promise_broken_is_reported() {
    let device = format!("{AS_SOLD},cap_write_iops=9k,cap_write_bw=300m");
    let result = probe_with_promise(&device, PD_SSD);
    assert_eq!(result.expected[0].outcome, PromiseOutcome::Broken);
    insta::assert_snapshot!("promise_broken", promise_table(&result));
    let results = [result];
    let markdown = remaining_output(&results, Format::Markdown).unwrap();
    let (_, promise) = markdown.split_once("\n### ").unwrap();
    insta::assert_snapshot!("promise_broken_markdown", promise);
    insta::assert_snapshot!(
        "promise_broken_csv",
        remaining_output(&results, Format::Csv).unwrap()
    );
    let json: serde_json::Value =
        serde_json::from_str(&remaining_output(&results, Format::Json).unwrap()).unwrap();
    let expected = &json["probes"][0]["expected"][0];
    assert_eq!(expected["outcome"], "broken");
    assert_eq!(expected["rows"][1]["judged"]["verdict"]["kind"], "below");
}

#[test]
fn promise_of_bursting_volume_is_kept() {
    let result = probe_with_promise("burst", "aws-gp2:100GiB");
    assert_eq!(result.expected[0].outcome, PromiseOutcome::Kept);
    insta::assert_snapshot!("promise_burst", promise_table(&result));
}

#[test]
fn promise_after_burst_is_reported() {
    let device = "read_us=700,write_us=900,parallel=128,cap_iops=300,cap_bw=128m,cap_unit=256k";
    let result = probe_with_promise(device, "aws-gp2:100GiB");
    insta::assert_snapshot!("promise_after_burst", promise_table(&result));
}

#[test]
fn promise_with_too_few_in_flight_is_unclear() {
    // 64 in flight at 10 ms each complete 6,400 I/Os per second, whatever the volume can do.
    let device = "read_us=10000,write_us=10000,parallel=1024";
    let result = probe_with_promise(device, PD_SSD);
    assert_eq!(result.expected[0].outcome, PromiseOutcome::Unclear);
    insta::assert_snapshot!("promise_unclear", promise_table(&result));
}

#[test]
fn targets_are_compared_with_the_first() {
    let noisy = |speed: u32, seed: u32| {
        let device = format!(
            "read_us={speed},write_us={speed},parallel=16,noise=0.03,noise_rho=0.5,\
             noise_period_us=100ms,seed={seed}"
        );
        probed(
            &device,
            ProbeBudget {
                runtime_ns: 5_000_000_000,
                ..ProbeBudget::QUICK
            },
        )
    };
    let results = [noisy(2000, 1), noisy(2000, 2), noisy(2400, 3)];
    let two = remaining_output(&results[..2], Format::Table).unwrap();
    insta::assert_snapshot!("two_side_by_side", two);
    insta::assert_snapshot!(
        "three_side_by_side",
        remaining_output(&results, Format::Table).unwrap()
    );
    let markdown = remaining_output(&results[1..], Format::Markdown).unwrap();
    let (_, beside) = markdown.split_once("\n## Side by side").unwrap();
    insta::assert_snapshot!("two_side_by_side_markdown", beside);
    let json: serde_json::Value =
        serde_json::from_str(&remaining_output(&results, Format::Json).unwrap()).unwrap();
    let comparisons = json["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    assert_eq!(comparisons[1]["b"], results[2].target.as_str());
    assert_eq!(comparisons[1]["rows"][0]["verdict"], "slower");
}
