use super::*;
use crate::probe::simulated::probed;
use iosonde_limits::Limits;
use iosonde_result::host::{DeviceInfo, TargetInfo};
use iosonde_result::run::{Verdict, VerdictKind};
use iosonde_study::probe::{DurableWrites, Knee, ProbeBudget, ProbePhase};
use iosonde_study::promise_check::PromiseCheck;

const UTF8: TextStyle = TextStyle {
    utf8: true,
    color: false,
};
const ASCII: TextStyle = TextStyle {
    utf8: false,
    color: false,
};

fn ids(count: usize) -> Vec<Option<String>> {
    (0..count)
        .map(|each| Some(format!("46013{each}")))
        .collect()
}

fn report(results: &[ProbeResult], brief: bool, style: TextStyle) -> String {
    let ids = ids(results.len());
    let report = ShortReport {
        results,
        ids: &ids,
        store_options: "",
        brief,
        style,
    };
    report.text()
}

fn widest(text: &str) -> usize {
    let columns = text.lines().map(|line| line.chars().count());
    columns.max().unwrap_or(0)
}

fn check_layout(result: &ProbeResult) {
    let results = std::slice::from_ref(result);
    for style in [UTF8, ASCII] {
        for (brief, most) in [(false, LINES_MAX), (true, BRIEF_LINES)] {
            let text = report(results, brief, style);
            assert!(text.lines().count() <= most, "{text}");
            assert!(widest(&text) <= 80, "{text}");
            assert!(style.utf8 || text.is_ascii(), "{text}");
            let has_spark = |line: &str| line.starts_with("4k ") || line.starts_with("1M ");
            for line in text.lines().filter(|line| style.utf8 || !has_spark(line)) {
                assert!(!line.contains('!') && !line.contains('*'), "{text}");
            }
            assert!(!text.contains(">100"), "{text}");
            assert!(
                text.contains("maximum  ") && text.contains("verdict  "),
                "{text}"
            );
            let last = text.lines().last().unwrap();
            assert_eq!(
                last,
                "result     460130: iosonde report 460130 -o report.html"
            );
        }
    }
}

#[test]
fn report_of_each_preset_fits_one_screen() {
    const PRESETS: [&str; 10] = [
        "hdd",
        "sata-ssd",
        "nvme",
        "net-iops-cap",
        "net-bw-cap",
        "burst",
        "raid",
        "ceph",
        "nfs",
        "throttled",
    ];
    for preset in PRESETS {
        check_layout(&probed(preset, ProbeBudget::QUICK));
    }
    check_layout(&probed("hdd", ProbeBudget::NORMAL));
}

#[test]
fn fullest_report_fits_one_screen() {
    let mut result = probed("hdd", ProbeBudget::NORMAL);
    for run in &mut result.runs {
        for kind in [
            VerdictKind::Steal,
            VerdictKind::Fallback,
            VerdictKind::Device,
        ] {
            let title = run.phase.title();
            run.result.verdicts.push(Verdict {
                kind,
                evidence: format!("{kind:?} of {title}: {}", "evidence ".repeat(20)),
                cause: None,
            });
        }
    }
    for figure in &mut result.figures {
        figure.settled = Some(false);
        figure.sure = Some(false);
        figure.iops.error = None;
    }
    result.target = "t".repeat(200);
    result.interrupted = true;
    result.classification.served_from_cache = true;
    result.classification.suitability = "suitable ".repeat(40);
    let products = ["gcp-pd-ssd:375GiB,machine=n1,vcpus=8", "aws-gp2:100GiB"];
    for product in [products[0], products[1], products[0]] {
        let promise = Limits::published()
            .evaluate(&product.parse().unwrap())
            .unwrap();
        let check = PromiseCheck::from_probe(&promise, &result);
        result.expected.push(check);
    }
    check_layout(&result);
    let text = report(&[result], false, UTF8);
    assert!(
        text.contains("warning    A cache served the reads"),
        "{text}"
    );
    assert!(text.contains("more notes: iosonde show 460130"), "{text}");
    assert!(text.contains("more promises, "), "{text}");
    assert!(text.contains(" ~") && !text.contains('±'), "{text}");
}

