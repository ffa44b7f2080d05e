//! Tests of storing data services, which have no runs.

use super::tests::TestHistory;
use iosonde_result::compare::{Measure, Subject};
use iosonde_result::data_service::{
    DataCheck, DataService, DataServiceClass, LatencyWindows, ServiceMeasurements, ServiceOutcome,
    ServiceRecord,
};
use iosonde_study::csi::CsiResult;

/// A restore that takes `took_ms` milliseconds beside an application.
fn restored(took_ms: u64) -> CsiResult {
    let mut windows = LatencyWindows::default();
    windows.during.record_n(50, 400);
    let record = ServiceRecord {
        service: DataService::Restore,
        data_bytes: 64 << 20,
        volume_bytes: 5 << 30,
        round: 1,
        outcome: ServiceOutcome::Measured {
            took_ns: took_ms * 1_000_000,
            read_ns: Some(1000),
            data: Some(DataCheck::Right),
        },
        application: Some(windows),
    };
    let class = DataServiceClass {
        name: "sc://fast".to_owned(),
        driver: Some("example.com/disk".to_owned()),
        snapshot_class: Some("daily".to_owned()),
        expands: Some(true),
    };
    let measured = ServiceMeasurements {
        records: vec![record],
        ..ServiceMeasurements::default()
    };
    CsiResult::from_measurements(class, 5 << 30, "rw=randrw".to_owned(), measured)
}

#[test]
fn data_services_are_stored_with_their_figures() {
    let history = TestHistory::new("csi");
    let mut writer = history.writer(&[("disk", "new")]);
    for took_ms in [5, 7] {
        let result = restored(took_ms);
        writer.begin("csi", result.target());
        writer.store_without_runs();
        let document = serde_json::to_value(&result).unwrap();
        assert!(writer.finish(Some(&document)).is_some());
        let loaded = history.store().load("latest").unwrap();
        assert_eq!(loaded.study.csi(None), Some(result));
        let measured = loaded.measured();
        let names: Vec<&str> = measured
            .parts
            .iter()
            .map(|part| part.name.as_str())
            .collect();
        let expected = [
            "restore, 64 MiB",
            "restore, read, 64 MiB",
            "application during restore, 64 MiB",
        ];
        assert_eq!(names, expected);
        let mean = measured.parts[0].figure(Subject::LifecycleStage, Measure::LatMean);
        assert_eq!(mean.unwrap().value, took_ms as f64 * 1e6);
        let p99 = measured.parts[2].figure(Subject::LifecycleStage, Measure::LatP99);
        assert_eq!(p99.unwrap().value, 50.0);
    }
    assert!(writer.notes().is_empty());
}
