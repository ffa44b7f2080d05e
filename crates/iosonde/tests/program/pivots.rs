//! `iosonde show --pivot` from outside, over simulated and imported results.

use std::fs;
use std::process::Output;

use crate::common::{NET, SLOWER, SUITE, Scratch};

/// Imported results of fio have figures and charts as well.
#[test]
fn pivot_shows_imported_fio_results_by_label() {
    let scratch = Scratch::new("pivot-imported");
    for (number, region, device) in [
        (0, "asia", "ssd"),
        (500, "asia", "hdd"),
        (900, "europe", "ssd"),
    ] {
        let file = scratch.fio_json(number);
        let labels = [format!("region={region}"), format!("device={device}")];
        let file = file.to_str().unwrap();
        scratch.done(&["import", file, "--label", &labels[0], "--label", &labels[1]]);
    }
    let pivot = |value: &str| {
        let words = [
            "show",
            "--pivot",
            "region x device",
            "--value",
            value,
            "--format",
            "csv",
        ];
        scratch.done(&words)
    };
    let iops = pivot("j.max_iops");
    for value in ["1000", "1500", "1900"] {
        assert!(iops.contains(value), "{iops}");
    }
    let table = scratch.done(&["show", "--pivot", "region x device", "--value", "j.iops"]);
    insta::assert_snapshot!("pivot_of_imported", table);
}

#[test]
fn pivot_shows_figure_by_two_labels() {
    let scratch = Scratch::new("pivot");
    scratch.file("suite.toml", SUITE);
    for (region, device, target) in [
        ("asia", "ssd", NET),
        ("asia", "standard", "sim:hdd"),
        ("europe", "ssd", SLOWER),
    ] {
        let labels = [format!("region={region}"), format!("device={device}")];
        let output = scratch.run(&[
            "run",
            "suite.toml",
            target,
            "--label",
            &labels[0],
            "--label",
            &labels[1],
        ]);
        assert!(
            output.status.code().is_some_and(|status| status == 11),
            "{output:?}"
        );
    }
    let pivot = |more: &[&str]| {
        let words = [
            "show",
            "--pivot",
            "region",
            "x",
            "device",
            "--value",
            "randread.max_iops",
        ];
        scratch.text(0, &[&words[..], more].concat())
    };
    insta::assert_snapshot!("pivot", pivot(&[]));
    insta::assert_snapshot!("pivot_csv", pivot(&["--format", "csv"]));
    insta::assert_snapshot!("pivot_markdown", pivot(&["--format", "markdown"]));
    assert!(!pivot(&["--label", "region=asia"]).contains("europe"));
    // Several figures, compared with the promise for a column.
    let product = "ssd=gcp-pd-ssd:500GiB,as-of=2016";
    let both = ["--value", "randwrite.max_iops", "--expect", product];
    insta::assert_snapshot!("pivot_promised", pivot(&both));
    let json: serde_json::Value =
        serde_json::from_str(&pivot(&[&both[..], &["--format", "json"]].concat())).unwrap();
    let cell = &json["pivots"][0]["cells"][0];
    assert_eq!(cell["promised"]["value"], 15_000.0, "{cell}");
    assert_eq!(cell["promised"]["verdict"]["kind"], "below", "{cell}");
    // A file name that ends in .html selects the page of charts.
    assert_eq!(pivot(&[&both[..], &["-o", "pivot.html"]].concat()), "");
    let page = fs::read_to_string(scratch.0.join("pivot.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("\"promised\":15000.0"));
    assert_pivot_errors_name_cause(&scratch);
}

/// Wrong labels and figures are usage errors.
fn assert_pivot_errors_name_cause(scratch: &Scratch) {
    for (words, expected) in [
        (
            [
                "show",
                "--pivot=region x device",
                "--value=randread.max_iops",
                "--expect",
                "sdd=gcp-pd-ssd:500GiB,as-of=2016",
            ],
            "no row or column has the name sdd",
        ),
        (
            [
                "show",
                "--pivot",
                "regoin x device",
                "--value",
                "randread.iops",
            ],
            "did you mean `region`",
        ),
        (
            [
                "show",
                "--pivot",
                "region x device",
                "--value",
                "randread.iopss",
            ],
            "did you mean `iops`",
        ),
        (
            [
                "show",
                "--pivot",
                "region x device",
                "--value",
                "randread.iops",
            ],
            "several parts",
        ),
        (
            [
                "show",
                "--pivot",
                "region x device",
                "--value",
                "trim.max_iops",
            ],
            "no result has",
        ),
        (
            ["show", "--pivot", "region", "--value", "randread.iops"],
            "expected two labels",
        ),
    ] {
        let output = scratch.run(&words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && error.contains(expected),
            "{words:?}: {error}"
        );
    }
}

