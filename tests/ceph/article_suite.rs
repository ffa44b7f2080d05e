//! The published measurement `ceph-article`: a pool, an image and a mounted file system at once.

use std::path::Path;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, is_full, require};
use serde_json::Value;

use crate::mounted::flowing;

/// The built-in suite, reduced to two of its six jobs if time is short.
fn suite(cluster: &Cluster, scratch: &Scratch) -> String {
    let (status, text, _) = cluster.run("run --show ceph-article");
    assert_eq!(status, Some(0));
    if is_full() {
        return "ceph-article".to_owned();
    }
    let (front, job) = text.split_once("[4k_randwrite]").expect("its first job");
    let job = format!("[4k_randwrite]{job}");
    let sections: Vec<&str> = job.split("\n\n").collect();
    let kept = ["[4k_randread]", "[1M_write]"];
    let kept = sections
        .iter()
        .filter(|section| kept.iter().any(|name| section.starts_with(name)));
    let kept: Vec<&str> = kept.copied().collect();
    assert_eq!(kept.len(), 2, "{sections:?}");
    let file = scratch.out().join("ceph-article.toml");
    std::fs::write(&file, format!("{front}{}\n\"\"\"\n", kept.join("\n\n"))).expect("a suite");
    file.display().to_string()
}

/// Draws all charts once the page is loaded: a slow machine may render no frame after the first
/// charts are drawn, so the others would never become visible.
const DRAW_ALL: &str = "<script>addEventListener('load', () => \
     ['beforeprint', 'afterprint'].forEach((name) => dispatchEvent(new Event(name))));</script>";

