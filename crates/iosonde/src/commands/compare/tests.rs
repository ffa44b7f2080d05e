//! Comparisons of simulated devices: the output, and whether the verdicts are right.

use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_history::{Filter, HistoryPath, Store};
use iosonde_job::{env::FakeEnv, parse};
use iosonde_report::comparison::ComparisonDocument;
use iosonde_report::format::TextFormat;
use iosonde_report::text_style::TextStyle;
use iosonde_result::compare::{
    Comparison, ComparisonVerdict, MeasuredResult, compare, is_same_plan_and_target, parts,
};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;
use iosonde_study::probe::{ProbeBudget, ProbeResult, probe};
use iosonde_study::test_targets::{probe_options, simulated_target};
use std::ffi::OsString;

/// 60 s of a device that serves 200 reads a second, with the noise that the requirement names.
fn ran(keys: &str, seed: u64) -> RunResult {
    let words = format!(
        "--name=randread --ioengine=sim \
         --sim=parallel=1,noise=0.03,noise_rho=0.5,{keys},seed={seed} \
         --rw=randread --bs=4k --size=64m --runtime=60 --time_based"
    );
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let parsed = parse(&words, &FakeEnv::new()).unwrap();
    let mut session = LocalRunner::default().open();
    session.run(&parsed.plan, &mut ()).unwrap()
}

fn measured(keys: &str, seed: u64, machine: &str) -> MeasuredResult {
    MeasuredResult {
        name: format!("{keys} {seed}"),
        machine: Some(machine.to_owned()),
        parts: parts(&ran(keys, seed)),
    }
}

/// Verdicts on IOPS of `pairs` pairs of devices.
fn called(a: &str, b: &str, pairs: u64) -> Vec<ComparisonVerdict> {
    let verdict = |seed: u64| {
        let a = measured(a, 2 * seed, "n1");
        let b = measured(b, 2 * seed + 1, "n1");
        compare(&[a], &[b]).rows[0].verdict
    };
    (1..=pairs).map(verdict).collect()
}

/// A test of the result crate does the same over 1000 pairs on series of the same kind.
#[test]
fn verdict_tells_equal_devices_from_slower_ones() {
    let equal = called("read_us=5ms", "read_us=5ms", 60);
    let wrong = equal
        .iter()
        .filter(|verdict| **verdict != ComparisonVerdict::NoDifferenceShown);
    let wrong = wrong.count();
    assert!(
        wrong <= 3,
        "{wrong} of 60 pairs of equals are called different"
    );
    let slower = called("read_us=5ms", "read_us=5263us", 30);
    let found = slower
        .iter()
        .filter(|verdict| **verdict == ComparisonVerdict::Slower)
        .count();
    // A test with known variance finds all of them.
    assert!(
        found >= 27,
        "{found} of 30 that are slower by 5 % are found"
    );
}

#[test]
fn two_results_side_by_side() {
    let a = measured("read_us=5ms,read_dist=exp", 1, "n1");
    // Its burst credits run out midway.
    let b = measured("read_us=6ms,read_dist=exp,cap_iops=60:4000:165", 2, "n1");
    let comparison = compare(&[a], &[b]);
    let document = ComparisonDocument::new(
        "3fa9c1: fio of /data on n1",
        "7be001: fio of /data on n1",
        &comparison,
    );
    insta::assert_snapshot!("two_results", document.text(TextFormat::Table));
    insta::assert_snapshot!("two_results_csv", document.text(TextFormat::Csv));
    insta::assert_snapshot!("two_results_markdown", document.text(TextFormat::Markdown));
    let json: serde_json::Value = serde_json::from_str(&document.text(TextFormat::Json)).unwrap();
    assert_eq!(json["kind"], "comparison");
    assert_eq!(json["rows"][0]["verdict"], "slower");
    let failure = judge(&document, 0.05).unwrap_err();
    assert_eq!(failure.status(), 6);
    insta::assert_snapshot!("slower", failure.text(false));
    assert!(judge(&document, 0.9).is_ok());
}

#[test]
fn labels_with_several_machines() {
    let side = |us: u32, seed: u64| -> Vec<MeasuredResult> {
        let each = (0..6).map(|index| {
            let keys = format!("read_us={}", us + 300 * (index / 2));
            measured(&keys, seed + u64::from(index), &format!("n{}", index / 2))
        });
        each.collect()
    };
    let comparison = compare(&side(5000, 10), &side(5200, 20));
    let document = ComparisonDocument::new(
        "disk=old: 6 runs on 3 machines",
        "disk=new: 6 runs on 3 machines",
        &comparison,
    );
    insta::assert_snapshot!("labels", document.text(TextFormat::Table));
}

