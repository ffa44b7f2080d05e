//! What class of device the figures are like, and what it is fit for.
//!
//! The class is read from what was measured, not from what the device calls itself: a virtual disk has any name. The
//! limits are those of devices on the market: disks that turn need milliseconds to reach a block; SATA moves at most about
//! 560 MB/s; flash answers a 4 KiB read in 60 to 150 us, a volume over a network in 250 us or more; and a limit that is
//! sold shows as rates that hardly vary and are the same for reads and writes.

use super::figure::Figure;
use super::outcome::PhaseRun;
use super::phase::Phase;
use crate::words;
use iosonde_job::plan::Engine;
use iosonde_result::host::Locality;
use iosonde_result::run::VerdictKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// Classes of storage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// Memory that is made to look like a file system or disk.
    Memory,
    /// A cache in memory, in front of whatever it is.
    Cached,
    /// A disk that turns.
    HardDisk,
    /// Flash behind SATA, or as fast.
    SataSsd,
    /// Flash on PCI Express, or as fast.
    NvmeSsd,
    /// A device that answers small reads sooner than flash can: with memory in front of its medium, or a faster medium.
    FasterThanFlash,
    /// Block storage or a file system over a network.
    NetworkVolume,
    /// Storage whose rate is held at a limit.
    LimitedVolume,
    /// None of these.
    Unclear,
}

/// What is known of a target, as far as its class depends on it. `None` is what was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Median of 4 KiB reads, one at a time.
    pub read_p50_ns: Option<f64>,
    /// 4 KiB random reads per second.
    pub random_read_iops: Option<f64>,
    /// 4 KiB random writes per second.
    pub random_write_iops: Option<f64>,
    /// Standard deviation of random reads from second to second, as a share of their rate.
    pub random_read_spread: Option<f64>,
    /// Standard deviation of random writes, likewise.
    pub random_write_spread: Option<f64>,
    /// Sequential reads in bytes per second.
    pub sequential_read: Option<f64>,
    /// Median of fdatasync after a 4 KiB write.
    pub sync_p50_ns: Option<f64>,
    /// 99th percentile of it (the longest, where too few were measured).
    pub sync_p99_ns: Option<f64>,
    /// The interval of the 99th percentile, where it is known.
    pub sync_p99_between_ns: Option<(f64, f64)>,
    /// Too few were measured.
    pub sync_is_few: bool,
    /// 99th percentile of single writes where each is durable when it is acknowledged: in a pool of objects.
    pub durable_write_p99_ns: Option<f64>,
    /// The file system says that it is in memory.
    pub in_memory: bool,
    /// The file system says that it is on another machine.
    pub remote: bool,
    /// The device moved fewer bytes than were read.
    pub served_from_cache: bool,
    /// Blocks that were never written were read.
    pub unwritten: bool,
    /// A control group held the rate.
    pub throttled: bool,
    /// Reads did not use O_DIRECT.
    pub buffered: bool,
    /// The figures are known badly, or are those of a machine or device that others kept busy.
    pub noisy: bool,
}

/// A rate that is known worse than this share is not one to go by.
const KNOWN: f64 = 0.25;

/// Whether what a class rests on is more noise than device.
fn is_noisy(figures: &[Figure], runs: &[PhaseRun]) -> bool {
    let decides = |phase: Phase| {
        matches!(
            phase,
            Phase::ReadLatency | Phase::RandomRead | Phase::SequentialRead | Phase::SyncedWrite
        )
    };
    let is_vague = |figure: &Figure| {
        let error = figure.iops.error.unwrap_or(f64::INFINITY);
        figure.sure == Some(false) && error > KNOWN * figure.iops.mean
    };
    let is_disturbed = |kind| matches!(kind, VerdictKind::Generator | VerdictKind::Interference);
    // Others' I/O that did not hold the run back is a finding beside it, and no doubt.
    let mut held = runs.iter().filter(|run| decides(run.phase));
    let held_by_others = held.any(|run| {
        let bottleneck = run.result.bottleneck();
        bottleneck.is_some_and(|verdict| is_disturbed(verdict.kind))
    });
    let mut vague = figures.iter().filter(|figure| decides(figure.phase));
    held_by_others || vague.any(is_vague)
}