#[test]
fn finding_that_makes_figures_wrong_is_never_hidden() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result.notes = (0..9).map(|each| format!("note {each}")).collect();
    let phase = ProbePhase::RandomWrite;
    let run = result.runs.iter_mut().find(|run| run.phase == phase);
    let verdicts = &mut run.unwrap().result.verdicts;
    let mut add = |kind: VerdictKind| {
        verdicts.push(Verdict {
            kind,
            evidence: format!("{kind:?} {}", "evidence ".repeat(20)),
            cause: None,
        });
    };
    add(VerdictKind::Steal);
    add(VerdictKind::ServedFromCache);
    let several = "Doubtful figures: random write at depth 64 (cache, stolen CPU time)\n";
    let full = report(std::slice::from_ref(&result), false, UTF8);
    assert!(full.contains(&format!("note       {several}")), "{full}");
    let brief = report(std::slice::from_ref(&result), true, UTF8);
    assert!(brief.contains(&format!("warning    {several}")), "{brief}");
    result.classification.served_from_cache = true;
    let brief = report(std::slice::from_ref(&result), true, UTF8);
    // The names of the figures do not fit into the line.
    let unnamed = "warning    Doubtful figures: cache, stolen CPU time\n";
    assert!(brief.contains(unnamed), "{brief}");
    // A single finding is the first note.
    result.classification.served_from_cache = false;
    let run = result.runs.iter_mut().find(|run| run.phase == phase);
    let verdicts = &mut run.unwrap().result.verdicts;
    verdicts.retain(|verdict| verdict.kind != VerdictKind::ServedFromCache);
    let full = report(&[result], false, UTF8);
    let notes: Vec<&str> = full
        .lines()
        .filter(|line| line.starts_with("note "))
        .collect();
    assert!(notes[0].contains("Steal evidence"), "{full}");
}

#[test]
fn doubt_about_most_figures_names_the_others() {
    let steal = |result: &mut ProbeResult, is_wanted: fn(ProbePhase) -> bool| {
        let runs = result.runs.iter_mut().filter(|run| is_wanted(run.phase));
        for run in runs {
            run.result.verdicts.push(Verdict {
                kind: VerdictKind::Steal,
                evidence: "stolen".to_owned(),
                cause: None,
            });
        }
    };
    let mut result = probed("nvme", ProbeBudget::QUICK);
    steal(&mut result, |phase| phase != ProbePhase::RandomRead);
    let brief = report(std::slice::from_ref(&result), true, UTF8);
    let others = "Doubtful figures: all but random read at depth 64 (stolen CPU time)\n";
    assert!(brief.contains(others), "{brief}");
    steal(&mut result, |phase| phase == ProbePhase::RandomRead);
    let brief = report(&[result], true, UTF8);
    let all = "Doubtful figures: all (stolen CPU time)\n";
    assert!(brief.contains(all), "{brief}");
}

/// The first note repeated that the probe was interrupted.
#[test]
fn interruption_is_noted_once_and_first() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result.interrupted = true;
    let phase = ProbePhase::RandomWrite;
    let run = result.runs.iter_mut().find(|run| run.phase == phase);
    let verdicts = &mut run.unwrap().result.verdicts;
    for kind in [VerdictKind::Steal, VerdictKind::ServedFromCache] {
        verdicts.push(Verdict {
            kind,
            evidence: format!("{kind:?}"),
            cause: None,
        });
    }
    let full = report(&[result], false, UTF8);
    let notes = full.split("\nnote       ").skip(1).collect::<Vec<_>>();
    assert!(notes[0].starts_with("interrupted: "), "{full}");
    let doubtful = "Doubtful figures: random write at depth 64 (cache, stolen CPU time)";
    assert!(notes[1].starts_with(doubtful), "{full}");
}

