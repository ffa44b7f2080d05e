use super::super::recommendation::RecommendedCell;
use super::super::tests::{SECOND_NS, measured, options};
use super::*;
use iosonde_study::sweep::{Axis, SweepOptions};

const UTF8: TextStyle = TextStyle {
    utf8: true,
    color: false,
};
const ASCII: TextStyle = TextStyle {
    utf8: false,
    color: false,
};

/// Report of a result that is stored.
fn short(result: &SweepResult, style: TextStyle) -> String {
    super::short(result, (Some("8ee054"), ""), style)
}

/// Checks that the report has at most 80 columns and the characters of its style.
fn check_layout(result: &SweepResult) {
    for style in [UTF8, ASCII] {
        let text = short(result, style);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap_or(0) <= 80, "{text}");
        assert!(style.utf8 || text.is_ascii(), "{text}");
        let colored = TextStyle {
            color: true,
            ..style
        };
        let mut plain = short(result, colored);
        for code in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text);
    }
}

/// A sweep over four depths with these rates, relative errors and latencies in microseconds.
fn sweep_of(cells: [(f64, Option<f64>, f64); 4]) -> SweepResult {
    let every = SweepOptions {
        exhaustive: true,
        runtime_ns: SECOND_NS,
        ..options()
    };
    let mut result = measured("net-iops-cap", &[("iodepth", "1,2,4,8")], &every);
    let made = result.curves[0].cells.iter_mut().zip(cells);
    for (cell, (rate, error, latency_us)) in made {
        let iops = cell.iops.as_mut().unwrap();
        iops.mean = rate;
        iops.error = error.map(|share| share * rate);
        cell.mean_latency_ns = Some(latency_us * 1000.0);
    }
    result
}

#[test]
fn sweep_on_a_narrow_terminal_fits_and_cuts_no_figure() {
    let axes = [("bs", "4k,16k,64k"), ("iodepth", "1..16")];
    let result = measured("throttled", &axes, &options());
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        for text in [short(&result, UTF8), super::super::table(&result)] {
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap_or(0) <= columns, "{columns}: {text}");
        }
    }
}

#[test]
fn recommendation_names_cell_below_the_maximum() {
    let sure = Some(0.002);
    let result = sweep_of([
        (1000.0, sure, 1000.0),
        (2000.0, sure, 1000.0),
        (3920.0, sure, 1020.0),
        (4000.0, sure, 2040.0),
    ]);
    let text = short(&result, UTF8);
    assert!(text.contains("\n      4 3.92k ██*\n"), "{text}");
    assert!(text.contains("\n      1 1.00k ░░\n"), "{text}");
    let advice = "\nadvice     iodepth=4: 98 % of the maximum at half its latency\n\
                  \x20          (3.92k ±0.01k IOPS, mean 1.02 ±0.01 ms)\n";
    assert!(text.contains(advice), "{text}");
    let certainty = "\nMeasured rates are known to ±1 % or better (95 % intervals).\n";
    assert!(text.contains(certainty), "{text}");
    assert!(
        text.ends_with("\nresult     8ee054: iosonde report 8ee054 -o report.html\n"),
        "{text}"
    );
    check_layout(&result);
}

/// The deepest cell of a plateau has the same rate, and its latency is no measure.
#[test]
fn recommendation_compares_with_the_shallowest_maximum() {
    let sure = Some(0.002);
    let sentence = |second: f64| {
        let result = sweep_of([
            (1000.0, sure, 1000.0),
            (second, sure, 1000.0),
            (3998.0, sure, 2000.0),
            (4000.0, sure, 8000.0),
        ]);
        recommendations(&result).remove(0).sentence(&result, ASCII)
    };
    let found = sentence(3840.0);
    let start = "iodepth=2: 96 % of the maximum at half its latency (";
    assert!(found.starts_with(start), "{found}");
    // The line of the curve has 98 % for 98.6 % too.
    let found = sentence(3944.0);
    let start = "iodepth=2: 98 % of the maximum at half its latency (";
    assert!(found.starts_with(start), "{found}");
    let found = sentence(2000.0);
    assert!(
        found.starts_with("iodepth=4: the maximum (4.00k"),
        "{found}"
    );
    assert!(found.ends_with(')'), "{found}");
}

#[test]
fn report_that_is_not_stored_names_option() {
    let result = measured("net-iops-cap", &[("iodepth", "1,2")], &options());
    let report = super::short(&result, (None, ""), UTF8);
    assert_eq!(details_command(None, ""), "add --details");
    assert!(report.ends_with("\nresult     not stored\n"));
}

