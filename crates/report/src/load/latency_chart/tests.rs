use super::*;
use iosonde_study::load::Offered;

fn chart(rates: (f64, f64)) -> LatencyChart {
    let point = |rate: f64, p99_ns: f64| ChartPoint {
        rate,
        p50_ns: 1e5,
        p99_ns: Some(p99_ns),
    };
    LatencyChart {
        points: vec![point(rates.0, 1e5), point(rates.1, 1e8)],
        behind: Vec::new(),
        objectives: Vec::new(),
        rates,
        latencies_ns: (1e5, 1e8),
        size: PlotCells::of_report(),
    }
}

/// A curve of these rates, whose latencies grow. The target falls behind the last rate.
fn growing(rates: &[f64]) -> GrowingCurve {
    let point = |rate: &f64| ChartPoint {
        rate: *rate,
        p50_ns: 100.0 * rate,
        p99_ns: Some(300.0 * rate),
    };
    let (behind, sustained) = rates.split_last().unwrap();
    GrowingCurve {
        points: sustained.iter().map(point).collect(),
        behind: vec![*behind],
        objectives: Vec::new(),
    }
}

#[test]
fn growing_curve_fits_each_terminal() {
    let curve = growing(&[3000.0, 1000.0, 2000.0, 5000.0]);
    for (columns, rows) in [(40, 6), (40, 8), (80, 19), (120, 35)] {
        for style in [
            TextStyle::PLAIN,
            TextStyle {
                utf8: true,
                color: false,
            },
        ] {
            let lines = curve.lines(columns, rows, style);
            assert_eq!(lines.len(), rows.min(11), "{lines:?}");
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() < columns, "{lines:?}");
            assert!(lines[0].contains("p99") && lines[0].contains("fell behind"));
            let rates = lines.last().unwrap();
            assert!(
                rates.contains("1.00k") && rates.ends_with("5.00k"),
                "{rates}"
            );
        }
    }
    // A chart needs room, and two rates.
    assert!(curve.lines(40, 5, TextStyle::PLAIN).is_empty());
    assert!(curve.lines(30, 24, TextStyle::PLAIN).is_empty());
    let begun = growing(&[1000.0, 5000.0]);
    assert!(begun.lines(80, 24, TextStyle::PLAIN).is_empty());
}

#[test]
fn growing_curve_draws_its_objectives() {
    let mut curve = growing(&[1000.0, 2000.0, 3000.0, 5000.0]);
    curve.objectives = vec!["p99=500us".parse().unwrap()];
    let text = curve.lines(80, 19, TextStyle::PLAIN).join("\n");
    assert!(text.contains("- objective p99 <= 500 us -"), "{text}");
}

#[test]
fn growing_curve_leaves_out_notes_without_room() {
    let mut curve = growing(&[1000.0, 2000.0, 3000.0, 5000.0]);
    curve.objectives = ["p99=4s", "max=5s", "p50=6s"]
        .map(|text| text.parse().unwrap())
        .to_vec();
    let lines = curve.lines(40, 6, TextStyle::PLAIN);
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[0].contains("p99"), "{lines:?}");
    let high = curve.lines(40, 19, TextStyle::PLAIN);
    assert!(high.len() > 11, "{high:?}");
}

#[test]
fn interrupted_run_leaves_its_rate_as_it_was() {
    let mut curve = growing(&[1000.0, 2000.0, 5000.0]);
    let interrupted = LoadMeasurement {
        offered: Offered {
            reads_per_s: 2000.0,
            writes_per_s: 0.0,
        },
        read: None,
        write: None,
        runs: 1,
        kept_up: false,
        interrupted: true,
        verdicts: Vec::new(),
        kinds: Vec::new(),
        failure: None,
        percentile_intervals_ns: Vec::new(),
    };
    curve.add(&interrupted);
    assert_eq!((curve.points.len(), curve.behind.len()), (2, 1));
    curve.add(&LoadMeasurement {
        interrupted: false,
        ..interrupted
    });
    assert_eq!((curve.points.len(), curve.behind.len()), (1, 2));
}

#[test]
fn axes_begin_and_end_at_their_ranges() {
    let linear = chart((1000.0, 5000.0));
    let columns = [1000.0, 3000.0, 5000.0].map(|rate| linear.column(rate));
    assert_eq!(columns, [0, 34, PLOT_COLUMNS - 1]);
    let log = chart((10.0, 10_000.0));
    let columns = [10.0, 316.3, 10_000.0].map(|rate| log.column(rate));
    assert_eq!(columns, [0, 34, PLOT_COLUMNS - 1]);
    let rows = [1e5, 1e8].map(|ns| linear.row(ns));
    assert_eq!(rows, [PLOT_ROWS - 1, 0]);
}

#[test]
fn axis_of_latencies_names_round_ones() {
    let chart = chart((1000.0, 5000.0));
    assert_eq!(chart.named_rows(), [(0, 1e8), (7, 1e5), (5, 1e6), (2, 1e7)]);
    let lines = chart.lines(None, TextStyle::PLAIN);
    assert!(lines[1].starts_with("  100 ms |"), "{lines:?}");
    assert!(lines[3].starts_with("   10 ms |"), "{lines:?}");
    assert!(lines[6].starts_with("    1 ms |"), "{lines:?}");
    assert!(lines[8].starts_with("  100 us |"), "{lines:?}");
    assert!(lines[2].starts_with("         |"), "{lines:?}");
}

