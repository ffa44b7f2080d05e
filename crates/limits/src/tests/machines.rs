//! Tests of limits that depend on the machine, and of errors.

use super::*;
use VendorUnit::{Iops, MbPerS, MibPerS};

#[test]
fn instances_of_aws_burst_too() {
    let promise = ask("aws-gp3:size=1TiB,iops=16000,throughput=1000,machine=m5.large");
    assert_eq!(two(&promise, MbPerS), [3600.0, 81.25]);
    assert_eq!(burst(&promise, Metric::Iops, Iops), Some(16e3));
    assert_eq!(burst(&promise, Metric::Bandwidth, MbPerS), Some(593.75));
    assert_eq!(promise.bursts[0].seconds, 1800.0);
    let steady = ask("aws-gp3:size=1TiB,iops=16000,throughput=1000,machine=m5.24xlarge");
    assert_eq!(two(&steady, MibPerS), [16e3, 1000.0]);
    assert!(steady.bursts.is_empty());
    // A machine whose sustained limit is below that of the volume.
    let nano = ask("aws-gp2:size=100,machine=t3.nano");
    assert_eq!(figure(&nano, Metric::Iops, Iops), 250.0);
    assert_eq!(burst(&nano, Metric::Iops, Iops), Some(3000.0));
}

#[test]
fn titanium_ssds_come_with_the_machine() {
    let promise = ask("gcp-local-ssd-titanium:machine=c4-standard-288-lssd-metal");
    assert_eq!(four(&promise, MibPerS), [7.2e6, 3.6e6, 30e3, 15_840.0]);
    let promise = ask("gcp-local-ssd-titanium:machine=c4-highmem-32-lssd");
    assert_eq!(promise.query.disks, Some(5));
    assert_eq!(figure(&promise, Metric::ReadIops, Iops), 750e3);
    let promise = ask("gcp-local-ssd-titanium:machine=z3-highmem-192-highlssd-metal");
    assert_eq!(four(&promise, MibPerS), [9e6, 6e6, 36e3, 30e3]);
    let promise = ask("gcp-local-ssd-titanium:machine=z3-highmem-22-standardlssd");
    assert_eq!(promise.query.disks, Some(2));
    let fixed = ask("gcp-local-ssd-nvme:machine=c3-standard-88-lssd");
    assert_eq!(fixed.query.disks, Some(16));
}

#[test]
fn extreme_disks_depend_on_the_processor() {
    let of = |machine: &str| ask(&format!("gcp-pd-extreme:size=1TiB,iops=100000,{machine}"));
    let ice = of("machine=n2-standard-80,cpu=ice lake");
    assert_eq!(figure(&ice, Metric::ReadBandwidth, MbPerS), 4000.0);
    let cascade = of("machine=n2-standard-80,cpu=Cascade Lake");
    assert_eq!(figure(&cascade, Metric::ReadBandwidth, MbPerS), 2200.0);
    assert_eq!(
        figure(
            &of("machine=n2-standard-128"),
            Metric::WriteBandwidth,
            MbPerS
        ),
        3000.0
    );
    assert_eq!(
        figure(&of("machine=m3-ultramem-64"), Metric::Iops, Iops),
        40e3
    );
}

#[test]
fn special_machines_have_rows_of_their_own() {
    let medium = ask("gcp-pd-ssd:size=1TiB,machine=e2-medium");
    assert_eq!(four(&medium, MibPerS), [12e3, 10e3, 200.0, 200.0]);
    let small = ask("gcp-pd-ssd:size=1TiB,machine=n1,vcpus=1");
    assert_eq!(figure(&small, Metric::WriteBandwidth, MibPerS), 204.0);
    assert!(small.remarks[0].contains("129 MB/s"), "{:?}", small.remarks);
    // No bandwidth was published for A3, so only the volume limits it.
    let a3 = ask("gcp-pd-ssd:size=10TiB,machine=a3-highgpu-8g");
    assert_eq!(four(&a3, MibPerS), [80e3, 80e3, 1200.0, 1200.0]);
}

