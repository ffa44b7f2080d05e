//! Examples that the vendors print, or that were calculated by hand.

use super::*;
use VendorUnit::{Iops, MbPerS, MibPerS};

#[test]
fn service_command_contains_number_of_disks() {
    let promise = ask("gcp-local-ssd:disks=4,machine=n1-standard-8,service=gke");
    let command = promise.commands.concat();
    assert!(command.contains("--machine-type=n1-standard-8 --ephemeral-storage-local-ssd count=4"));
    assert!(command.contains("LOCAL_SSD_TOTAL_GB of the region: 1500 for each node"));
    assert!(command.contains("gcloud container clusters get-credentials CLUSTER"));
    let elsewhere = ask("gcp-local-ssd:disks=4,machine=n1-standard-8");
    assert!(elsewhere.commands.is_empty());
    let error = try_ask("gcp-local-ssd:disks=24,machine=n1-standard-8,service=gke").unwrap_err();
    let LimitsError::OutOfRange { what, offered, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(what, "24 disks on n1-standard-8 in gke");
    assert_eq!(offered, "1 to 8");
}

#[test]
fn ssd_persistent_disk_is_capped_by_the_machine() {
    for machine in ["n1", "n2", "e2"] {
        let promise = ask(&format!("gcp-pd-ssd:size=375GiB,machine={machine},vcpus=8"));
        assert_eq!(four(&promise, MibPerS), [15e3, 15e3, 420.0, 420.0]);
        let read = promise.figure(Metric::ReadIops).unwrap();
        assert_eq!(
            read.limited_by.to_string(),
            format!("machine {machine}, 8-15 vCPUs")
        );
        assert_eq!(read.bounds[1].per_s, 17_250.0);
    }
    let promise = ask("gcp-pd-ssd:size=375GiB,machine=n1-standard-4");
    assert_eq!(four(&promise, MibPerS), [15e3, 15e3, 240.0, 240.0]);
    assert!(promise.shared.iops && !promise.shared.bandwidth);
}

#[test]
fn persistent_disks_have_a_baseline_and_a_rate() {
    let promise = ask("gcp-pd-balanced:size=100GiB,machine=n2,vcpus=8");
    assert_eq!(four(&promise, MibPerS), [3600.0, 3600.0, 168.0, 168.0]);
    let promise = ask("gcp-pd-standard:size=375GiB,machine=n1,vcpus=8");
    assert_eq!(four(&promise, MibPerS), [281.25, 562.5, 45.0, 45.0]);
    // An example of the vendor.
    let promise = ask("gcp-pd-ssd:size=500GiB,machine=n2,vcpus=32");
    assert_eq!(four(&promise, MibPerS), [21e3, 21e3, 480.0, 480.0]);
}

#[test]
fn pooled_persistent_disks_add_baseline_once() {
    let one = ask("gcp-pd-balanced:size=200GiB,machine=n2,vcpus=8");
    let two = ask("gcp-pd-balanced:size=100GiB,disks=2,machine=n2,vcpus=8");
    assert_eq!(four(&one, MibPerS), four(&two, MibPerS));
    let many = ask("gcp-pd-ssd:size=1TiB,disks=4,machine=n2,vcpus=8");
    assert_eq!(four(&many, MibPerS), [15e3, 15e3, 800.0, 800.0]);
}

#[test]
fn local_ssd_limits_depend_on_number_of_disks() {
    let promise = ask("gcp-local-ssd-nvme:disks=2,machine=n1,vcpus=32");
    assert_eq!(four(&promise, MibPerS), [340e3, 180e3, 1320.0, 700.0]);
    assert!(promise.firm);
    let by_size = ask("gcp-local-ssd-nvme:size=750GiB,machine=n1,vcpus=32");
    assert_eq!(four(&by_size, MibPerS), four(&promise, MibPerS));
    let plateau = |disks| four(&ask(&format!("gcp-local-ssd-nvme:disks={disks}")), MibPerS);
    assert_eq!(plateau(4), plateau(8));
    assert_eq!(plateau(24), [2.4e6, 1.2e6, 9360.0, 4680.0]);
    assert!(!ask("gcp-local-ssd-nvme:disks=2,machine=n1,vcpus=8").firm);
    let scsi = ask("gcp-local-ssd-scsi:disks=16");
    assert_eq!(four(&scsi, MibPerS), [900e3, 800e3, 6240.0, 3120.0]);
}

#[test]
fn gp2_bursts_on_credits() {
    let promise = ask("aws-gp2:size=100GiB");
    assert_eq!(two(&promise, MibPerS), [300.0, 128.0]);
    assert_eq!(burst(&promise, Metric::Iops, Iops), Some(3000.0));
    for (size_gib, baseline, burst_s, refill_s) in [
        (33, 100.0, 1862.0, 54_000.0),
        (100, 300.0, 2000.0, 18_000.0),
        (334, 1002.0, 2703.0, 5389.0),
        (750, 2250.0, 7200.0, 2400.0),
    ] {
        let promise = ask(&format!("aws-gp2:size={size_gib}"));
        assert_eq!(figure(&promise, Metric::Iops, Iops), baseline);
        let length = &promise.bursts[0];
        assert_eq!(length.seconds.round(), burst_s);
        assert_eq!(length.refill_seconds.map(f64::round), Some(refill_s));
    }
    assert_eq!(
        ask("aws-gp2:size=1000").figure(Metric::Iops).unwrap().burst,
        None
    );
    assert_eq!(two(&ask("aws-gp2:size=5334"), MibPerS), [16e3, 250.0]);
    let middle = ask("aws-gp2:size=200");
    assert_eq!(figure(&middle, Metric::Bandwidth, MibPerS), 150.0);
    assert_eq!(burst(&middle, Metric::Bandwidth, MibPerS), Some(250.0));
}

#[test]
fn aws_hdd_burst_lasts_one_pass_over_volume() {
    let promise = ask("aws-st1:size=2TiB");
    assert_eq!(figure(&promise, Metric::Bandwidth, MibPerS), 80.0);
    assert_eq!(burst(&promise, Metric::Bandwidth, MibPerS), Some(500.0));
    let length = promise
        .bursts
        .iter()
        .find(|length| length.metric == Some(Metric::Bandwidth));
    assert_eq!(
        length.unwrap().seconds.round(),
        (2.0_f64 * 1_048_576.0 / 500.0).round()
    );
    for (product, size_gib, base, peak) in [
        ("st1", 125.0 * 1.024, 5.0, Some(31.25)),
        ("st1", 12.5 * 1024.0, 500.0, None),
        ("sc1", 128.0, 1.5, Some(10.0)),
        ("sc1", 3200.0, 37.5, Some(250.0)),
        ("sc1", 16_384.0, 192.0, Some(250.0)),
    ] {
        let promise = ask(&format!("aws-{product}:size={size_gib}"));
        assert_eq!(
            figure(&promise, Metric::Bandwidth, MibPerS),
            base,
            "{product} {size_gib}"
        );
        assert_eq!(
            burst(&promise, Metric::Bandwidth, MibPerS),
            peak,
            "{product} {size_gib}"
        );
    }
}

#[test]
fn provisioned_aws_volumes_give_chosen_amounts() {
    assert_eq!(two(&ask("aws-gp3:size=100"), MibPerS), [3000.0, 125.0]);
    let most = ask("aws-gp3:size=160,iops=80000,throughput=2000");
    assert_eq!(two(&most, MibPerS), [80e3, 2000.0]);
    assert_eq!(
        two(&ask("aws-io1:size=1280,iops=2000"), MibPerS),
        [2000.0, 500.0]
    );
    assert_eq!(
        two(&ask("aws-io1:size=1280,iops=32000"), MibPerS),
        [32e3, 500.0]
    );
    assert_eq!(
        two(&ask("aws-io1:size=1280,iops=64000"), MibPerS),
        [64e3, 1000.0]
    );
    assert_eq!(
        two(&ask("aws-io2:size=256,iops=256k"), MibPerS),
        [256e3, 4000.0]
    );
    assert_eq!(
        two(&ask("aws-io2:size=256,iops=15625"), MibPerS),
        [15_625.0, 4000.0]
    );
}

#[test]
fn azure_rounds_up_to_a_tier() {
    let promise = ask("azure-premium-ssd:size=200GiB");
    assert_eq!(two(&promise, MbPerS), [1100.0, 125.0]);
    assert_eq!(burst(&promise, Metric::Iops, Iops), Some(3500.0));
    assert_eq!(burst(&promise, Metric::Bandwidth, MbPerS), Some(170.0));
    let iops = promise.figure(Metric::Iops).unwrap();
    assert_eq!(iops.limited_by.to_string(), "tier P15 (256 GiB)");
    assert_eq!(promise.bursts[0].seconds, 1800.0);
    assert_eq!(
        two(&ask("azure-standard-hdd:size=1"), MbPerS),
        [500.0, 60.0]
    );
    assert_eq!(
        two(&ask("azure-standard-ssd:size=32767"), MbPerS),
        [6000.0, 750.0]
    );
}

#[test]
fn azure_has_options_above_half_a_tebibyte() {
    let plus = ask("azure-premium-ssd:size=1TiB,with=performance-plus");
    assert_eq!(two(&plus, MbPerS), [8000.0, 300.0]);
    let burst_on_demand = ask("azure-premium-ssd:size=1TiB,with=on-demand-bursting");
    assert_eq!(two(&burst_on_demand, MbPerS), [5000.0, 200.0]);
    assert_eq!(burst(&burst_on_demand, Metric::Iops, Iops), Some(30e3));
    let plain = ask("azure-premium-ssd:size=1TiB");
    assert_eq!(burst(&plain, Metric::Iops, Iops), None);
    insta::assert_snapshot!(plain.remarks.join("\n"), @r"
    with on-demand-bursting: 30,000 IOPS and 1,000 MB/s
    with performance-plus: 8,000 IOPS and 300 MB/s
    ");
}

#[test]
fn ultra_disks_have_the_ranges_of_the_vendors_table() {
    for (size_gib, iops, mb_per_s) in [
        (4, 4000, 1000),
        (8, 8000, 2000),
        (16, 16_000, 4000),
        (32, 32_000, 8000),
        (64, 64_000, 10_000),
        (128, 128_000, 10_000),
        (256, 256_000, 10_000),
        (512, 400_000, 10_000),
        (1024, 400_000, 10_000),
    ] {
        let query = |iops, mb| format!("azure-ultra:size={size_gib},iops={iops},throughput={mb}");
        let promise = ask(&query(iops, mb_per_s));
        assert_eq!(
            two(&promise, MbPerS),
            [f64::from(iops), f64::from(mb_per_s)]
        );
        assert!(try_ask(&query(iops + 1, mb_per_s)).is_err());
        assert!(try_ask(&query(iops, mb_per_s + 1)).is_err());
    }
    let v2 = ask("azure-premium-ssd-v2:size=6,throughput=750");
    assert_eq!(two(&v2, MbPerS), [3000.0, 750.0]);
    assert!(try_ask("azure-premium-ssd-v2:size=160,iops=80000,throughput=2000").is_ok());
}

#[test]
fn hyperdisk_limits_follow_provisioned_amounts() {
    let balanced = ask("gcp-hyperdisk-balanced:size=1TiB,iops=160000,throughput=2400");
    assert_eq!(two(&balanced, MibPerS), [160e3, 2400.0]);
    assert_eq!(
        two(&ask("gcp-hyperdisk-balanced:size=4"), MibPerS),
        [3000.0, 140.0]
    );
    let method = balanced.method.as_deref().unwrap();
    assert!(method.contains("320,000 640"), "{method}");
    let extreme = ask("gcp-hyperdisk-extreme:size=1TiB,iops=10000,machine=c3-standard-88");
    assert_eq!(two(&extreme, MibPerS), [10e3, 2500.0]);
    let throughput = ask("gcp-hyperdisk-throughput:size=10TiB,throughput=600");
    assert_eq!(two(&throughput, MibPerS), [2400.0, 600.0]);
    let ml = ask("gcp-hyperdisk-ml:size=1TiB,throughput=1000MiB/s");
    assert_eq!(figure(&ml, Metric::Iops, Iops), 16e3);
    let available = ask(
        "gcp-hyperdisk-balanced-ha:size=1TiB,iops=100000,throughput=2400,machine=c3-standard-8",
    );
    assert_eq!(two(&available, MibPerS), [50e3, 800.0]);
}
