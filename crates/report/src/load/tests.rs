use super::*;
use crate::text_style::TextStyle;
use iosonde_engine::runner::LocalRunner;
use iosonde_result::run::IoFailure;
use iosonde_study::load::{LoadOptions, LoadPattern, MatrixOptions, measure_load};
use iosonde_study::test_targets::simulated_target;
use iosonde_study::{StudyEvent, StudyFinding, StudyObserver};

pub(super) const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn options() -> LoadOptions {
    LoadOptions {
        pattern: LoadPattern {
            block_bytes: 4096,
            random: true,
        },
        mix: Mix::READ,
        arrivals: Arrivals::Poisson,
        rates: Vec::new(),
        objectives: vec!["p99=3ms".parse().unwrap()],
        matrix: None,
        runtime_ns: 4 * SECOND_NS,
        ramp_ns: SECOND_NS,
        numjobs: 1,
        parties: 1,
        iodepth: 1024,
        size_bytes: Some(1 << 30),
        direct: true,
        seed: 1,
    }
}

pub(crate) fn measured(device: &str, options: &LoadOptions) -> LoadResult {
    let target = simulated_target(device);
    let mut session = LocalRunner::default().open();
    measure_load(&mut session, &target, options, &mut ()).unwrap()
}

#[test]
fn simulated_load_report_is_deterministic() {
    let result = measured("net-iops-cap", &options());
    let text = table(&result);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("net_iops_cap", text);
    insta::assert_snapshot!("net_iops_cap_csv", load_result_csv(&result));
    insta::assert_snapshot!("net_iops_cap_markdown", markdown(&result));
    let document: serde_json::Value =
        serde_json::from_str(&load_result_json(&result).unwrap()).unwrap();
    assert_eq!(document["kind"], "load");
    let own: LoadResult = serde_json::from_value(document["load"].clone()).unwrap();
    assert_eq!(own, result);
}

#[test]
fn tables_of_rates_have_the_state_of_each_rate() {
    let with = LoadOptions {
        rates: vec![500.0, 1000.0, 1500.0, 2000.0],
        ..at(0.0, &[])
    };
    let mut result = measured("net-iops-cap", &with);
    result.points[1].interrupted = true;
    for point in &mut result.points[2..] {
        point.kept_up = false;
    }
    result.points[3].failure = Some(IoFailure {
        errno: 5,
        operation: "read".to_owned(),
        file: None,
        offset: None,
        message: "EIO".to_owned(),
    });
    let text = markdown_of_rates(&result);
    let rows = text.lines().skip(2);
    let states: Vec<&str> = rows.map(|row| row.split(" | ").nth(2).unwrap()).collect();
    assert_eq!(states, ["yes", "interrupted", "no", "failed"], "{text}");
    let table = curve(&result);
    let rows = || table.lines().skip(2);
    let marked = |mark: char| rows().map(|row| row.contains(mark)).collect::<Vec<bool>>();
    assert_eq!(marked('/'), [false, true, false, false], "{table}");
    assert_eq!(marked('*'), [false, false, true, false], "{table}");
    assert_eq!(marked('!'), [false, false, false, true], "{table}");
    let note = "! ended by an error, not used for verdicts: EIO".to_owned();
    assert!(notes(&result).contains(&note));
}

#[test]
fn matrix_report_is_a_heat_map() {
    let with = |steps| LoadOptions {
        rates: vec![500.0],
        objectives: Vec::new(),
        matrix: Some(MatrixOptions { steps }),
        runtime_ns: SECOND_NS,
        ..options()
    };
    for (name, steps) in [("matrix_6", 6), ("matrix_16", 16)] {
        let text = table(&measured("throttled", &with(steps)));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(name, text);
    }
}

/// Options for one rate, offered for two seconds.
pub(crate) fn at(rate: f64, objectives: &[&str]) -> LoadOptions {
    LoadOptions {
        rates: vec![rate],
        objectives: objectives.iter().map(|one| one.parse().unwrap()).collect(),
        runtime_ns: 2 * SECOND_NS,
        ..options()
    }
}

/// An unknown percentile breaks no objective. A rate with few I/Os is offered repeatedly.
#[test]
fn undecided_objective_is_not_reported_as_failed() {
    let words = "p99=1s p99.9=1.18ms p50=1us p99.9=1us max=1us max=1s";
    let words: Vec<&str> = words.split(' ').collect();
    let result = measured("net-iops-cap", &at(20.0, &words));
    insta::assert_snapshot!("few_ios", table(&result));
    let answers: Vec<_> = result.objectives.iter().map(|one| one.answer).collect();
    assert_eq!((answers[0].held, answers[0].failed), (Some(20.0), None));
    assert_eq!((answers[1].held, answers[1].failed), (None, Some(20.0)));
    assert_eq!(answers[1].untold, Some(20.0));
    // The search does not offer rates with too few I/Os.
    assert!(
        result
            .points
            .iter()
            .all(|point| point.offered.total() >= 0.5)
    );
}

