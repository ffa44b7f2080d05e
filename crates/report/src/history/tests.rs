//! Tests of lists and tables of stored results.

use super::{stored_result_text, study_list};
use crate::format::TextFormat;
use crate::text_style::TextStyle;
use iosonde_engine::runner::LocalRunner;
use iosonde_history::{
    Filter, Headline, HeadlineDepths, HistoryHook, HistoryOptions, HistoryPath, HistoryWriter,
    Store, StoredRuns, StudyRecord, StudySummary, probe_document, read_documents,
};
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::pods::{PodRun, combined};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;
use iosonde_study::StudyDriver;
use iosonde_study::fake_session::{FakeDevice, FakeSession};
use iosonde_study::probe::{Knee, ProbeBudget, ProbePhase, ProbeResult, probe, run_probe};
use iosonde_study::test_targets::{directory_target, probe_options, simulated_target};
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// A history in its own directory.
struct ScratchHistory {
    directory: PathBuf,
    place: HistoryPath,
}

impl ScratchHistory {
    fn new(name: &str) -> ScratchHistory {
        let directory =
            std::env::temp_dir().join(format!("iosonde-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = HistoryPath {
            path: directory.join("history.db"),
            is_named: true,
            shared: None,
        };
        ScratchHistory { directory, place }
    }

    fn writer(&self, labels: &[(&str, &str)]) -> HistoryWriter {
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

    fn store(&self) -> Store {
        Store::open(&self.place).unwrap()
    }

    fn list_studies(&self) -> Vec<StudySummary> {
        self.store().list(&Filter::default()).unwrap()
    }
}

impl Drop for ScratchHistory {
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

/// `list` has the rate of the phase, as `probe` has it: a maximum comes from shorter runs.
#[test]
fn list_has_rate_of_phase_instead_of_maximum() {
    let scratch = ScratchHistory::new("short-runs");
    let mut writer = scratch.writer(&[]);
    let target = simulated_target("nvme");
    let options = probe_options(ProbeBudget::NORMAL, None);
    let mut session = LocalRunner::default().open();
    let mut result = probe(&mut session, &target, &options, &mut ()).unwrap();
    let is_write = |knee: &&mut Knee| knee.phase == ProbePhase::RandomWrite;
    let knee = result.knees.iter_mut().find(is_write).unwrap();
    let mut figures = result.figures.iter_mut();
    let figure = figures.find(|each| each.phase == knee.phase).unwrap();
    let maximum = &mut knee.saturation.maximum;
    (maximum.mean, maximum.error) = (2.0 * maximum.mean, Some(0.0));
    let (maximum, rate, iodepth) = (maximum.mean, figure.iops.mean, figure.iodepth);
    (knee.saturation.jobs, knee.saturation.knee.iodepth) = (1, figure.iodepth);
    (figure.iops.error, figure.measured_ns) = (Some(0.0), u64::MAX);
    let knee = knee.clone();
    assert!(result.sustained_rate(&knee).is_some());
    assert!(knee.saturation.known_maximum().is_some());
    writer.begin("probe", "sim:nvme");
    for run in &result.runs {
        writer.store_run(&run.result);
    }
    let document = probe_document(&mut result);
    writer.finish(document.as_ref()).unwrap();
    let written = scratch.list_studies().remove(0).headline.write.unwrap();
    let listed = written.per_s;
    assert!(listed < 0.9 * maximum, "{listed} of {maximum}");
    assert!((listed / rate - 1.0).abs() < 1e-9, "{listed} for {rate}");
    assert_eq!(written.error, Some(0.0));
    let depths = written.depths.unwrap();
    assert_eq!((depths.jobs, depths.from, depths.to), (1, iodepth, iodepth));
}

/// An imported result of fio.
fn study(started_at_ms: u64) -> StudyRecord {
    let text = include_str!("../../../result/tests/fio-json/two-jobs.json");
    let mut study = read_documents(text).unwrap().remove(0);
    study.started_at_ms = started_at_ms;
    study.runs[0].started_at_ms = started_at_ms;
    study
}

/// Results with fixed ids and times.
fn shown() -> Vec<StudySummary> {
    let scratch = ScratchHistory::new(&format!("shown-{:?}", std::thread::current().id()));
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
            &mut scratch.writer(labels),
            &mut FakeSession::new(device),
            name,
        )
        .unwrap();
    }
    let mut store = scratch.store();
    store
        .import(&[(study(1_795_230_400_000), "results/two-jobs.json".to_owned())])
        .unwrap();
    let mut all = scratch.list_studies();
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

fn list_in_utf8(studies: &[StudySummary], format: TextFormat) -> String {
    let style = TextStyle::for_locale("C.UTF-8", false);
    study_list(studies, format, &TimeZone::UTC, style)
}

#[test]
fn list_formats_match_snapshots() {
    let all = shown();
    let table = list_in_utf8(&all, TextFormat::Table);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("list_table", table);
    insta::assert_snapshot!("list_csv", list_in_utf8(&all, TextFormat::Csv));
    insta::assert_snapshot!("list_markdown", list_in_utf8(&all, TextFormat::Markdown));
    let json = list_in_utf8(&all, TextFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["results"][0]["id"], "1fa9c1b2d3");
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
}

#[test]
fn show_prints_result_as_table() {
    let scratch = ScratchHistory::new("show");
    let mut store = Store::open_or_make(&scratch.place).unwrap().store;
    store
        .import(&[(study(1_795_230_400_000), "results/two-jobs.json".to_owned())])
        .unwrap();
    let mut loaded = store.load(&scratch.list_studies()[0].id).unwrap();
    loaded.summary.id = "3fa9c1b2d3".to_owned();
    loaded.summary.short_id = "3fa9c1".to_owned();
    let table = stored_result_text(&loaded, &TimeZone::UTC, TextStyle::PLAIN);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("show_table", table);
    let parts = &loaded.study.runs[0].parts;
    insta::assert_snapshot!("figures_csv", crate::figures::figures_csv(parts));
    insta::assert_snapshot!("figures_markdown", crate::figures::markdown(parts));
}

/// A run of two pods on simulated devices.
fn run_of_two_pods() -> RunResult {
    let words = [
        "--name=t",
        "--rw=randread",
        "--size=16m",
        "--bs=4k",
        "--runtime=1",
        "--time_based",
        "--ioengine=sim",
        "--sim=cap_iops=1000",
    ]
    .map(Into::into);
    let plan = iosonde_job::parse(&words, &SystemEnv::default())
        .unwrap()
        .plan;
    let pod = |name: &str| PodRun {
        name: name.to_owned(),
        node: "n1".to_owned(),
        started_ns: 0,
        clock_error_ns: 0,
        result: LocalRunner::default().open().run(&plan, &mut ()).unwrap(),
    };
    combined(vec![pod("a"), pod("b")]).unwrap()
}

#[test]
fn show_has_the_pods_of_a_run_and_their_means_over_a_study() {
    let scratch = ScratchHistory::new("show-pods");
    let run = run_of_two_pods();
    for (kind, expected) in [
        ("fio", "Pods: 2 on node n1, started within"),
        (
            "pts",
            "Pods: 2 on node n1, 2 runs: mean rates, percentiles of all I/Os",
        ),
    ] {
        let mut writer = scratch.writer(&[]);
        writer.begin(kind, "sc://fast");
        writer.store_run(&run);
        writer.store_run(&run);
        let id = writer.finish(None).unwrap();
        let loaded = scratch.store().load(&id).unwrap();
        let text = stored_result_text(&loaded, &TimeZone::UTC, TextStyle::PLAIN);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn list_shortens_long_targets_in_the_middle() {
    let mut all = shown();
    all[0].target = "/mnt/a/very/long/path/that/leads/far/down/the/tree/to/the/disk-17".to_owned();
    all[0].finished_at_ms = None;
    let table = list_in_utf8(&all, TextFormat::Table);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("list_long", table);
}

#[test]
fn list_on_a_wide_terminal_keeps_directories_that_fit_whole() {
    let target = "/mnt/a/rather/long/path/to/an/old/disk";
    let usual = list_in_utf8(&shown(), TextFormat::Table);
    assert!(!usual.contains(target), "{usual}");
    crate::text_table::set_columns(120);
    let wide = list_in_utf8(&shown(), TextFormat::Table);
    crate::text_table::set_columns(80);
    assert!(wide.contains(target), "{wide}");
    let widest = wide.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 120, "{wide}");
}

#[test]
fn list_on_a_narrow_terminal_drops_columns_and_keeps_figures() {
    let whole = list_in_utf8(&shown(), TextFormat::Table);
    for columns in [40, 59, 60, 79] {
        crate::text_table::set_columns(columns);
        let table = list_in_utf8(&shown(), TextFormat::Table);
        let fits = |line: &str| line.chars().count() <= columns;
        assert!(table.lines().all(fits), "{columns}: {table}");
        for id in ["1fa9c1", "2fa9c1", "3fa9c1"] {
            let rows = table.lines().filter(|line| line.starts_with(id));
            assert_eq!(rows.count(), 1, "{table}");
        }
        assert!(table.contains("±"), "{columns}: {table}");
        let workload = table.contains("randread, depth 64");
        assert!(workload, "{columns}: {table}");
        assert_eq!(table.contains("GiB/s"), columns > 60, "{columns}: {table}");
    }
    assert!(whole.contains("bandwidth"), "{whole}");
}

#[test]
fn list_in_ascii_locale_has_no_other_characters() {
    let table = study_list(
        &shown(),
        TextFormat::Table,
        &TimeZone::UTC,
        TextStyle::PLAIN,
    );
    assert!(table.is_ascii() && table.contains("..."), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn list_shows_the_figure_of_a_command_without_rates() {
    let mut all = shown();
    all[0].headline = Headline {
        command: Some("400 tps".to_owned()),
        ..Headline::default()
    };
    let table = list_in_utf8(&all, TextFormat::Table);
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains("400 tps") && row.ends_with(" -"), "{table}");
}

#[test]
fn list_marks_rates_in_doubt_and_names_workloads_below_them() {
    let mut all = shown();
    let read = all[0].headline.read.as_mut().unwrap();
    read.is_unsteady = true;
    (read.error, read.per_s) = (Some(14.9), 3_283.0);
    let written = all[0].headline.write.as_mut().unwrap();
    (written.error, written.per_s) = (Some(14.9), 3_281.0);
    // The longest names of a sweep.
    let bandwidth = all[0].headline.bandwidth.as_mut().unwrap();
    bandwidth.workload = Some("randwrite".to_owned());
    bandwidth.depths = Some(HeadlineDepths {
        jobs: 1,
        from: 128,
        to: 256,
    });
    for (style, figure) in [
        (
            TextStyle::for_locale("C.UTF-8", false),
            " 3.28k ±0.02k*  3.17 GiB/s\n",
        ),
        (TextStyle::PLAIN, " 3.28k +-0.02k*  3.17 GiB/s\n"),
    ] {
        let table = study_list(&all, TextFormat::Table, &TimeZone::UTC, style);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 80, "{table}");
        assert!(table.contains(figure), "{table}");
        let below = "randread and randwrite, depth 64  randwrite, depths 128 to 256\n";
        assert!(table.contains(below), "{table}");
        let legend = "\n* not steady: the rate drifted or jumped, or the test reached no steady \
                      state.\nA figure with ~ has no known interval.\n";
        assert!(table.ends_with(legend), "{table}");
    }
    let document = list_in_utf8(&all, TextFormat::Markdown);
    let cell = "| 3.28k ±0.02k* (randread, depth 64) |";
    assert!(document.contains(cell), "{document}");
    assert!(document.contains("\n\\* not steady: "), "{document}");
}

#[test]
fn list_with_long_workloads_fits_and_indents_lines_below_ids() {
    let mut all = shown();
    all.truncate(1);
    all[0].target = "a".to_owned();
    let headline = &mut all[0].headline;
    let depths = Some(HeadlineDepths {
        jobs: 4,
        from: 16,
        to: 64,
    });
    let bandwidth = headline.bandwidth.as_mut().unwrap();
    (bandwidth.workload, bandwidth.depths) = (Some("randwrite".to_owned()), depths);
    let read = headline.read.as_mut().unwrap();
    read.depths = depths;
    let (per_s, error) = (read.per_s, read.error);
    let mut written = headline.write.take().unwrap();
    (written.per_s, written.error, written.depths) = (per_s, error, depths);
    let of_bandwidth = "randwrite, 4 jobs x depths 16 to 64\n";
    let table = list_in_utf8(&all, TextFormat::Table);
    let one_line = format!("\n  randread, 4 jobs x depths 16 to 64  {of_bandwidth}");
    assert!(table.contains(&one_line), "{table}");
    // A tie has both names, and the texts of both figures do not fit into one line.
    all[0].headline.write = Some(written);
    for columns in [80, 60, 40] {
        crate::text_table::set_columns(columns);
        let table = list_in_utf8(&all, TextFormat::Table);
        for line in table.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {table}");
            let is_indented = line.starts_with(' ');
            let is_row = line.starts_with("id ") || line.starts_with("1fa9c1 ");
            assert!(is_indented || is_row, "{columns}: {table}");
        }
    }
    crate::text_table::set_columns(80);
    let table = list_in_utf8(&all, TextFormat::Table);
    let tie = "\n  randread and randwrite, 4 jobs x depths 16 to 64\n";
    assert!(table.contains(tie), "{table}");
    assert!(table.contains(&format!(" {of_bandwidth}")), "{table}");
}
