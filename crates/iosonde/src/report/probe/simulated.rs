//! Probes of simulated devices: what is printed, and whether the device is recognised.

use super::table;
use crate::live::probe::ProbeLive;
use crate::signals::Stop;
use iosonde_engine::local::LocalRunner;
use iosonde_study::probe::{
    Budget, DeviceClass, ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe,
};

fn probed(device: &str, budget: Budget) -> ProbeResult {
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
fn devices_are_recognised_by_what_they_do() {
    for (device, class) in [
        ("hdd", DeviceClass::HardDisk),
        ("net-iops-cap", DeviceClass::LimitedVolume),
    ] {
        let found = probed(device, Budget::NORMAL).classification;
        assert_eq!(found.class, class, "{device}: {}", found.sentence);
    }
    for (device, class) in [
        ("sata-ssd", DeviceClass::SataSsd),
        ("ceph", DeviceClass::NetworkVolume),
    ] {
        let found = probed(device, Budget::QUICK).classification;
        assert_eq!(found.class, class, "{device}: {}", found.sentence);
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