/// Each repetition is a result, and a figure names its aggregate. Load studies have figures too.
#[test]
fn pivot_figure_of_several_results_names_aggregate() {
    let scratch = Scratch::new("pivot-of");
    // The device replays a file, so the result of each repetition is known.
    let suite = "repetitions = 3\n[[workload]]\nname = \"r\"\n\
                 options = { rw = \"randread\", bs = \"4k\", size = \"1g\", iodepth = 4, \
                 time_based = 1, runtime = 1 }\n\
                 [[workload]]\nname = \"l\"\nrepetitions = 1\n\
                 load = { rw = \"randread\", size = \"64m\", runtime = 1, slo = \"p99=5ms\" }\n";
    scratch.file("suite.toml", suite);
    for (target, disk) in [(NET, "disk=a"), (SLOWER, "disk=a"), (SLOWER, "disk=b")] {
        scratch.text(0, &["run", "suite.toml", target, "--label", disk]);
    }
    let load = [
        "load",
        NET,
        "--size",
        "64m",
        "--runtime",
        "1",
        "--slo",
        "p99=5ms",
    ];
    scratch.text(0, &[&load[..], &["--label", "disk=c"]].concat());
    let two = ["--slo", "p50=2ms", "--label", "disk=d"];
    scratch.text(0, &[&load[..], &two[..]].concat());
    let text = |more: &[&str]| {
        let output = pivot_by_disk(&scratch, more);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{more:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let aggregate = |name: &str| text(&["--value", "r.iops", "--of", name]);
    let all = ["mean", "median", "best", "latest"]
        .map(aggregate)
        .join("\n");
    insta::assert_snapshot!("pivot_of", all);
    assert_eq!(text(&["--value", "r.iops"]), aggregate("mean"));
    insta::assert_snapshot!(
        "pivot_of_latency",
        text(&["--value", "r.p99", "--of", "best", "--format", "markdown"])
    );
    insta::assert_snapshot!(
        "pivot_of_csv",
        text(&["--value", "r.iops", "--of", "median", "--format", "csv"])
    );
    let page = text(&["--value", "r.iops", "--of", "median", "--format", "html"]);
    assert!(page.contains("median of 6 results, 4.44k to 8.00k"));
    // Figures of a load study, by its name, its pattern or neither.
    let loads = ["--value", "randread.slo_rate", "--value", "saturation_iops"];
    let loads = [&loads[..], &["--label", "disk=c"]].concat();
    insta::assert_snapshot!("pivot_of_loads", text(&loads));
    let of_load = text(&["--value", "load.rate", "--label", "disk=c"]);
    assert_eq!(
        of_load.lines().nth(1),
        text(&loads).lines().nth(1),
        "{of_load}"
    );
    assert!(text(&["--value", "l.rate"]).contains('a'));
    assert!(text(&["--value", "load-p50=2ms.rate"]).contains('d'));
    assert_unknown_figures_are_refused(&scratch);
}

fn pivot_by_disk(scratch: &Scratch, more: &[&str]) -> Output {
    let words = ["show", "--pivot", "disk x kind"];
    scratch.run(&[&words[..], more].concat())
}

fn assert_unknown_figures_are_refused(scratch: &Scratch) {
    for (value, expected) in [
        (
            "load.rate",
            "several parts with this figure: load-p50=2ms, load-p99=5ms",
        ),
        (
            "trim.iops",
            "help: the figures are iops, bw, lat, p50, p99, p99.9, max_iops, max_bw of capacity, \
             l capacity, l rate, r, randread, read; ",
        ),
        (
            "trim.iops",
            "rate, capacity of l, load, load-p50=2ms, load-p99=5ms",
        ),
        ("r.knee", "no result has the figure r.knee"),
    ] {
        let refused = pivot_by_disk(scratch, &["--value", value]);
        let error = String::from_utf8(refused.stderr).unwrap();
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{value}: {error}");
    }
}
