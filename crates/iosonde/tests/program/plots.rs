//! Charts from outside: the files, and the errors of others.

use crate::common::{Scratch, error};
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
    let file = fs::read_to_string(scratch.path("x.svg")).unwrap();
    assert!(
        file.starts_with("<svg") && file.contains(">After<"),
        "{file}"
    );
    let piped = scratch.done(&["plot", "--chart", "latency", "--title", "After"]);
    assert_eq!(piped, file);
}
