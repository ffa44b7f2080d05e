//! On devices with noise, no shown maximum is below a shown rate of the same pattern.

use crate::common::Scratch;
use serde_json::Value;

/// Simulated devices with noise of a tenth or more, as on shared storage.
const DEVICES: [&str; 6] = [
    "sim:sata-ssd,noise=0.2,noise_rho=0.5,noise_period_us=100ms,seed=2",
    "sim:sata-ssd,noise=0.4,noise_rho=0.5,noise_period_us=100ms,seed=8",
    "sim:net-iops-cap,noise=0.4,noise_rho=0.5,noise_period_us=100ms,seed=8",
    "sim:net-bw-cap,noise=0.2,noise_rho=0.5,noise_period_us=100ms,seed=3",
    "sim:ceph,noise=0.4,noise_rho=0.5,noise_period_us=100ms,seed=8",
    "sim:hdd,noise=0.2,noise_rho=0.5,noise_period_us=100ms,seed=1",
];

/// Rates with a smaller ratio may have the same three digits in the output.
const SHOWN: f64 = 1.005;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Returns the iodepth and rate of the fastest measured cell.
fn fastest(cells: &Value) -> (u64, f64) {
    let cells = cells.as_array().unwrap().iter();
    let rates = cells.map(|cell| {
        (
            cell["iodepth"].as_u64().unwrap(),
            number(&cell["iops"]["mean"]),
        )
    });
    rates.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

#[test]
fn sweep_rate_above_maximum_lies_on_named_plateau() {
    let mut named = 0;
    for (index, device) in DEVICES.iter().enumerate() {
        let scratch = Scratch::new(&format!("most-sweep-{index}"));
        let words = ["sweep", device, "--rw", "randread", "--bs", "4k"];
        let rest = ["--iodepth", "1..64", "--runtime", "10s"];
        scratch.done(&[&words[..], &rest].concat());
        let shown = scratch.done(&["show", "latest"]);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let document = scratch.done(&["show", "latest", "--format", "json"]);
        let document: Value = serde_json::from_str(&document).unwrap();
        let found = &document["sweep"]["curves"][0]["saturation"];
        let (depth, rate) = fastest(&found["cells"]);
        if rate <= number(&found["maximum"]["mean"]) * SHOWN {
            continue;
        }
        assert!(
            !shown.contains("reaches its maximum of"),
            "{device}: {shown}"
        );
        if shown.contains("levels off at") {
            let [from, to] = [0, 1].map(|end| found["plateau"][end].as_u64().unwrap());
            assert!((from..=to).contains(&depth), "{device}: {shown}");
            let mean_of = format!("the mean of depths {from} to {to})");
            assert!(shown.contains(&mean_of), "{device}: {shown}");
            named += 1;
        } else {
            assert!(shown.contains("no known maximum"), "{device}: {shown}");
        }
    }
    assert!(named > 0, "nothing is tested");
}

#[test]
fn probe_rate_does_not_exceed_maximum() {
    let mut unknown = 0;
    for (index, device) in DEVICES.iter().enumerate() {
        let scratch = Scratch::new(&format!("most-probe-{index}"));
        scratch.done(&["probe", device, "--runtime", "3s"]);
        let document = scratch.done(&["show", "latest", "--format", "json"]);
        let document: Value = serde_json::from_str(&document).unwrap();
        let probe = &document["probes"][0];
        let shown = scratch.done(&["show", "latest"]);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for knee in probe["knees"].as_array().unwrap() {
            let figures = probe["figures"].as_array().unwrap();
            let of_phase = |figure: &&Value| figure["phase"] == knee["phase"];
            let figure = figures.iter().find(of_phase).unwrap();
            let row = number(&figure["iops"]["mean"]);
            let found = &knee["saturation"];
            assert!(
                row <= number(&found["maximum"]["mean"]) * SHOWN,
                "{device}: {shown}"
            );
            if row <= fastest(&found["cells"]).1 * SHOWN || found["longer_run"].is_null() {
                continue;
            }
            // Without a known maximum, this row must be the fastest iodepth that is named.
            let title = knee["phase"].as_str().unwrap().replace('_', " ");
            let (_, line) = shown
                .rsplit_once(&format!(" {title} not known; the fastest was depth "))
                .unwrap_or_default();
            if !line.is_empty() && !title.starts_with("seq") {
                let depth = line.split_whitespace().next().unwrap();
                assert_eq!(depth, figure["iodepth"].to_string(), "{device}: {shown}");
                unknown += 1;
            }
        }
    }
    assert!(unknown > 0, "nothing is tested");
}