impl Evidence {
    /// What the figures and runs of a probe say.
    pub(super) fn of(figures: &[Figure], runs: &[PhaseRun]) -> Evidence {
        let find = |phase| figures.iter().find(|figure| figure.phase == phase);
        let rate = |phase| find(phase).map(|figure| figure.iops.mean);
        let spread = |phase| find(phase).and_then(|figure| figure.iops.spread);
        let sync = find(Phase::SyncedWrite).and_then(|figure| figure.sync_latency);
        let results = || runs.iter().map(|run| &run.result);
        let is_at = |locality| {
            results()
                .flat_map(|result| &result.targets)
                .filter_map(|target| target.mount.as_ref())
                .any(|mount| mount.locality == locality)
        };
        let read_verdict = |kind| {
            runs.iter()
                .filter(|run| matches!(run.phase, Phase::ReadLatency | Phase::RandomRead))
                .flat_map(|run| &run.result.verdicts)
                .any(|verdict| verdict.kind == kind)
        };
        Evidence {
            read_p50_ns: find(Phase::ReadLatency)
                .and_then(|figure| figure.latency.p50_ns)
                .map(|ns| ns as f64),
            random_read_iops: rate(Phase::RandomRead),
            random_write_iops: rate(Phase::RandomWrite),
            random_read_spread: spread(Phase::RandomRead),
            random_write_spread: spread(Phase::RandomWrite),
            sequential_read: find(Phase::SequentialRead).map(|figure| figure.bytes_per_s.mean),
            sync_p50_ns: sync.and_then(|sync| sync.p50_ns).map(|ns| ns as f64),
            sync_p99_ns: sync.map(|sync| sync.p99_ns.map_or(sync.max_ns, |ns| ns as f64)),
            sync_p99_between_ns: sync
                .and_then(|sync| sync.p99_between_ns)
                .map(|(low, high)| (low as f64, high as f64)),
            sync_is_few: sync.is_some_and(|sync| sync.p99_ns.is_none()),
            durable_write_p99_ns: find(Phase::WriteLatency)
                .filter(|_| {
                    results()
                        .flat_map(|result| &result.workers)
                        .any(|worker| worker.backend.engine == Engine::Rados)
                })
                .map(|figure| figure.latency)
                .map(|latency| latency.p99_ns.map_or(latency.max_ns, |ns| ns as f64)),
            in_memory: is_at(Locality::Memory),
            remote: is_at(Locality::Remote),
            served_from_cache: read_verdict(VerdictKind::ServedFromCache),
            unwritten: read_verdict(VerdictKind::UnwrittenData),
            throttled: results()
                .flat_map(|result| &result.verdicts)
                .any(|verdict| verdict.kind.is_throttle()),
            buffered: find(Phase::RandomRead).is_some_and(|figure| !figure.direct),
            noisy: is_noisy(figures, runs),
        }
    }
}

/// A class, the reasons for it, and what the target is fit for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classification {
    /// What it behaves like.
    pub class: DeviceClass,
    /// The limit in I/Os per second, for [`DeviceClass::LimitedVolume`].
    pub limit_iops: Option<f64>,
    /// The measurements that decided it, each in a few words.
    pub reasons: Vec<String>,
    /// What the time of durable writes is fit for; `None` where that was not measured, or is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_writes: Option<DurableWrites>,
    /// All of it in one sentence, which begins with "This", or says before that how noisy the run was.
    pub sentence: String,
}

/// Says what the evidence is like.
pub fn classify(evidence: &Evidence) -> Classification {
    let (class, reasons) = class_of(evidence);
    let limit_iops = evidence
        .random_read_iops
        .filter(|_| class == DeviceClass::LimitedVolume);
    Classification {
        class,
        limit_iops,
        durable_writes: durable_writes(evidence),
        sentence: sentence(class, evidence, &reasons),
        reasons,
    }
}