#[test]
fn kept_rate_of_an_objective_has_its_latency() {
    let mut result = measured("net-iops-cap", &at(1000.0, &["p99=3ms", "max=1s"]));
    let point = result.points.last().unwrap();
    assert_eq!(point.offered.total(), 1000.0);
    let figures = [percentile(point, 99.0), latency(longest(point))];
    for (found, figure) in result.objectives.iter().zip(&figures) {
        let end = format!("up to 1.00k IOPS ({} {figure})", found.objective.measure());
        let text = objective(&result, found);
        assert!(text.ends_with(&end), "{text}: {end}");
    }
    let found = &mut result.objectives[0];
    (found.answer.failed, found.answer.is_interval) = (Some(2000.0), true);
    let middle = format!(" (p99 {}), missed from 2.00k IOPS on; ", figures[0]);
    let text = objective(&result, &result.objectives[0]);
    assert!(text.contains(&middle), "{text}");
}

#[test]
fn objective_below_the_lowest_median_is_out_of_reach() {
    let mut result = measured("net-iops-cap", &at(200.0, &["p99=1us"]));
    let found = result.objectives[0];
    assert_eq!(found.answer.held, None);
    let text = objective(&result, &found);
    assert!(
        text.starts_with("p99 <= 1.00 us: out of reach: p50 at "),
        "{text}"
    );
    let has_advice = |result: &LoadResult| notes(result).join(" ").contains("longer runtime");
    assert!(!has_advice(&result));
    // The median is below the objective: more I/Os decide it.
    result.objectives[0].objective.latency_ns = SECOND_NS;
    let text = objective(&result, &result.objectives[0]);
    assert!(!text.contains("out of reach"), "{text}");
    assert!(has_advice(&result));
}

/// The latency curve as the study reports it: the last report of each rate.
#[derive(Default)]
struct ReportedCurve(Vec<LoadMeasurement>);

impl StudyObserver for ReportedCurve {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if let StudyEvent::Found(StudyFinding::RateOfCurve(point)) = event {
            self.0.retain(|other| other.offered != point.offered);
            self.0.push((**point).clone());
        }
    }
}

#[test]
fn reported_curve_has_all_runs_and_no_cell_of_the_matrix() {
    let target = simulated_target("net-iops-cap");
    let with = LoadOptions {
        matrix: Some(MatrixOptions { steps: 2 }),
        ..options()
    };
    let mut session = LocalRunner::default().open();
    let mut curve = ReportedCurve::default();
    let result = measure_load(&mut session, &target, &with, &mut curve).unwrap();
    curve
        .0
        .sort_by(|a, b| a.offered.total().total_cmp(&b.offered.total()));
    assert!(result.points.iter().any(|point| point.runs > 1));
    assert_eq!(curve.0, result.points);
}

/// Interrupts the study during the second rate.
struct Impatient(usize);

impl StudyObserver for Impatient {
    fn event(&mut self, event: &StudyEvent<'_>) {
        self.0 += usize::from(matches!(event, StudyEvent::StepStarted { .. }));
    }

    fn is_interrupted(&self) -> bool {
        self.0 > 2
    }
}

#[test]
fn interrupted_rate_is_not_judged() {
    let with = LoadOptions {
        rates: vec![1000.0, 9000.0],
        ..at(0.0, &["p99=3ms", "max=1us"])
    };
    let target = simulated_target("net-iops-cap");
    let mut session = LocalRunner::default().open();
    let result = measure_load(&mut session, &target, &with, &mut Impatient(0)).unwrap();
    insta::assert_snapshot!("interrupted", table(&result));
    let known = result.points.iter().map(|point| point.interrupted);
    assert_eq!(known.collect::<Vec<_>>(), [false, true]);
    assert!(
        result
            .objectives
            .iter()
            .all(|one| one.answer.failed != Some(9000.0))
    );
}

#[test]
fn findings_name_their_rates() {
    let with = LoadOptions {
        rates: vec![500.0, 1000.0, 2000.0],
        ramp_ns: 0,
        ..at(0.0, &[])
    };
    let mut result = measured("net-iops-cap", &with);
    for (index, point) in result.points.iter_mut().enumerate() {
        point.verdicts = vec![format!(
            "other programs used the device: vda moved {index} MiB/s more"
        )];
        point.kinds = vec![VerdictKind::Interference];
    }
    result.points[1]
        .verdicts
        .push("the clock was set".to_owned());
    result.points[1].kinds.push(VerdictKind::ClockDisturbed);
    assert_eq!(
        findings(&result),
        [
            "other programs used the device: vda moved 2 MiB/s more (at 2.00k IOPS; likewise at \
             500 and 1.00k)",
            "the clock was set (at 1.00k IOPS)"
        ]
    );
}

#[test]
fn load_of_target_in_memory_has_caution_in_all_reports() {
    let caution = "This is memory (tmpfs): its data does not survive a restart.";
    let mut result = measured("net-iops-cap", &at(500.0, &[]));
    let texts = |result: &LoadResult| {
        let short = short(result, (None, ""), TextStyle::PLAIN);
        [short, table(result), markdown(result)]
    };
    assert!(!texts(&result).concat().contains("restart"));
    result.in_memory = Some("memory (tmpfs)".to_owned());
    for text in texts(&result) {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words.join(" ").matches(caution).count(), 1, "{text}");
    }
}
