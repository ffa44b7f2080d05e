//! fio's formats of results made by hand: sums over groups and directions, errors, stacked disks.

use super::aggregate::FioReport;
use super::json::{json_in, write_json};
use super::terse::{TerseVersion, write_terse};
use super::text::write_normal_in;
use crate::run::*;
use crate::sample_run::{direction, latency, result, worker};
use iosonde_job::plan::*;
use jiff::tz::TimeZone;

fn job(name: &str, mode: ReadWriteMode) -> Job {
    let mut job = Job::new(name);
    job.workload.rw = ReadWrite { mode, random: true };
    job.given = vec![GivenOption {
        name: "name".into(),
        value: name.into(),
    }];
    job
}

fn mixed(reads: u64, writes: u64) -> PerDirection<DirectionStats> {
    PerDirection {
        read: direction(reads, 80_000),
        write: direction(writes, 20_000),
        trim: DirectionStats::default(),
    }
}

/// Two clones that report as a group, then a job of its own in the next group.
fn grouped() -> RunResult {
    let mut first = job("grouped", ReadWriteMode::ReadWrite);
    first.numjobs = 2;
    first.measure.group_reporting = true;
    let mut second = job("alone", ReadWriteMode::Write);
    second.groupid = 1;
    let mut last = worker(1, 0, mixed(0, 700));
    last.directions.read = DirectionStats::default();
    last.groupid = 1;
    last.sync = SyncStats {
        total_ios: 7,
        other_than_fsync: 0,
        lat: latency((1..=7).map(|i| i * 100_000)),
    };
    let workers = vec![
        worker(0, 0, mixed(1000, 500)),
        worker(0, 1, mixed(1200, 600)),
        last,
    ];
    result(vec![first, second], workers)
}

fn normal(result: &RunResult) -> String {
    let mut text = Vec::new();
    write_normal_in(&mut text, result, &TimeZone::UTC).unwrap();
    String::from_utf8(text).unwrap()
}

fn json(result: &RunResult) -> String {
    let mut text = Vec::new();
    write_json(&mut text, &json_in(result, false, &TimeZone::UTC)).unwrap();
    String::from_utf8(text).unwrap()
}

