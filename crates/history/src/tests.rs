//! Tests of storing, listing and loading studies.

use super::read::Filter;
use super::record::RunRecord;
use super::*;
use iosonde_job::plan::Plan;
use iosonde_result::compare::{Figure, IoPattern, Measure, ResultPart, Subject};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::StudyDriver;
use iosonde_study::fake_session::{FakeDevice, FakeSession};
use iosonde_study::probe::{ProbeBudget, ProbeResult, run_probe};
use iosonde_study::test_targets::{directory_target, probe_options};
use std::path::PathBuf;

/// A history in its own directory.
pub(super) struct TestHistory {
    directory: PathBuf,
    pub(super) place: HistoryPath,
}

impl TestHistory {
    pub(super) fn new(name: &str) -> TestHistory {
        let directory =
            std::env::temp_dir().join(format!("iosonde-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = HistoryPath {
            path: directory.join("history.db"),
            is_named: true,
            shared: None,
        };
        TestHistory { directory, place }
    }

    pub(super) fn writer(&self, labels: &[(&str, &str)]) -> HistoryWriter {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        HistoryWriter::open(&HistoryOptions {
            labels: labels.collect(),
            file: Some(self.place.path.clone()),
            is_wanted: true,
        })
        .unwrap()
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.place).unwrap()
    }

    pub(super) fn import(&self, study: StudyRecord) {
        let mut store = Store::open_or_make(&self.place).unwrap().store;
        let imported = store.import(&[(study, "file".to_owned())]).unwrap();
        assert!(matches!(imported[..], [Imported::New(_)]), "{imported:?}");
    }

    pub(super) fn list_studies(&self) -> Vec<StudySummary> {
        self.store().list(&Filter::default()).unwrap()
    }
}

impl Drop for TestHistory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Probes a simulated device, and stores the result.
fn probed(
    writer: &mut HistoryWriter,
    session: &mut dyn Session,
    name: &str,
) -> Result<ProbeResult, String> {
    let options = probe_options(ProbeBudget::QUICK, None);
    writer.begin("probe", name);
    let stored = StoredRuns::NoCells;
    let mut history_hook = HistoryHook { writer, stored };
    let observer = &mut ();
    let driver = StudyDriver::new(session, observer);
    let mut driver = driver.with_hook(&mut history_hook);
    let result = run_probe(&mut driver, &directory_target(name), &options);
    drop(driver);
    let mut result = result.map_err(|error| error.to_string())?;
    writer.finish(probe_document(&mut result).as_ref()).unwrap();
    Ok(result)
}

#[test]
fn stored_probe_equals_measured_probe() {
    let scratch = TestHistory::new("probe");
    let mut writer = scratch.writer(&[("disk", "new"), ("node", "n7")]);
    let kept = probed(
        &mut writer,
        &mut FakeSession::new(FakeDevice::nvme()),
        "/data",
    )
    .unwrap();
    let [summary] = &scratch.list_studies()[..] else {
        panic!("not one study");
    };
    assert_eq!(
        (summary.kind.as_str(), summary.target.as_str()),
        ("probe", "/data")
    );
    assert_eq!(summary.machine.as_deref(), Some("n7"));
    assert_eq!(summary.labels["disk"], "new");
    assert!(summary.finished_at_ms.is_some());
    assert_eq!(summary.parts.len(), 8);
    assert_eq!(summary.measured().parts.len(), 7, "layout is not compared");
    let loaded = scratch.store().load(&summary.id[..3]).unwrap();
    assert_eq!(loaded.study.probe(None), Some(kept.clone()));
    assert_eq!(kept.runs[0].result.labels["disk"], "new");
    let run = scratch
        .store()
        .load(&format!("{}.random_read", summary.id))
        .unwrap();
    assert_eq!(run.run, Some(3));
    assert_eq!(run.study.runs.len(), 1);
    assert_eq!(run.measured().parts, run.study.runs[0].parts);
    // The same probe as a document is recognised.
    let text = serde_json::json!({"format": 1, "kind": "probe", "probes": [kept]}).to_string();
    let study = read_documents(&text).unwrap().remove(0);
    let known = scratch
        .store()
        .import(&[(study, "file".to_owned())])
        .unwrap();
    assert_eq!(known, [Imported::Known(summary.id.clone())]);
}

