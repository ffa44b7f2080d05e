use super::*;
use crate::compare::{Measure, Subject, parts};
use crate::document::{self, ReadError};
use crate::interval::{Interval, IntervalCounts};
use crate::nodes::tests::empty;
use crate::run::{BackendUsed, CpuUse, DirectionStats, RunEvent, SyncStats};
use crate::stats::LatencyStats;
use iosonde_job::plan::{Engine, Job, LatencyTarget, PerDirection, SyncMode};

const SECOND_NS: u64 = 1_000_000_000;

/// A second with `ios` reads.
fn interval(second: u64, ios: u64, lat_ns: u64) -> Interval {
    let mut interval = Interval {
        start_ns: second * SECOND_NS,
        length_ns: SECOND_NS,
        ..Interval::default()
    };
    interval.directions.read = IntervalCounts {
        ios,
        bytes: ios * 4096,
    };
    interval.latency.record_n(lat_ns, ios);
    interval
}

/// Ten seconds from `start_s` on, in which one clone reads `ios` blocks of 4 KiB, each in `lat_ns`.
fn run(name: &str, start_s: u64, ios: u64, lat_ns: u64) -> RunToMerge {
    let mut lat = LatencyStats::default();
    lat.histogram.get_or_insert_default().record_n(lat_ns, ios);
    lat.moments = Moments {
        count: ios,
        min: lat_ns as f64,
        max: lat_ns as f64,
        mean: lat_ns as f64,
        m2: 0.0,
    };
    let read = DirectionStats {
        io_bytes: ios * 4096,
        total_ios: ios,
        runtime_ns: 10 * SECOND_NS,
        lat,
        ..DirectionStats::default()
    };
    let worker = WorkerResult {
        job: 0,
        clone: 0,
        groupid: 0,
        tid: 1,
        backend: BackendUsed {
            engine: Engine::IoUring,
            asked: Engine::IoUring,
            reason: None,
            direct: true,
            registered_files: false,
            fixed_buffers: false,
            flags: Vec::new(),
            ceph: None,
        },
        started_at_ms: start_s * 1000,
        start_delay_ns: 0,
        runtime_ns: 10 * SECOND_NS,
        elapsed_ns: 10 * SECOND_NS,
        directions: PerDirection {
            read,
            ..PerDirection::default()
        },
        sync: SyncStats::default(),
        cpu: CpuUse::default(),
        iodepth_level: [0; 7],
        iodepth_submit: [0; 7],
        iodepth_complete: [0; 7],
        latency_depth: 1,
        steady_state: None,
        error: None,
        total_errors: 0,
        first_error: 0,
        only_ramp: None,
    };
    let mut result = empty();
    result.started_at_ms = start_s * 1000;
    result.elapsed_ns = 10 * SECOND_NS;
    result.plan.jobs = vec![Job::new("randread")];
    result.workers = vec![worker];
    result.intervals = (0..10)
        .map(|second| interval(second, ios / 10, lat_ns))
        .collect();
    RunToMerge {
        name: name.to_owned(),
        id: None,
        kind: "fio".to_owned(),
        result,
        members: Vec::new(),
    }
}

fn figure(sum: &RunResult, measure: Measure) -> f64 {
    let parts = parts(sum);
    assert_eq!(parts.len(), 1, "both runs are one part");
    parts[0].figure(Subject::Read, measure).unwrap().value
}

#[test]
fn rates_of_runs_at_the_same_time_add_up() {
    let runs = vec![run("a", 100, 10_000, 50_000), run("b", 100, 30_000, 90_000)];
    let (sum, summary) = merge_runs(runs, None).unwrap();
    assert_eq!(summary.timing, MergeTiming::Parallel);
    assert_eq!(figure(&sum, Measure::Iops), 4000.0);
    // A quarter of the reads took 50 us.
    let p50 = figure(&sum, Measure::LatP50);
    assert!((p50 - 90_000.0).abs() < 500.0, "{p50}");
    assert_eq!(sum.plan.jobs[0].numjobs, 2);
    assert_eq!((sum.intervals.len(), sum.elapsed_ns), (10, 10 * SECOND_NS));
    assert!(sum.pods.is_empty() && sum.labels.is_empty());
}