#[test]
fn table_has_shape_and_known_digits_of_each_figure() {
    let mut result = probed("hdd", ProbeBudget::QUICK);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap().to_owned()
    };
    assert!(row(&text, "1M seq. read").ends_with(" steady"), "{text}");
    assert!(row(&text, "4k fdatasync").contains(" ±"), "{text}");
    let legend = "- is not known: fewer than ten I/Os were slower; ~ has no known interval.";
    assert!(text.contains("- is not known: fewer than ten"), "{text}");
    let table = rate_table::lines(&result, UTF8).concat();
    assert_eq!(text.contains(legend), table.contains(" ~"), "{text}");
    assert!(
        text.contains("maximum    not searched: --quick skips it"),
        "{text}"
    );
    for figure in &mut result.figures {
        figure.iops.error = Some(0.1 * figure.iops.mean);
    }
    let text = report(&[result], false, ASCII);
    assert!(row(&text, "1M seq. read").ends_with(" noisy"), "{text}");
    assert!(row(&text, "1M seq. read").contains(" +-"), "{text}");
}

#[test]
fn long_bottleneck_and_verdict_have_three_lines_and_name_the_rest() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result.classification.suitability = "suitable ".repeat(20);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    assert_eq!(text.matches("suitable").count(), 20, "{text}");
    result.classification.suitability = "suitable ".repeat(60);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    let mut verdict = text
        .lines()
        .skip_while(|line| !line.starts_with("verdict  "));
    let third = verdict.nth(2).unwrap();
    assert!(
        third.ends_with("suitable … (iosonde show 460130)"),
        "{text}"
    );
    let text = report(std::slice::from_ref(&result), false, ASCII);
    assert!(
        text.contains("suitable ... (iosonde show 460130)\n"),
        "{text}"
    );
    let lines = bottleneck_and_verdict(&result, 0, " ...");
    assert!(lines.len() <= 2 * SECTION_LINES, "{lines:?}");
}

#[test]
fn head_of_long_target_keeps_name_of_device() {
    let descriptions = [
        "ext4 on a virtual disk (vda, virtio_blk)".to_owned(),
        "ext4 on a virtual disk (vda)".to_owned(),
        "ext4 on vda".to_owned(),
    ];
    let head = |target: &str, room| named_device(target, &descriptions, room);
    assert_eq!(
        head("/srv", 50),
        "/srv: ext4 on a virtual disk (vda, virtio_blk)"
    );
    assert_eq!(
        head("/srv/volumes/data", 50),
        "/srv/volumes/data: ext4 on a virtual disk (vda)"
    );
    assert_eq!(
        head("/srv/volumes/data", 35),
        "/srv/volumes/data: ext4 on vda"
    );
    assert_eq!(
        head("/srv/volumes/of/a/database", 35),
        "...lumes/of/a/database: ext4 on vda"
    );
    let long = format!("/srv/{}/data", "x".repeat(100));
    assert!(head(&long, 35).ends_with("/data: ext4 on vda"));
    assert!(head(&long, 20).chars().count() <= 20);
}

/// The report said only `not known`.
#[test]
fn unknown_maximum_names_its_reason() {
    let mut result = probed("hdd", ProbeBudget::NORMAL);
    for knee in &mut result.knees {
        let maximum = &mut knee.saturation.maximum;
        maximum.error = Some(0.5 * maximum.mean);
    }
    let text = report(&[result], false, UTF8);
    let reason = "maximum    random read and write not known (uncertain: ±50 %);";
    assert!(text.contains(reason), "{text}");
}

/// The maxima of the writes were cut off instead.
#[test]
fn share_at_knee_gives_way_to_other_maxima() {
    let result = probed("hdd", ProbeBudget::NORMAL);
    let results = std::slice::from_ref(&result);
    let report = ShortReport {
        results,
        ids: &[None],
        store_options: "",
        brief: false,
        style: UTF8,
    };
    crate::text_table::set_columns(60);
    let maximum = |most| {
        let text = report.maximum(&result, most, " …").join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    };
    let whole = maximum(9);
    assert!(whole.contains(" (99 % at depth "), "{whole}");
    let plateau = ", about the same from depth 32 on;";
    assert!(whole.contains(plateau), "{whole}");
    let short = maximum(2);
    assert!(!short.contains(" % at depth"), "{short}");
    assert!(!short.contains("about the same"), "{short}");
    let writes = "seq. read and write 174 MiB/s at depth 8";
    assert!(short.ends_with(writes), "{short}");
}

