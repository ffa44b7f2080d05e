//! Probes of simulated devices: what is printed.

use super::{rest, table};
use crate::args::Format;
use crate::live::probe::ProbeLive;
use crate::signals::Stop;
use iosonde_engine::runner::LocalRunner;
use iosonde_study::limits::{Held, Limits, Outcome};
use iosonde_study::probe::{
    Budget, DeviceClass, ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe,
};

pub(super) fn probed(device: &str, budget: Budget) -> ProbeResult {
    let target = ProbeTarget {
        name: format!("sim:{device}"),
        path: "sim".to_owned(),
        kind: TargetKind::Simulated {
            options: device.to_owned(),
        },
    };
    let options = ProbeOptions {
        budget,
        size_bytes: None,
        direct: true,
        seed: 1,
    };
    let mut session = LocalRunner::default().open();
    let mut live = ProbeLive::on(Box::new(std::io::sink()), Stop::default());
    let mut result = probe(&mut session, &target, &options, &mut live).unwrap();
    // The machine that simulates is of no interest.
    for run in &mut result.runs {
        run.result.host = Default::default();
    }
    result
}

#[test]
fn a_simulated_device_is_called_by_its_model() {
    for device in ["hdd", "read_us=100,write_us=100,parallel=4"] {
        let found = probed(device, Budget::QUICK).classification;
        assert_eq!(found.class, DeviceClass::Simulated);
        assert_eq!(found.device, format!("a simulated device ({device})"));
    }
}

#[test]
fn a_simulated_probe_prints_the_same_every_time() {
    insta::assert_snapshot!("sim_hdd", table::text(&probed("hdd", Budget::NORMAL)));
    insta::assert_snapshot!(
        "sim_net_iops_cap",
        table::text(&probed("net-iops-cap", Budget::NORMAL))
    );
}

/// A probe of a simulated volume beside what a product promises.
fn held(device: &str, product: &str) -> ProbeResult {
    let budget = Budget {
        runtime_ns: 5_000_000_000,
        ..Budget::QUICK
    };
    let mut result = probed(device, budget);
    let promise = Limits::published()
        .evaluate(&product.parse().unwrap())
        .unwrap();
    result.expected = vec![Held::of(&promise, &result)];
    result
}

/// What is printed about the promise.
fn promise_table(result: &ProbeResult) -> String {
    let text = table::text(result);
    let (_, promise) = text.split_once("\nPromised: ").unwrap();
    format!("Promised: {promise}")
}

const PD_SSD: &str = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8";
/// 15,000 IOPS and 420 MiB/s.
const AS_SOLD: &str = "read_us=700,write_us=900,parallel=128,cap_iops=15k,cap_bw=420m";

#[test]
fn a_promise_that_is_kept() {
    let result = held(AS_SOLD, PD_SSD);
    assert_eq!(result.expected[0].outcome, Outcome::Kept);
    insta::assert_snapshot!("promise_kept", promise_table(&result));
}

#[test]
fn a_promise_that_is_broken() {
    let device = format!("{AS_SOLD},cap_write_iops=9k,cap_write_bw=300m");
    let result = held(&device, PD_SSD);
    assert_eq!(result.expected[0].outcome, Outcome::Broken);
    insta::assert_snapshot!("promise_broken", promise_table(&result));
    let results = [result];
    let markdown = rest(&results, Format::Markdown).unwrap();
    let (_, promise) = markdown.split_once("\n### ").unwrap();
    insta::assert_snapshot!("promise_broken_markdown", promise);
    insta::assert_snapshot!("promise_broken_csv", rest(&results, Format::Csv).unwrap());
    let json: serde_json::Value =
        serde_json::from_str(&rest(&results, Format::Json).unwrap()).unwrap();
    let expected = &json["probes"][0]["expected"][0];
    assert_eq!(expected["outcome"], "broken");
    assert_eq!(expected["rows"][1]["judged"]["verdict"]["kind"], "below");
}

#[test]
fn a_volume_that_bursts() {
    let result = held("burst", "aws-gp2:100GiB");
    assert_eq!(result.expected[0].outcome, Outcome::Kept);
    insta::assert_snapshot!("promise_burst", promise_table(&result));
}

#[test]
fn a_volume_whose_bucket_is_empty() {
    let device = "read_us=700,write_us=900,parallel=128,cap_iops=300,cap_bw=128m,cap_unit=256k";
    let result = held(device, "aws-gp2:100GiB");
    insta::assert_snapshot!("promise_after_burst", promise_table(&result));
}

#[test]
fn too_few_in_flight_are_no_breach() {
    // 64 in flight at 10 ms each give 6,400 a second, whatever the volume can do.
    let device = "read_us=10000,write_us=10000,parallel=1024";
    let result = held(device, PD_SSD);
    assert_eq!(result.expected[0].outcome, Outcome::Unclear);
    insta::assert_snapshot!("promise_unclear", promise_table(&result));
}

#[test]
fn targets_are_held_against_the_first() {
    let noisy = |speed: u32, seed: u32| {
        let device = format!(
            "read_us={speed},write_us={speed},parallel=16,noise=0.03,noise_rho=0.5,noise_period_us=100ms,seed={seed}"
        );
        probed(
            &device,
            Budget {
                runtime_ns: 5_000_000_000,
                ..Budget::QUICK
            },
        )
    };
    let results = [noisy(2000, 1), noisy(2000, 2), noisy(2400, 3)];
    let two = rest(&results[..2], Format::Table).unwrap();
    insta::assert_snapshot!("two_side_by_side", two);
    insta::assert_snapshot!("three_side_by_side", rest(&results, Format::Table).unwrap());
    let markdown = rest(&results[1..], Format::Markdown).unwrap();
    let (_, beside) = markdown.split_once("\n## Side by side").unwrap();
    insta::assert_snapshot!("two_side_by_side_markdown", beside);
    let json: serde_json::Value =
        serde_json::from_str(&rest(&results, Format::Json).unwrap()).unwrap();
    let comparisons = json["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    assert_eq!(comparisons[1]["b"], results[2].target.as_str());
    assert_eq!(comparisons[1]["rows"][0]["verdict"], "slower");
}
