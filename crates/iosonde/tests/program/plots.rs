//! Charts from outside: the files, and the errors of others.

use crate::common::{NET, SLOWER, Scratch, error};
use std::fs;

#[test]
fn plot_writes_each_chart_of_a_stored_probe() {
    let scratch = Scratch::new("plot-all");
    scratch.done(&["probe", "sim:sata-ssd", "--quick"]);
    let output = scratch.run(&["plot", "--chart", "all", "-o", "below/charts"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(!scratch.path("below").exists());
    let output = scratch.run(&[
        "plot", "--chart", "all", "-o", "charts/", "--size", "800x450",
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
    for panel in timeline["panels"].as_array().unwrap() {
        let series = panel["series"].as_array().unwrap();
        let names: Vec<&str> = (series.iter())
            .map(|series| series["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["sim:hdd", "sim:sata-ssd"]);
    }
    let histogram = chart(&scratch, &["histogram", "latest~1", "latest"]);
    let subtitle = histogram["subtitle"].as_str().unwrap();
    assert!(subtitle.starts_with("sim:hdd, sim:sata-ssd"), "{subtitle}");
    assert!(!histogram["footer"].to_string().contains("not shown"));
}

/// Each target has as many write workloads as the other, and its colour in all charts.
#[test]
fn written_draws_the_same_workloads_of_each_target() {
    let scratch = Scratch::new("plot-written");
    for device in ["sim:hdd", "sim:sata-ssd"] {
        scratch.done(&["probe", device, "--quick"]);
    }
    for name in ["written", "latency"] {
        let chart = chart(&scratch, &[name, "latest~1", "latest"]);
        let series = chart["panels"][0]["series"].as_array().unwrap();
        let slots = |target: &str| -> Vec<u64> {
            let own = series
                .iter()
                .filter(|line| line["name"].as_str().unwrap().starts_with(target));
            own.map(|line| line["slot"].as_u64().unwrap()).collect()
        };
        let (first, second) = (slots("sim:hdd"), slots("sim:sata-ssd"));
        assert_eq!(first.len(), second.len(), "{chart}");
        assert!(!first.is_empty(), "{chart}");
        assert!(first.iter().all(|slot| *slot == 0), "{chart}");
        assert!(second.iter().all(|slot| *slot == 1), "{chart}");
    }
}

#[test]
fn latency_of_a_probe_keeps_its_main_workloads() {
    let scratch = Scratch::new("plot-main");
    scratch.done(&["probe", "sim:hdd", "--quick"]);
    let chart = chart(&scratch, &["latency"]);
    let series = chart["panels"][0]["series"].as_array().unwrap();
    let names = series.iter().map(|line| line["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    for name in ["random write", "sequential write"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"fdatasync · write"), "{names:?}");
}

#[test]
fn load_studies_share_a_chart_and_heat_maps_do_not() {
    let scratch = Scratch::new("plot-shared");
    for device in [NET, SLOWER] {
        scratch.done(&[
            "load",
            device,
            "--rates",
            "600,900",
            "--runtime",
            "2",
            "--ramp",
            "1",
        ]);
    }
    let chart = chart(&scratch, &["latency", "latest~1", "latest"]);
    assert_eq!(
        chart["title"],
        "99th percentile of latency over offered rate"
    );
    let series = chart["panels"][0]["series"].as_array().unwrap();
    assert_eq!(series.len(), 2, "{chart}");
    let words = "--rw randread --bs 4k,64k --iodepth 1,4 --exhaustive --runtime 1";
    let words: Vec<&str> = words.split_whitespace().collect();
    for device in [NET, SLOWER] {
        scratch.done(&[&["sweep", device], words.as_slice()].concat());
    }
    let refused = ["plot", "--chart", "heatmap", "latest~1", "latest"];
    let refused = scratch.run(&refused);
    let text = error(&refused);
    assert!(
        text.starts_with("error: the chart heatmap shows one result, not 2: "),
        "{text}"
    );
    assert!(text.contains("iosonde plot "), "{text}");
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
