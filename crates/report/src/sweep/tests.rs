use super::*;
use crate::text_style::TextStyle;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_study::sweep::{Base, SweepGrid, SweepOptions, SweepTarget, parse_axes, sweep};
use iosonde_study::test_targets::simulated_target;

pub(super) const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn measured(device: &str, axes: &[(&str, &str)], options: &SweepOptions) -> SweepResult {
    let target = simulated_target(device);
    let targets = [SweepTarget::new(&target, None).unwrap()];
    let given: Vec<(String, String)> = axes
        .iter()
        .map(|(name, values)| ((*name).to_owned(), (*values).to_owned()))
        .collect();
    let axes = parse_axes(&given, &mut Diagnostics::default());
    let grid = SweepGrid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let mut session = LocalRunner::default().open();
    sweep(&mut session, &targets, &grid, options, Vec::new(), &mut ()).unwrap()
}

pub(crate) fn options() -> SweepOptions {
    SweepOptions {
        exhaustive: false,
        runtime_ns: 10 * SECOND_NS,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    }
}

fn fits(text: &str) {
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn simulated_sweep_report_is_deterministic() {
    let axes = [
        ("rw", "randread,randwrite"),
        ("bs", "4k,16k,64k,256k"),
        ("iodepth", "1..64"),
    ];
    let result = measured("throttled", &axes, &options());
    let text = table(&result);
    fits(&text);
    assert_eq!(grid::tables(&result).len(), 2, "one per pattern: {text}");
    insta::assert_snapshot!("throttled", text);
    insta::assert_snapshot!("throttled_csv", sweep_cells_csv(&result));
    insta::assert_snapshot!("throttled_markdown", markdown(&result));
    let text = sweep_json(&result).unwrap();
    let document: SweepDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (document.kind.as_str(), &document.sweep),
        ("sweep", &result)
    );
}

#[test]
fn jobs_are_columns_and_blocks_tables() {
    let axes = [("bs", "4k,64k"), ("numjobs", "1,4"), ("iodepth", "1..32")];
    let result = measured("nfs", &axes, &options());
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("jobs", text);
    let sentences = result
        .curves
        .iter()
        .map(|curve| sentence(&result, curve).unwrap());
    for sentence in sentences {
        assert!(!sentence.contains("may raise"), "{sentence}");
        assert!(!sentence.contains("in each of"), "{sentence}");
    }
}

#[test]
fn budget_report_names_cells_left_out() {
    let axes = [
        ("bs", "4k,8k,16k,32k,64k,128k"),
        ("rw", "randread,read"),
        ("iodepth", "1..16"),
    ];
    let short = SweepOptions {
        budget_ns: Some(12 * SECOND_NS),
        ..options()
    };
    let result = measured("net-iops-cap", &axes, &short);
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("budget", text);
    let lines = advice_lines(&result);
    let caveat = "; cells of lower latency may reach it too: use a longer --runtime";
    let is_caveat = |line: &&String| {
        line.starts_with("advice: read 128k: iodepth=4: ") && line.ends_with(caveat)
    };
    assert_eq!(lines.iter().filter(is_caveat).count(), 1, "{lines:?}");
}

#[test]
fn single_curve_is_not_named() {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let result = measured("net-iops-cap", &[("iodepth", "1,2,4,8")], &every);
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("single", text);
}

#[test]
fn uncertain_cells_are_marked() {
    let short = SweepOptions {
        runtime_ns: SECOND_NS,
        ..options()
    };
    let result = measured("hdd", &[("bs", "4k,1m"), ("iodepth", "1..32")], &short);
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("unsure", text);
}

#[test]
fn maximum_below_an_uncertain_cell_is_not_claimed() {
    let mut result = measured("net-iops-cap", &[("iodepth", "1,2,4,8,16")], &options());
    let curve = &mut result.curves[0];
    let found = curve.saturation.as_mut().unwrap();
    assert!(found.claims().maximum);
    let cell = found.cells.last_mut().unwrap();
    cell.iops.mean *= 1.5;
    cell.iops.error = Some(0.9 * cell.iops.mean);
    let depth = cell.iodepth;
    let text = sentence(&result, &result.curves[0]).unwrap();
    assert!(
        text.starts_with(&format!(
            "the rate has no known maximum; the fastest was depth {depth}"
        )),
        "{text}"
    );
    assert!(text.ends_with("(uncertain: +-90 %)"), "{text}");
    assert_eq!(grid::curve_knee(&result.curves[0]), None);
}