/// Opens a report in a browser, runs its scripts and returns each figure of the page.
fn opened(page: &Path, scratch: &Scratch) -> Vec<String> {
    let source = std::fs::read_to_string(page).expect("a report");
    let page = scratch.out().join("drawn.html");
    std::fs::write(&page, source + DRAW_ALL).expect("a copy of the report");
    let mut command = std::process::Command::new("timeout");
    command.args(["300", "chromium-headless-shell", "--headless"]);
    command.args(["--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.arg("--disable-sync");
    command.args(["--disable-background-networking", "--enable-logging=stderr"]);
    command.args(["--window-size=1280,900", "--virtual-time-budget=20000"]);
    let profile = scratch.out().join("browser");
    command.arg(format!("--user-data-dir={}", profile.display()));
    command.arg("--dump-dom");
    command.arg(format!("file://{}", page.display()));
    let done = command.env("HOME", scratch.out()).output();
    let done = done.expect("the browser starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    for trouble in ["Uncaught", "CONSOLE:ERROR"] {
        assert!(!said.contains(trouble), "{said}");
    }
    let document = String::from_utf8_lossy(&done.stdout).into_owned();
    let figures = document.split("<figure class=\"panel\" id=\"").skip(1);
    let whole = figures.map(|figure| figure.split("</figure>").next().unwrap_or_default());
    whole.map(str::to_owned).collect()
}

/// Each chart has the curves of all measured targets: one chart for 1 and one for 16 jobs, of small
/// and of large I/Os. Maps have one job each.
fn assert_charts(figures: &[String], targets: &[String], jobs: usize) {
    for (kind, count) in [("curves", 2 * 2), ("map", 2 * jobs)] {
        let of_kind = |figure: &&String| figure.starts_with(&format!("sweep-0-{kind}-"));
        let charts: Vec<&String> = figures.iter().filter(of_kind).collect();
        assert_eq!(charts.len(), count, "{kind}");
        for chart in charts {
            let id = chart.split('"').next().unwrap_or_default();
            let svg = chart.split_once("<svg").map_or("", |(_, svg)| svg);
            let paths = svg.matches("<path d=\"M").count();
            assert!(paths >= 3, "{id}: {paths} paths");
            for wrong in ["NaN", "undefined", "Infinity"] {
                assert!(!chart.contains(wrong), "{id}: {wrong}");
            }
            // A chart has no curve of a target on which no I/O completed in time.
            let drawn = targets.iter().filter(|target| chart.contains(*target));
            assert!(drawn.count() >= 2, "{id}: {chart}");
        }
    }
    for target in targets {
        let is_drawn = figures.iter().any(|figure| figure.contains(target));
        assert!(is_drawn, "{target} is in no chart");
    }
}

/// The result that a report contains.
fn embedded_document(page: &Path) -> Value {
    let page = std::fs::read_to_string(page).expect("a report");
    page.lines()
        .find_map(|line| {
            let from = line.find("{\"program\":\"iosonde")?;
            let mut values = serde_json::Deserializer::from_str(&line[from..]).into_iter::<Value>();
            values.next()?.ok()
        })
        .expect("a document in the page")
}

fn assert_curves_measured(curves: &[Value], notes: &str) {
    for curve in curves {
        let cells = curve["cells"].as_array().expect("cells");
        let measured = cells.iter().filter(|cell| cell["basis"] == "measured");
        // On a busy machine two seconds may be too short; a note reports it.
        let is_reported = notes.contains("no I/O completed");
        assert!(measured.count() > 0 || is_reported, "{notes} {curve:#}");
    }
    assert!(notes.contains("advice: "), "{notes}");
}

#[test]
#[ignore = "needs Ceph"]
fn article_suite_measures_pool_image_and_file_system() {
    require!(Root, Fuse, Chromium);
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/article --size 64M"));
    let mount = cluster.mount("article");
    let targets = [
        format!("rados://{POOL}/article"),
        format!("rbd://{POOL}/article"),
        mount.dir().display().to_string(),
    ];
    let page = scratch.out().join("ceph.html");
    let line = format!(
        "run {} {} --var size=16m --var runtime=1 --allow-overwrite rbd://{POOL}/article --report \
         {}",
        suite(&cluster, &scratch),
        targets.join(" "),
        page.display()
    );
    let (status, text, said) = cluster.run(&line);
    assert_eq!(status, Some(0), "{text}{said}");
    let printed = flowing(&text);
    for words in [
        "rados://testbench/article (librados)",
        "rbd://testbench/article (librbd); rbd_cache on (writearound)",
        "CephFS (ceph-fuse) 127.0.0.1",
        "ceph-4k_randread-16",
        "ceph-1M_write-16",
    ] {
        assert!(printed.contains(words), "{words}: {text}");
    }
    // Advice for each target; figures that are too uncertain are named instead.
    assert_eq!(text.matches("Advice\n").count(), 3, "{text}");

    let drawn = opened(&page, &scratch);
    let document = embedded_document(&page);
    let sweeps = document["sweeps"].as_array().expect("sweeps");
    assert_eq!(sweeps.len(), 1, "all targets in one");
    let axes = sweeps[0]["axes"].as_array().expect("axes");
    let values = |name: &str| {
        let axis = axes.iter().find(|axis| axis["name"] == name);
        axis.map(|axis| axis["values"].clone()).unwrap_or_default()
    };
    assert_eq!(values("target"), serde_json::json!(targets));
    // One chart for each value, with curves over the depth.
    assert_eq!(values("numjobs"), serde_json::json!(["1", "16"]));
    assert_eq!(
        values("iodepth"),
        serde_json::json!(["1", "2", "4", "8", "16", "32"])
    );
    let curves = sweeps[0]["curves"].as_array().expect("curves");
    let jobs = values("job").as_array().map_or(0, Vec::len);
    assert_eq!(curves.len(), 3 * 2 * jobs, "{axes:?}");
    assert_charts(&drawn, &targets, jobs);
    assert_curves_measured(curves, &sweeps[0]["notes"].to_string());

    // All objects are removed.
    let objects = cluster.objects(POOL);
    assert!(
        !objects.iter().any(|name| name.starts_with("article/")),
        "{objects:?}"
    );
    assert_eq!(
        std::fs::read_dir(mount.dir()).expect("a directory").count(),
        0
    );
    cluster.rbd(&format!("rm --no-progress {POOL}/article"));
}
