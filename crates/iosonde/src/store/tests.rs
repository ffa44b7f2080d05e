//! What is kept, and what is found again.

use super::read::Filter;
use super::record::KeptRun;
use super::*;
use crate::args::{KeepArgs, TextFormat};
use crate::report::history;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_study::fake::{FakeDevice, FakeSession};
use iosonde_study::probe::{Budget, ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe};
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// A history in a directory of its own.
pub(super) struct Scratch {
    directory: PathBuf,
    pub(super) place: Place,
}

impl Scratch {
    pub(super) fn new(name: &str) -> Scratch {
        let directory =
            std::env::temp_dir().join(format!("iosonde-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = Place {
            path: directory.join("history.db"),
            is_named: true,
            shared: None,
        };
        Scratch { directory, place }
    }

    pub(super) fn keeper(&self, labels: &[(&str, &str)]) -> Keeper {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Keeper::open(&KeepArgs {
            labels: labels.collect(),
            store: Some(self.place.path.clone()),
            no_save: false,
        })
        .unwrap()
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.place).unwrap()
    }

    pub(super) fn all(&self) -> Vec<Summary> {
        self.store().list(&Filter::default()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn target(name: &str) -> ProbeTarget {
    ProbeTarget {
        name: name.to_owned(),
        path: format!("{name}/.iosonde-probe-1"),
        kind: TargetKind::Directory {
            free_bytes: 1 << 40,
        },
    }
}

/// Probes a made-up device, and keeps it.
fn probed(
    keeper: &mut Keeper,
    session: &mut dyn Session,
    name: &str,
) -> Result<ProbeResult, String> {
    let options = ProbeOptions {
        budget: Budget::QUICK,
        size_bytes: None,
        direct: true,
        seed: 1,
    };
    keeper.begin("probe", name);
    let mut keeping = KeepingSession { session, keeper };
    let result = probe(&mut keeping, &target(name), &options, &mut ());
    let mut result = result.map_err(|error| error.to_string())?;
    keeper.finish(probe_document(&mut result).as_ref()).unwrap();
    Ok(result)
}

#[test]
fn a_probe_comes_back_as_it_was() {
    let scratch = Scratch::new("probe");
    let mut keeper = scratch.keeper(&[("disk", "new"), ("node", "n7")]);
    let kept = probed(
        &mut keeper,
        &mut FakeSession::new(FakeDevice::nvme()),
        "/data",
    )
    .unwrap();
    let [summary] = &scratch.all()[..] else {
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
    // As a document, it is known.
    let text = serde_json::json!({"format": 1, "kind": "probe", "probes": [kept]}).to_string();
    let study = read_documents(&text).unwrap().remove(0);
    let known = scratch
        .store()
        .import(&[(study, "file".to_owned())])
        .unwrap();
    assert_eq!(known, [Imported::Known(summary.id.clone())]);
}

/// A session that ends the program, so to speak, before its third phase: the first run is the first look at the target.
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

/// A probe in the middle of which the program ends.
fn killed(keeper: &mut Keeper, session: &mut Dies) {
    let probe = std::panic::AssertUnwindSafe(|| probed(keeper, session, "/data"));
    assert!(std::panic::catch_unwind(probe).is_err());
}

#[test]
fn a_probe_that_is_cut_off_keeps_the_runs_that_ended() {
    let scratch = Scratch::new("cut-off");
    let mut keeper = scratch.keeper(&[]);
    let mut session = Dies(FakeSession::new(FakeDevice::nvme()), 0);
    killed(&mut keeper, &mut session);
    let summary = scratch.all().remove(0);
    assert_eq!(summary.finished_at_ms, None);
    let names: Vec<&str> = summary
        .parts
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    assert_eq!(names, ["layout", "read_latency"]);
    // The process that measured it is gone.
    drop(keeper);
    let loaded = scratch.store().load(&summary.id).unwrap();
    assert_eq!(loaded.study.probe(None), None);
    let shown = history::show(&loaded, &TimeZone::UTC);
    assert!(
        shown.contains("probe of /data, cut off before its end"),
        "{shown}"
    );
}

/// The program stops before anything was measured: of the layout alone nothing stays.
#[test]
fn what_measured_nothing_is_not_kept() {
    let scratch = Scratch::new("nothing");
    let mut keeper = scratch.keeper(&[]);
    let mut session = Dies(FakeSession::new(FakeDevice::nvme()), 1);
    killed(&mut keeper, &mut session);
    let killed = scratch.all().remove(0);
    assert_eq!(killed.parts[0].name, "layout");
    let row = history::list(&scratch.all(), TextFormat::Table, &TimeZone::UTC);
    assert!(!row.contains("MiB/s") && row.contains("running"), "{row}");
    assert!(killed.measured().parts.is_empty());
    // One that was killed stays, for what it may have left behind, but is nobody's latest result.
    assert!(matches!(
        scratch.store().find("latest"),
        Err(StoreError::TooFew { has: 0, .. })
    ));
    // Of a process that is gone nobody holds the lock.
    let locks = std::fs::read_dir(scratch.directory.join("running")).unwrap();
    let lock = locks.flatten().next().unwrap().path();
    let held = lock.with_extension("held");
    std::fs::rename(&lock, &held).unwrap();
    std::fs::write(&lock, "").unwrap();
    let row = history::list(&scratch.all(), TextFormat::Table, &TimeZone::UTC);
    assert!(row.contains("cut off"), "{row}");
    std::fs::rename(&held, &lock).unwrap();
    keeper.give_up();
    assert!(!lock.exists());
    assert!(scratch.all().is_empty());
    assert!(keeper.notes()[0].contains("nothing is kept"));
    // What was refused before it ran left nothing to speak of.
    keeper.begin("probe", "/data");
    keeper.give_up();
    assert!(keeper.notes().is_empty());
}

#[test]
fn an_interrupted_study_is_cut_off_although_it_has_a_document() {
    let scratch = Scratch::new("interrupted");
    let mut keeper = scratch.keeper(&[]);
    let mut session = FakeSession::new(FakeDevice::nvme());
    let mut result = probed(&mut keeper, &mut session, "/data").unwrap();
    keeper.begin("probe", "/data");
    for run in &mut result.runs {
        keeper.label_run(&mut run.result);
        keeper.keep(&run.result);
    }
    result.interrupted = true;
    keeper.finish(probe_document(&mut result).as_ref()).unwrap();
    let [whole, interrupted] = &scratch.all()[..] else {
        panic!("not two studies");
    };
    assert!(whole.finished_at_ms.is_some());
    assert_eq!(interrupted.finished_at_ms, None);
    assert_eq!(scratch.store().find("latest").unwrap(), interrupted.id);
}

#[test]
fn long_targets_lose_their_middle_not_the_date() {
    let mut all = shown();
    all[0].target = "/mnt/a/very/long/path/that/leads/far/down/the/tree/to/the/disk-17".to_owned();
    all[0].finished_at_ms = None;
    let table = history::list(&all, TextFormat::Table, &TimeZone::UTC);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("list_long", table);
}

#[test]
fn a_phase_that_ran_twice_counts_once() {
    let scratch = Scratch::new("twice");
    let device = FakeDevice {
        refuses_direct: true,
        ..FakeDevice::nvme()
    };
    let kept = probed(
        &mut scratch.keeper(&[]),
        &mut FakeSession::new(device),
        "/data",
    )
    .unwrap();
    let id = scratch.all().remove(0).id;
    assert_eq!(
        scratch.store().load(&id).unwrap().study.probe(None),
        Some(kept)
    );
}

#[test]
fn results_are_found_by_label_target_and_time() {
    let scratch = Scratch::new("filter");
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

/// An imported result of fio.
fn study(started_at_ms: u64) -> KeptStudy {
    let text = include_str!("../../../result/tests/fio-json/two-jobs.json");
    let mut study = read_documents(text).unwrap().remove(0);
    study.started_at_ms = started_at_ms;
    study.runs[0].started_at_ms = started_at_ms;
    study
}

#[test]
fn ids_may_be_shortened_while_they_are_unique() {
    let scratch = Scratch::new("ids");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    for number in 0..40 {
        store.import(&[(study(number), "file".to_owned())]).unwrap();
    }
    for summary in scratch.all() {
        assert_eq!(store.find(&summary.short_id).unwrap(), summary.id);
        assert_eq!(store.find(&summary.id.to_uppercase()).unwrap(), summary.id);
    }
    // Forty ids do not have forty first digits.
    let first = |id: &str| id[..1].to_owned();
    let ids: Vec<String> = scratch
        .all()
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
fn results_are_named_from_the_end_and_near_ones_are_offered() {
    let scratch = Scratch::new("latest");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    // The order is that of the list, not that in which they came in.
    for number in [3, 1, 2] {
        store.import(&[(study(number), "file".to_owned())]).unwrap();
    }
    let ids: Vec<String> = scratch.all().iter().map(|each| each.id.clone()).collect();
    assert_eq!(store.find("latest").unwrap(), ids[2]);
    assert_eq!(store.find("latest~2").unwrap(), ids[0]);
    assert_eq!(store.load("latest~1.1").unwrap().run, Some(1));
    assert!(matches!(
        store.find("latest~3"),
        Err(StoreError::TooFew { has: 3, .. })
    ));
    let near = |name: &str| match store.load(name) {
        Err(StoreError::Unknown { near, .. }) => near,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(near("latset"), ["latest"]);
    let short = &scratch.all()[0].short_id;
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
}

#[test]
fn figures_are_as_they_were() {
    let scratch = Scratch::new("figures");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    let study = study(5);
    store
        .import(&[(study.clone(), "two-jobs.json".to_owned())])
        .unwrap();
    let loaded = store.load(&scratch.all()[0].id).unwrap();
    let sorted = |runs: &[KeptRun]| {
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

/// Results with ids and times that are the same every time.
fn shown() -> Vec<Summary> {
    let scratch = Scratch::new(&format!("shown-{:?}", std::thread::current().id()));
    for (name, device, labels) in [
        (
            "/data",
            FakeDevice::nvme(),
            &[("disk", "new"), ("node", "n1")][..],
        ),
        (
            "/mnt/a/rather/long/path/to/an/old/disk",
            FakeDevice::hard_disk(),
            &[],
        ),
    ] {
        probed(
            &mut scratch.keeper(labels),
            &mut FakeSession::new(device),
            name,
        )
        .unwrap();
    }
    let mut store = scratch.store();
    store
        .import(&[(study(1_795_230_400_000), "results/two-jobs.json".to_owned())])
        .unwrap();
    let mut all = scratch.all();
    all.sort_by(|a, b| a.target.cmp(&b.target));
    for (number, study) in (1u64..).zip(&mut all) {
        study.id = format!("{number}fa9c1b2d3");
        study.short_id = format!("{number}fa9c1");
        study.program = "iosonde".to_owned();
        study.started_at_ms = 1_795_230_400_000 + number * 60_000;
        study.finished_at_ms = Some(study.started_at_ms + 20_000);
        study.machine = Some("n1".to_owned());
    }
    all
}

#[test]
fn lists_are_printed_the_same_every_time() {
    let all = shown();
    let table = history::list(&all, TextFormat::Table, &TimeZone::UTC);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("list_table", table);
    insta::assert_snapshot!(
        "list_csv",
        history::list(&all, TextFormat::Csv, &TimeZone::UTC)
    );
    insta::assert_snapshot!(
        "list_markdown",
        history::list(&all, TextFormat::Markdown, &TimeZone::UTC)
    );
    let json = history::list(&all, TextFormat::Json, &TimeZone::UTC);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["results"][0]["id"], "1fa9c1b2d3");
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
}

#[test]
fn a_result_is_shown_as_a_table() {
    let scratch = Scratch::new("show");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    store
        .import(&[(study(1_795_230_400_000), "results/two-jobs.json".to_owned())])
        .unwrap();
    let mut loaded = store.load(&scratch.all()[0].id).unwrap();
    loaded.summary.id = "3fa9c1b2d3".to_owned();
    loaded.summary.short_id = "3fa9c1".to_owned();
    let table = history::show(&loaded, &TimeZone::UTC);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("show_table", table);
    let parts = &loaded.study.runs[0].parts;
    insta::assert_snapshot!("figures_csv", crate::report::figures::csv(parts));
    insta::assert_snapshot!("figures_markdown", crate::report::figures::markdown(parts));
}

#[test]
fn errors_of_the_history_are_told_with_a_remedy() {
    let path = || PathBuf::from("/h/history.db");
    let errors = [
        StoreError::NoPlace,
        StoreError::Newer {
            path: path(),
            found: 9,
            known: 1,
        },
        StoreError::NotAStore(path()),
        StoreError::Damaged {
            path: path(),
            problem: "it does not begin as an SQLite file does".to_owned(),
        },
        StoreError::Unknown {
            name: "3fa".to_owned(),
            near: Vec::new(),
        },
        StoreError::Unknown {
            name: "lastest".to_owned(),
            near: vec!["latest".to_owned()],
        },
        StoreError::TooFew {
            name: "latest~3".to_owned(),
            has: 2,
        },
        StoreError::Ambiguous {
            prefix: "3".to_owned(),
            candidates: vec!["3fa9c1".to_owned(), "3be001".to_owned()],
        },
        StoreError::UnknownLabel {
            label: "disk=old".to_owned(),
            near: vec!["disk=cold".to_owned(), "disk=new".to_owned()],
        },
        StoreError::Empty(path()),
        StoreError::ReadOnly(path(), rustix::io::Errno::ROFS.into()),
        StoreError::Unfinished(path()),
        StoreError::Full(path()),
        StoreError::OtherHost {
            id: "3fa9c1".to_owned(),
            path: PathBuf::from("/h/history.n2-7be001.db"),
        },
    ];
    let told: Vec<String> = errors
        .into_iter()
        .map(|error| {
            let failure = crate::failure::Failure::from(error);
            format!("[{}] {}", failure.status(), failure.text(false))
        })
        .collect();
    insta::assert_snapshot!("errors", told.join("\n\n"));
}
