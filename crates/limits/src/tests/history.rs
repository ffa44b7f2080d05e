//! Tests of limits at earlier dates.

use super::*;
use VendorUnit::{MbPerS, MibPerS};

#[test]
fn limits_of_2016_match_console() {
    for (product, size_gib, expected) in [
        ("gcp-pd-standard", 375, [281.25, 562.5, 45.0, 45.0]),
        ("gcp-pd-standard", 10_000, [3000.0, 15e3, 180.0, 180.0]),
        ("gcp-pd-ssd", 375, [11_250.0, 11_250.0, 180.0, 180.0]),
        ("gcp-pd-ssd", 1000, [15e3, 15e3, 240.0, 240.0]),
    ] {
        for machine in ["", ",machine=n1-standard-2"] {
            let query = format!("{product}:size={size_gib},as-of=2016{machine}");
            assert_eq!(four(&ask(&query), MbPerS), expected, "{query}");
        }
    }
    for (product, expected) in [("scsi", [100e3, 70e3]), ("nvme", [170e3, 90e3])] {
        let promise = ask(&format!("gcp-local-ssd-{product}:size=375GB,as-of=2016"));
        let of = |metric| figure(&promise, metric, VendorUnit::Iops);
        assert_eq!([of(Metric::ReadIops), of(Metric::WriteIops)], expected);
        assert_eq!(promise.figure(Metric::ReadBandwidth), None);
    }
}

#[test]
fn machine_caps_of_ssds_follow_as_of_date() {
    let iops = |as_of: &str, vcpus: u32| {
        let promise = ask(&format!(
            "gcp-pd-ssd:size=2TiB,machine=n1,vcpus={vcpus},as-of={as_of}"
        ));
        [Metric::ReadIops, Metric::WriteIops]
            .map(|metric| figure(&promise, metric, VendorUnit::Iops))
    };
    let network = |as_of: &str| {
        let promise = ask(&format!(
            "gcp-pd-ssd:size=2TiB,machine=n1,vcpus=1,as-of={as_of}"
        ));
        promise.notes.iter().any(|note| note.contains("2 Gbit/s"))
    };
    assert!(network("2016-09") && network("2017-04") && !network("2020"));
    assert_eq!(iops("2016-08", 32), [25e3, 25e3]);
    assert_eq!(iops("2016-07", 32), [15e3, 15e3]);
    assert_eq!(iops("2016-08-11", 32), [15e3, 15e3]);
    assert_eq!(iops("2016-08-12", 16), [20e3, 20e3]);
    assert_eq!(iops("2018", 32), [40e3, 30e3]);
    assert_eq!(iops("2018", 16), [25e3, 25e3]);
    let range = ask("gcp-pd-ssd:size=2TiB,as-of=2019");
    let read = range.figure(Metric::ReadIops).unwrap();
    assert_eq!((read.per_s, read.up_to_per_s), (15e3, Some(60e3)));
}

#[test]
fn editions_follow_as_of_date() {
    let at = |as_of: &str| {
        try_ask(&format!(
            "aws-gp3:size=1TiB,iops=80000,throughput=2000,as-of={as_of}"
        ))
    };
    assert!(at("2026").is_ok());
    insta::assert_snapshot!(
        at("2024").unwrap_err().remedy(),
        @"available: 3,000 to 16,000 IOPS with 1,024 GiB"
    );
    let two_of = |as_of: &str| {
        two(
            &ask(&format!("aws-io2:size=1TiB,iops=64000,as-of={as_of}")),
            MibPerS,
        )
    };
    assert_eq!(two_of("2024"), [64e3, 1000.0]);
    assert_eq!(two_of("2025"), [64e3, 4000.0]);
    assert!(try_ask("azure-ultra:size=600,iops=300,throughput=10,as-of=2023").is_err());
    assert!(try_ask("azure-ultra:size=1TiB,iops=160000,throughput=4000,as-of=2023").is_ok());
    insta::assert_snapshot!(refusal("aws-gp2:size=100,as-of=2010"), @r"
    no limits for aws-gp2 are known as of 2010
      the oldest limits in the file date from 2023-05-11
    ");
}