/// Phases have the probe's titles, and the maxima of searches are compared too.
#[test]
fn probes_side_by_side() {
    let probed = |keys: &str| {
        let target = simulated_target(keys);
        let options = probe_options(ProbeBudget::NORMAL, None);
        let mut session = LocalRunner::default().open();
        probe(&mut session, &target, &options, &mut ()).unwrap()
    };
    let keys = |read_us: u32| {
        format!(
            "parallel=1,read_us={read_us},write_us=40,read_bw=100m,write_bw=100m,\
             noise=0.01,seed={read_us}"
        )
    };
    let (a, b) = (probed(&keys(400)), probed(&keys(500)));
    let side = |probe: &ProbeResult| {
        let study = StudyRecord::from_probe(probe.clone());
        Chosen::kept("probe", study)
    };
    let (mut a, mut b) = (side(&a), side(&b));
    let studies = Studies::from_sides(&mut a, &mut b);
    let comparison = compare(&a.results, &b.results);
    let most = comparison
        .rows
        .iter()
        .find(|row| row.part == "random_read_most");
    let most = most.unwrap();
    assert_eq!(most.verdict, ComparisonVerdict::Slower);
    assert!((most.ratio.value - 0.8).abs() < 0.02, "{most:?}");
    let mut document = ComparisonDocument::new("probe of a", "probe of b", &comparison);
    document.titles = studies.titles;
    insta::assert_snapshot!("probes", document.text(TextFormat::Table));
    let short = document.short_text(TextStyle::for_locale("C", false));
    let start = "B is slower than A: A is 1.22";
    assert!(short.starts_with(start), "{short}");
    assert!(short.contains(" as fast in 5 of 39 figures;"), "{short}");
    let rest = "14 more figures: no difference shown; 20 more figures: undecided.";
    assert!(short.contains(rest), "{short}");
    assert!(!short.contains("1M sequential"), "{short}");
}

/// A run on an image through librbd.
fn run_through_librbd() -> RunResult {
    let mut library = ran("read_us=5ms", 2);
    let used = concat!(
        r#"{"client":"librbd 1.16.0","fsid":"f","pool":"fast","image":"disk1","#,
        r#""cache":"writearound"}"#
    );
    for worker in &mut library.workers {
        worker.backend.ceph = Some(serde_json::from_str(used).unwrap());
    }
    library
}