/// The first class whose marks are there. Marks of a cache come first: behind one, nothing else can be told.
fn class_of(evidence: &Evidence) -> (DeviceClass, Vec<String>) {
    let read = evidence.read_p50_ns;
    let reads = evidence.random_read_iops;
    let read_reason = read.map(|ns| format!("a 4 KiB read takes {}", words::latency(ns)));
    let rate_reason = reads.map(|rate| format!("{} random reads/s", words::iops(rate)));
    let both = || read_reason.iter().chain(&rate_reason).cloned().collect();
    if evidence.in_memory {
        let mut reasons = vec!["the file system is in memory".to_owned()];
        reasons.extend(read_reason);
        return (DeviceClass::Memory, reasons);
    }
    if evidence.unwritten {
        let reason = "reads met blocks that were never written".to_owned();
        return (DeviceClass::Unclear, vec![reason]);
    }
    if evidence.served_from_cache || (evidence.buffered && read.is_some_and(|ns| ns < 20.0 * US)) {
        let mut reasons = vec!["reads did not reach the device".to_owned()];
        reasons.extend(read_reason);
        return (DeviceClass::Cached, reasons);
    }
    if let Some(reasons) = limit_marks(evidence) {
        return (DeviceClass::LimitedVolume, reasons);
    }
    let (Some(read_ns), Some(reads)) = (read, reads) else {
        return (DeviceClass::Unclear, both());
    };
    let stream = evidence.sequential_read.unwrap_or(0.0);
    let stream_reason = evidence
        .sequential_read
        .map(|rate| format!("streams at {}", words::bandwidth(rate)));
    if evidence.remote {
        let mut reasons = vec!["the file system is on another machine".to_owned()];
        reasons.extend(both());
        return (DeviceClass::NetworkVolume, reasons);
    }
    let class = if read_ns < 8.0 * US {
        DeviceClass::Memory
    } else if read_ns < 40.0 * US {
        DeviceClass::FasterThanFlash
    } else if read_ns >= 2.0 * MS && reads < 2_000.0 {
        DeviceClass::HardDisk
    } else if read_ns >= 250.0 * US && reads >= 500.0 {
        DeviceClass::NetworkVolume
    } else if read_ns < 250.0 * US && (stream > 650e6 || reads > 105_000.0) {
        DeviceClass::NvmeSsd
    } else if read_ns < 250.0 * US && reads > 5_000.0 {
        DeviceClass::SataSsd
    } else {
        DeviceClass::Unclear
    };
    let mut reasons: Vec<String> = both();
    reasons.extend(stream_reason);
    (class, reasons)
}

/// Rates that a limit holds: as even as devices never are, and the same both ways; or a control group's word.
fn limit_marks(evidence: &Evidence) -> Option<Vec<String>> {
    let reads = evidence.random_read_iops?;
    if evidence.throttled {
        return Some(vec![format!(
            "a control group holds random reads at {}/s",
            words::iops(reads)
        )]);
    }
    // A disk that turns is as fast both ways by its nature.
    if evidence.read_p50_ns.is_some_and(|ns| ns >= 2.0 * MS) {
        return None;
    }
    let writes = evidence.random_write_iops?;
    let even = |spread: Option<f64>| spread.is_some_and(|spread| spread < 0.01);
    let is_even = even(evidence.random_read_spread) && even(evidence.random_write_spread);
    let is_equal = (reads - writes).abs() < 0.03 * reads;
    (is_even && is_equal && reads >= 50.0).then(|| {
        vec![format!(
            "random reads and writes both stay at {}/s within 1 %",
            words::iops(reads)
        )]
    })
}

fn sentence(class: DeviceClass, evidence: &Evidence, reasons: &[String]) -> String {
    let name = match class {
        DeviceClass::Memory => "memory",
        DeviceClass::Cached => {
            "a cache in memory, so nothing can be said about the device behind it"
        }
        DeviceClass::HardDisk => "a hard disk",
        DeviceClass::SataSsd => "a SATA SSD",
        DeviceClass::NvmeSsd => "an NVMe SSD",
        DeviceClass::FasterThanFlash => {
            "storage with memory in front of it, as flash alone takes 60 us or more for a read"
        }
        DeviceClass::NetworkVolume => "storage over a network",
        DeviceClass::LimitedVolume => "a volume with a limit on its I/O rate",
        DeviceClass::Unclear => "no class of device that is known here",
    };
    let because = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join(", "))
    };
    let subject = match evidence.noisy {
        true => "As far as this noisy run can tell, this",
        false => "This",
    };
    if evidence.unwritten {
        return format!(
            "What this behaves like cannot be told{because}: {}.",
            fitness(class, evidence)
        );
    }
    match (class, evidence.sync_p99_ns) {
        // What is fit is the device, of which nothing is known.
        (DeviceClass::Cached, flush) => {
            let flush = flush.map(|ns| format!("; {}", flush_in_words(evidence, ns)));
            let flush = flush.unwrap_or_default();
            format!("{subject} behaves like {name}{because}, nor about what it is fit for{flush}.")
        }
        _ => format!(
            "{subject} behaves like {name}{because}: {}.",
            fitness(class, evidence)
        ),
    }
}