fn terse(result: &RunResult, version: TerseVersion) -> String {
    let mut text = Vec::new();
    write_terse(&mut text, result, version).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn group_reporting_sums_clones() {
    let result = grouped();
    insta::assert_snapshot!("grouped.normal", normal(&result));
    insta::assert_snapshot!("grouped.json", json(&result));
    let versions = [
        TerseVersion::V2,
        TerseVersion::V3,
        TerseVersion::V4,
        TerseVersion::V5,
    ];
    let all: Vec<String> = versions.map(|version| terse(&result, version)).into();
    insta::assert_snapshot!("grouped.terse", all.concat());
}

#[test]
fn group_members_are_summed() {
    let result = grouped();
    let report = FioReport::from_run(&result);
    assert_eq!(report.entries.len(), 2);
    let sum = &report.entries[0];
    assert_eq!((sum.members, sum.tid, sum.groupid), (2, 4242, 0));
    assert_eq!(sum.directions.read.total_ios, 2200);
    assert_eq!(sum.directions.read.clat.moments.count, 2200);
    assert_eq!(sum.directions.read.runtime_ns, 2_000_300_000);
    assert_eq!(sum.job_runtime_ms, 4000);
    // Rates of members that run side by side add up: minimum, maximum and mean.
    assert_eq!(sum.directions.read.iops.mean, 500.0 + 600.0);
    assert_eq!(sum.directions.read.iops.min, 375.0 + 450.0);
    assert_eq!(sum.directions.read.iops.count, 6);
    assert_eq!(report.groups.len(), 2);
    assert_eq!(report.groups[1].directions.read, None);
}

#[test]
fn group_has_first_name_and_last_options_of_its_sections() {
    let mut result = grouped();
    let job = &mut result.plan.jobs[1];
    (job.groupid, job.measure.group_reporting) = (0, true);
    result.workers[2].groupid = 0;
    let report = FioReport::from_run(&result);
    assert_eq!(report.entries.len(), 1);
    assert_eq!(report.entries[0].job.name, "grouped");
    assert_eq!(report.entries[0].last.name, "alone");
    let json: serde_json::Value = serde_json::from_str(&json(&result)).unwrap();
    let listed = &json["jobs"][0]["job options"];
    assert_eq!(listed["name"], "alone");
}

#[test]
fn without_group_reporting_clones_stand_alone() {
    let mut result = grouped();
    result.plan.jobs[0].measure.group_reporting = false;
    let report = FioReport::from_run(&result);
    assert_eq!(report.entries.len(), 3);
    let read = report.groups[0].directions.read.unwrap();
    assert_eq!(read.io_bytes, 2200 * 4096);
    // 2001 ms: runtimes are rounded up.
    assert_eq!(
        read.bytes_per_second,
        (1000 * 4096 * 1000 / 2001, 1200 * 4096 * 1000 / 2001)
    );
}

#[test]
fn jobs_without_stats_are_left_out() {
    let mut result = grouped();
    result.plan.jobs[0].measure.stats = false;
    let report = FioReport::from_run(&result);
    assert_eq!(report.entries.len(), 1);
    assert_eq!(report.entries[0].job.name, "alone");
    assert!(normal(&result).contains("Run status group 0 (all jobs):\n\n"));
}

#[test]
fn unified_reporting_adds_mixed_figures() {
    let mut result = grouped();
    for job in &mut result.plan.jobs {
        job.measure.unified = UnifiedReporting::Both;
    }
    insta::assert_snapshot!("unified-both.normal", normal(&result));
    let both = json_in(&result, false, &TimeZone::UTC);
    assert_eq!(both["jobs"][0]["mixed"]["total_ios"], 3300);
    assert_eq!(both["jobs"][0]["read"]["total_ios"], 2200);
    for job in &mut result.plan.jobs {
        job.measure.unified = UnifiedReporting::Mixed;
    }
    let mixed = json_in(&result, false, &TimeZone::UTC);
    assert_eq!(mixed["jobs"][0]["mixed"], both["jobs"][0]["mixed"]);
    assert!(mixed["jobs"][0].get("read").is_none());
}

#[test]
fn group_reports_its_first_failure() {
    let mut result = grouped();
    result.workers[1].error = Some(IoFailure {
        errno: 28,
        operation: "write".into(),
        file: Some("/mnt/f".into()),
        offset: Some(4096),
        message: "free space on /mnt".into(),
    });
    assert!(normal(&result).contains(
        "grouped: (groupid=0, jobs=2): err=28 (file:/mnt/f, func=write, error=No space left on \
         device): pid=4242: "
    ));
    assert_eq!(
        json_in(&result, false, &TimeZone::UTC)["jobs"][0]["error"],
        28
    );
    assert_eq!(FioReport::from_run(&result).entries[1].errno, 0);
}

#[test]
fn survived_errors_are_counted() {
    let mut result = grouped();
    result.plan.jobs[1].errors.continue_write = true;
    result.workers[2].total_errors = 3;
    result.workers[2].first_error = 5;
    let json = json_in(&result, false, &TimeZone::UTC);
    assert_eq!(json["jobs"][1]["error"], 5);
    assert_eq!(json["jobs"][1]["total_err"], 3);
    assert_eq!(json["jobs"][1]["first_error"], 5);
    assert!(json["jobs"][0].get("total_err").is_none());
    let text = normal(&result);
    assert!(
        text.contains("err= 5 (error=Input/output error): pid="),
        "{text}"
    );
    assert!(text.contains("     errors    : total=3, first_error=5/<Input/output error>\n"));
    assert!(terse(&result, TerseVersion::V3).ends_with(";3;5\n"));
}

#[test]
fn group_shows_each_priority_of_its_clones() {
    let mut result = grouped();
    let json_of = |result: &RunResult| json_in(result, false, &TimeZone::UTC);
    assert!(json_of(&result)["jobs"][0]["read"].get("prios").is_none());
    let mut other = result.plan.jobs[0].clone();
    other.io.ioprio = Some(IoPriority { class: 2, level: 3 });
    result.plan.jobs.push(other);
    result.workers[1].job = 2;
    let json = json_of(&result);
    let prios = json["jobs"][0]["read"]["prios"].as_array().unwrap();
    let shown: Vec<_> = prios
        .iter()
        .map(|each| (&each["prioclass"], &each["prio"], &each["clat_ns"]["N"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&0.into(), &0.into(), &1000.into()),
            (&2.into(), &3.into(), &1200.into())
        ]
    );
    let text = normal(&result);
    assert!(text.contains("    clat prio 2/3 (nsec): min="), "{text}");
    assert!(
        text.contains("    clat prio 2/3 (54.55% of IOs) percentiles (nsec):\n"),
        "{text}"
    );
}

#[test]
fn constant_latency_at_a_bound_counts_above_it() {
    let mut result = grouped();
    let stats = DirectionStats {
        clat: latency(std::iter::repeat_n(10_000_000, 100)),
        ..direction(100, 0)
    };
    result.workers = vec![worker(
        1,
        0,
        PerDirection {
            read: stats,
            ..PerDirection::default()
        },
    )];
    let json = json_in(&result, false, &TimeZone::UTC);
    assert_eq!(json["jobs"][0]["latency_ms"]["20"], 100.0);
}

#[test]
fn kb_base_and_unit_base_change_the_units() {
    let mut result = grouped();
    for job in &mut result.plan.jobs {
        job.measure.kb_base = 1000;
        job.measure.unit_base = 1;
    }
    let text = normal(&result);
    assert!(
        text.contains("  read: IOPS=1099, BW=36.0Mbit/s (34.4Mibit/s)(9011kB/2001msec)\n"),
        "{text}"
    );
    assert!(text.contains("   bw ( kbit/s): "), "{text}");
}

proptest::proptest! {
    /// All formats can be written for any measurements, and the JSON has the same paths.
    #[test]
    fn arbitrary_results_can_be_written(
        ios in proptest::collection::vec((0u64..2000, 1u64..3_000_000_000), 1..5),
        runtime_ns in proptest::sample::select(vec![0, 1, 999_999, 1_000_000, u64::from(u32::MAX)]),
        group_reporting: bool,
        unified in proptest::sample::select(vec![UnifiedReporting::None, UnifiedReporting::Both]),
    ) {
        let mut job = job("any", ReadWriteMode::ReadWrite);
        job.measure.group_reporting = group_reporting;
        job.measure.unified = unified;
        job.numjobs = ios.len() as u32;
        let workers = ios.iter().zip(0..).map(|((ios, fastest_ns), clone)| {
            let mut moved = direction(*ios, *fastest_ns);
            moved.runtime_ns = runtime_ns;
            let directions = PerDirection { read: moved, ..PerDirection::default() };
            let mut worker = worker(0, clone, directions);
            worker.runtime_ns = runtime_ns;
            worker
        });
        let result = result(vec![job], workers.collect());
        normal(&result);
        terse(&result, TerseVersion::V5);
        let read_back: serde_json::Value = serde_json::from_str(&json(&result)).unwrap();
        let entries = read_back["jobs"].as_array().unwrap();
        proptest::prop_assert_eq!(entries.len(), if group_reporting { 1 } else { ios.len() });
        let ios_of = |entry: &serde_json::Value| entry["read"]["total_ios"].as_u64().unwrap();
        let total: u64 = entries.iter().map(ios_of).sum();
        proptest::prop_assert_eq!(total, ios.iter().map(|(ios, _)| ios).sum::<u64>());
        for entry in entries {
            let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
            let expected = if unified == UnifiedReporting::Both { 27 } else { 26 };
            proptest::prop_assert_eq!(keys.len(), expected);
        }
    }
}
