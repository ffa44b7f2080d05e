//! Charts from outside: the files, and the errors of others.

use crate::common::{NET, SLOWER, Scratch, error};
use std::fs;

#[test]
fn plot_writes_each_chart_of_a_stored_probe() {
    let scratch = Scratch::new("plot-all");
    scratch.done(&["probe", "sim:sata-ssd", "--quick"]);
    fs::create_dir(scratch.path("charts")).unwrap();
    let output = scratch.run(&[
        "plot", "--chart", "all", "-o", "charts", "--size", "800x450",
    ]);
    assert!(output.status.success(), "{}", error(&output));
    for name in ["latency", "timeline", "histogram"] {
        let svg = fs::read_to_string(scratch.path(&format!("charts/{name}.svg"))).unwrap();
        assert!(svg.contains("width=\"800\" height=\"450\""), "{name}");
        let png = fs::read(scratch.path(&format!("charts/{name}.png"))).unwrap();
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert!(error(&output).contains(name), "{name} is not listed");
    }
}

#[test]
fn plot_without_data_names_the_charts_of_the_result() {
    let scratch = Scratch::new("plot-none");
    scratch.done(&["probe", "sim:hdd", "--quick"]);
    let output = scratch.run(&["plot", "--chart", "heatmap", "-o", "heat.svg"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    let text = error(&output);
    assert!(
        text.contains("heatmap") && text.contains("latency"),
        "{text}"
    );
    assert!(!scratch.path("heat.svg").exists());
    for file in ["heat.pdf", "heat"] {
        let output = scratch.run(&["plot", "--chart", "latency", "-o", file]);
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains(".png"), "{}", error(&output));
    }
    let output = scratch.run(&["plot", "--chart", "latency", "-o", "missing/x.svg"]);
    assert!(!output.status.success());
}

#[test]
fn plot_replaces_a_file_and_prints_svg_into_pipes() {
    let scratch = Scratch::new("plot-replaced");
    scratch.done(&["probe", "sim:hdd", "--quick"]);
    scratch.file("x.svg", "old");
    scratch.done(&[
        "plot", "--chart", "latency", "-o", "x.svg", "--title", "After",
    ]);
    let again = scratch.run(&[
        "plot", "--chart", "latency", "-o", "x.svg", "--title", "After",
    ]);
    assert!(error(&again).contains("wrote x.svg\n"), "{}", error(&again));
    let file = fs::read_to_string(scratch.path("x.svg")).unwrap();
    assert!(
        file.starts_with("<svg") && file.contains(">After<"),
        "{file}"
    );
    let piped = scratch.done(&["plot", "--chart", "latency", "--title", "After"]);
    assert_eq!(piped, file);
}

/// Data of the only chart that the command prints.
fn chart(scratch: &Scratch, words: &[&str]) -> serde_json::Value {
    let all = [&["plot", "--format", "json", "--chart"], words].concat();
    let charts: serde_json::Value = serde_json::from_str(&scratch.done(&all)).unwrap();
    assert_eq!(charts.as_array().unwrap().len(), 1, "{words:?}");
    charts[0].clone()
}

/// Small blocks are drawn as IOPS, large ones as bandwidth.
#[test]
fn sweep_of_small_and_large_blocks_has_two_panels() {
    let scratch = Scratch::new("plot-panels");
    let words = "--rw randread --bs 4k,64k --iodepth 1,4,32 --exhaustive --runtime 1";
    let words: Vec<&str> = words.split_whitespace().collect();
    scratch.done(&[&["sweep", NET], words.as_slice()].concat());
    let chart = chart(&scratch, &["iops-over-depth"]);
    let panels = chart["panels"].as_array().unwrap();
    let labels: Vec<&str> = (panels.iter())
        .map(|panel| panel["y"]["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["IOPS", "bandwidth"]);
    for (panel, block) in panels.iter().zip(["4k", "64k"]) {
        let series = panel["series"].as_array().unwrap();
        assert_eq!(series.len(), 1, "{panel}");
        let name = series[0]["name"].as_str().unwrap();
        assert!(name.ends_with(block), "{name}");
        assert_eq!(series[0]["points"].as_array().unwrap().len(), 3, "{name}");
    }
    assert_eq!(chart["title"], "IOPS and bandwidth over depth");
    let slots = panels
        .iter()
        .map(|panel| panel["series"][0]["slot"].clone());
    assert_eq!(slots.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn sweeps_over_depth_alone_are_named_by_their_targets() {
    let scratch = Scratch::new("plot-targets");
    for device in [NET, SLOWER] {
        scratch.done(&[
            "sweep",
            device,
            "--iodepth",
            "1,4",
            "--exhaustive",
            "--runtime",
            "1",
        ]);
    }
    let chart = chart(&scratch, &["iops-over-depth", "latest~1", "latest"]);
    for panel in chart["panels"].as_array().unwrap() {
        for series in panel["series"].as_array().unwrap() {
            let name = series["name"].as_str().unwrap();
            assert!(!name.trim_end().ends_with(':'), "{name}");
        }
    }
}

#[test]
fn subtitle_names_only_the_targets_of_the_chart() {
    let scratch = Scratch::new("plot-subtitle");
    for device in ["sim:hdd", "sim:sata-ssd"] {
        scratch.done(&["probe", device, "--quick"]);
    }
    let timeline = chart(&scratch, &["timeline", "latest~1", "latest"]);
    let subtitle = timeline["subtitle"].as_str().unwrap();
    assert!(subtitle.starts_with("sim:hdd"), "{subtitle}");
    assert!(!subtitle.contains("sata-ssd"), "{subtitle}");
    let footer = timeline["footer"].to_string();
    assert!(footer.contains("not shown: sim:sata-ssd"), "{footer}");
    let histogram = chart(&scratch, &["histogram", "latest~1", "latest"]);
    let subtitle = histogram["subtitle"].as_str().unwrap();
    assert!(subtitle.starts_with("sim:hdd, sim:sata-ssd"), "{subtitle}");
    assert!(!histogram["footer"].to_string().contains("not shown"));
}

#[test]
fn timeline_of_a_probe_is_titled_by_its_phase() {
    let scratch = Scratch::new("plot-phase");
    scratch.done(&["probe", "sim:hdd", "--quick"]);
    let whole = chart(&scratch, &["timeline"]);
    let title = whole["title"].as_str().unwrap();
    assert!(title.contains("k random read, depth "), "{title}");
    let single = chart(&scratch, &["timeline", "latest.random_read"]);
    let title = single["title"].as_str().unwrap();
    assert!(title.starts_with("4k random read, depth "), "{title}");
    assert!(title.ends_with(" over time"), "{title}");
    let subtitle = single["subtitle"].as_str().unwrap();
    assert!(subtitle.starts_with("sim:hdd"), "{subtitle}");
}