#[test]
fn head_of_simulated_device_names_simulated_time() {
    let result = probed("net-iops-cap", ProbeBudget::NORMAL);
    let text = report(&[result], false, UTF8);
    let head = text.lines().next().unwrap();
    assert!(
        head.starts_with("sim:net-iops-cap: a simulated device; "),
        "{head}"
    );
    assert!(head.ends_with(" s simulated"), "{head}");
    assert!(head.chars().count() <= 80, "{head}");
}

/// The device serves a burst of writes faster. Short runs of the search are within it.
#[test]
fn maximum_of_short_runs_names_sustained_rate() {
    let mut result = probed("nvme", ProbeBudget::NORMAL);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(" in short runs, 400k in a longer one;"),
        "{text}"
    );
    assert_eq!(words.matches("in short runs").count(), 1, "{text}");
    assert!(text.lines().count() <= LINES_MAX, "{text}");
    let details: String = table::probe_table(&result);
    let details = details.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        details.contains("; only 400k IOPS in the longer run at depth 64"),
        "{details}"
    );
    let mut figures = result.figures.iter_mut();
    let write = figures.find(|figure| figure.phase == ProbePhase::RandomWrite);
    write.unwrap().iops.mean = 540e3;
    assert!(!report(&[result], false, UTF8).contains("in short runs"));
}

/// The rate of several jobs, or of another depth, says nothing about the time of a run.
#[test]
fn slower_run_with_other_cause_is_no_burst() {
    fn knee(result: &mut ProbeResult) -> &mut Knee {
        let mut knees = result.knees.iter_mut();
        knees
            .find(|knee| knee.phase == ProbePhase::RandomWrite)
            .unwrap()
    }
    let is_burst = |change: &dyn Fn(&mut ProbeResult)| {
        let mut result = probed("nvme", ProbeBudget::NORMAL);
        change(&mut result);
        let text = report(&[result], false, UTF8);
        // Without the line breaks of the screen.
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").contains("in short runs")
    };
    assert!(is_burst(&|_| ()));
    assert!(!is_burst(&|result| knee(result).saturation.jobs = 4));
    let falls_with_depth = |result: &mut ProbeResult| {
        let figure = result.figure(ProbePhase::RandomWrite).unwrap().iodepth;
        let found = &mut knee(result).saturation;
        found.knee.iodepth = figure / 2;
        found.cells.retain(|cell| cell.iodepth <= figure);
    };
    assert!(!is_burst(&falls_with_depth));
    let as_long = |result: &mut ProbeResult| {
        let figure = result.figure(ProbePhase::RandomWrite).unwrap();
        let (depth, time) = (figure.iodepth, figure.measured_ns);
        let found = &mut knee(result).saturation;
        let mut cell = found.cells[0].clone();
        cell.iodepth = depth * 2;
        cell.measured_ns = time;
        found.cells.push(cell);
    };
    assert!(!is_burst(&as_long));
}

/// The cause comes before its evidence.
#[test]
fn long_bottleneck_is_complete() {
    let result = probed("hdd", ProbeBudget::NORMAL);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let start = "random reads and writes of 4 KiB: the device itself; ";
    assert!(text.contains(start), "{text}");
    let end = format!("{} verdict", result.ceilings[0].evidence);
    assert!(text.contains(&end), "{text}");
}

/// A row had 337 IOPS beside a median of 411 us.
#[test]
fn legend_names_calls_behind_rate_and_latency_of_fdatasync() {
    let legend = "fdatasync: rate of writes, each with fdatasync; latency of fdatasync alone.";
    let mut result = probed("nvme", ProbeBudget::QUICK);
    let text = report(std::slice::from_ref(&result), false, UTF8);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(legend), "{text}");
    result
        .figures
        .retain(|figure| figure.phase != ProbePhase::SyncedWrite);
    assert_eq!(rate_table::sync_legend(&result), None);
}

