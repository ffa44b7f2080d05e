use super::chart_data::{AxisScale, ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{counts_axis, linear_axis};
use super::drawing::{Shape, TextAnchor};
use super::*;
use crate::html::HtmlReportBuilder;
use crate::html::document::PageUnit;
use crate::load::tests::{at, measured};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{
    BytesOrPercent, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_result::run::{RunEvent, RunResult};
use iosonde_result::session::Session;
use iosonde_suite::{StepResult, SuiteResult};

const STYLE: PlotStyle = PlotStyle {
    theme: PlotTheme::Light,
    width: 960,
    height: 540,
};

/// Random I/O on a simulated device for four seconds.
pub(crate) fn run(name: &str, mode: ReadWriteMode, iodepth: u32) -> RunResult {
    let mut job = Job::new(name);
    job.io.engine = Engine::Sim;
    job.io.sim = Some("read_us=400,write_us=900,parallel=8,noise=0.03".to_owned());
    job.io.iodepth = iodepth;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 4_000_000_000;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    LocalRunner::default().open().run(&plan, &mut ()).unwrap()
}

fn source(results: Vec<RunResult>) -> PlotSource {
    let mut builder = HtmlReportBuilder::default();
    for (index, result) in results.into_iter().enumerate() {
        builder.run(&format!("result{index}"), result);
    }
    PlotSource::new(builder, None)
}

fn names(source: &PlotSource) -> Vec<&'static str> {
    let charts = source.charts();
    charts.iter().map(|data| data.chart.name()).collect()
}

/// A chart with two lines of known points.
fn known_chart() -> ChartData {
    let series = |name: &str, slot: usize, factor: f64| ChartSeries {
        name: name.to_owned(),
        slot,
        dash: slot,
        shape: SeriesShape::Dotted,
        points: [1.0, 4.0, 16.0]
            .map(|depth| PlotPoint::new(depth, Some(depth * factor)))
            .to_vec(),
        band: [1.0, 4.0, 16.0]
            .map(|depth| (depth, depth * factor * 0.9, depth * factor * 1.1))
            .to_vec(),
    };
    ChartData {
        chart: ChartKind::IopsOverDepth,
        title: "IOPS over depth".to_owned(),
        subtitle: "/srv/data · nvme0n1, ext4 · host".to_owned(),
        footer: vec!["2026-01-01 · iosonde".to_owned()],
        x: counts_axis("I/Os in flight", vec![1, 4, 16]),
        moments: TimeMoments::default(),
        panels: vec![ChartPanel {
            y: linear_axis("IOPS", PageUnit::Iops, 17_600.0),
            series: vec![series("read", 0, 1000.0), series("write", 1, 990.0)],
            cells: Vec::new(),
            limits: Vec::new(),
        }],
    }
}

#[test]
fn known_points_and_names_are_drawn() {
    let document = chart_svg(&known_chart(), &STYLE);
    let tree = roxmltree::Document::parse(&document).unwrap();
    let count = |tag: &str| {
        let elements = tree.descendants();
        elements
            .filter(|node| node.tag_name().name() == tag)
            .count()
    };
    assert_eq!(count("circle"), 6, "a dot for each point");
    assert_eq!(count("polygon"), 2, "a band for each line");
    let texts = tree
        .descendants()
        .filter(|node| node.tag_name().name() == "text");
    let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
    for text in [
        "IOPS over depth",
        "/srv/data · nvme0n1, ext4 · host",
        "2026-01-01 · iosonde",
        "I/Os in flight",
        "read",
        "write",
        "20k",
        "16",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn band_breaks_at_a_point_without_interval() {
    let mut chart = known_chart();
    chart.panels[0].series[0].band.remove(1);
    let document = chart_svg(&chart, &STYLE);
    let bands = document.matches("<polygon").count();
    assert_eq!(bands, 1, "the other line has a band");
}

#[test]
fn png_and_svg_have_the_requested_size() {
    let style = PlotStyle {
        theme: PlotTheme::Dark,
        width: 640,
        height: 400,
    };
    let image = chart_png(&known_chart(), &style).unwrap();
    assert_eq!(image[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(image[16..24], [0, 0, 2, 128, 0, 0, 1, 144]);
    assert!(image.len() > 2000, "{} bytes", image.len());
    let document = chart_svg(&known_chart(), &style);
    assert!(document.contains(r#"width="640" height="400""#));
}

/// Bounds of a text: left, top, right and bottom.
fn bounds(font: &PlotFont, shape: &Shape) -> Option<([f64; 4], String)> {
    let Shape::Text {
        x,
        y,
        text,
        size,
        anchor,
        ..
    } = shape
    else {
        return None;
    };
    let width = font.width(text, *size);
    let left = match anchor {
        TextAnchor::Start => *x,
        TextAnchor::Middle => x - width / 2.0,
        TextAnchor::End => x - width,
    };
    let bounds = [left, y - size * 0.75, left + width, y + size * 0.22];
    Some((bounds, text.clone()))
}

#[test]
fn text_overlaps_no_other_and_stays_in_the_chart() {
    let font = PlotFont::new();
    let mut crowded = known_chart();
    let names = [
        "random read 4 KiB",
        "random write 4 KiB",
        "r",
        "w",
        "x",
        "y",
    ];
    let first = crowded.panels[0].series[0].clone();
    crowded.panels[0].series = names
        .iter()
        .enumerate()
        .map(|(slot, name)| ChartSeries {
            name: (*name).to_owned(),
            slot,
            points: [1.0, 4.0, 16.0]
                .map(|depth| PlotPoint::new(depth, Some(depth * (1000.0 - 20.0 * slot as f64))))
                .to_vec(),
            ..first.clone()
        })
        .collect();
    let mut long = crowded.clone();
    long.title = "long ".repeat(200);
    long.panels[0].series[0].name = "name ".repeat(200);
    let mut charts = source(vec![run("mixed", ReadWriteMode::ReadWrite, 4)]).charts();
    charts.extend([known_chart(), crowded, long]);
    for data in charts {
        for (width, height) in [(400, 300), (960, 540), (1200, 675), (600, 900)] {
            let style = PlotStyle {
                width,
                height,
                ..STYLE
            };
            let drawing = style.drawing(&data, &font);
            let shapes = drawing.shapes.iter();
            let texts: Vec<_> = shapes.filter_map(|shape| bounds(&font, shape)).collect();
            for (index, ([left, top, right, bottom], text)) in texts.iter().enumerate() {
                let is_inside = *left >= 0.0
                    && *top >= 0.0
                    && *right <= drawing.width
                    && *bottom <= drawing.height;
                assert!(is_inside, "{} {width}x{height}: {text}", data.chart.name());
                for ([l, t, r, b], other) in &texts[index + 1..] {
                    let is_apart = right <= l || r <= left || bottom <= t || b <= top;
                    let name = data.chart.name();
                    assert!(is_apart, "{name} {width}x{height}: {text} / {other}");
                }
            }
        }
    }
}

#[test]
fn single_run_has_charts_of_latency_and_time() {
    let source = source(vec![run("mixed", ReadWriteMode::ReadWrite, 4)]);
    assert_eq!(
        names(&source),
        ["latency", "timeline", "histogram", "written"]
    );
    assert!(source.chart(ChartKind::IopsOverDepth).is_none());
    let timeline = source.chart(ChartKind::Timeline).unwrap();
    let panels = timeline.panels.iter().map(|panel| panel.y.label.as_str());
    assert_eq!(panels.collect::<Vec<_>>(), ["IOPS", "bandwidth", "latency"]);
    let histogram = source.chart(ChartKind::Histogram).unwrap();
    for series in &histogram.panels[0].series {
        let shares = series.points.iter().filter_map(|point| point.y);
        assert!(
            (shares.sum::<f64>() - 100.0).abs() < 1e-6,
            "{}",
            series.name
        );
    }
}

#[test]
fn written_bytes_are_those_of_the_result() {
    let result = run("fill", ReadWriteMode::Write, 4);
    let bytes = result.workers[0].directions.write.io_bytes as f64;
    let chart = source(vec![result]).chart(ChartKind::Written).unwrap();
    let points = &chart.panels[0].series[0].points;
    let last = points.last().unwrap();
    assert!((last.x / bytes - 1.0).abs() < 0.01, "{} of {bytes}", last.x);
    assert!(points.windows(2).all(|pair| pair[0].x <= pair[1].x));
    assert_eq!(points[0].x, 0.0);
}

#[test]
fn depths_of_several_runs_are_one_line() {
    let results = [1, 4, 16].map(|depth| run("randread", ReadWriteMode::Read, depth));
    let rates = results.each_ref().map(|result| {
        let stats = &result.workers[0].directions.read;
        stats.total_ios as f64 * 1e9 / stats.runtime_ns as f64
    });
    let chart = source(results.to_vec())
        .chart(ChartKind::IopsOverDepth)
        .unwrap();
    let [series] = chart.panels[0].series.as_slice() else {
        panic!("{chart:?}");
    };
    assert_eq!(chart.x.scale, AxisScale::Log);
    let depths: Vec<f64> = series.points.iter().map(|point| point.x).collect();
    assert_eq!(depths, [1.0, 4.0, 16.0]);
    for (point, rate) in series.points.iter().zip(rates) {
        assert!((point.y.unwrap() / rate - 1.0).abs() < 1e-9);
    }
    assert_eq!(chart.panels[0].y.min, 0.0, "rates start at zero");
}

#[test]
fn result_given_twice_is_drawn_once() {
    let result = run("randread", ReadWriteMode::Read, 4);
    let chart = source(vec![result.clone(), result])
        .chart(ChartKind::Latency)
        .unwrap();
    assert_eq!(chart.panels[0].series.len(), 1);
}

#[test]
fn title_of_the_user_replaces_that_of_the_chart() {
    let mut builder = HtmlReportBuilder::default();
    builder.run("one", run("randread", ReadWriteMode::Read, 4));
    let source = PlotSource::new(builder, Some("Before".to_owned()));
    assert_eq!(source.chart(ChartKind::Latency).unwrap().title, "Before");
}

#[test]
fn labels_that_differ_name_the_lines() {
    let results = ["old", "new"].map(|disk| {
        let mut result = run("randread", ReadWriteMode::Read, 4);
        result.labels.insert("disk".to_owned(), disk.to_owned());
        result.labels.insert("site".to_owned(), "one".to_owned());
        result
    });
    let chart = source(results.to_vec()).chart(ChartKind::Latency).unwrap();
    let names = chart.panels[0].series.iter();
    let names: Vec<&str> = names.map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["disk=old", "disk=new"]);
}

#[test]
fn timeline_of_several_results_has_one_line_each() {
    let labelled = |disk: &str| {
        let mut result = run("randread", ReadWriteMode::Read, 4);
        result.labels.insert("disk".to_owned(), disk.to_owned());
        result
    };
    let disks: Vec<String> = (1..=8).map(|number| format!("d{number}")).collect();
    let chart = |count: usize| {
        let results = disks.iter().take(count).map(|disk| labelled(disk));
        let source = source(results.collect());
        source.chart(ChartKind::Timeline).unwrap()
    };
    let two = chart(2);
    let labels = two.panels.iter().map(|panel| panel.y.label.as_str());
    let labels: Vec<&str> = labels.collect();
    assert_eq!(labels, ["IOPS, read", "bandwidth, read", "latency, p99"]);
    for panel in &two.panels {
        let names = panel.series.iter().map(|series| series.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["disk=d1", "disk=d2"]);
    }
    let eight = chart(8);
    assert!(eight.panels.iter().all(|panel| panel.series.len() == 6));
    let note = "6 of 8 results".to_owned();
    assert!(eight.footer.contains(&note), "{:?}", eight.footer);
    let missing = eight
        .footer
        .iter()
        .find(|line| line.starts_with("not shown"));
    assert_eq!(missing.unwrap(), "not shown: disk=d7, disk=d8");
}

/// A run with the label `disk`.
fn run_on(disk: &str, name: &str, mode: ReadWriteMode) -> RunResult {
    let mut result = run(name, mode, 4);
    result.labels.insert("disk".to_owned(), disk.to_owned());
    result
}

#[test]
fn timeline_of_different_directions_shows_one_result() {
    for name in ["write", "read"] {
        let reads = run_on("a", "read", ReadWriteMode::Read);
        let writes = run_on("b", name, ReadWriteMode::Write);
        let source = source(vec![reads, writes]);
        let chart = source.chart(ChartKind::Timeline).unwrap();
        for note in ["1 of 2 runs", "not shown: disk=b"] {
            assert!(chart.footer.contains(&note.to_owned()), "{chart:?}");
        }
    }
}

#[test]
fn timeline_of_several_results_counts_the_runs_left_out() {
    let results = vec![
        run_on("a", "first", ReadWriteMode::Read),
        run_on("a", "second", ReadWriteMode::Read),
        run_on("b", "first", ReadWriteMode::Read),
    ];
    let chart = source(results).chart(ChartKind::Timeline).unwrap();
    assert_eq!(chart.panels[0].series.len(), 2);
    let note = "2 of 3 runs".to_owned();
    assert!(chart.footer.contains(&note), "{:?}", chart.footer);
}

#[test]
fn load_steps_of_one_target_are_named_by_their_steps() {
    let result = measured("net-iops-cap", &at(900.0, &[]));
    let step = |name: &str| StepResult {
        load: Some(Box::new(result.clone())),
        ..StepResult::without_figures(name, name, 1)
    };
    let steps = vec![step("queries"), step("scans")];
    let mut builder = HtmlReportBuilder::default();
    builder.suite("one", &SuiteResult::from_steps("s", "/data", steps));
    let chart = PlotSource::new(builder, None).chart(ChartKind::Latency);
    let chart = chart.unwrap();
    let names = chart.panels[0].series.iter();
    let names: Vec<&str> = names.map(|series| series.name.as_str()).collect();
    let target = &result.target;
    assert_eq!(
        names,
        [format!("{target}: queries"), format!("{target}: scans")]
    );
}

#[test]
fn objective_is_a_named_line_of_the_latency_chart() {
    let result = measured("net-iops-cap", &at(900.0, &["p99=3ms", "p99=9s"]));
    let mut builder = HtmlReportBuilder::default();
    builder.load("one", &result);
    let chart = PlotSource::new(builder, None).chart(ChartKind::Latency);
    let chart = chart.unwrap();
    let panel = &chart.panels[0];
    let limits = panel.limits.iter();
    let limits: Vec<(&str, f64)> = limits
        .map(|limit| (limit.name.as_str(), limit.value))
        .collect();
    assert_eq!(limits, [("objective p99 <= 3.00 ms", 3e6)]);
    assert!(panel.y.min < 3e6 && panel.y.max > 3e6, "{:?}", panel.y);
    let note = "objective p99 <= 9.00 s: above the scale".to_owned();
    assert!(chart.footer.contains(&note), "{:?}", chart.footer);
    let document = chart_svg(&chart, &STYLE);
    let tree = roxmltree::Document::parse(&document).unwrap();
    let mut texts = tree.descendants().filter_map(|node| node.text());
    assert!(texts.any(|text| text == limits[0].0), "{document}");
}

#[test]
fn objective_name_without_room_is_in_a_note() {
    let objectives = ["p99=3.00ms", "p99=3.01ms", "p99=3.02ms"];
    let result = measured("net-iops-cap", &at(900.0, &objectives));
    let mut builder = HtmlReportBuilder::default();
    builder.load("one", &result);
    let chart = PlotSource::new(builder, None).chart(ChartKind::Latency);
    let chart = chart.unwrap();
    let document = chart_svg(&chart, &STYLE);
    let tree = roxmltree::Document::parse(&document).unwrap();
    let texts = tree.descendants().filter_map(|node| node.text());
    let texts: Vec<&str> = texts.collect();
    // The names above and below the lines have room.
    for text in ["3.01 ms", "3.02 ms"] {
        let name = format!("objective p99 <= {text}");
        assert!(texts.contains(&name.as_str()), "{name}: {texts:?}");
    }
    let note = "objective p99 <= 3.00 ms: drawn without a name";
    assert!(texts.iter().any(|text| text.contains(note)), "{texts:?}");
}

#[test]
fn timeline_marks_events_and_writes_their_texts() {
    let mut result = run("randread", ReadWriteMode::Read, 4);
    result.events.push(RunEvent {
        at_ns: 2_000_000_000,
        message: "the cache was dropped".to_owned(),
    });
    let chart = source(vec![result]).chart(ChartKind::Timeline).unwrap();
    assert_eq!(chart.moments.events_s, [2.0]);
    assert_eq!(chart.moments.ramp_end_s, None);
    let note = "dotted at 2.0 s: the cache was dropped".to_owned();
    assert!(chart.footer.contains(&note), "{:?}", chart.footer);
}

/// Two depths of one workload on two labelled disks.
fn two_disks() -> PlotSource {
    let results = ["a", "b"].into_iter().flat_map(|disk| {
        [1, 4].map(|depth| {
            let mut result = run("randread", ReadWriteMode::Read, depth);
            result.labels.insert("disk".to_owned(), disk.to_owned());
            result
        })
    });
    source(results.collect())
}

#[test]
fn subject_has_one_colour_in_all_charts() {
    let charts = two_disks().charts();
    assert_eq!(charts.len(), 4);
    for chart in charts {
        let name = chart.chart.name();
        for series in chart.panels.iter().flat_map(|panel| &panel.series) {
            let slot = usize::from(series.name.starts_with("disk=b"));
            assert_eq!(series.slot, slot, "{name}: {}", series.name);
        }
    }
}

#[test]
fn deeper_workload_of_a_pattern_is_drawn_first() {
    let chart = two_disks().chart(ChartKind::Latency).unwrap();
    let names = chart.panels[0].series.iter();
    let names: Vec<&str> = names.map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["disk=a", "disk=b"]);
    // The lines are named by their subjects, so the title names the workload.
    let workload = "randread: random read 4 KiB, depth 4";
    assert_eq!(chart.title, format!("Latency by percentile: {workload}"));
    let histogram = two_disks().chart(ChartKind::Histogram).unwrap();
    let title = format!("Histogram of latency: {workload}");
    assert_eq!(histogram.title, title);
    let one = source(vec![run("randread", ReadWriteMode::Read, 4)]);
    let one = one.chart(ChartKind::Latency).unwrap();
    assert_eq!(one.title, "Latency by percentile");
    let note = "2 of 4 workloads, without randread: random read 4 KiB, depth 1".to_owned();
    assert!(chart.footer.contains(&note), "{:?}", chart.footer);
}

#[test]
fn lines_that_coincide_are_both_visible_and_named() {
    let mut chart = known_chart();
    let points = chart.panels[0].series[0].points.clone();
    chart.panels[0].series[1].points = points;
    let document = chart_svg(&chart, &STYLE);
    for name in [">read<", ">write<"] {
        assert!(document.contains(name), "{name}: {document}");
    }
    for width in ["2.2", "1.1"] {
        let line = format!("stroke-width=\"{width}\"");
        assert_eq!(document.matches(&line).count(), 1, "{line}: {document}");
    }
}
