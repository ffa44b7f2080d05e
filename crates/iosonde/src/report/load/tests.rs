use super::*;
use iosonde_engine::local::LocalRunner;
use iosonde_study::load::{LoadOptions, MatrixOptions, Pattern, load};
use iosonde_study::probe::{ProbeTarget, TargetKind};

const SECOND_NS: u64 = 1_000_000_000;

fn options() -> LoadOptions {
    LoadOptions {
        pattern: Pattern {
            block_bytes: 4096,
            random: true,
        },
        mix: Mix::READ,
        arrivals: Arrivals::Poisson,
        rates: Vec::new(),
        objectives: vec!["p99=3ms".parse().unwrap()],
        matrix: None,
        runtime_ns: 4 * SECOND_NS,
        ramp_ns: SECOND_NS,
        numjobs: 1,
        iodepth: 1024,
        size_bytes: Some(1 << 30),
        direct: true,
        seed: 1,
    }
}

fn measured(device: &str, options: &LoadOptions) -> LoadResult {
    let target = ProbeTarget {
        name: format!("sim:{device}"),
        path: "sim".to_owned(),
        kind: TargetKind::Simulated {
            options: device.to_owned(),
        },
    };
    let mut session = LocalRunner::default().open();
    load(&mut session, &target, options, &mut ()).unwrap()
}

#[test]
fn a_simulated_load_prints_the_same_every_time() {
    let result = measured("net-iops-cap", &options());
    let text = table(&result);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("net_iops_cap", text);
    insta::assert_snapshot!("net_iops_cap_csv", csv(&result));
    insta::assert_snapshot!("net_iops_cap_markdown", markdown(&result));
    let document: serde_json::Value = serde_json::from_str(&json(&result).unwrap()).unwrap();
    assert_eq!(document["kind"], "load");
    let own: LoadResult = serde_json::from_value(document["load"].clone()).unwrap();
    assert_eq!(own, result);
}

#[test]
fn the_matrix_is_a_heat_map() {
    let with = |steps| LoadOptions {
        rates: vec![500.0],
        objectives: Vec::new(),
        matrix: Some(MatrixOptions { steps }),
        runtime_ns: SECOND_NS,
        ..options()
    };
    for (name, steps) in [("matrix_6", 6), ("matrix_16", 16)] {
        let text = table(&measured("throttled", &with(steps)));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(name, text);
    }
}