#[test]
fn recommendation_is_undecided_without_intervals() {
    let outcome = |error: Option<f64>, near: Option<f64>| {
        let result = sweep_of([
            (1000.0, Some(0.01), 1000.0),
            (2000.0, Some(0.01), 1000.0),
            (3920.0, near, 1020.0),
            (4000.0, error, 2040.0),
        ]);
        let found = recommendations(&result).remove(0);
        (found.outcome.clone(), found.sentence(&result, ASCII))
    };
    let (found, text) = outcome(None, Some(0.01));
    assert_eq!(found, RecommendedCell::Undecided(None));
    assert!(text.starts_with("undecided: "), "{text}");
    let (found, text) = outcome(Some(0.335), Some(0.01));
    assert!(matches!(found, RecommendedCell::Undecided(Some(_))));
    assert!(text.contains("known to +-34 % only"), "{text}");
    for near in [None, Some(0.15)] {
        let (found, text) = outcome(Some(0.01), near);
        let has_rival = matches!(
            found,
            RecommendedCell::Maximum {
                has_rival: true,
                ..
            }
        );
        assert!(
            has_rival && text.starts_with("iodepth=8: "),
            "{found:?}: {text}"
        );
    }
    let (_, text) = outcome(Some(0.03), Some(0.03));
    assert!(
        text.starts_with("iodepth=4: 98 +-5 % of the maximum"),
        "{text}"
    );
}

#[test]
fn recommended_percentages_match_the_cells() {
    let axes = [("bs", "4k,64k"), ("numjobs", "1,4"), ("iodepth", "1..32")];
    let result = measured("nfs", &axes, &options());
    let advice = recommendations(&result);
    assert_eq!(advice.len(), 2);
    for found in &advice {
        let address = found.address().unwrap();
        let cell = &result.curves[address.curve].cells[address.cell];
        let is_block = |index: &usize| {
            result.curves[*index].values[0] == result.curves[address.curve].values[0]
        };
        let curves = (0..result.curves.len()).filter(is_block);
        let cells = curves.flat_map(|index| &result.curves[index].cells);
        let known = cells.filter(|cell| cell.measured_ns > 0);
        let rate = |cell: &iosonde_study::sweep::SweepCell| cell.iops.unwrap().mean;
        let known: Vec<_> = known.collect();
        let most = known.iter().map(|cell| rate(cell)).fold(0.0, f64::max);
        let fastest = known.iter().filter(|cell| rate(cell) >= 0.995 * most);
        let latencies = fastest.map(|cell| cell.mean_latency_ns.unwrap());
        let lowest = latencies.fold(f64::INFINITY, f64::min);
        let sentence = found.sentence(&result, UTF8);
        match found.outcome {
            RecommendedCell::BelowMaximum { latency_share, .. } => {
                let percent = format!(": {} ", words::whole_percent(rate(cell) / most));
                assert!(sentence.contains(&percent), "{sentence}");
                let latency = cell.mean_latency_ns.unwrap() / lowest;
                assert!((latency - latency_share).abs() < 1e-9, "{sentence}");
            }
            _ => assert_eq!(cell.mean_latency_ns, Some(lowest), "{sentence}"),
        }
        let options = format!("iodepth={}, numjobs=", cell.iodepth);
        assert!(sentence.contains(&options), "{sentence}");
    }
    let text = short(&result, UTF8);
    assert_eq!(text.matches('*').count(), 3, "{text}");
    check_layout(&result);
}

#[test]
fn depths_that_another_curve_lacks_are_named() {
    let axes = [("bs", "4k,64k"), ("numjobs", "1,4"), ("iodepth", "1..32")];
    let mut result = measured("nfs", &axes, &options());
    let whole = recommendations(&result).remove(0).sentence(&result, ASCII);
    assert!(!whole.contains("was not measured"), "{whole}");
    let highest = |index: &usize| {
        let cells = result.curves[*index].cells.iter();
        let known = cells.filter(|cell| cell.measured_ns > 0);
        known
            .map(|cell| cell.iops.unwrap().mean)
            .fold(0.0, f64::max)
    };
    // The first two curves have the same block size.
    let slower = usize::from(highest(&0) > highest(&1));
    let jobs = result.curves[slower].numjobs;
    let found = result.curves[slower].saturation.as_mut().unwrap();
    let mut beyond = found.knee;
    beyond.iodepth = u32::MAX;
    (found.latency_only, found.plateau, found.longer_run) = (Some(beyond), None, None);
    let sentence = recommendations(&result).remove(0).sentence(&result, ASCII);
    // It comes first, so that no short report cuts it off.
    let start = format!("more depth was not measured with numjobs={jobs}; ");
    let (before, _) = sentence.split_once(&start).expect(&sentence);
    assert!(!before.contains("iodepth="), "{sentence}");
    assert!(!sentence.contains(" of the maximum "), "{sentence}");
}