#[test]
fn legend_names_only_signs_of_the_table() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result
        .figures
        .retain(|figure| figure.phase == ProbePhase::RandomRead);
    let sign = |result: &ProbeResult| rate_table::legend(result).map(|text| text.contains('~'));
    result.figures[0].iops.error = None;
    assert_eq!(sign(&result), Some(true));
    let table = rate_table::lines(&result, UTF8);
    // The rate and its bandwidth.
    assert!(table[1].matches(" ~").count() >= 2, "{table:?}");
    result.figures.clear();
    assert_eq!(sign(&result), None);
}

#[test]
fn narrow_report_drops_columns_and_cuts_no_figure() {
    let result = probed("hdd", ProbeBudget::NORMAL);
    let results = std::slice::from_ref(&result);
    let full = rate_table::lines(&result, UTF8);
    for columns in [40, 52, 60, 70, 79] {
        crate::text_table::set_columns(columns);
        for brief in [false, true] {
            let text = report(results, brief, UTF8);
            assert!(widest(&text) <= columns, "{columns}: {text}");
        }
    }
    crate::text_table::set_columns(40);
    let narrow = rate_table::lines(&result, UTF8);
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let head = words(&narrow[0]);
    assert_eq!(head[..2], ["depth", "rate"]);
    assert!(!head.contains(&"bandwidth".to_owned()), "{head:?}");
    for (line, whole) in narrow.iter().zip(&full).skip(1) {
        let whole = words(whole);
        assert!(
            words(line).iter().all(|word| whole.contains(word)),
            "{line}"
        );
        assert!(line.contains(" ±"), "{line}");
    }
}

#[test]
fn narrow_report_of_two_targets_fits() {
    let results = [
        probed("nvme", ProbeBudget::QUICK),
        probed("hdd", ProbeBudget::QUICK),
    ];
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        let text = report(&results, false, UTF8);
        assert!(widest(&text) <= columns, "{columns}: {text}");
    }
}

