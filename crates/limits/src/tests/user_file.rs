//! Tests of the published file and of a user's file.

use super::*;
use crate::check;

const OWN: &str = r#"
schema = 1

[[product]]
name = "acme-block"
title = "Acme block storage"
from = "2026-03"
origin = { source = "offer of 2026-03-12", as_of = "2026-03-12", evidence = "own" }
size = { min_gib = 10, max_gib = 1000 }
limit.iops = { per_gib = 50, min = 1000, max = 20000 }
limit.mib_per_s = 400
machine.caps = ["acme-hosts"]

[[caps]]
group = "acme-hosts"
origin = { source = "offer of 2026-03-12", as_of = "2026-03-12", evidence = "own" }
rows = [
  { machine = "small", iops = 5000, mib_per_s = 200 },
]
"#;

fn own(text: &str) -> Result<Limits, String> {
    Limits::published()
        .with_file("own.toml", text)
        .map_err(|error| error.to_string())
}

#[test]
fn published_file_passes_checks() {
    let text = include_str!("../../../../data/limits.toml");
    check::read_limits_file("limits.toml", text, None).unwrap();
    let names = Limits::published()
        .list()
        .into_iter()
        .map(|listed| listed.name);
    insta::assert_snapshot!(names.collect::<Vec<_>>().join("\n"));
}

#[test]
fn product_names_and_aliases_are_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for product in Limits::published().list() {
        for name in product.aliases.iter().chain([&product.name]) {
            assert!(seen.insert(name.clone()), "{name} is ambiguous");
        }
    }
}

#[test]
fn user_file_adds_products() {
    let limits = own(OWN).unwrap();
    let ask = |query: &str| limits.evaluate(&query.parse().unwrap()).unwrap();
    assert_eq!(
        two(&ask("acme-block:size=100"), VendorUnit::MibPerS),
        [5000.0, 400.0]
    );
    let small = ask("acme-block:size=500,machine=small");
    assert_eq!(two(&small, VendorUnit::MibPerS), [5000.0, 200.0]);
    assert_eq!(ask("gp2:size=100").product, "aws-gp2");
}

#[test]
fn user_file_replaces_products_and_uses_published_caps() {
    let text = OWN
        .replace("acme-block", "aws-gp2")
        .replace("[\"acme-hosts\"]", "[\"aws-instances\"]");
    let limits = own(&text).unwrap();
    let promise = limits.evaluate(&"aws-gp2:size=100,machine=t3.nano".parse().unwrap());
    assert_eq!(
        figure(&promise.unwrap(), Metric::Iops, VendorUnit::Iops),
        250.0
    );
}

#[test]
fn file_errors_have_line_and_column() {
    let broken = |from: &str, to: &str| own(&OWN.replacen(from, to, 1)).unwrap_err();
    let errors = [
        broken("schema = 1", "schema = 7"),
        broken("per_gib = 50", "per_gb = 50"),
        broken("min = 1000", "min = 30000"),
        broken("limit.mib_per_s = 400", "limit.mib_per_s = \"fast\""),
        broken("limit.mib_per_s = 400", "limit.kib_per_s = 400"),
        broken("2026-03\"", "March\""),
        broken("[\"acme-hosts\"]", "[\"acme-host\"]"),
        broken("evidence = \"own\"", "evidence = \"hearsay\""),
        broken("title = \"Acme block storage\"", "title = "),
        broken("title = \"Acme block storage\"\n", ""),
        own(&format!(
            "{OWN}{}",
            &OWN[OWN.find("[[product]]").unwrap()..]
        ))
        .unwrap_err(),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}