/// What it is fit for, which the time of a durable write decides more than anything else.
fn fitness(class: DeviceClass, evidence: &Evidence) -> String {
    if class == DeviceClass::Memory && evidence.in_memory {
        return "fit for scratch data, nothing on it survives a restart".to_owned();
    }
    let (Some(p50), Some(p99)) = (evidence.sync_p50_ns, evidence.sync_p99_ns) else {
        if let Some(p99) = evidence.durable_write_p99_ns {
            let write = words::latency(p99);
            return format!("a write, durable when it is acknowledged, takes {write} at p99");
        }
        return match evidence.sync_p99_ns {
            Some(longest) => undecided(evidence, longest),
            None => "durable writes were not measured, so suitability for databases is unknown"
                .to_owned(),
        };
    };
    let flush = flush_in_words(evidence, p99);
    if p50 < 8.0 * US {
        return format!(
            "fdatasync returns in {}, before anything can have reached a medium, so what it acknowledges may not survive a power failure",
            words::latency(p50)
        );
    }
    let Some(durable) = durable_writes(evidence) else {
        return undecided(evidence, p99);
    };
    match durable {
        DurableWrites::BusyDatabase => format!("suits a busy database's log ({flush})"),
        DurableWrites::Database if p50 > 3.0 * MS => format!(
            "suits files, streams and lightly used databases, and etcd, which asks for 10 ms ({flush})"
        ),
        DurableWrites::Database => {
            format!("suits databases and etcd, which asks for 10 ms ({flush})")
        }
        DurableWrites::LightDatabase => format!(
            "suits files and lightly used databases, not etcd, which asks for 10 ms ({flush})"
        ),
        DurableWrites::Files => {
            format!("suits files, backups and streams, not a database's log ({flush})")
        }
    }
}

/// What the time of durable writes is fit for, the fastest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DurableWrites {
    /// fdatasync takes 1 ms or less at p99.
    BusyDatabase,
    /// 10 ms or less, which etcd asks for.
    Database,
    /// 50 ms or less.
    LightDatabase,
    /// More.
    Files,
}

/// What the time of a durable write is fit for, where its whole interval says the same; `None` where that is undecided. What
/// disturbed a run made it slower: then only that it is fast is known of the device.
fn durable_writes(evidence: &Evidence) -> Option<DurableWrites> {
    let fit = |p99_ns: f64| match p99_ns {
        ns if ns <= MS => DurableWrites::BusyDatabase,
        ns if ns <= 10.0 * MS => DurableWrites::Database,
        ns if ns <= 50.0 * MS => DurableWrites::LightDatabase,
        _ => DurableWrites::Files,
    };
    let (low, high) = evidence.sync_p99_between_ns?;
    // That it suits databases is carried by the upper end alone.
    let is_fast = fit(high) <= DurableWrites::Database;
    let is_known = is_fast || (fit(low) == fit(high) && !evidence.noisy);
    (is_known && !evidence.sync_is_few).then(|| fit(high))
}

/// That it is not known what it is fit for, and what would decide it.
fn undecided(evidence: &Evidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    let why = match evidence.sync_p99_between_ns {
        _ if evidence.sync_is_few => {
            format!("too few fdatasync were measured, the longest took {time}")
        }
        Some((low, high)) if !evidence.noisy => format!(
            "fdatasync takes {time} at p99, which may be {} to {}",
            words::latency(low),
            words::latency(high)
        ),
        Some(_) => format!("fdatasync takes {time} at p99 beside what disturbed the run"),
        None => format!("fdatasync takes {time} at p99, and its interval is not known"),
    };
    let what = match evidence.noisy {
        true => "a quiet machine and device decide it",
        false => "a longer --runtime decides it",
    };
    format!("whether it suits databases and etcd is undecided: {why}; {what}")
}

