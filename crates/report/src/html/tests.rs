use super::*;
use crate::probe::simulated::probed;
use iosonde_engine::runner::LocalRunner;
use iosonde_history::TOGETHER;
use iosonde_job::control_characters::is_escaped;
use iosonde_job::plan::{
    BytesOrPercent, Direction, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_result::compare::{Measure, Subject, parts};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;
use iosonde_study::probe::{ProbeBudget, ProbePhase};
use serde_json::{Value, json};

/// Random I/O on a simulated device for ten seconds.
fn job(name: &str, device: &str, mode: ReadWriteMode, iodepth: u32) -> Job {
    let mut job = Job::new(name);
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.iodepth = iodepth;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 10_000_000_000;
    job
}

fn run(jobs: Vec<Job>) -> RunResult {
    let plan = Plan {
        jobs,
        global_options: Vec::new(),
    };
    LocalRunner::default().open().run(&plan, &mut ()).unwrap()
}

/// Extracts the document from a page.
fn document(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"results\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

fn report(results: Vec<(&str, RunResult)>) -> Value {
    let mut builder = HtmlReportBuilder::default();
    for (source, result) in results {
        builder.run(source, result);
    }
    document(&builder.html(None).unwrap())
}

#[test]
fn page_has_one_placeholder_and_loads_nothing() {
    let page = EMPTY_PAGE;
    assert_eq!(page.matches(PLACE).count(), 1);
    assert_eq!(page.matches(TEXT_PLACE).count(), 1);
    for loads in [
        "src=\"http",
        "href=\"http",
        "src=\"/",
        "href=\"/",
        "@import",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert!(page.contains("default-src 'none'"));
    // Output escapes control characters, which would change the page's scripts.
    assert!(!page.contains(is_escaped));
}

#[test]
fn text_of_a_result_cannot_end_the_script() {
    let mut result = run(vec![job("</script><b>", "nvme", ReadWriteMode::Read, 1)]);
    result.labels.insert("k".into(), "<!--".into());
    let mut builder = HtmlReportBuilder::default();
    builder.run("evil", result);
    let page = builder.html(Some("<h1>")).unwrap();
    assert!(!page.contains("</script><b>"));
    let document = document(&page);
    assert_eq!(document["title"], "<h1>");
    assert_eq!(document["runs"][0]["name"], "</script><b>");
    assert_eq!(document["runs"][0]["labels"]["k"], "<!--");
}

#[test]
fn label_of_targets_that_ran_together_is_hidden() {
    let mut result = run(vec![job("one", "nvme", ReadWriteMode::Read, 1)]);
    result.labels.insert(TOGETHER.into(), "85a09e9e9a".into());
    result.labels.insert("disk".into(), "new".into());
    let document = report(vec![("one", result)]);
    assert_eq!(document["runs"][0]["labels"], json!({ "disk": "new" }));
}

#[test]
fn single_job_has_rates_with_intervals() {
    let result = run(vec![job(
        "mixed",
        "nvme,noise=0.03",
        ReadWriteMode::ReadWrite,
        16,
    )]);
    let worker = result.workers[0].clone();
    let document = report(vec![("one", result)]);
    let figures = document["runs"][0]["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 2);
    for (figure, direction) in figures.iter().zip([Direction::Read, Direction::Write]) {
        let stats = &worker.directions[direction];
        assert_eq!(figure["direction"], direction.name());
        assert_eq!(figure["ios"], stats.total_ios);
        let mean = figure["iops"]["mean"].as_f64().unwrap();
        let expected = stats.total_ios as f64 * 1e9 / stats.runtime_ns as f64;
        assert!((mean / expected - 1.0).abs() < 1e-9);
        let error = figure["iops"]["error"].as_f64().unwrap();
        assert!(error > 0.0 && error < 0.1 * mean, "{error} of {mean}");
        assert_eq!(figure["settled"], true);
        let counted: u64 = figure["latency"]["buckets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bucket| bucket[1].as_u64().unwrap())
            .sum();
        assert_eq!(counted, stats.total_ios);
    }
}

#[test]
fn run_on_a_working_file_has_the_place_of_its_directory() {
    let mut result = run(vec![job("one", "nvme", ReadWriteMode::Read, 1)]);
    let job = &mut result.plan.jobs[0];
    job.io.sim = None;
    job.files.filenames = vec!["/mnt/a/.iosonde-probe-1-0".to_owned()];
    let mut builder = HtmlReportBuilder::default();
    builder.of_grid("sweep", result);
    let document = document(&builder.html(None).unwrap());
    assert_eq!(document["runs"][0]["place"], "/mnt/a");
    assert_eq!(document["title"], "Storage performance of /mnt/a");
}

#[test]
fn mean_latency_of_a_run_is_that_of_its_part() {
    let result = run(vec![job("one", "nvme,noise=0.03", ReadWriteMode::Read, 16)]);
    let part = parts(&result).remove(0);
    let document = report(vec![("one", result)]);
    let figure = &document["runs"][0]["figures"][0];
    assert_eq!(figure["latency_kind"], "total");
    let kind = document::PageLatencyKind::Total;
    let expected = figure_texts::mean_latency(&part, Subject::Read, kind).unwrap();
    assert_eq!(figure["shown"]["mean"], expected);
    let jobs = ["one", "two"].map(|name| job(name, "nvme", ReadWriteMode::Read, 4));
    let document = report(vec![("sum", run(jobs.into()))]);
    let sum = document["runs"][0]["figures"][2]["shown"]["mean"].clone();
    let sum = sum.as_str().unwrap().to_owned();
    assert!(sum.starts_with('~'), "a sum of jobs has no interval: {sum}");
}

#[test]
fn concurrent_jobs_have_a_sum_and_sequential_jobs_none() {
    let jobs = || {
        vec![
            job("one", "nvme", ReadWriteMode::Read, 4),
            job("two", "nvme", ReadWriteMode::Read, 16),
        ]
    };
    let names = |document: &Value| -> Vec<String> {
        let figures = document["runs"][0]["figures"].as_array().unwrap();
        figures
            .iter()
            .map(|figure| figure["job"].as_str().unwrap().to_owned())
            .collect()
    };
    let together = report(vec![("one", run(jobs()))]);
    assert_eq!(names(&together), ["one", "two", "all jobs"]);
    let figures = &together["runs"][0]["figures"];
    // Intervals do not separate jobs. Like `show`, the page uses the moments of a job's samples.
    let part = &parts(&run(jobs()))[0];
    let shown = part.figure(Subject::Read, Measure::Iops).unwrap();
    let half = shown.bounds.map(|bounds| bounds.high - shown.value);
    assert_eq!(figures[0]["iops"]["error"].as_f64(), half);
    assert_eq!(figures[0]["iops"]["mean"].as_f64(), Some(shown.value));
    assert!(figures[2]["iops"]["error"].is_f64());
    assert_eq!(
        (&figures[0]["iodepth"], &figures[2]["iodepth"]),
        (&4.into(), &0.into())
    );
    let mut in_turn = jobs();
    in_turn[1].schedule.stonewall = true;
    assert_eq!(names(&report(vec![("one", run(in_turn))])), ["one", "two"]);
}

#[test]
fn runs_share_plan_and_host() {
    let result = run(vec![job("same", "nvme", ReadWriteMode::Read, 1)]);
    let mut busier = result.clone();
    busier.host.memory_available_bytes = Some(1 << 30);
    let document = report(vec![
        ("monday", busier),
        ("tuesday", result.clone()),
        ("tuesday", result),
    ]);
    assert_eq!(document["plans"].as_array().unwrap().len(), 1);
    assert_eq!(document["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(document["runs"][0]["memory_available_bytes"], 1 << 30);
    for run in document["runs"].as_array().unwrap() {
        assert_eq!(run["name"], "same");
    }
}

#[test]
fn page_without_scripts_has_title_and_figures() {
    let result = run(vec![job("<job>", "nvme", ReadWriteMode::Read, 4)]);
    let mut builder = HtmlReportBuilder::default();
    builder.run("one", result);
    let page = builder.html(Some("Title & more")).unwrap();
    let (_, rest) = page.split_once("<noscript>").unwrap();
    let (text, _) = rest.split_once("</noscript>").unwrap();
    assert!(text.contains("<h1>Title &amp; more</h1>"), "{text}");
    assert!(page.contains("<title>Title &amp; more</title>"));
    assert!(!page.contains(EMPTY_TITLE));
    assert!(
        text.contains("<td>sim:nvme</td><td>&lt;job&gt;, read</td><td>4</td>"),
        "{text}"
    );
    assert!(!page.contains(TEXT_PLACE));
}

#[test]
fn probe_page_has_figures_and_knees_of_result() {
    let result = probed("sata-ssd", ProbeBudget::NORMAL);
    let figures = result.figures.clone();
    let device = result.classification.device.clone();
    let searched = result.knees.clone();
    let mut builder = HtmlReportBuilder::default();
    builder.probe("file", result);
    let document = document(&builder.html(None).unwrap());
    assert_eq!(document["title"], "Storage performance of sim:sata-ssd");
    let sentence = document["studies"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with(&format!("This is {device}")),
        "{sentence}"
    );
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs[0]["preparation"], true);
    let curves = document["knees"][0]["curves"].as_array().unwrap();
    let known = searched.iter().filter(|knee| knee.saturation.claims().knee);
    assert!(known.clone().count() > 0, "nothing is tested");
    for knee in known {
        let curve = curves.iter().find(|curve| {
            !curve["knee"].is_null()
                && curve["values"][0]
                    .as_str()
                    .unwrap()
                    .starts_with(knee.phase.title())
        });
        let curve = curve.expect("a curve for each search");
        assert_eq!(curve["knee"], knee.saturation.knee.iodepth);
        let deepest = knee.saturation.cells.last().unwrap();
        let cells = curve["cells"].as_array().unwrap();
        let drawn = cells
            .iter()
            .find(|cell| cell["iodepth"] == deepest.iodepth)
            .unwrap();
        assert_eq!(drawn["iops"]["mean"].as_f64(), Some(deepest.iops.mean));
    }
    assert!(searched.iter().any(|knee| !knee.phase.is_random()));
    for figure in figures {
        let run = runs
            .iter()
            .find(|run| run["name"] == figure.phase.title())
            .unwrap();
        let shown = &run["figures"][0];
        assert_eq!(shown["iops"]["mean"].as_f64(), Some(figure.iops.mean));
        assert_eq!(shown["iops"]["error"].as_f64(), figure.iops.error);
        assert_eq!(shown["settled"].as_bool(), figure.settled);
        let is_steady = shown["shape"] == "steady" || shown["shape"] == "noisy";
        assert_eq!(is_steady, figure.settled == Some(true));
        assert_eq!(shown["latency"]["count"], figure.latency.count);
        let has_flush = run["figures"].as_array().unwrap().len() == 2;
        assert_eq!(has_flush, figure.phase == ProbePhase::SyncedWrite);
    }
}

#[test]
fn fio_result_page_has_figures_of_fio() {
    let json = r#"{"fio version": "fio-3.33", "timestamp_ms": 1700000000000, "jobs": [{
        "jobname": "j", "groupid": 0, "error": 0, "elapsed": 11,
        "job options": {"rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/dev/sdz"},
        "read": {"io_bytes": 409600000, "bw_bytes": 40960000, "iops": 10000.0, "total_ios": 100000, "runtime": 10000,
            "iops_min": 9900, "iops_max": 10100, "iops_mean": 10000.0, "iops_stddev": 50.0, "iops_samples": 20,
            "clat_ns": {"min": 100000, "max": 9000000, "mean": 800000.0, "stddev": 1000.0, "N": 100000,
                "percentile": {"50.000000": 790528, "99.000000": 1200128, "99.900000": 2007040}},
            "lat_ns": {"min": 100100, "max": 9000100, "mean": 800100.0, "stddev": 1000.0, "N": 100000}},
        "write": {"io_bytes": 0, "iops": 0, "bw_bytes": 0, "total_ios": 0, "runtime": 0},
        "trim": {"io_bytes": 0, "iops": 0, "bw_bytes": 0, "total_ios": 0, "runtime": 0}
    }]}"#;
    let mut builder = HtmlReportBuilder::default();
    builder.fio("old", iosonde_result::fio::import::import(json).unwrap());
    let document = document(&builder.html(None).unwrap());
    let run = &document["runs"][0];
    assert_eq!(run["place"], "/dev/sdz");
    assert_eq!(run["program"], "fio-3.33");
    assert!(run["host"].is_null() && run["plan"].is_null());
    let figures = run["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0]["iops"]["mean"], 10000.0);
    assert_eq!(figures[0]["bytes_per_s"]["mean"], 40960000.0);
    assert_eq!(figures[0]["iodepth"], 8);
    assert_eq!(figures[0]["block_bytes"], serde_json::json!([4096, 4096]));
    let marks = serde_json::json!([[0.5, 790528.0], [0.01, 1200128.0], [0.001, 2007040.0]]);
    assert_eq!(figures[0]["latency"]["marks"], marks);
}

#[test]
fn promise_is_compared_with_fastest_run_of_target() {
    let query = "gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8".parse().unwrap();
    let promise = iosonde_limits::Limits::published()
        .evaluate(&query)
        .unwrap();
    let read_iops = promise
        .figures
        .iter()
        .find(|figure| figure.metric == iosonde_limits::Metric::ReadIops)
        .unwrap()
        .per_s;
    // A promise is not about depth 1. At depth 64, the device reaches exactly the promised rate.
    let device = format!("read_us=500,parallel=64,cap_read_iops={read_iops}");
    let mut builder = HtmlReportBuilder::expecting(vec![promise]);
    for depth in [1, 64] {
        let result = run(vec![job("read", &device, ReadWriteMode::Read, depth)]);
        builder.run("file", result);
    }
    let document = document(&builder.html(None).unwrap());
    let promises = document["promises"].as_array().unwrap();
    assert_eq!(promises.len(), 1);
    let row = &promises[0]["rows"][0];
    assert_eq!(row["what"], "read IOPS");
    assert_eq!(row["promised"].as_f64(), Some(read_iops));
    let measured = row["measured"]["mean"].as_f64().unwrap();
    assert!((measured / read_iops - 1.0).abs() < 0.02, "{measured}");
    assert_eq!(
        (&row["verdict"], &row["kept"]),
        (&"as promised".into(), &true.into())
    );
    assert!(!promises[0]["source"].as_str().unwrap().is_empty());
}
