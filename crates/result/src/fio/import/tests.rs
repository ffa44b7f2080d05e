//! Tests with files written by fio, and with other contents of such files.

use super::*;

const TWO_JOBS: &str = include_str!("../../../tests/fio-json/two-jobs.json");
const MIXED_PLUS: &str = include_str!("../../../tests/fio-json/mixed-plus.json");

#[test]
fn fio_json_of_two_jobs_is_imported() {
    let document = import(TWO_JOBS).unwrap();
    assert_eq!(document.version, "fio-3.33");
    assert_eq!(document.elapsed_ns, 4_000_000_000);
    assert_eq!(document.parts.len(), 2);
    let read = &document.parts[0];
    assert_eq!(read.name, "a");
    assert_eq!(
        read.pattern.to_string(),
        "randread, bs 4096, iodepth 1, numjobs 2"
    );
    let iops = read.figure(Subject::Read, Measure::Iops).unwrap();
    assert!((iops.value - 12_803.595_206).abs() < 1e-6);
    // Ten samples of two clones: five windows, with the deviations of both added. Their interval
    // reaches zero.
    assert_eq!(iops.bounds, None);
    assert!(read.figure(Subject::Write, Measure::Iops).is_none());
    let p99 = read.figure(Subject::Read, Measure::ClatP99).unwrap();
    assert!(p99.value > 1000.0 && p99.bounds.is_none());
    let write = &document.parts[1];
    assert_eq!(write.pattern.rw, "write");
    assert_eq!(write.pattern.bs, "65536");
    let sync = write.figure(Subject::Sync, Measure::LatMean).unwrap();
    assert!((sync.value - 17_974_015.225_806).abs() < 1e-3);
    assert!(document.errors.is_empty());
    assert_eq!(document.json["jobs"][0]["jobname"], "a");
}

#[test]
fn unified_directions_import_as_mixed() {
    let document = import(MIXED_PLUS).unwrap();
    let part = &document.parts[0];
    assert!(part.figure(Subject::Mixed, Measure::Iops).unwrap().value > 0.0);
    assert!(part.figure(Subject::Mixed, Measure::ClatP50).is_some());
    assert!(part.figure(Subject::Read, Measure::Iops).is_none());
}

#[test]
fn messages_around_the_json_and_several_documents() {
    let first = r#"{"fio version": "fio-3.1", "jobs": [{"jobname": "old"}]}"#;
    let text = format!(
        "fio: a warning\n{first}\nnote: {{ not JSON\n{TWO_JOBS}\nfio: terminating on signal 2\n"
    );
    assert_eq!(import(&text).unwrap().parts[0].name, "a");
    // The last document is truncated, so the one before it counts.
    let cut = format!("{TWO_JOBS}\n{}", &MIXED_PLUS[..1000]);
    assert_eq!(import(&cut).unwrap().parts[0].name, "a");
}

#[test]
fn nan_in_fio_json_is_accepted() {
    let text = TWO_JOBS.replacen("\"bw_agg\" : 90.857295", "\"bw_agg\" : -nan", 1);
    assert_ne!(text, TWO_JOBS);
    assert_eq!(import(&text).unwrap().parts.len(), 2);
}

#[test]
fn clones_without_group_reporting_are_summed() {
    let clone = |iops: f64| {
        serde_json::json!({
            "jobname": "w", "groupid": 0, "elapsed": 10, "error": 5,
            "job_start": 1_700_000_000_123_u64,
            "job options": {"rw": "write", "bs": "8k,16k", "filename": "/dev/sdx"},
            "write": {"total_ios": 100, "iops": iops, "bw_bytes": iops * 4096.0, "iops_mean": iops,
                "iops_stddev": 1.0, "iops_samples": 20, "lat_ns": {"mean": 1000.0, "N": 100}},
        })
    };
    let text =
        serde_json::json!({"jobs": [clone(10.0), clone(30.0)], "global options": {"iodepth": "4"}});
    let document = import(&text.to_string()).unwrap();
    assert_eq!(document.target.as_deref(), Some("/dev/sdx"));
    assert_eq!(document.started_at_ms, 1_700_000_000_123);
    let [part] = &document.parts[..] else {
        panic!("{:?}", document.parts)
    };
    assert_eq!(
        part.pattern.to_string(),
        "write, bs 8k,16k, iodepth 4, numjobs 1"
    );
    assert_eq!(
        part.figure(Subject::Write, Measure::Iops).unwrap().value,
        40.0
    );
    assert_eq!(
        part.figure(Subject::Write, Measure::LatMean).unwrap().value,
        1000.0
    );
    assert_eq!(document.errors.len(), 2);
}

#[test]
fn clients_of_a_server_are_summed_without_their_sum() {
    let client = |name: &str, host: &str| {
        serde_json::json!({"jobname": name, "hostname": host,
            "read": {"total_ios": 10, "iops": 100.0, "bw_bytes": 409_600}})
    };
    let clients = [
        client("j", "n1"),
        client("j", "n2"),
        client("All clients", ""),
    ];
    let document = import(&serde_json::json!({"client_stats": clients}).to_string()).unwrap();
    assert_eq!(document.parts.len(), 1);
    let iops = document.parts[0]
        .figure(Subject::Read, Measure::Iops)
        .unwrap();
    assert_eq!((iops.value, iops.bounds), (200.0, None));
    assert_eq!(document.machine, None);
}

#[test]
fn import_refuses_text_that_is_not_fio_json() {
    assert!(matches!(import(""), Err(ImportError::NoJson)));
    assert!(matches!(import("IOPS=1000\n"), Err(ImportError::NoJson)));
    assert!(matches!(
        import("{\"format\": 1}"),
        Err(ImportError::NotFio)
    ));
    assert!(matches!(import("{\"jobs\": []}"), Err(ImportError::NotFio)));
    assert!(matches!(
        import("{\"jobs\": [\n"),
        Err(ImportError::Broken(_))
    ));
}
