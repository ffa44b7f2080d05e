use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::session::Session;

/// Ten simulated seconds of random reads and writes.
fn run(rw: &str) -> RunResult {
    let words = [
        "--name=db".to_owned(),
        format!("--rw={rw}"),
        "--size=64m".to_owned(),
        "--bs=4k".to_owned(),
        "--runtime=10".to_owned(),
        "--time_based".to_owned(),
        "--ioengine=sim".to_owned(),
        "--sim=cap_iops=2000".to_owned(),
    ];
    let words: Vec<_> = words.iter().map(Into::into).collect();
    let plan = iosonde_job::parse(&words, &SystemEnv::default())
        .unwrap()
        .plan;
    LocalRunner::default().open().run(&plan, &mut ()).unwrap()
}

fn text(
    run: &RunResult,
    window: Option<TimeWindow>,
    percents: &[f64],
    format: TextFormat,
) -> String {
    let figures =
        StoredFigures::compute("3fa9c1", &[("3fa9c1".to_owned(), run)], window, percents).unwrap();
    figures.text(format).unwrap()
}

const WINDOW: Option<TimeWindow> = Some(TimeWindow {
    from_ns: Some(3_000_000_000),
    to_ns: Some(6_000_000_000),
});

#[test]
fn window_has_its_rates_and_percentiles_and_names_what_it_lacks() {
    let reads = run("randread");
    let percents = [50.0, 99.0, 99.999];
    insta::assert_snapshot!(text(&reads, WINDOW, &percents, TextFormat::Table), @r#"
    3fa9c1 (db), 3 s to 6 s, 30 intervals

    read IOPS                                    2.00k
    read bandwidth                          7.81 MiB/s
    read latency p50                            501 us
    read latency p99                            501 us
    read latency p99.999  needs 1000000 I/Os, has 6000
    not known: mean and longest latency, submission latency, CPU time: only known
    for the whole run
    "#);
    insta::assert_snapshot!(text(&reads, WINDOW, &percents, TextFormat::Csv), @r#"
    run,from_ns,to_ns,part,subject,measure,percent,value,count
    3fa9c1,3000000000,6000000000,,read,iops,,2000.000,6000
    3fa9c1,3000000000,6000000000,,read,bytes_per_s,,8192000.000,24576000
    3fa9c1,3000000000,6000000000,,read,lat,50,500736,6000
    3fa9c1,3000000000,6000000000,,read,lat,99,500736,6000
    3fa9c1,3000000000,6000000000,,read,lat,99.999,,6000
    "#);
    insta::assert_snapshot!(text(&reads, WINDOW, &percents, TextFormat::Markdown), @r#"
    ### 3fa9c1 (db), 3 s to 6 s, 30 intervals

    | | |
    | --- | ---: |
    | read IOPS | 2.00k |
    | read bandwidth | 7.81 MiB/s |
    | read latency p50 | 501 us |
    | read latency p99 | 501 us |
    | read latency p99.999 | needs 1000000 I/Os, has 6000 |

    Not known: mean and longest latency, submission latency, CPU time: only known for the whole run.
    "#);
}

#[test]
fn window_has_the_same_figures_in_json() {
    let reads = run("randread");
    let percents = [50.0, 99.0, 99.999];
    insta::assert_snapshot!(text(&reads, WINDOW, &percents, TextFormat::Json), @r#"
    {
      "format": 1,
      "kind": "stored-figures",
      "result": "3fa9c1",
      "runs": [
        {
          "run": "3fa9c1",
          "jobs": [
            "db"
          ],
          "window": {
            "from_ns": 3000000000,
            "to_ns": 6000000000,
            "measured_ns": 3000000000,
            "intervals": 30,
            "ramp_intervals": 0,
            "directions": [
              {
                "direction": "read",
                "ios": 6000,
                "bytes": 24576000,
                "iops": 2000.0,
                "bytes_per_s": 8192000.0
              }
            ]
          },
          "latencies": [
            {
              "part": null,
              "subject": "read",
              "kind": "lat",
              "count": 6000,
              "percentiles": [
                {
                  "percent": 50.0,
                  "ns": 500736,
                  "needed": 20
                },
                {
                  "percent": 99.0,
                  "ns": 500736,
                  "needed": 1000
                },
                {
                  "percent": 99.999,
                  "ns": null,
                  "needed": 1000000
                }
              ]
            }
          ],
          "missing": [
            "mean and longest latency, submission latency, CPU time: only known for the whole run"
          ]
        }
      ]
    }
    "#);
}

#[test]
fn window_of_a_mix_has_only_latencies_of_all_directions() {
    let figures = StoredFigures::compute(
        "3fa9c1",
        &[("3fa9c1".to_owned(), &run("randrw"))],
        WINDOW,
        &USUAL_PERCENTILES,
    );
    let figures = figures.unwrap();
    let subjects = figures.runs[0].latencies.iter();
    let subjects: Vec<&str> = subjects.map(|latency| latency.subject.as_str()).collect();
    assert_eq!(subjects, ["all"]);
    assert!(figures.runs[0].missing[0].contains("one direction"));
}

#[test]
fn percentile_of_the_whole_run_is_that_of_its_histogram() {
    let mixed = run("randrw");
    let figures =
        StoredFigures::compute("a", &[("a".to_owned(), &mixed)], None, &[42.0, 99.999]).unwrap();
    let read = &figures.runs[0].latencies[0];
    assert_eq!((read.subject.as_str(), read.kind), ("read", "lat"));
    let expected = mixed.workers[0].directions.read.lat.percentile(42.0);
    assert_eq!(read.percentiles[0].ns, expected);
    assert_eq!(read.percentiles[1].ns, None, "too few I/Os");
    insta::assert_snapshot!(text(&mixed, None, &[42.0, 99.999], TextFormat::Table), @r#"
    3fa9c1 (db)

    read latency p42                                         500 us
    read latency p99.999              needs 1000000 I/Os, has 10093
    read completion latency p42                              500 us
    read completion latency p99.999   needs 1000000 I/Os, has 10093
    read submission latency p42                                0 ns
    read submission latency p99.999   needs 1000000 I/Os, has 10093
    write latency p42                                        500 us
    write latency p99.999              needs 1000000 I/Os, has 9908
    write completion latency p42                             500 us
    write completion latency p99.999   needs 1000000 I/Os, has 9908
    write submission latency p42                               0 ns
    write submission latency p99.999   needs 1000000 I/Os, has 9908
    "#);
}

#[test]
fn stored_figures_fit_a_narrow_terminal_with_all_values() {
    let mut mixed = run("randrw");
    mixed.plan.jobs[0].name = "a-job-of-many-words-".repeat(3);
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        for window in [None, WINDOW] {
            let text = text(&mixed, window, &[50.0, 99.999], TextFormat::Table);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.contains(&"p99.999"), "{text}");
            // A value is not broken within a number.
            assert!(words.contains(&"1000000"), "{text}");
        }
    }
    crate::text_table::set_columns(80);
}
