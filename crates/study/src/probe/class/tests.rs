use super::*;
use crate::probe::{Estimate, Figure, Latency, Phase, TargetKind};
use iosonde_job::plan::Engine;
use iosonde_result::device_class::DeviceDescription;

const US: f64 = 1e3;
const MS: f64 = 1e6;

fn device(class: DeviceClass, facts: &[&str]) -> DeviceDescription {
    DeviceDescription {
        class,
        count: 1,
        facts: facts.iter().map(|fact| (*fact).to_owned()).collect(),
    }
}

fn nvme() -> Evidence {
    Evidence {
        device: device(DeviceClass::NvmeSsd, &["nvme0n1", "PCIe"]),
        read_p50_ns: Some(82.0 * US),
        random_read_iops: Some(412_000.0),
        random_write_iops: Some(238_000.0),
        random_read_spread: Some(0.004),
        random_write_spread: Some(0.02),
        sequential_read: Some(3.4e9),
        sync_p50_ns: Some(0.41 * MS),
        sync_p99_ns: Some(0.9 * MS),
        sync_p99_between_ns: Some((0.85 * MS, 0.95 * MS)),
        ..Evidence::default()
    }
}

#[test]
fn a_pool_has_no_flush_and_says_what_a_write_takes() {
    let pool = Evidence {
        sync_p50_ns: None,
        sync_p99_ns: None,
        durable_write_p99_ns: Some(4.0 * MS),
        ..nvme()
    };
    let sentence = classify(&pool).sentence;
    let said = "A write, durable when it is acknowledged, takes 4.00 ms at p99.";
    assert!(sentence.ends_with(said), "{sentence}");
    let phases = TargetKind::Pool { free_bytes: 0 }.phases();
    assert!(!phases.contains(&Phase::SyncedWrite));
    assert_eq!(phases.len(), Phase::MEASURED.len());
}

/// Three probes of one virtual disk called it an NVMe SSD, a SATA SSD and memory: their figures are those of a busy machine.
#[test]
fn figures_do_not_change_what_a_device_is() {
    let disk = device(DeviceClass::VirtualDisk, &["vda", "virtio_blk"]);
    for (read_ns, iops, stream) in [
        (5.0 * US, 400_000.0, 6e9),
        (82.0 * US, 93_000.0, 520e6),
        (120.0 * US, 410_000.0, 3.4e9),
        (9.0 * MS, 180.0, 170e6),
    ] {
        let found = classify(&Evidence {
            device: disk.clone(),
            read_p50_ns: Some(read_ns),
            random_read_iops: Some(iops),
            sequential_read: Some(stream),
            ..nvme()
        });
        assert_eq!(found.class, DeviceClass::VirtualDisk);
        assert_eq!(found.device, "a virtual disk (vda, virtio_blk)");
        assert!(
            found
                .sentence
                .starts_with("This is a virtual disk (vda, virtio_blk): a 4 KiB read takes "),
            "{}",
            found.sentence
        );
    }
}

#[test]
fn a_limit_shows_as_evenness_both_ways() {
    let gp3 = Evidence {
        read_p50_ns: Some(540.0 * US),
        random_read_iops: Some(3_003.0),
        random_write_iops: Some(3_002.0),
        random_read_spread: Some(0.001),
        random_write_spread: Some(0.001),
        sequential_read: Some(131e6),
        ..nvme()
    };
    let found = classify(&gp3);
    assert_eq!(found.limit_iops, Some(3_003.0));
    assert_eq!(
        found.class,
        DeviceClass::NvmeSsd,
        "the limit is another fact"
    );
    insta::assert_snapshot!(found.sentence);
    // An even rate of reads alone is what a good device has.
    assert_eq!(classify(&nvme()).limit_iops, None);
    let uneven = Evidence {
        random_read_spread: Some(0.05),
        ..gp3.clone()
    };
    assert_eq!(classify(&uneven).limit_iops, None);
    let unknown = Evidence {
        random_read_spread: None,
        ..gp3.clone()
    };
    assert_eq!(classify(&unknown).limit_iops, None);
    let throttled = Evidence {
        throttled: true,
        ..unknown
    };
    let said = classify(&throttled).sentence;
    let held = "a control group holds random reads at 3.00k/s";
    assert!(said.contains(held), "{said}");
}