/// A sweep of one second named depth 32 the maximum, although depth 64 is twice as fast.
#[test]
fn search_that_ends_below_the_maximum_recommends_nothing() {
    let brief = SweepOptions {
        runtime_ns: SECOND_NS,
        ..options()
    };
    let result = measured("nvme", &[("iodepth", "1..256")], &brief);
    let curve = &result.curves[0];
    let fastest = curve
        .cells
        .iter()
        .rfind(|cell| cell.measured_ns > 0)
        .unwrap();
    // The device has 64 servers: shallower depths do not reach its rate.
    assert!(fastest.iodepth < 64, "{curve:?}");
    let deeper = curve
        .cells
        .iter()
        .filter(|cell| cell.iodepth > fastest.iodepth);
    assert!(deeper.clone().count() > 0 && deeper.clone().all(|cell| cell.iops.is_none()));
    let found = recommendations(&result).remove(0);
    let is_open = matches!(found.outcome, RecommendedCell::DeeperUnmeasured(_));
    assert!(is_open && found.address().is_none(), "{found:?}");
    let text = short(&result, UTF8);
    assert!(text.contains("was not measured in the time"), "{text}");
    check_layout(&result);
}

/// Reads `26.9k` and the shade after it from each cell of a table.
fn cells_with_shades(text: &str) -> Vec<(f64, usize)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let shades = UTF8.shades();
    let pairs = words.windows(2).filter_map(|pair| {
        let mut signs = pair[1].chars();
        let (first, second) = (signs.next()?, signs.next()?);
        let level = shades.iter().position(|shade| *shade == first)?;
        // The digits of a figure without an interval are too few to compare it.
        let rate: f64 = match pair[0].strip_suffix('k') {
            Some(thousands) => 1000.0 * thousands.parse::<f64>().ok()?,
            None => pair[0].parse().ok()?,
        };
        (first == second).then_some((rate, level))
    });
    pairs.collect()
}

#[test]
fn printed_shades_are_monotone_in_the_figures() {
    let axes = [("numjobs", "1,2,4"), ("iodepth", "1..32")];
    let result = measured("nfs", &axes, &options());
    let mut cells = cells_with_shades(&short(&result, UTF8));
    assert!(cells.len() >= 8, "{cells:?}");
    cells.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    assert!(cells.is_sorted_by_key(|cell| cell.1), "{cells:?}");
    assert!(cells[0].1 < cells[cells.len() - 1].1, "{cells:?}");
}

#[test]
fn further_tables_are_folded_with_their_count() {
    let axes = [
        ("rw", "randread,randwrite"),
        ("bs", "4k,8k"),
        ("numjobs", "1,2"),
        ("iodepth", "1,2"),
    ];
    let result = measured("net-iops-cap", &axes, &options());
    let text = short(&result, UTF8);
    assert!(text.contains("randwrite 4k: IOPS\n"), "{text}");
    assert!(!text.contains("randwrite 8k: IOPS\n"), "{text}");
    assert!(
        text.contains("\n1 more table: iosonde show 8ee054\n"),
        "{text}"
    );
    check_layout(&result);
}

#[test]
fn long_names_stay_within_80_columns() {
    let axes = [
        ("rw", "randread,randwrite"),
        ("bs", "4k,64k"),
        ("iodepth", "1..8"),
    ];
    let mut result = measured("net-iops-cap", &axes, &options());
    let name = |index: usize| format!("/mnt/{}\u{1b}[31m/{index}", "x".repeat(300));
    result.targets = vec![name(0), name(1)];
    for (index, curve) in result.curves.iter_mut().enumerate() {
        curve.values[0] = name(index / 2);
    }
    result.axes[0] = Axis {
        name: "target".to_owned(),
        values: result.targets.clone(),
    };
    result.notes = vec!["note ".repeat(100); 3];
    check_layout(&result);
    // Names as titles of tables, of rows, and of columns.
    let text = short(&result, UTF8);
    assert!(text.contains("/1: MiB/s"), "{text}");
    // A long name leaves room for the recommendation.
    let advised = text.lines().filter(|line| line.starts_with("advice "));
    let advised: Vec<&str> = advised.collect();
    assert_eq!(advised.len(), 4, "{text}");
    let has_outcome = |line: &&str| line.contains(": iodepth=") || line.contains(": undecided");
    assert!(advised.iter().all(has_outcome), "{text}");
    result.axes.swap(0, 1);
    for curve in &mut result.curves {
        curve.values.swap(0, 1);
    }
    check_layout(&result);
    result.axes[0].name = "direct".to_owned();
    check_layout(&result);
}