#[test]
fn working_set_sweep_shows_the_cache() {
    let device = "seed=1,read_us=2ms,read_dist=lognormal:0.2,cache=24m,cache_block=64k,\
                  cache_us=200,cache_direct=1";
    let axes = [
        ("random_distribution", "random,zipf:0.9"),
        ("bs", "64k"),
        ("size", "4m..256m"),
        ("iodepth", "1"),
    ];
    let warm = |most_s: u64| SweepOptions {
        runtime_ns: 3 * SECOND_NS,
        most_warmup_ns: Some(most_s * SECOND_NS),
        ..options()
    };
    let result = measured(device, &axes, &warm(60));
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("working_sets", text);
    insta::assert_snapshot!("working_sets_markdown", markdown(&result));
    insta::assert_snapshot!("working_sets_csv", sweep_cells_csv(&result));
    let document: SweepDocument = serde_json::from_str(&sweep_json(&result).unwrap()).unwrap();
    assert_eq!(document.sweep, result);
    let result = measured(device, &axes, &warm(1));
    let text = table(&result);
    fits(&text);
    insta::assert_snapshot!("working_sets_that_did_not_get_warm", text);
}

/// A sweep whose cells and maxima have this relative error.
fn doubted(error: f64) -> SweepResult {
    let axes = [("bs", "4k,64k"), ("numjobs", "1,4"), ("iodepth", "1..32")];
    let mut result = measured("nfs", &axes, &options());
    for curve in &mut result.curves {
        let found = curve.saturation.as_mut().unwrap();
        found.maximum.error = Some(found.maximum.mean * error);
        let cells = curve.cells.iter_mut().filter_map(|cell| cell.iops.as_mut());
        cells.for_each(|iops| iops.error = Some(iops.mean * error));
    }
    let axes = result.axes.clone();
    result.advice =
        iosonde_study::sweep::Advice::from_curves(&result.curves, &axes[..axes.len() - 1]);
    result
}

#[test]
fn uncertain_figures_yield_no_advice() {
    let text = table(&doubted(1.5));
    fits(&text);
    let start = "4k: undecided: the highest rate is uncertain by more than 100 %; use";
    assert!(text.contains(start), "{text}");
    insta::assert_snapshot!("doubted", text);
    // At this error, the jump from 1.3k to 27k is significant; those of 64k and of jobs are not.
    let text = table(&doubted(0.34));
    insta::assert_snapshot!("doubted_by_a_third", text);
}

#[test]
fn advice_recommends_the_cell_that_the_screen_marks() {
    let axes = [("bs", "4k,16k,64k"), ("iodepth", "1..64")];
    let result = measured("nvme", &axes, &options());
    let found = recommendation::recommendations(&result);
    let lines = advice_lines(&result);
    assert_eq!(found.len(), 3);
    for (found, block) in found.iter().zip(["4k", "16k", "64k"]) {
        let address = found.address().unwrap();
        let cell = &result.curves[address.curve].cells[address.cell];
        let start = format!("advice: {block}: recommended");
        let line = lines.iter().find(|line| line.starts_with(&start)).unwrap();
        assert!(
            line.contains(&format!(": depth {}: ", cell.iodepth)),
            "{line}"
        );
    }
}

#[test]
fn advised_cell_below_the_highest_rate_names_its_share() {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let mut result = measured("net-iops-cap", &[("iodepth", "1,2,4,8")], &every);
    let share = "56 % of the highest measured rate";
    let with_share = |result: &SweepResult| -> Vec<String> {
        let lines = advice_lines(result).into_iter();
        let lines = lines.filter(|line| line.contains("highest measured rate"));
        lines.collect()
    };
    let lines = with_share(&result);
    assert_eq!(
        lines.len(),
        1,
        "the recommended cell has the rate: {lines:?}"
    );
    assert!(
        lines[0].contains(": lowest latency: depth 2: "),
        "{lines:?}"
    );
    assert!(lines[0].ends_with(&format!(" us, {share}")), "{lines:?}");
    let text = table(&result);
    fits(&text);
    assert!(
        text.contains(&format!(" us,\n{:37}{share}\n", "")),
        "{text}"
    );
    assert!(markdown(&result).contains(share));
    result.curves[0].cells[1].iops.as_mut().unwrap().error = None;
    let lines = with_share(&result);
    assert!(lines[0].ends_with(&format!(", ~{share}")), "{lines:?}");
    result.curves[0].cells[1].basis = CellBasis::Predicted;
    assert_eq!(with_share(&result), [""; 0], "both must be measured");
}