#[test]
fn rate_without_p99_keeps_its_median() {
    let mut few = chart((1000.0, 5000.0));
    few.points[0].p99_ns = None;
    let plot = few.plot(&ASCII);
    // The median is drawn, and no line leads to a p99 that is missing.
    assert_eq!((plot[7][0], plot[0][67], plot[7][67]), ('o', '#', 'o'));
    assert!(plot[..7].iter().all(|row| !row.contains(&ASCII.line)));
}

#[test]
fn line_joins_points_in_each_column() {
    let plot = chart((1000.0, 5000.0)).plot(&ASCII);
    assert_eq!((plot[7][0], plot[0][67], plot[7][67]), ('@', '#', 'o'));
    for column in 0..PLOT_COLUMNS {
        let is_empty = plot.iter().all(|row| row[column] == ' ');
        assert!(!is_empty, "{column}");
    }
}

#[test]
fn objective_is_a_row_of_dashes_with_its_name() {
    let mut chart = chart((1000.0, 5000.0));
    chart.objectives = vec!["p99=15ms".parse().unwrap()];
    let lines = chart.lines(None, TextStyle::PLAIN);
    let start = "   15 ms |- objective p99 <= 15.0 ms ---";
    assert!(lines[3].starts_with(start), "{lines:?}");
    // The curve crosses the row.
    assert!(
        lines[3].contains('.') && lines[3].ends_with('-'),
        "{lines:?}"
    );
    assert!(!lines[0].contains("objective"), "{lines:?}");
}

#[test]
fn objective_beside_the_axis_has_all_its_digits() {
    let mut chart = chart((1000.0, 5000.0));
    chart.objectives = vec!["p99=15.5ms".parse().unwrap()];
    let lines = chart.lines(None, TextStyle::PLAIN);
    let start = " 15.5 ms |- objective p99 <= 15.5 ms -";
    assert!(lines[3].starts_with(start), "{lines:?}");
}

#[test]
fn objective_of_a_covered_row_is_in_the_legend() {
    let mut chart = chart((1000.0, 5000.0));
    chart
        .points
        .iter_mut()
        .for_each(|point| point.p99_ns = Some(1e7));
    chart.objectives = vec!["p99=10ms".parse().unwrap()];
    let lines = chart.lines(None, TextStyle::PLAIN);
    assert!(lines[0].ends_with(", - objective"), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn scale_extends_to_objectives_near_the_curve_only() {
    let with = |objective: &str| {
        let curve = chart((1000.0, 5000.0)).points;
        let objectives = vec![objective.parse().unwrap()];
        let size = PlotCells::of_report();
        LatencyChart::new(curve, Vec::new(), objectives, size).unwrap()
    };
    let near = with("p99=400ms");
    assert_eq!(near.latencies_ns, (1e5, 4e8));
    let text = near.lines(None, TextStyle::PLAIN).join("\n");
    assert!(text.contains("- objective p99 <= 400 ms -"), "{text}");
    let far = with("p99=4s");
    assert_eq!(far.latencies_ns, (1e5, 1e8));
    let text = far.lines(None, TextStyle::PLAIN).join("\n");
    let note = "|  objective p99 <= 4.00 s: above the scale";
    assert!(text.contains(note), "{text}");
}

#[test]
fn objective_within_the_extended_axis_is_drawn() {
    let mut points = chart((1000.0, 5000.0)).points;
    points[1].p99_ns = Some(1.1e8);
    let objectives: [Objective; 2] = ["p99=1100ms", "p99=1200ms"].map(|text| text.parse().unwrap());
    let size = PlotCells::of_report();
    let chart = LatencyChart::new(points, Vec::new(), objectives.to_vec(), size).unwrap();
    assert_eq!(chart.latencies_ns, (1e5, 1.5e9));
    let text = chart.lines(None, TextStyle::PLAIN).join("\n");
    assert!(!text.contains("above"), "{text}");
}

#[test]
fn narrow_chart_names_all_objectives_beyond_its_scale() {
    let points = chart((1000.0, 5000.0)).points;
    let objectives: [Objective; 2] = ["p99=4s", "max=5s"].map(|text| text.parse().unwrap());
    let size = PlotCells::within(40, 11).unwrap();
    let chart = LatencyChart::new(points, Vec::new(), objectives.to_vec(), size).unwrap();
    let lines = chart.lines(None, TextStyle::PLAIN);
    // The highest row has room for one note.
    assert!(lines[2].contains("|  p99 <= 4.00 s: above "), "{lines:?}");
    assert_eq!(lines[1], "max <= 5.00 s: above the scale");
    assert!(lines.iter().all(|line| line.chars().count() <= 40));
}

#[test]
fn chart_on_a_wide_terminal_has_more_columns() {
    let of_report = |terminal: usize| {
        crate::text_table::set_columns(terminal);
        let columns = PlotCells::of_report().columns;
        crate::text_table::set_columns(80);
        columns
    };
    assert_eq!([60, 80, 120, 200].map(of_report), [48, 68, 108, 108]);
    let live = |terminal| PlotCells::within(terminal, 20).unwrap().columns;
    assert_eq!([60, 80, 120, 200].map(live), [49, 68, 108, 108]);
}
