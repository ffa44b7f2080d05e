use super::*;

fn step(figure: &str, series: Option<&str>) -> CommandStep {
    CommandStep {
        run: "pgbench -P 1 bench".to_owned(),
        figure: FigurePattern::parse(figure).unwrap(),
        series: series.map(|series| FigurePattern::parse(series).unwrap()),
        unit: "tps".to_owned(),
        timeout_ns: 60_000_000_000,
    }
}

const FIGURE: &str = r"^tps = ([0-9.]+)";
const SERIES: &str = r"^progress: .* ([0-9.]+) tps";

/// Lines as pgbench 16 prints them, with `rates` as its progress.
fn pgbench(rates: &[f64]) -> Vec<String> {
    let mut lines: Vec<String> = rates
        .iter()
        .enumerate()
        .map(|(second, rate)| {
            format!("progress: {second}.0 s, {rate:.1} tps, lat 2.201 ms stddev 0.5, 0 failed")
        })
        .collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    lines.push("latency average = 2.205 ms".to_owned());
    lines.push(format!("tps = {mean:.6} (without initial connection time)"));
    lines
}

fn read(step: &CommandStep, lines: &[String]) -> Result<CommandResult, CommandFailure> {
    let mut output = CommandOutput::new(step);
    for (second, line) in (0u64..).zip(lines) {
        output.take_line(second * 1_000_000_000, line);
    }
    output.conclude(30_000_000_000)
}

#[test]
fn progress_lines_of_pgbench_are_the_series_of_its_figure() {
    let rates: Vec<f64> = (0..30)
        .map(|second| 450.0 + f64::from(second * 7 % 11))
        .collect();
    let result = read(&step(FIGURE, Some(SERIES)), &pgbench(&rates)).unwrap();
    assert_eq!(result.samples.len(), 30);
    assert_eq!(result.samples[1].at_ns, 1_000_000_000);
    let (low, high) = result.interval.unwrap();
    assert!(low < result.value && result.value < high, "{low} {high}");
    assert!(high - low < 10.0, "{low} {high}");
    assert_eq!(result.shown(result.value), "455 tps");
}

#[test]
fn figure_that_is_not_the_mean_of_its_series_has_no_interval() {
    let mut lines = pgbench(&[450.0; 30]);
    lines.push("tps = 900.0".to_owned());
    let result = read(&step(FIGURE, Some(SERIES)), &lines).unwrap();
    assert_eq!((result.value, result.interval), (900.0, None));
    assert_eq!(read(&step(FIGURE, None), &lines).unwrap().interval, None);
}

#[test]
fn thousands_may_be_separated() {
    for (text, expected) in [
        ("1,234,567.5", Some(1_234_567.5)),
        ("-12_000", Some(-12_000.0)),
        ("1.5e3", Some(1500.0)),
        // A decimal comma is not taken for a separator of thousands.
        ("3,5", None),
        ("0,125", None),
        ("1.234,5", None),
        ("1,2345", None),
        ("nan", None),
        ("", None),
    ] {
        assert_eq!(parse_number(text), expected, "{text}");
    }
}

#[test]
fn last_matching_line_without_a_number_is_an_error() {
    let lines = ["tps = 450.0", "tps = nan"].map(str::to_owned);
    let failure = read(&step("tps = (.*)", None), &lines).unwrap_err();
    assert!(matches!(failure, CommandFailure::NotANumber { .. }));
    let lines = ["tps = nan", "tps = 450.0"].map(str::to_owned);
    let series = step("tps = (.*)", Some("tps = (.*)"));
    let result = read(&series, &lines).unwrap();
    assert_eq!((result.value, result.samples.len()), (450.0, 1));
}

#[test]
fn output_without_a_figure_is_an_error_with_its_last_lines() {
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}")).collect();
    let none = read(&step(FIGURE, None), &lines).unwrap_err();
    let silent = read(&step(FIGURE, None), &[]).unwrap_err();
    let text = read(&step("line (.*)", None), &["line x".to_owned()]).unwrap_err();
    let failed = CommandFailure::Failed {
        ending: "status 1".to_owned(),
        last_lines: vec!["pgbench: error: connection failed".to_owned()],
    };
    let late = CommandFailure::TimedOut {
        timeout_ns: 60_000_000_000,
        last_lines: Vec::new(),
    };
    let texts = [none, silent, text, failed, late]
        .map(|failure| format!("{failure}\nhelp: {}", failure.remedy()));
    insta::assert_snapshot!(texts.join("\n\n"), @r#"
    no line of the output matches `^tps = ([0-9.]+)`
    its last lines:
      line 12
      line 13
      line 14
      line 15
      line 16
      line 17
      line 18
      line 19
    help: correct `figure` or `series` in the suite: its first group ( ) is the number

    no line of the output matches `^tps = ([0-9.]+)`; it printed nothing
    help: correct `figure` or `series` in the suite: its first group ( ) is the number

    `x`, which `line (.*)` finds, is not a number
    help: correct `figure` or `series` in the suite: its first group ( ) is the number

    the command ended with status 1
    its last lines:
      pgbench: error: connection failed
    help: run the command by hand in the target's directory, and correct it in the suite

    the command did not end within 1 min; it printed nothing
    help: shorten the command, or raise its `timeout`
    "#);
}

#[test]
fn pattern_needs_a_group_and_must_be_valid() {
    assert!(
        FigurePattern::parse("tps = [0-9]+")
            .unwrap_err()
            .contains("group")
    );
    assert!(
        !FigurePattern::parse("tps = ([0-9]+")
            .unwrap_err()
            .is_empty()
    );
    assert!(FigurePattern::parse(&format!("({})", "a{1000}".repeat(1000))).is_err());
}
