//! Snapshots of all output.

use super::*;
use crate::args::{Cli, CliCommand};
use clap::Parser;

fn args(line: &str) -> LimitsArgs {
    let words = ["iosonde", "limits"]
        .into_iter()
        .chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        CliCommand::Limits(args) => args,
        _ => panic!("not limits"),
    }
}

fn printed(line: &str) -> String {
    answer(&args(line)).unwrap()
}

fn refusal(line: &str) -> String {
    let failure = answer(&args(line)).unwrap_err();
    assert_eq!(failure.status(), crate::failure::status::USAGE);
    failure.text(false)
}

#[test]
fn persistent_disk_on_machine_matches_snapshot() {
    insta::assert_snapshot!(printed("gcp-pd-ssd --size 375GiB --machine n1 --vcpus 8"));
}

#[test]
fn tables_with_bursts_and_editions_fit_80_columns() {
    for (name, line) in [
        ("gp2", "aws-gp2 --size 100GiB --machine m5.large"),
        ("st1", "aws-st1 --size 2TiB"),
        ("premium_ssd", "azure-premium-ssd --size 200GiB"),
        (
            "local_ssd",
            "gcp-local-ssd-nvme --disks 24 --machine n1-standard-8",
        ),
        ("history", "gcp-pd-ssd --size 375GiB --as-of 2016"),
        ("range", "gcp-pd-ssd --size 2TiB --as-of 2019"),
        ("list", ""),
    ] {
        let text = printed(line);
        for row in text.lines() {
            // A URL is not wrapped.
            let is_address = row.trim_start().starts_with("https://");
            assert!(row.chars().count() <= 80 || is_address, "{row}");
            assert_eq!(row, row.trim_end());
        }
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn narrow_terminal_fits_limits_and_products() {
    use iosonde_report::text_table::set_columns;
    // Each text has these parts at any width.
    let cases: [(&str, &[&str]); 5] = [
        (
            "gcp-pd-ssd --size 375GiB --machine n1 --vcpus 8",
            &["promised", "15,000", "420 MiB/s"],
        ),
        (
            "aws-gp2 --size 100GiB --machine m5.large",
            &["promised", "300", "81.25 MB/s"],
        ),
        (
            "gcp-pd-ssd --size 2TiB --as-of 2019",
            &[
                "promised",
                "15,000 to 60,000",
                "15,000 to 30,000",
                "240 to 983.04 MB/s",
                "240 to 400 MB/s",
            ],
        ),
        (
            "azure-premium-ssd --size 200GiB",
            &["promised", "1,100", "125 MB/s"],
        ),
        (
            "",
            &[
                "product",
                "needs",
                "gcp-hyperdisk-balanced-ha",
                "aws-io2-block-express",
                "azure-ultra",
                "[machine]",
                "[throughput]",
            ],
        ),
    ];
    for (line, parts) in cases {
        for columns in [40, 60] {
            set_columns(columns);
            let text = printed(line);
            // A URL is not wrapped.
            for row in text.lines().filter(|row| !row.contains("://")) {
                assert!(row.chars().count() <= columns, "{row}: {text}");
            }
            for part in parts {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
    set_columns(80);
}

#[test]
fn json_csv_and_markdown_match_snapshots() {
    let line = "aws-gp3:size=1TiB,iops=16k --throughput 500MB/s --machine m5.large";
    insta::assert_snapshot!("json", printed(&format!("{line} --format json")));
    insta::assert_snapshot!("csv", printed(&format!("{line} --format csv")));
    insta::assert_snapshot!("markdown", printed(&format!("{line} --format markdown")));
    insta::assert_snapshot!("list_csv", printed("--format csv"));
    insta::assert_snapshot!("list_markdown", printed("--format markdown"));
    let list: serde_json::Value = serde_json::from_str(&printed("--format json")).unwrap();
    assert_eq!(list["kind"], "limits-list");
    assert_eq!(list["products"][0]["name"], "gcp-pd-standard");
}

#[test]
fn published_products_evaluate_with_their_needs() {
    for product in Limits::published().list() {
        let mut line = product.name.clone();
        for need in &product.needs {
            line.push_str(match need.as_str() {
                "size" => " --size 512GiB",
                "disks" => " --disks 1",
                "iops" => " --iops 5000",
                "throughput" => " --throughput 1000MiB/s",
                "machine" if product.name.contains("titanium") => " --machine c4 --vcpus 8",
                "machine" => " --machine m3-ultramem-64",
                _ => "",
            });
        }
        // HDD volumes have less throughput for their size, and M3 has no standard disks.
        let line = match product.name.as_str() {
            "gcp-hyperdisk-throughput" => line.replace("1000MiB/s", "40MiB/s"),
            "gcp-pd-standard" => line.replace("m3-ultramem-64", "n1-standard-8"),
            _ => line,
        };
        let text = printed(&line);
        assert!(text.contains("promised"), "{line}: {text}");
    }
}

#[test]
fn usage_errors_suggest_a_remedy() {
    let refused = [
        refusal("gcp-pd-sdd --size 1"),
        refusal("gcp-pd-ssd --size 375GiB"),
        refusal("aws-gp2 --size 20TiB"),
        refusal("gcp-local-ssd-nvme --disks 24 --machine n1-standard-8 --service GKE"),
        refusal("--size 375GiB"),
        refusal("gcp-pd-ssd --file /nonexistent/limits.toml"),
        refusal("aws-gp2:sice=100"),
    ];
    insta::assert_snapshot!(refused.join("\n\n"));
}

#[test]
fn remedies_for_missing_parameters_work_when_pasted() {
    let help = |text: &str| text.split_once("\nhelp: ").unwrap().1.to_owned();
    let mut pasted = 0;
    for product in Limits::published().list() {
        let help = help(&refusal(&product.name));
        let Some(command) = help.strip_prefix("for example `iosonde limits ") else {
            continue;
        };
        let text = printed(command.trim_end_matches('`'));
        assert!(text.contains("promised"), "{command}: {text}");
        pasted += 1;
    }
    assert!(pasted >= 10, "{pasted} products");
    for (line, expected) in [
        (
            "gcp-pd-ssd",
            "for example `iosonde limits gcp-pd-ssd --size 375GiB --machine n1-standard-8`",
        ),
        ("gcp-pd-ssd --as-of 2016", "add --size 375GiB"),
        ("gcp-pd-ssd --size 375GiB --machine n1", "add --vcpus 8"),
        (
            "gcp-pd-extreme --size 1TiB --iops 3000 --machine n2-standard-80",
            "add --cpu 'Ice Lake'",
        ),
    ] {
        assert_eq!(help(&refusal(line)), expected, "{line}");
    }
}

#[test]
fn documented_limits_file_is_evaluated() {
    let document = include_str!("../../../../../docs/limits.md");
    let (_, rest) = document.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let path = std::env::temp_dir().join(format!("iosonde-limits-{}.toml", std::process::id()));
    std::fs::write(&path, example).unwrap();
    let file = path.display();
    let text = printed(&format!(
        "acme-block --size 200GiB --machine small --file {file}"
    ));
    std::fs::write(&path, example.replace("per_gib = 50", "per_gb = 50")).unwrap();
    let error = refusal(&format!("acme-block --size 200 --file {file}"));
    std::fs::remove_file(&path).unwrap();
    insta::assert_snapshot!("own", text);
    insta::assert_snapshot!(
        "own_error",
        error.replace(&file.to_string(), "my-limits.toml")
    );
}

#[test]
fn machine_without_local_disks_needs_no_product() {
    let refused = refusal("--machine e2-medium");
    assert!(
        refused.contains("machine e2-medium takes no local SSD"),
        "{refused}"
    );
    assert!(
        refused.contains("help: machines that take some: types of n1"),
        "{refused}"
    );
    let other = refusal("--machine n1-standard-2");
    assert!(other.contains("--machine needs a product"), "{other}");
}

#[test]
fn machine_without_a_product_names_those_that_it_takes() {
    let refused = refusal("--machine n2-standard-8");
    let (_, help) = refused
        .split_once("help: name one that n2-standard-8 takes: ")
        .unwrap();
    let products: Vec<&str> = help.trim().split(", ").collect();
    assert!(products.contains(&"gcp-pd-ssd"), "{refused}");
    assert!(products.contains(&"gcp-local-ssd-nvme"), "{refused}");
    assert!(
        !products.iter().any(|name| name.starts_with("aws-")),
        "{refused}"
    );
}