/// A rate that still rises has reached no limit.
#[test]
fn block_size_that_still_rises_has_no_limit() {
    let device = "seed=1,read_us=4000,write_us=4000,parallel=64,cap_iops=2000,cap_bw=40m";
    let result = measured(device, &[("bs", "4k,1m"), ("iodepth", "1..4")], &options());
    let found = sentence(&result, &result.curves[0]).unwrap();
    assert!(found.starts_with("4k: still rises at depth 4"), "{found}");
    let lines = advice_lines(&result);
    let limits = lines.iter().find(|line| line.contains("limited by"));
    let limits = limits.unwrap();
    assert!(
        limits.contains("blocks of 1 MiB are limited by bandwidth ("),
        "{limits}"
    );
    let end = "; the rate of 4 KiB still rises at the deepest queue";
    assert!(limits.ends_with(end), "{limits}");
}

#[test]
fn block_sizes_at_one_depth_have_limits() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1")];
    let result = measured("throttled", &axes, &options());
    let lines = advice_lines(&result);
    let limits = lines.iter().find(|line| line.contains("limited by"));
    let limits = limits.unwrap();
    assert!(
        limits
            .contains("blocks of 4 KiB are limited by IOPS (2.00k), those of 64 KiB by bandwidth"),
        "{limits}"
    );
}

#[test]
fn legend_explains_intervals_that_reach_zero() {
    let mut result = measured("nfs", &[("iodepth", "1,2")], &options());
    let curve = &mut result.curves[0];
    for cell in &mut curve.cells {
        cell.basis = CellBasis::Measured;
        let iops = cell.iops.as_mut().unwrap();
        iops.error = Some(iops.mean);
    }
    let legend = "~ measured too shortly for an interval";
    assert!(table(&result).contains(legend), "{}", table(&result));
    for cell in &mut result.curves[0].cells {
        let iops = cell.iops.as_mut().unwrap();
        iops.error = Some(0.99 * iops.mean);
    }
    let text = table(&result);
    assert!(!text.contains(legend), "{text}");
}

#[test]
fn line_of_a_curve_after_more_runs_says_so() {
    let targets = [SweepTarget::new(&simulated_target("nfs"), None).unwrap()];
    let given = [("iodepth".to_owned(), "1,2".to_owned())];
    let axes = parse_axes(&given, &mut Diagnostics::default());
    let grid = SweepGrid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let result = measured("nfs", &[("iodepth", "1,2")], &options());
    let saturation = result.curves[0].saturation.as_ref().unwrap();
    let signed_line = |is_again, plus_minus| {
        let found = (saturation, is_again);
        curve_line(&result.axes, &grid.curves[0], found, plus_minus)
    };
    let line = |is_again| signed_line(is_again, "+-");
    assert!(line(false).starts_with("the rate "), "{}", line(false));
    assert_eq!(line(true), format!("after more runs, {}", line(false)));
    // The screen has the sign of its table.
    let signed = signed_line(false, "±");
    assert!(signed.contains('±') && !signed.contains("+-"), "{signed}");
}

#[test]
fn single_cell_has_no_knee_and_no_curve() {
    let result = measured("nfs", &[("iodepth", "2")], &options());
    insta::assert_snapshot!("one_cell", table(&result));
}

#[test]
fn sweep_of_target_in_memory_has_caution_in_all_reports() {
    let caution = "This is memory (tmpfs): its data does not survive a restart.";
    let mut result = measured("nfs", &[("bs", "4k,16k"), ("iodepth", "1,2")], &options());
    let texts = |result: &SweepResult| {
        let short = short(result, (None, ""), TextStyle::PLAIN);
        [short, table(result), markdown(result)]
    };
    assert!(!texts(&result).concat().contains("restart"));
    for curve in &mut result.curves {
        curve.in_memory = Some("memory (tmpfs)".to_owned());
    }
    for text in texts(&result) {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words.join(" ").matches(caution).count(), 1, "{text}");
    }
    // With several targets, the caution names its target.
    result.targets.push("/data".to_owned());
    let mut axes = result.axes.iter_mut();
    axes.find(|axis| axis.name == "bs").unwrap().name = "target".to_owned();
    result.curves[1].in_memory = None;
    let notes = notes(&result).into_iter();
    let cautions: Vec<String> = notes.filter(|note| note.contains("restart")).collect();
    assert_eq!(cautions, [format!("4k: {caution}")]);
}