#[test]
fn machine_and_service_limit_number_of_disks() {
    // Compute Engine allows 24 disks on any N1. The Kubernetes service refused them.
    let promise = ask("gcp-local-ssd-nvme:disks=24,machine=n1-standard-8");
    insta::assert_snapshot!(promise.remarks.join("\n"), @r"
    service gke does not allow 24 disks on n1-standard-8; it allows 1 to 8
    the vendor does not promise these figures below 32 vCPUs of n1
    ");
    let refused = [
        refusal("gcp-local-ssd-nvme:disks=24,machine=n1-standard-8,service=gke"),
        refusal("gcp-local-ssd-nvme:disks=24,machine=n1,vcpus=8,service=gke"),
        refusal("gcp-local-ssd-nvme:disks=9,machine=n1-standard-8"),
        refusal("gcp-local-ssd-nvme:disks=1,machine=n2-standard-32"),
        refusal("gcp-local-ssd-nvme:disks=16,machine=c2-standard-60"),
        refusal("gcp-local-ssd-nvme:disks=2,machine=c3-standard-4-lssd"),
        refusal("gcp-local-ssd-nvme:disks=4,machine=a4x-highgpu-4g"),
        refusal("gcp-local-ssd-titanium:disks=4,machine=c4-standard-8-lssd"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn missing_parameter_is_named_with_reason() {
    let refused = [
        refusal("gcp-pd-ssd:machine=n1,vcpus=8"),
        refusal("gcp-pd-ssd:size=375"),
        refusal("gcp-pd-ssd:size=375,machine=n1"),
        refusal("gcp-local-ssd-nvme"),
        refusal("gcp-local-ssd-titanium"),
        refusal("gcp-local-ssd-titanium:machine=z3,vcpus=22"),
        refusal("gcp-pd-extreme:size=1TiB,iops=3000,machine=n2-standard-80"),
        refusal("aws-io2:size=100"),
        refusal("azure-ultra:size=4,iops=1000"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn value_out_of_range_is_refused_with_offer() {
    let refused = [
        refusal("aws-gp2:size=20TiB"),
        refusal("aws-st1:size=100GiB"),
        refusal("azure-premium-ssd:size=40TiB"),
        refusal("gcp-local-ssd-nvme:size=500GiB"),
        refusal("gcp-local-ssd-nvme:disks=9"),
        refusal("azure-ultra:size=10,iops=100,throughput=1,as-of=2022"),
        refusal("aws-gp3:size=4,iops=5000"),
        refusal("aws-gp3:size=100,throughput=800"),
        refusal("aws-gp2:size=100,iops=5000"),
        refusal("gcp-pd-ssd:size=375,machine=n2,vcpus=1"),
        refusal("gcp-hyperdisk-extreme:size=1TiB,iops=5000,machine=c3-standard-44"),
        refusal("gcp-local-ssd-titanium:machine=c4-standard-8"),
        refusal("azure-premium-ssd:size=200,with=performance-plus"),
        refusal("azure-premium-ssd:size=1TiB,with=turbo"),
        refusal("gcp-pd-ssd:size=375,machine=n1-standard-8,vcpus=4"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn unknown_names_come_with_suggestions() {
    let refused = [
        refusal("gcp-pd-sdd:size=1"),
        refusal("gp5:size=1"),
        refusal("aws-gp2:size=100,machine=m5.lrage"),
        refusal("gcp-pd-ssd:size=1,machine=n7-standard-8"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
    let similar = refusal("aws-gp9:5");
    let question = "did you mean `aws-gp2` or `aws-gp3`? `iosonde limits` lists all products";
    assert!(similar.ends_with(question), "{similar}");
    assert_eq!(ask("GP2:size=100").product, "aws-gp2");
    assert_eq!(
        ask("pd_ssd:size=100,machine=n1,vcpus=8").product,
        "gcp-pd-ssd"
    );
}

#[test]
fn unknown_machine_type_is_refused_in_known_family() {
    let refused = [
        refusal("gcp-pd-ssd:size=500,machine=n2-standart-8"),
        refusal("gcp-pd-ssd:size=500,machine=n2-standard-9"),
        refusal("gcp-pd-ssd:size=500,machine=n2-standard,vcpus=8"),
        refusal("gcp-pd-ssd:size=500,machine=e2-medum"),
        refusal("gcp-local-ssd-titanium:machine=c4-standrad-8-lsssd"),
        refusal("gcp-pd-ssd:size=500,machine=t2a-custom-4-8192"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
    for known in [
        "machine=n1,vcpus=8",
        "machine=N2-Standard-8",
        "machine=n2-custom-12-16384",
        "machine=n2-custom-12-16384-ext",
        "machine=custom-4-8192",
        "machine=e2-medium",
        "machine=c3-standard-88-lssd",
        "machine=a2-highgpu-1g",
    ] {
        ask(&format!("gcp-pd-ssd:size=500,{known}"));
    }
    let promise = ask("gcp-pd-ssd:size=500,machine=n2-standard-8");
    assert_eq!(promise.sources[1].of, "caps of n2, 8-15 vCPUs");
}

#[test]
fn machine_without_local_disks_is_refused_with_those_that_take_some() {
    for product in ["gcp-local-ssd-nvme:disks=1", "gcp-local-ssd-titanium:"] {
        let error = try_ask(&format!("{product},machine=e2-medium")).unwrap_err();
        assert_eq!(error.to_string(), "machine e2-medium takes no local SSD");
        let LimitsError::NoLocalDisk { similar, known, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(similar, None);
        assert!(known.contains("n1, n2, n2d, c2, c2d"), "{known}");
    }
    let plain = try_ask("gcp-local-ssd-nvme:disks=1,machine=c3-standard-8").unwrap_err();
    let question = "did you mean `c3-standard-8-lssd`? machines that take some: ";
    assert!(plain.remedy().starts_with(question), "{}", plain.remedy());
    let LimitsError::NoLocalDisk { similar, .. } = plain else {
        panic!("{plain:?}");
    };
    assert_eq!(similar.as_deref(), Some("c3-standard-8-lssd"));
    let limits = Limits::published();
    let is_refused = |machine: &str| limits.refuse_machine_without_disks(machine).is_some();
    for machine in ["e2-medium", "e2", "t2d-standard-8", "h3-standard-88"] {
        assert!(is_refused(machine), "{machine}");
    }
    for machine in [
        "n1-standard-2",
        "n1",
        "c3",
        "c3-standard-8-lssd",
        "c4-standard-8-lssd",
        "n7",
    ] {
        assert!(!is_refused(machine), "{machine}");
    }
}