#[test]
fn times_of_runs_one_after_another_add_up() {
    let runs = vec![run("b", 200, 30_000, 90_000), run("a", 100, 10_000, 50_000)];
    let (sum, summary) = merge_runs(runs, None).unwrap();
    assert_eq!(summary.timing, MergeTiming::Serial);
    assert_eq!(summary.runs[0].name, "a", "the earlier run is first");
    assert_eq!(figure(&sum, Measure::Iops), 2000.0);
    assert_eq!(sum.plan.jobs[0].numjobs, 1);
    assert_eq!((sum.intervals.len(), sum.elapsed_ns), (20, 20 * SECOND_NS));
    let last = sum.intervals.last().unwrap();
    assert_eq!(
        (last.start_ns, last.directions.read.ios),
        (19 * SECOND_NS, 3000)
    );
    let lat = &sum.workers[0].directions.read.lat;
    assert_eq!(lat.histogram.as_ref().unwrap().total(), 40_000);
    assert_eq!(sum.started_at_ms, 100_000);
}

#[test]
fn runs_that_overlap_in_part_need_a_timing() {
    let runs = || vec![run("a", 100, 10_000, 50_000), run("b", 105, 10_000, 50_000)];
    let error = merge_runs(runs(), None).unwrap_err();
    assert!(matches!(error, MergeError::PartlyAtOnce { .. }));
    let (sum, _) = merge_runs(runs(), Some(MergeTiming::Parallel)).unwrap();
    assert_eq!(figure(&sum, Measure::Iops), 2000.0);
    let (sum, _) = merge_runs(runs(), Some(MergeTiming::Serial)).unwrap();
    assert_eq!(figure(&sum, Measure::Iops), 1000.0);
}

#[test]
fn runs_that_only_lay_out_files_at_the_same_time_are_serial() {
    let mut runs = vec![run("a", 100, 10_000, 50_000), run("b", 110, 10_000, 50_000)];
    for run in &mut runs {
        // Both lay out files for 100 s before their ten seconds of I/O.
        run.result.started_at_ms -= 100 * 1000;
        run.result.elapsed_ns += 100 * SECOND_NS;
    }
    let (sum, summary) = merge_runs(runs, None).unwrap();
    assert_eq!(summary.timing, MergeTiming::Serial);
    assert_eq!(figure(&sum, Measure::Iops), 1000.0);
}

#[test]
fn run_and_a_sum_that_contains_it_are_refused() {
    let single = || run("a", 100, 10_000, 50_000);
    let runs = vec![single(), run("b", 200, 30_000, 90_000)];
    let (result, summary) = merge_runs(runs, None).unwrap();
    let sum = RunToMerge {
        name: "sum".to_owned(),
        id: None,
        kind: "fio".to_owned(),
        result,
        members: summary.runs,
    };
    let error = merge_runs(vec![sum.clone(), single()], Some(MergeTiming::Serial)).unwrap_err();
    assert_eq!(
        format!("{error}; {}", error.remedy()),
        "sum and a both contain the run a, which would count twice; name the single runs, each \
         once, instead of their sum"
    );
    let third = run("c", 300, 10_000, 50_000);
    let (result, summary) = merge_runs(vec![sum, third], Some(MergeTiming::Serial)).unwrap();
    let iops = figure(&result, Measure::Iops);
    assert!((iops - 5000.0 / 3.0).abs() < 0.01, "{iops}");
    let of_sums = RunToMerge {
        name: "of sums".to_owned(),
        id: None,
        kind: "fio".to_owned(),
        result,
        members: summary.runs,
    };
    let error = merge_runs(vec![of_sums, single()], Some(MergeTiming::Serial)).unwrap_err();
    assert!(matches!(error, MergeError::Contained { .. }));
}

#[test]
fn run_with_a_worker_of_no_job_is_not_read() {
    let mut result = run("a", 100, 10_000, 50_000).result;
    let text = serde_json::to_string(&result).unwrap();
    assert!(document::read_run_result(&text).is_ok());
    result.workers[0].job = 1;
    let text = serde_json::to_string(&result).unwrap();
    assert!(matches!(
        document::read_run_result(&text),
        Err(ReadError::Damaged(_))
    ));
}

/// A simulated run: it has no start, so runs of one seed are equal.
fn simulated(name: &str, id: Option<&str>) -> RunToMerge {
    RunToMerge {
        id: id.map(str::to_owned),
        ..run(name, 0, 10_000, 50_000)
    }
}