#[test]
fn pair_of_targets_begins_with_the_winner() {
    let results = [
        probed("nvme", ProbeBudget::QUICK),
        probed("hdd", ProbeBudget::QUICK),
    ];
    let text = report(&results, false, UTF8);
    assert!(
        text.starts_with("A  sim:nvme\nB  sim:hdd\n\nwinner     A is faster in 7 of 7 figures, ")
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The repeated line has no confidence.
    let certainty = "; all differences hold together with 95 % confidence";
    assert_eq!(words.matches(certainty).count(), 1, "{text}");
    assert!(widest(&text) <= 80, "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "result     460130 460131: iosonde compare 460130 460131"
    );
    // The first lines have left a terminal of 24 lines, so the winner is repeated at the end.
    let (_, end) = text.rsplit_once("\n\n").unwrap();
    assert!(
        end.starts_with("winner     A is faster in 7 of 7 figures, "),
        "{text}"
    );
    let same = [results[1].clone(), results[1].clone()];
    let text = report(&same, true, ASCII);
    assert!(
        text.contains("winner     none: no difference shown"),
        "{text}"
    );
    assert!(text.is_ascii() && widest(&text) <= 80, "{text}");
}

#[test]
fn targets_on_one_device_with_different_verdicts_are_noted() {
    let on = |verdict, node: Option<&str>| {
        let mut result = probed("hdd", ProbeBudget::QUICK);
        result.classification.durable_writes = Some(verdict);
        let last = &mut result.runs.last_mut().unwrap().result;
        last.targets = vec![TargetInfo {
            devices: vec![DeviceInfo {
                name: "vda".to_owned(),
                ..DeviceInfo::default()
            }],
            ..TargetInfo::default()
        }];
        let node = node.map(|node| ("node".to_owned(), node.to_owned()));
        last.labels.extend(node);
        result
    };
    let (slow, fast) = (DurableWrites::Files, DurableWrites::Database);
    let note = "\nnote       A and B are both on vda, but their verdicts differ\n";
    let text = report(&[on(slow, None), on(fast, None)], true, UTF8);
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert!(widest(&text) <= 80, "{text}");
    let alike = report(&[on(slow, None), on(slow, None)], true, UTF8);
    assert!(!alike.contains("both on"), "{alike}");
    let mut undecided = on(fast, None);
    undecided.classification.durable_writes = None;
    let undecided = report(&[on(slow, None), undecided], true, UTF8);
    assert!(!undecided.contains("both on"), "{undecided}");
    let apart = [on(slow, Some("n1")), on(fast, Some("n2"))];
    let apart = report(&apart, true, UTF8);
    assert!(!apart.contains("both on"), "{apart}");
    let three = [on(slow, None), on(fast, None), on(fast, None)];
    let three = report(&three, true, UTF8);
    assert!(three.contains("A, B, C are all on vda"), "{three}");
}

#[test]
fn three_targets_are_each_compared_with_the_first() {
    let fast = probed("nvme", ProbeBudget::QUICK);
    let slow = probed("hdd", ProbeBudget::QUICK);
    let text = report(&[slow.clone(), fast, slow], true, UTF8);
    assert!(
        text.contains("A and B    B is faster in 7 of 7 figures"),
        "{text}"
    );
    assert!(
        text.contains("A and C    none: no difference shown"),
        "{text}"
    );
    assert!(widest(&text) <= 80, "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.ends_with("iosonde report 460130 460131 460132 -o report.html"));
}

#[test]
fn report_that_is_not_stored_names_details() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result.notes = (0..9).map(|each| format!("note {each}")).collect();
    let report = ShortReport {
        results: &[result],
        ids: &[None],
        store_options: "",
        brief: false,
        style: UTF8,
    };
    let text = report.text();
    assert!(text.contains("6 more notes: add --details"), "{text}");
    assert_eq!(report.ending(None), " … (add --details)");
    assert!(text.ends_with("result     not stored\n"), "{text}");
}

#[test]
fn single_note_is_whole_if_the_pointer_needs_as_many_lines() {
    let note = ["word ".repeat(40).trim_end().to_owned()];
    let lines = notes(&note, "iosonde show 460130", 2);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines.join(" ").matches("word").count(), 40);
    let lines = notes(&note, "iosonde show 460130", 1);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], "           the whole note: iosonde show 460130");
    let (first, middle) = ("word ".repeat(12), "middle ".repeat(30));
    let remedy = format!(
        "{}. But {}. Use `iosonde doctor`.",
        first.trim(),
        middle.trim()
    );
    let cut = notes(&[remedy], "iosonde show 460130", 2).join(" ");
    assert!(cut.contains("word ... Use "), "{cut}");
    assert!(cut.contains("`iosonde doctor`. "), "{cut}");
    assert!(
        cut.ends_with("the whole note: iosonde show 460130"),
        "{cut}"
    );
}

#[test]
fn hostile_target_cannot_colour_the_report() {
    let mut result = probed("nvme", ProbeBudget::QUICK);
    result.target = "x\u{1b}[31m\ny".to_owned();
    let style = TextStyle {
        utf8: true,
        color: true,
    };
    let text = report(&[result.clone()], false, style);
    assert!(text.contains("\u{1b}[32msteady\u{1b}[0m"), "{text}");
    assert!(text.starts_with("x\\u001b[31m"), "{text}");
    let plain = report(&[result], false, UTF8);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let unpainted = text.replace("\u{1b}[32m", "").replace("\u{1b}[33m", "");
    let unpainted = unpainted.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
    assert_eq!(unpainted, plain);
}

#[test]
fn wide_terminal_lengthens_sparklines_but_no_text() {
    let results = [probed("hdd", ProbeBudget::NORMAL)];
    let usual = report(&results, false, UTF8);
    crate::text_table::set_columns(120);
    let wide = report(&results, false, UTF8);
    crate::text_table::set_columns(80);
    let bars = |line: &str| {
        line.chars()
            .filter(|letter| ('▁'..='▇').contains(letter))
            .count()
    };
    let most_bars = |text: &str| text.lines().map(bars).max().unwrap();
    assert_eq!(most_bars(&usual), 8, "{usual}");
    assert!(most_bars(&wide) > 8, "{wide}");
    for line in wide.lines() {
        let most = if bars(line) > 0 { 120 } else { 80 };
        assert!(line.chars().count() <= most, "{line}");
    }
}
