//! Output over simulated devices.

use super::bench_plan::{ObjectStorage, RadosRows, plan_rados_bench};
use crate::commands::bench_table::BenchTable;
use crate::output::Output;
use iosonde_engine::runner::LocalRunner;
use iosonde_report::rados::{self, RadosHeader, RadosMode, RadosSummary, Seconds};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;

fn head(mode: RadosMode, op_bytes: u64, seconds: u64) -> RadosHeader {
    RadosHeader {
        mode,
        concurrent: 16,
        op_bytes,
        object_bytes: 4 * op_bytes,
        seconds,
        max_objects: 0,
        prefix: "benchmark_data_node1_4711".to_owned(),
    }
}

/// Runs a benchmark on a device. Returns its live output too.
fn run(head: &RadosHeader, ops: Option<u64>, device: &str) -> (RunResult, Seconds, String) {
    let name = format!("iosonde-rados-{}-{:?}", std::process::id(), head.mode);
    let path = std::env::temp_dir().join(name);
    let mut output = Output::open(Some(&path)).unwrap();
    let plan =
        plan_rados_bench(head, ops, true, ObjectStorage::Simulated(device.to_owned())).unwrap();
    let now = || "2026-01-02T03:04:05.678901+0000".to_owned();
    output.stream().unwrap();
    let rows = RadosRows::new(head, ops, false, now);
    let mut live = BenchTable::new(rows, Some(&mut output));
    let result = LocalRunner::default().open().run(&plan, &mut live).unwrap();
    let (RadosRows { seconds, .. }, shown) = live.finish(Some(&result));
    shown.unwrap();
    let lines = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    (result, seconds, lines)
}

const DEVICE: &str = "ceph,capacity=none";

#[test]
fn write_output_matches_rados_bench() {
    let head = head(RadosMode::Write, 1 << 20, 21);
    let (result, seconds, lines) = run(&head, None, DEVICE);
    let summary = RadosSummary::new(&head, &seconds, &result, Some(5_000_000_000));
    insta::assert_snapshot!("write", lines + &summary.text(&head));
}

#[test]
fn seq_read_ends_with_last_object() {
    let head = head(RadosMode::Seq, 1 << 20, 10);
    let (result, seconds, lines) = run(&head, Some(1000), DEVICE);
    let side = &result.workers[0].directions.read;
    assert_eq!(side.total_ios, 1000);
    let summary = RadosSummary::new(&head, &seconds, &result, None);
    insta::assert_snapshot!("seq", lines + &summary.text(&head));
}

#[test]
fn json_members_have_names_of_rados_bench() {
    let head = head(RadosMode::Rand, 4096, 6);
    let (result, seconds, _) = run(&head, Some(100_000), DEVICE);
    let summary = RadosSummary::new(&head, &seconds, &result, Some(1_000_000_000));
    let text = rados::rados_json(&head, &seconds, &summary, true);
    insta::assert_snapshot!("json", text);
    let line = rados::rados_json(&head, &seconds, &summary, false);
    let (one, two): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(&text).unwrap(),
        serde_json::from_str(&line).unwrap(),
    );
    assert_eq!(one, two);
    assert_eq!(line.lines().count(), 1);
}
