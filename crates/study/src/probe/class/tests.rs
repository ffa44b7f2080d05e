use super::*;
use crate::figures::estimate::{LatencySummary, RateEstimate};
use crate::figures::phase_figure::PhaseFigure;
use crate::probe_phase::ProbePhase;
use crate::study_target::{StudyTarget, StudyTargetKind};
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

fn nvme() -> ClassEvidence {
    ClassEvidence {
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
        ..ClassEvidence::default()
    }
}

#[test]
fn pool_sentence_names_write_latency_without_fsync() {
    let pool = ClassEvidence {
        sync_p50_ns: None,
        sync_p99_ns: None,
        durable_write_p99_ns: Some(4.0 * MS),
        ..nvme()
    };
    let sentence = classify(&pool).sentence;
    let said = "A durable write takes 4.00 ms at p99.";
    assert!(sentence.ends_with(said), "{sentence}");
    let phases = StudyTargetKind::Pool { free_bytes: 0 }.phases();
    assert!(!phases.contains(&ProbePhase::SyncedWrite));
    assert_eq!(phases.len(), ProbePhase::MEASURED.len());
}

/// A row had 337 commits per second beside an fdatasync of 411 us.
#[test]
fn suitability_names_long_write_before_fdatasync() {
    let suitability = |write_ns: f64| {
        let evidence = ClassEvidence {
            sync_write_p50_ns: Some(write_ns),
            ..nvme()
        };
        classify(&evidence).suitability
    };
    let long = "(fdatasync takes 900 us at p99, after a write of 2.32 ms at p50).";
    let named = suitability(2.32 * MS);
    assert!(named.ends_with(long), "{named}");
    let short = suitability(4.0 * US);
    assert!(
        short.ends_with("(fdatasync takes 900 us at p99)."),
        "{short}"
    );
    let target = StudyTarget {
        name: "/data".to_owned(),
        path: "/data".to_owned(),
        kind: StudyTargetKind::Directory { free_bytes: 0 },
    };
    let figure = PhaseFigure {
        phase: ProbePhase::SyncedWrite,
        block_bytes: 4096,
        iodepth: 1,
        engine: Engine::Psync,
        direct: false,
        iops: RateEstimate::default(),
        bytes_per_s: RateEstimate::default(),
        latency: LatencySummary {
            p50_ns: Some(2_320_000),
            ..LatencySummary::default()
        },
        sync_latency: Some(LatencySummary::default()),
        measured_ns: 1,
        sure: None,
        settled: None,
        failure: None,
    };
    let found = ClassEvidence::from_figures(&target, &[figure], &[]);
    assert_eq!(found.sync_write_p50_ns, Some(2_320_000.0));
}