/// A session that panics in its third run, like a killed program. Run 1 is the trial of the target.
struct Dies(FakeSession, u32);

impl Session for Dies {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.1 += 1;
        assert!(self.1 < 4, "the program is killed");
        self.0.run(plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Runs a probe that panics half-way.
fn killed(writer: &mut HistoryWriter, session: &mut Dies) {
    let probe = std::panic::AssertUnwindSafe(|| probed(writer, session, "/data"));
    assert!(std::panic::catch_unwind(probe).is_err());
}

#[test]
fn killed_probe_keeps_completed_runs() {
    let scratch = TestHistory::new("cut-off");
    let mut writer = scratch.writer(&[]);
    let mut session = Dies(FakeSession::new(FakeDevice::nvme()), 0);
    killed(&mut writer, &mut session);
    let summary = scratch.list_studies().remove(0);
    assert_eq!(summary.finished_at_ms, None);
    let names: Vec<&str> = summary
        .parts
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    assert_eq!(names, ["layout", "read_latency"]);
    // The process that measured the study is gone.
    drop(writer);
    let loaded = scratch.store().load(&summary.id).unwrap();
    assert_eq!(loaded.study.probe(None), None);
    assert_eq!(loaded.summary.finished_at_ms, None);
    assert!(!loaded.summary.is_running);
}

/// The program stops before a measurement: a study that has only its layout is removed.
#[test]
fn study_without_measurement_is_not_stored() {
    let scratch = TestHistory::new("nothing");
    let mut writer = scratch.writer(&[]);
    let mut session = Dies(FakeSession::new(FakeDevice::nvme()), 1);
    killed(&mut writer, &mut session);
    let killed = scratch.list_studies().remove(0);
    assert_eq!(killed.parts[0].name, "layout");
    assert!(killed.is_running);
    assert!(killed.measured().parts.is_empty());
    // A killed study stays, because it may have left files behind, but is not `latest`.
    assert!(matches!(
        scratch.store().find("latest"),
        Err(StoreError::TooFew { has: 0, .. })
    ));
    // No process holds the lock of a process that is gone.
    let locks = std::fs::read_dir(scratch.directory.join("running")).unwrap();
    let lock = locks.flatten().next().unwrap().path();
    let held = lock.with_extension("held");
    std::fs::rename(&lock, &held).unwrap();
    std::fs::write(&lock, "").unwrap();
    assert!(!scratch.list_studies()[0].is_running);
    std::fs::rename(&held, &lock).unwrap();
    writer.end_unfinished_study();
    assert!(!lock.exists());
    assert!(scratch.list_studies().is_empty());
    assert!(writer.notes()[0].contains("nothing is stored"));
    // A study refused before its first run leaves no note.
    writer.begin("probe", "/data");
    writer.end_unfinished_study();
    assert!(writer.notes().is_empty());
}

#[test]
fn interrupted_study_with_document_has_no_end_time() {
    let scratch = TestHistory::new("interrupted");
    let mut writer = scratch.writer(&[]);
    let mut session = FakeSession::new(FakeDevice::nvme());
    let mut result = probed(&mut writer, &mut session, "/data").unwrap();
    writer.begin("probe", "/data");
    for run in &mut result.runs {
        writer.label_run(&mut run.result);
        writer.store_run(&run.result);
    }
    result.interrupted = true;
    writer.finish(probe_document(&mut result).as_ref()).unwrap();
    let [whole, interrupted] = &scratch.list_studies()[..] else {
        panic!("not two studies");
    };
    assert!(whole.finished_at_ms.is_some());
    assert_eq!(interrupted.finished_at_ms, None);
    assert_eq!(scratch.store().find("latest").unwrap(), interrupted.id);
}

#[test]
fn repeated_phase_is_stored_once() {
    let scratch = TestHistory::new("twice");
    let device = FakeDevice {
        refuses_direct: true,
        ..FakeDevice::nvme()
    };
    let kept = probed(
        &mut scratch.writer(&[]),
        &mut FakeSession::new(device),
        "/data",
    )
    .unwrap();
    let id = scratch.list_studies().remove(0).id;
    assert_eq!(
        scratch.store().load(&id).unwrap().study.probe(None),
        Some(kept)
    );
}

#[test]
fn filter_selects_by_label_target_and_time() {
    let scratch = TestHistory::new("filter");
    for (target, disk, started_at_ms) in [
        ("/data", "old", 1000),
        ("/data/db", "new", 2000),
        ("/database", "new", 3000),
    ] {
        let mut store = Store::open_or_make(&scratch.place).unwrap().store;
        let mut study = study(started_at_ms);
        study.target = target.to_owned();
        study.labels = [("disk".to_owned(), disk.to_owned())].into();
        store.import(&[(study, "file".to_owned())]).unwrap();
    }
    let targets = |filter: Filter| -> Vec<String> {
        let found = scratch.store().list(&filter).unwrap();
        found.into_iter().map(|study| study.target).collect()
    };
    assert_eq!(
        targets(Filter::label("disk", "new")),
        ["/data/db", "/database"]
    );
    assert_eq!(targets(Filter::label("disk", "none")), [""; 0]);
    let below = Filter {
        targets: vec!["/data".to_owned()],
        ..Filter::default()
    };
    assert_eq!(targets(below), ["/data", "/data/db"]);
    let since = Filter {
        since_ms: Some(2000),
        ..Filter::label("disk", "new")
    };
    assert_eq!(targets(since), ["/data/db", "/database"]);
}

/// A result of iosonde on a machine with this system.
pub(super) fn run_on(os_id: &str, os_version: &str, kernel: &str) -> StudyRecord {
    let mut run = RunRecord::opening(&Plan::default(), &Default::default());
    let RunDocument::Run(result) = &mut run.document else {
        panic!("not a result of iosonde");
    };
    result.host.os_id = Some(os_id.to_owned());
    result.host.os_version = Some(os_version.to_owned());
    result.host.kernel = Some(kernel.to_owned());
    run.parts = vec![ResultPart {
        name: kernel.to_owned(),
        pattern: IoPattern::default(),
        figures: vec![Figure {
            subject: Subject::Read,
            measure: Measure::Iops,
            value: 1000.0,
            bounds: None,
            settled: None,
        }],
        role: Default::default(),
    }];
    StudyRecord {
        kind: "fio".to_owned(),
        target: "/data".to_owned(),
        machine: None,
        program: "iosonde".to_owned(),
        started_at_ms: run.started_at_ms,
        labels: Default::default(),
        document: None,
        runs: vec![run],
    }
}

/// An imported result of fio.
pub(super) fn study(started_at_ms: u64) -> StudyRecord {
    let text = include_str!("../../result/tests/fio-json/two-jobs.json");
    let mut study = read_documents(text).unwrap().remove(0);
    study.started_at_ms = started_at_ms;
    study.runs[0].started_at_ms = started_at_ms;
    study
}

/// fio's JSON of a run has other figures, but the exact time of the run.
#[test]
fn stored_run_as_fio_json_is_known() {
    let scratch = TestHistory::new("own-fio");
    let mut writer = scratch.writer(&[]);
    let mut session = FakeSession::new(FakeDevice::nvme());
    let kept = probed(&mut writer, &mut session, "/data").unwrap();
    let document = iosonde_result::fio::fio_json(&kept.runs[2].result, true).to_string();
    let study = read_documents(&document).unwrap().remove(0);
    let mut store = scratch.store();
    let imported = store
        .import(&[(study.clone(), "own.json".to_owned())])
        .unwrap();
    let id = scratch.list_studies()[0].id.clone();
    assert!(
        matches!(&imported[..], [Imported::Known(known)] if *known == id),
        "{imported:?}"
    );
    // A history without the run takes it.
    TestHistory::new("own-fio-elsewhere").import(study);
}

#[test]
fn unique_id_prefix_finds_study() {
    let scratch = TestHistory::new("ids");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    for number in 0..40 {
        store.import(&[(study(number), "file".to_owned())]).unwrap();
    }
    for summary in scratch.list_studies() {
        assert_eq!(store.find(&summary.short_id).unwrap(), summary.id);
        assert_eq!(store.find(&summary.id.to_uppercase()).unwrap(), summary.id);
    }
    // Forty ids share some of the sixteen first digits.
    let first = |id: &str| id[..1].to_owned();
    let ids: Vec<String> = scratch
        .list_studies()
        .into_iter()
        .map(|summary| summary.id)
        .collect();
    let twice = ids
        .iter()
        .find(|id| ids.iter().filter(|other| first(other) == first(id)).count() > 1);
    let prefix = first(twice.unwrap());
    assert!(matches!(
        store.find(&prefix),
        Err(StoreError::Ambiguous { .. })
    ));
}

#[test]
fn latest_reference_counts_back_and_typos_get_suggestions() {
    let scratch = TestHistory::new("latest");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    // `latest` follows the start times, not the order of the imports.
    for number in [3, 1, 2] {
        store.import(&[(study(number), "file".to_owned())]).unwrap();
    }
    let ids: Vec<String> = scratch
        .list_studies()
        .iter()
        .map(|each| each.id.clone())
        .collect();
    assert_eq!(store.find("latest").unwrap(), ids[2]);
    assert_eq!(store.find("latest~2").unwrap(), ids[0]);
    assert_eq!(store.load("latest~1.1").unwrap().run, Some(1));
    assert!(matches!(
        store.find("latest~3"),
        Err(StoreError::TooFew { has: 3, .. })
    ));
    let near = |name: &str| match store.load(name) {
        Err(StoreError::Unknown { near, .. } | StoreError::NoSuchRun { near, .. }) => near,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(near("latset"), ["latest"]);
    let short = &scratch.list_studies()[0].short_id;
    // The last digit is wrong.
    let slip = format!("{}x", &short[..short.len() - 1]);
    assert!(near(&slip).contains(short), "{:?}", near(&slip));
    let name = scratch.store().load(short).unwrap().study.runs[0]
        .name
        .clone();
    assert_eq!(
        near(&format!("{short}.{name}x")),
        [format!("{short}.{name}")]
    );
    let count = scratch.store().load(short).unwrap().study.runs.len();
    match store.load(&format!("{short}.99")) {
        Err(StoreError::NoSuchRun { count: named, .. }) => assert_eq!(named, count),
        other => panic!("{other:?}"),
    }
}

#[test]
fn stored_figures_equal_imported_figures() {
    let scratch = TestHistory::new("figures");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    let study = study(5);
    store
        .import(&[(study.clone(), "two-jobs.json".to_owned())])
        .unwrap();
    let loaded = store.load(&scratch.list_studies()[0].id).unwrap();
    let sorted = |runs: &[RunRecord]| {
        let mut parts = runs[0].parts.clone();
        for part in &mut parts {
            part.figures
                .sort_by_key(|figure| (figure.subject, figure.measure));
        }
        parts
    };
    assert_eq!(sorted(&loaded.study.runs), sorted(&study.runs));
    assert_eq!(loaded.study.runs[0].document, study.runs[0].document);
    assert_eq!(
        loaded.summary.imported_from.as_deref(),
        Some("two-jobs.json")
    );
}