/// The time of nearly all flushes, or the longest where more cannot be said.
fn flush_in_words(evidence: &Evidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    match evidence.sync_is_few {
        true => format!("the longest fdatasync took {time}"),
        false => format!("fdatasync takes {time} at p99"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::TargetKind;

    fn nvme() -> Evidence {
        Evidence {
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

    fn class(evidence: &Evidence) -> DeviceClass {
        classify(evidence).class
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
        let said = "a write, durable when it is acknowledged, takes 4.00 ms at p99.";
        assert!(sentence.ends_with(said), "{sentence}");
        let phases = TargetKind::Pool { free_bytes: 0 }.phases();
        assert!(!phases.contains(&Phase::SyncedWrite));
        assert_eq!(phases.len(), Phase::MEASURED.len());
    }

    #[test]
    fn devices_of_the_market() {
        assert_eq!(class(&nvme()), DeviceClass::NvmeSsd);
        let sata = Evidence {
            random_read_iops: Some(92_000.0),
            sequential_read: Some(540e6),
            read_p50_ns: Some(110.0 * US),
            ..nvme()
        };
        assert_eq!(class(&sata), DeviceClass::SataSsd);
        let disk = Evidence {
            read_p50_ns: Some(8.0 * MS),
            random_read_iops: Some(180.0),
            random_write_iops: Some(300.0),
            sequential_read: Some(180e6),
            ..nvme()
        };
        assert_eq!(class(&disk), DeviceClass::HardDisk);
        let ceph = Evidence {
            read_p50_ns: Some(600.0 * US),
            random_read_iops: Some(38_000.0),
            random_write_iops: Some(17_000.0),
            sequential_read: Some(1.1e9),
            ..nvme()
        };
        assert_eq!(class(&ceph), DeviceClass::NetworkVolume);
        let virtual_disk = Evidence {
            read_p50_ns: Some(20.0 * US),
            ..nvme()
        };
        assert_eq!(class(&virtual_disk), DeviceClass::FasterThanFlash);
        let nfs = Evidence {
            remote: true,
            read_p50_ns: Some(200.0 * US),
            ..nvme()
        };
        assert_eq!(class(&nfs), DeviceClass::NetworkVolume);
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
        assert_eq!(class(&gp3), DeviceClass::LimitedVolume);
        assert_eq!(classify(&gp3).limit_iops, Some(3_003.0));
        // An even rate of reads alone is what a good device has.
        assert_eq!(class(&nvme()), DeviceClass::NvmeSsd);
        let uneven = Evidence {
            random_read_spread: Some(0.05),
            ..gp3.clone()
        };
        assert_eq!(class(&uneven), DeviceClass::NetworkVolume);
        let unknown = Evidence {
            random_read_spread: None,
            ..gp3
        };
        assert_eq!(class(&unknown), DeviceClass::NetworkVolume);
    }

    #[test]
    fn nothing_is_said_about_what_is_behind_a_cache() {
        let cached = Evidence {
            served_from_cache: true,
            ..nvme()
        };
        assert_eq!(class(&cached), DeviceClass::Cached);
        let sentence = classify(&cached).sentence;
        assert!(!sentence.contains("suits"), "{sentence}");
        assert!(
            sentence.contains("nor about what it is fit for"),
            "{sentence}"
        );
        let buffered = Evidence {
            buffered: true,
            read_p50_ns: Some(2.0 * US),
            ..nvme()
        };
        assert_eq!(class(&buffered), DeviceClass::Cached);
        let tmpfs = Evidence {
            in_memory: true,
            ..nvme()
        };
        assert_eq!(class(&tmpfs), DeviceClass::Memory);
        assert!(classify(&tmpfs).sentence.contains("survives a restart"));
    }

    #[test]
    fn a_noisy_run_says_so_first() {
        let noisy = Evidence {
            noisy: true,
            ..nvme()
        };
        let sentence = classify(&noisy).sentence;
        let start = "As far as this noisy run can tell, this behaves like an NVMe SSD";
        assert!(sentence.starts_with(start), "{sentence}");
        let figure = |error: Option<f64>, sure: bool| Figure {
            phase: Phase::RandomRead,
            block_bytes: 4096,
            iodepth: 32,
            engine: Engine::IoUring,
            direct: true,
            iops: crate::probe::Estimate {
                mean: 1000.0,
                error,
                spread: None,
            },
            bytes_per_s: crate::probe::Estimate::default(),
            latency: crate::probe::Latency::default(),
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
        assert_eq!(none.class, DeviceClass::Unclear);
        let interrupted = Evidence {
            sequential_read: None,
            ..nvme()
        };
        assert!(!classify(&interrupted).sentence.contains("streams"));
        assert!(none.sentence.contains("were not measured"));
        let slow_and_rare = Evidence {
            read_p50_ns: Some(700.0 * US),
            random_read_iops: Some(90.0),
            ..nvme()
        };
        assert_eq!(class(&slow_and_rare), DeviceClass::Unclear);
    }

    #[test]
    fn durable_writes_decide_what_it_is_fit_for() {
        let with = |p50_ns: f64, p99_ns: f64| {
            classify(&Evidence {
                sync_p50_ns: Some(p50_ns),
                sync_p99_ns: Some(p99_ns),
                sync_p99_between_ns: Some((0.99 * p99_ns, 1.01 * p99_ns)),
                ..nvme()
            })
            .sentence
        };
        insta::assert_snapshot!(with(0.4 * MS, 0.9 * MS));
        insta::assert_snapshot!(with(2.0 * MS, 9.9 * MS));
        insta::assert_snapshot!(with(8.0 * MS, 9.0 * MS));
        insta::assert_snapshot!(with(8.0 * MS, 20.0 * MS));
        insta::assert_snapshot!(with(20.0 * MS, 90.0 * MS));
        insta::assert_snapshot!(with(3.0 * US, 4.0 * US));
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
        insta::assert_snapshot!(with(2.0 * MS, 10.5 * MS));
        insta::assert_snapshot!(with(0.4 * MS, 0.9 * MS));
    }
}