/// A mapped image, the same image through librbd, and CephFS are three paths to storage.
#[test]
fn different_storage_paths_are_noted() {
    use iosonde_result::host::{
        DeviceInfo, DeviceKind, MappedImage, Mount, MountService, ServiceClient, TargetInfo,
    };
    let mapped = TargetInfo {
        devices: vec![DeviceInfo {
            name: "rbd0".into(),
            kind: DeviceKind::Rbd,
            rbd: Some(MappedImage {
                pool: "fast".into(),
                image: "disk1".into(),
                ..MappedImage::default()
            }),
            ..DeviceInfo::default()
        }],
        ..TargetInfo::default()
    };
    let cephfs = TargetInfo {
        mount: Some(Mount {
            service: Some(MountService {
                client: ServiceClient::CephFuse,
                servers: vec!["10.0.0.1:6789".into()],
                path: Some("/".into()),
                ..MountService::default()
            }),
            ..Mount::default()
        }),
        ..TargetInfo::default()
    };
    let on = |target: TargetInfo| RunResult {
        targets: vec![target],
        ..ran("read_us=5ms", 1)
    };
    let library = run_through_librbd();
    let side = |result: RunResult| Chosen::kept("run", StudyRecord::from_run(result));
    let mut labelled = Vec::new();
    for (label, result) in [("krbd", on(mapped.clone())), ("librbd", library.clone())] {
        let mut study = StudyRecord::from_run(result);
        study.label(&[("way".to_owned(), label.to_owned())].into());
        labelled.push((study, String::new()));
    }
    let (krbd, librbd, cephfs) = (side(on(mapped)), side(library), side(on(cephfs)));
    let note = krbd.other_way(&librbd).unwrap();
    assert!(
        note.contains("A uses mapped RBD image fast/disk1 (krbd), B uses rbd://fast/disk1"),
        "{note}"
    );
    let note = cephfs.other_way(&librbd).unwrap();
    assert!(
        note.contains("A uses CephFS (ceph-fuse) 10.0.0.1:6789:/"),
        "{note}"
    );
    assert_eq!(krbd.other_way(&krbd), None);
    // A label stands for results whose documents are elsewhere.
    let dir = std::env::temp_dir().join(format!("iosonde-compare-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("history.db");
    let place = HistoryPath::find(Some(&file)).unwrap();
    let mut store = Store::open_or_make(&place).unwrap().store;
    store.import(&labelled).unwrap();
    let side = |label| Chosen::resolve(label, Some(&file)).unwrap();
    let note = side("way=krbd").other_way(&side("way=librbd")).unwrap();
    assert!(note.contains("A uses mapped RBD image"), "{note}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn label_of_several_targets_is_reported() {
    let dir = std::env::temp_dir().join(format!("iosonde-mixed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("history.db");
    let studies = [
        ("a", "sim:nvme", 1),
        ("a", "sim:hdd", 2),
        ("b", "sim:hdd", 3),
    ];
    let studies = studies.map(|(disk, target, seed)| {
        let mut study = StudyRecord::from_run(ran("read_us=5ms", seed));
        study.target = target.to_owned();
        study.labels.insert("disk".to_owned(), disk.to_owned());
        (study, String::new())
    });
    let place = HistoryPath::find(Some(&file)).unwrap();
    let mut store = Store::open_or_make(&place).unwrap().store;
    store.import(&studies).unwrap();
    let side = |label| Chosen::resolve(label, Some(&file)).unwrap();
    assert_eq!(
        side("disk=a").warning_of_targets("A").as_deref(),
        Some("A: disk=a covers 2 targets: sim:hdd, sim:nvme")
    );
    assert_eq!(side("disk=b").warning_of_targets("B"), None);
    std::fs::remove_dir_all(dir).unwrap();
}

/// A history with one run for each latency, all of one plan on one target, oldest first.
fn history_of_runs(file: &std::path::Path, latencies_us: &[u32]) -> Vec<String> {
    let mut studies = Vec::new();
    for (index, read_us) in latencies_us.iter().enumerate() {
        let mut result = ran(&format!("read_us={read_us}"), index as u64);
        result.host.hostname = Some("n1".into());
        result.started_at_ms = 1000 * (1 + index as u64);
        let job = &mut result.plan.jobs[0];
        job.io.sim = Some("the same device".into());
        job.workload.randseed = Some(index as u64);
        studies.push((StudyRecord::from_run(result), String::new()));
    }
    let mut store = Store::open_or_make(&HistoryPath::find(Some(file)).unwrap())
        .unwrap()
        .store;
    store.import(&studies).unwrap();
    let list = store.list(&Filter::default()).unwrap();
    list.into_iter().map(|study| study.id).collect()
}

/// Compares two results of a history, with their earlier runs as evidence.
fn compare_stored(file: &std::path::Path, a: &str, b: &str) -> Comparison {
    let [a, b] = [a, b].map(|id| Chosen::resolve(id, Some(file)).unwrap());
    let earlier = earlier_runs(&a, &b, Some(file)).unwrap();
    compare_with_earlier_runs(
        &a.results,
        &b.results,
        earlier.each_ref().map(Vec::as_slice),
    )
}

#[test]
fn earlier_runs_of_the_target_decide_and_are_named() {
    let dir = std::env::temp_dir().join(format!("iosonde-earlier-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("history.db");
    let ids = history_of_runs(&file, &[4600, 5400, 5000, 4700, 5000, 5400]);
    let [a, b] = [&ids[4], &ids[5]];
    let found = compare_stored(&file, a, b);
    let row = &found.rows[0];
    assert_eq!(row.verdict, ComparisonVerdict::NoDifferenceShown);
    assert_eq!(row.a.earlier_runs.unwrap().runs, 4);
    let named = found
        .notes
        .iter()
        .any(|note| matches!(note, ComparisonNote::EarlierRuns { runs: 4, .. }));
    assert!(named, "{:?}", found.notes);
    // Only runs before both count, and at least three are needed.
    let early = compare_stored(&file, &ids[2], b);
    assert_eq!(early.rows[0].a.earlier_runs, None);
    assert_eq!(early.rows[0].verdict, ComparisonVerdict::Slower);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn earlier_runs_exclude_other_plans_targets_machines() {
    let run = |change: &dyn Fn(&mut RunResult)| {
        let mut result = ran("read_us=5ms", 1);
        result.targets = vec![iosonde_result::host::TargetInfo::default()];
        change(&mut result);
        result
    };
    let same = run(&|_| ());
    let others: [&dyn Fn(&mut RunResult); 5] = [
        &|run| run.plan.jobs[0].io.iodepth = 7,
        &|run| run.plan.jobs[0].schedule.runtime_ns += 1,
        &|run| run.targets[0].size_bytes = Some(1 << 30),
        &|run| run.targets[0].path = "/elsewhere".into(),
        &|run| run.workers[0].backend.direct ^= true,
    ];
    assert!(is_same_plan_and_target(&same, &run(&|_| ())));
    let seed: &dyn Fn(&mut RunResult) = &|run| run.plan.jobs[0].workload.randseed = Some(9);
    assert!(is_same_plan_and_target(&same, &run(seed)));
    for change in others {
        assert!(!is_same_plan_and_target(&same, &run(change)));
    }
    let dir = std::env::temp_dir().join(format!("iosonde-others-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("history.db");
    let ids = history_of_runs(&file, &[4600, 5400, 5000, 4700, 5000, 5400]);
    let place = HistoryPath::find(Some(&file)).unwrap();
    let store = Store::open(&place).unwrap();
    let mut loaded = store.load(&ids[5]).unwrap();
    let earlier =
        |loaded: &iosonde_history::Loaded| store.earlier_runs(loaded, 6000).unwrap().len();
    assert_eq!(earlier(&loaded), 5);
    loaded.summary.machine = Some("n2".into());
    assert_eq!(earlier(&loaded), 0);
    loaded.summary.machine = None;
    assert_eq!(earlier(&loaded), 0);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn fio_results_have_no_series() {
    let fio = include_str!("../../../../result/tests/fio-json/two-jobs.json");
    let study = iosonde_history::read_documents(fio).unwrap().remove(0);
    let sides = [study.measured("a"), study.measured("b")];
    let comparison = compare(&sides[..1], &sides[1..]);
    let document = ComparisonDocument::new("two-jobs.json", "two-jobs.json", &comparison);
    insta::assert_snapshot!("fio_results", document.text(TextFormat::Table));
}

/// Results of fio have no intervals, so a large difference must not pass as none.
#[test]
fn undecided_comparison_that_looks_slower_fails_with_status_12() {
    let fio = include_str!("../../../../result/tests/fio-json/two-jobs.json");
    let study = iosonde_history::read_documents(fio).unwrap().remove(0);
    let sides = [study.measured("a"), study.measured("b")];
    let mut comparison = compare(&sides[..1], &sides[1..]);
    let judge = |comparison: &Comparison, share| {
        super::judge(&ComparisonDocument::new("a", "b", comparison), share)
    };
    assert!(judge(&comparison, 0.0).is_ok());
    comparison.rows[0].ratio.value = 0.001;
    let failure = judge(&comparison, 0.05).unwrap_err();
    assert!(matches!(failure, CommandError::Undecided(_)), "{failure:?}");
    assert_eq!(failure.status(), 12);
    let text = failure.text(false);
    assert!(text.contains("a read IOPS by 100 %"), "{text}");
    assert!(text.contains("`--runtime`,"), "{text}");
    comparison.rows[1].verdict = ComparisonVerdict::NoDifferenceShown;
    assert!(judge(&comparison, 0.05).is_ok());
}

#[test]
fn comparison_table_fits_80_columns() {
    let long = "a".repeat(200);
    let mut a = measured("read_us=5ms", 1, "n1");
    a.parts[0].name =
        "a_job_with_a_name_that_is_longer_than_what_most_people_would_call_a_job_that_reads".into();
    let comparison = compare(&[a], &[measured("read_us=40ms", 2, "n1")]);
    let document = ComparisonDocument::new(&long, &long, &comparison);
    let short = document.short_text(TextStyle::for_locale("C", false));
    for text in [document.text(TextFormat::Table), short] {
        let widest = text
            .lines()
            .max_by_key(|line| line.chars().count())
            .unwrap();
        assert!(widest.chars().count() <= 80, "{widest}");
    }
}

#[test]
fn error_of_many_figures_names_the_worst() {
    let fio = include_str!("../../../../result/tests/fio-json/two-jobs.json");
    let study = iosonde_history::read_documents(fio).unwrap().remove(0);
    let sides = [study.measured("a"), study.measured("b")];
    let mut comparison = compare(&sides[..1], &sides[1..]);
    // A rate that falls to 2 %.
    let is_rate = |row: &&mut ComparisonRow| row.measure.more_is_faster();
    comparison
        .rows
        .iter_mut()
        .find(is_rate)
        .unwrap()
        .ratio
        .value = 0.02;
    let document = ComparisonDocument::new("a", "b", &comparison);
    let rows: Vec<&ComparisonRow> = comparison.rows.iter().cycle().take(60).collect();
    let text = named(&document, &rows);
    assert!(text.starts_with("60 figures, the worst "), "{text}");
    assert!(text.ends_with("; the comparison has all"), "{text}");
    assert_eq!(text.matches(" by ").count(), NAMED_FIGURES_MAX, "{text}");
    assert!(text.contains(" by 98 %"), "{text}");
    let few = named(&document, &rows[..2]);
    assert_eq!(few.matches(" by ").count(), 2, "{few}");
    assert!(!few.contains("figures"), "{few}");
}