/// Three probes of one virtual disk on a busy machine, with figures of NVMe, SATA and memory.
#[test]
fn device_class_does_not_depend_on_figures() {
    let disk = device(DeviceClass::VirtualDisk, &["vda", "virtio_blk"]);
    for (read_ns, iops, stream) in [
        (5.0 * US, 400_000.0, 6e9),
        (82.0 * US, 93_000.0, 520e6),
        (120.0 * US, 410_000.0, 3.4e9),
        (9.0 * MS, 180.0, 170e6),
    ] {
        let found = classify(&ClassEvidence {
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
fn limit_shows_as_even_equal_reads_and_writes() {
    let gp3 = ClassEvidence {
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
    // Even reads alone do not show a limit: a good device has them too.
    assert_eq!(classify(&nvme()).limit_iops, None);
    let uneven = ClassEvidence {
        random_read_spread: Some(0.05),
        ..gp3.clone()
    };
    assert_eq!(classify(&uneven).limit_iops, None);
    let unknown = ClassEvidence {
        random_read_spread: None,
        ..gp3.clone()
    };
    assert_eq!(classify(&unknown).limit_iops, None);
    let throttled = ClassEvidence {
        throttled: true,
        ..unknown
    };
    let said = classify(&throttled).sentence;
    let held = "a control group limits random reads to 3.00k/s";
    assert!(said.contains(held), "{said}");
}

#[test]
fn cached_reads_keep_class_and_drop_figures() {
    let cached = ClassEvidence {
        served_from_cache: true,
        ..nvme()
    };
    let found = classify(&cached);
    assert_eq!(found.class, DeviceClass::NvmeSsd);
    assert!(found.served_from_cache);
    insta::assert_snapshot!(found.sentence);
    let unwritten = ClassEvidence {
        unwritten: true,
        ..nvme()
    };
    insta::assert_snapshot!(classify(&unwritten).sentence);
    let tmpfs = ClassEvidence {
        device: device(DeviceClass::Memory, &["tmpfs"]),
        served_from_cache: true,
        ..nvme()
    };
    insta::assert_snapshot!(classify(&tmpfs).sentence);
}

#[test]
fn noisy_run_qualifies_figures_not_device() {
    let noisy = ClassEvidence {
        noisy: true,
        ..nvme()
    };
    let sentence = classify(&noisy).sentence;
    let start = "This is an NVMe SSD (nvme0n1, PCIe). In this noisy run a 4 KiB read takes";
    assert!(sentence.starts_with(start), "{sentence}");
    let figure = |error: Option<f64>, sure: bool| PhaseFigure {
        phase: ProbePhase::RandomRead,
        block_bytes: 4096,
        iodepth: 32,
        engine: Engine::IoUring,
        direct: true,
        iops: RateEstimate {
            mean: 1000.0,
            error,
            spread: None,
        },
        bytes_per_s: RateEstimate::default(),
        latency: LatencySummary::default(),
        sync_latency: None,
        measured_ns: 1,
        sure: Some(sure),
        settled: None,
        failure: None,
    };
    let target = StudyTarget {
        name: "/data".to_owned(),
        path: "/data".to_owned(),
        kind: StudyTargetKind::Directory { free_bytes: 1 },
    };
    let noisy =
        |error, sure| ClassEvidence::from_figures(&target, &[figure(error, sure)], &[]).noisy;
    assert!(noisy(Some(300.0), false) && noisy(None, false));
    assert!(!noisy(Some(200.0), false) && !noisy(Some(5.0), true));
}

#[test]
fn unmeasured_figures_are_left_out() {
    let none = classify(&ClassEvidence::default());
    assert_eq!(none.class, DeviceClass::Unknown);
    insta::assert_snapshot!(none.sentence);
    let interrupted = ClassEvidence {
        sequential_read: None,
        ..nvme()
    };
    assert!(!classify(&interrupted).sentence.contains("sequential"));
}

#[test]
fn durable_write_latency_decides_suitability() {
    let with = |p50_ns: f64, p99_ns: f64| {
        classify(&ClassEvidence {
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

/// The interval contains the limit of 10 ms, so both answers are possible.
#[test]
fn durable_write_interval_across_limit_is_undecided() {
    let with = |between: Option<(f64, f64)>, noisy: bool| {
        classify(&ClassEvidence {
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
    // Interference may have slowed it down.
    let noisy = with(slow, true);
    assert_eq!(noisy.durable_writes, None);
    insta::assert_snapshot!(noisy.sentence);
    let fast = with(Some((4.0 * MS, 9.0 * MS)), true);
    assert_eq!(fast.durable_writes, Some(DurableWrites::Database));
}

#[test]
fn too_few_fsyncs_leave_suitability_undecided() {
    let with = |p50_ns: f64, longest_ns: f64| {
        classify(&ClassEvidence {
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

/// "Use a longer --runtime" did not say how long, and phases with a steady rate ended early anyway.
#[test]
fn undecided_suitability_names_the_command_that_decides_it() {
    let few = ClassEvidence {
        sync_p99_ns: Some(8.0 * MS),
        sync_p99_between_ns: None,
        sync_is_few: true,
        sync_calls: Some((750, 6_000_000_000)),
        target_arguments: "/data".to_owned(),
        ..nvme()
    };
    let ending = |evidence: &ClassEvidence| {
        let sentence = classify(evidence).suitability;
        let (_, remedy) = sentence.split_once("; ").unwrap();
        remedy.to_owned()
    };
    assert_eq!(
        ending(&few),
        "run `iosonde probe /data --precision 0 --runtime 12`."
    );
    // The interval has to shrink from 4 ms to 1 ms on either side: 16 times the time.
    let wide = ClassEvidence {
        sync_p99_ns: Some(11.0 * MS),
        sync_p99_between_ns: Some((7.0 * MS, 15.0 * MS)),
        sync_is_few: false,
        sync_calls: Some((6000, 6_000_000_000)),
        ..few.clone()
    };
    assert_eq!(
        ending(&wide),
        "run `iosonde probe /data --precision 0 --runtime 96`."
    );
    let at_the_limit = ClassEvidence {
        sync_p99_ns: Some(10.01 * MS),
        ..wide
    };
    assert_eq!(
        ending(&at_the_limit),
        "more than an hour of --runtime would decide it."
    );
}

#[test]
fn sentence_with_its_own_reasons_is_the_stored_one() {
    let noisy = ClassEvidence {
        noisy: true,
        ..nvme()
    };
    let cached = ClassEvidence {
        served_from_cache: true,
        ..nvme()
    };
    for evidence in [nvme(), noisy, cached, ClassEvidence::default()] {
        let found = classify(&evidence);
        let sentence = found.sentence_with(&found.reasons, evidence.noisy);
        assert_eq!(sentence, found.sentence);
    }
    let mut found = classify(&nvme());
    let mut figures = found.reasons.clone();
    figures[0] = "a 4 KiB read takes ~82 us at p50".to_owned();
    let sentence = found.sentence_with(&figures, false);
    let (before, after) = found.sentence.split_once(&found.reasons[0]).unwrap();
    assert_eq!(sentence, format!("{before}{}{after}", figures[0]));
    // Older versions stored the sentence only.
    found.suitability.clear();
    assert_eq!(found.sentence_with(&figures, false), found.sentence);
}

#[test]
fn suitability_is_the_end_of_the_sentence() {
    let found = classify(&nvme());
    let is_end = found.sentence.ends_with(&found.suitability);
    assert!(is_end && !found.suitability.is_empty(), "{found:?}");
    let cached = ClassEvidence {
        served_from_cache: true,
        ..nvme()
    };
    let suitability = classify(&cached).suitability;
    assert_eq!(
        suitability,
        "Suitability is not known: a cache served the reads."
    );
}