#[test]
fn behind_a_cache_the_kind_is_known_and_nothing_of_its_speed() {
    let cached = Evidence {
        served_from_cache: true,
        ..nvme()
    };
    let found = classify(&cached);
    assert_eq!(found.class, DeviceClass::NvmeSsd);
    assert!(found.served_from_cache);
    insta::assert_snapshot!(found.sentence);
    let unwritten = Evidence {
        unwritten: true,
        ..nvme()
    };
    insta::assert_snapshot!(classify(&unwritten).sentence);
    let tmpfs = Evidence {
        device: device(DeviceClass::Memory, &["tmpfs"]),
        served_from_cache: true,
        ..nvme()
    };
    insta::assert_snapshot!(classify(&tmpfs).sentence);
}

#[test]
fn a_noisy_run_says_so_of_its_figures_and_not_of_the_device() {
    let noisy = Evidence {
        noisy: true,
        ..nvme()
    };
    let sentence = classify(&noisy).sentence;
    let start = "This is an NVMe SSD (nvme0n1, PCIe). In this noisy run a 4 KiB read takes";
    assert!(sentence.starts_with(start), "{sentence}");
    let figure = |error: Option<f64>, sure: bool| Figure {
        phase: Phase::RandomRead,
        block_bytes: 4096,
        iodepth: 32,
        engine: Engine::IoUring,
        direct: true,
        iops: Estimate {
            mean: 1000.0,
            error,
            spread: None,
        },
        bytes_per_s: Estimate::default(),
        latency: Latency::default(),
        sync_latency: None,
        measured_ns: 1,
        sure: Some(sure),
        settled: None,
        failure: None,
    };
    let noisy = |error, sure| Evidence::of(&[figure(error, sure)], &[]).noisy;
    assert!(noisy(Some(300.0), false) && noisy(None, false));
    assert!(!noisy(Some(200.0), false) && !noisy(Some(5.0), true));
}

#[test]
fn what_was_not_measured_is_not_guessed() {
    let none = classify(&Evidence::default());
    assert_eq!(none.class, DeviceClass::Unknown);
    insta::assert_snapshot!(none.sentence);
    let interrupted = Evidence {
        sequential_read: None,
        ..nvme()
    };
    assert!(!classify(&interrupted).sentence.contains("sequential"));
}

#[test]
fn durable_writes_decide_what_it_suits() {
    let with = |p50_ns: f64, p99_ns: f64| {
        classify(&Evidence {
            sync_p50_ns: Some(p50_ns),
            sync_p99_ns: Some(p99_ns),
            sync_p99_between_ns: Some((0.99 * p99_ns, 1.01 * p99_ns)),
            ..nvme()
        })
        .sentence
    };
    let said = [
        with(0.4 * MS, 0.9 * MS),
        with(2.0 * MS, 9.9 * MS),
        with(8.0 * MS, 9.0 * MS),
        with(8.0 * MS, 20.0 * MS),
        with(20.0 * MS, 90.0 * MS),
        with(3.0 * US, 4.0 * US),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

/// One disk got "not fit for etcd" and "fit for etcd" in one command, from intervals that held both.
#[test]
fn durable_writes_whose_interval_holds_a_limit_decide_nothing() {
    let with = |between: Option<(f64, f64)>, noisy: bool| {
        classify(&Evidence {
            sync_p50_ns: Some(2.0 * MS),
            sync_p99_ns: Some(12.0 * MS),
            sync_p99_between_ns: between,
            noisy,
            ..nvme()
        })
    };
    let open = with(Some((2.88 * MS, 14.0 * MS)), false);
    assert_eq!(open.durable_writes, None);
    insta::assert_snapshot!(open.sentence);
    assert_eq!(with(None, false).durable_writes, None);
    let slow = Some((11.0 * MS, 14.0 * MS));
    let known = with(slow, false);
    assert_eq!(known.durable_writes, Some(DurableWrites::LightDatabase));
    // Others may have made it slow.
    let noisy = with(slow, true);
    assert_eq!(noisy.durable_writes, None);
    insta::assert_snapshot!(noisy.sentence);
    let fast = with(Some((4.0 * MS, 9.0 * MS)), true);
    assert_eq!(fast.durable_writes, Some(DurableWrites::Database));
}

#[test]
fn one_slow_flush_of_a_few_decides_nothing() {
    let with = |p50_ns: f64, longest_ns: f64| {
        classify(&Evidence {
            sync_p50_ns: Some(p50_ns),
            sync_p99_ns: Some(longest_ns),
            sync_is_few: true,
            ..nvme()
        })
        .sentence
    };
    let said = [with(2.0 * MS, 10.5 * MS), with(0.4 * MS, 0.9 * MS)];
    insta::assert_snapshot!(said.join("\n"));
}