#[test]
fn simulated_runs_of_one_seed_are_two_runs() {
    let all = |ids: [Option<&str>; 2]| {
        let runs = vec![simulated("a", ids[0]), simulated("b", ids[1])];
        merge_runs(runs, Some(MergeTiming::Serial))
    };
    let (result, summary) = all([Some("1a.1"), Some("2b.1")]).unwrap();
    assert_eq!(figure(&result, Measure::Iops), 1000.0);
    // One run under two names, and runs of files, may be the same.
    for ids in [[Some("1a.1"); 2], [None; 2]] {
        assert!(matches!(all(ids), Err(MergeError::Twice { .. })), "{ids:?}");
    }
    let sum = RunToMerge {
        members: summary.runs,
        result,
        ..simulated("sum", Some("3c.1"))
    };
    let third = simulated("c", Some("4d.1"));
    assert!(merge_runs(vec![sum.clone(), third], Some(MergeTiming::Serial)).is_ok());
    let contained = simulated("a", Some("1a.1"));
    let error = merge_runs(vec![sum, contained], Some(MergeTiming::Serial)).unwrap_err();
    assert!(matches!(error, MergeError::Contained { .. }), "{error:?}");
}

#[test]
fn parallel_sum_of_serial_runs_names_their_times() {
    let runs = || vec![run("a", 100, 10_000, 50_000), run("b", 200, 10_000, 50_000)];
    let (sum, _) = merge_runs(runs(), Some(MergeTiming::Parallel)).unwrap();
    assert_eq!(sum.notes.len(), 2, "{:?}", sum.notes);
    let note = &sum.notes[1];
    let is_named = note.contains("one after another") && note.contains("b from ");
    assert!(is_named, "{note}");
    let (sum, _) = merge_runs(runs(), Some(MergeTiming::Serial)).unwrap();
    assert_eq!(sum.notes.len(), 1);
}

#[test]
fn events_of_serial_runs_follow_one_another() {
    let mut runs = vec![run("a", 100, 10_000, 50_000), run("b", 200, 10_000, 50_000)];
    for run in &mut runs {
        run.result.events.push(RunEvent {
            at_ns: SECOND_NS,
            message: "throttled".to_owned(),
        });
    }
    let (sum, _) = merge_runs(runs, None).unwrap();
    let times: Vec<u64> = sum.events.iter().map(|event| event.at_ns).collect();
    assert_eq!(times, [SECOND_NS, 11 * SECOND_NS]);
}

#[test]
fn durable_or_paced_runs_are_unlike_others() {
    let mut durable = run("b", 200, 10_000, 50_000);
    durable.result.plan.jobs[0].io.sync = SyncMode::Dsync;
    let mut paced = run("b", 200, 10_000, 50_000);
    paced.result.plan.jobs[0].schedule.latency_target = Some(LatencyTarget {
        target_ns: 1_000_000,
        window_ns: SECOND_NS,
        percentile: 99.0,
        run: false,
    });
    for (other, property) in [(durable, "sync"), (paced, "latency_target")] {
        let error = merge_runs(vec![run("a", 100, 10_000, 50_000), other], None).unwrap_err();
        let MergeError::Unlike { differences, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(differences[0].property, property);
    }
}

#[test]
fn unlike_runs_are_refused_with_their_differences() {
    let like = || run("a", 100, 10_000, 50_000);
    let mut other_depth = run("b", 200, 10_000, 50_000);
    other_depth.result.plan.jobs[0].io.iodepth = 32;
    other_depth.result.plan.jobs[0].workload.rwmix_read_percent = 70;
    let mut other_kind = run("b", 200, 10_000, 50_000);
    other_kind.kind = "probe".to_owned();
    let mut other_job = run("b", 200, 10_000, 50_000);
    other_job.result.plan.jobs[0].name = "write".to_owned();
    let mut idle = run("b", 200, 10_000, 50_000);
    idle.result.workers.clear();
    let same = RunToMerge {
        name: "b".to_owned(),
        ..like()
    };
    let all = [other_depth, other_kind, other_job, idle, same, like()];
    let mut texts: Vec<String> = all
        .into_iter()
        .map(|other| {
            let error = merge_runs(vec![like(), other], None).unwrap_err();
            format!("{error}; {}", error.remedy())
        })
        .collect();
    let alone = merge_runs(vec![like()], None).unwrap_err();
    texts.push(alone.to_string());
    insta::assert_snapshot!(texts.join("\n"), @r#"
    a and b differ: randread: iodepth is 1 and 32; randread: rwmix_read_percent is 50 and 70; merge runs of the same jobs; `iosonde compare` shows runs that differ side by side
    a and b differ: kind is fio and probe; merge runs of the same jobs; `iosonde compare` shows runs that differ side by side
    a and b differ: jobs is randread and write; merge runs of the same jobs; `iosonde compare` shows runs that differ side by side
    the run b has no I/O; leave the run out
    a and b are the same measurement; name each run once
    the run a is named twice; name each run once
    a sum needs at least two runs
    "#);
}
