//! Tests that hold for the whole option table.

use super::*;
use crate::env::FakeEnv;
use std::collections::BTreeSet;

const FIO_OPTIONS: &str = include_str!("../../tests/fixtures/fio-3.33-options.txt");

#[test]
fn names_and_aliases_are_unique() {
    let mut seen = BTreeSet::new();
    for name in list_options().flat_map(OptionRow::names) {
        assert!(seen.insert(name), "{name} stands in the table twice");
    }
}

#[test]
fn option_table_holds_every_fio_option() {
    let missing: Vec<&str> = FIO_OPTIONS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .filter(|name| find_option(name).is_none())
        .collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert!(FIO_OPTIONS.lines().count() > 330);
}

#[test]
fn docs_are_sentences() {
    for row in list_options() {
        assert!(row.doc.ends_with('.'), "{}: {}", row.name, row.doc);
        if let OptionSupport::Unsupported { reason, instead } = row.status {
            assert!(!reason.is_empty(), "{}", row.name);
            assert!(
                !reason.ends_with('.') && !instead.ends_with('.'),
                "{}",
                row.name
            );
        }
    }
}

fn apply(row: &OptionRow, text: &str) -> crate::value::ParsedValue<JobBuilder> {
    let env = FakeEnv::new();
    let mut builder = JobBuilder::new();
    let given = OptionValue {
        text: Some(text),
        env: &env,
    };
    (row.apply)(&mut builder, &given).map(|()| builder)
}

#[test]
fn choice_options_accept_exactly_their_listed_words() {
    for row in list_options() {
        let (ValueKind::Choice(words), OptionSupport::Supported | OptionSupport::Accepted(_)) =
            (row.kind, row.status)
        else {
            continue;
        };
        for word in words {
            let refused = row.name == "zonemode" && *word == "zbd";
            assert_eq!(apply(row, word).is_err(), refused, "{}={word}", row.name);
        }
        assert!(apply(row, "nonesuch").is_err(), "{}", row.name);
    }
}

#[test]
fn defaults_are_what_the_table_says() {
    for row in list_options() {
        let supported = matches!(
            row.status,
            OptionSupport::Supported | OptionSupport::Accepted(_)
        );
        if row.default.is_empty() || !supported {
            continue;
        }
        let built =
            apply(row, row.default).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
        let mut expected = JobBuilder::new();
        // The presence of these options is a difference of its own, even with the default as their
        // value.
        expected.engine = built.engine.clone();
        expected.job.io.nice = built.job.io.nice;
        expected.job.io.batch_submit = built.job.io.batch_submit;
        expected.zones.strided = built.zones.strided;
        expected.buffers.working_set_percent = built.buffers.working_set_percent;
        expected.job.files.filename_format = built.job.files.filename_format.clone();
        assert_eq!(
            format!("{built:?}"),
            format!("{expected:?}"),
            "{}",
            row.name
        );
    }
}

#[test]
fn numbers_are_held_to_the_bounds_of_their_kind() {
    for row in list_options() {
        let (ValueKind::Int(min, max), OptionSupport::Supported) = (row.kind, row.status) else {
            continue;
        };
        if max < i64::from(u32::MAX) {
            assert!(apply(row, &max.to_string()).is_ok(), "{}={max}", row.name);
            assert!(apply(row, &(max + 1).to_string()).is_err(), "{}", row.name);
        }
        assert!(apply(row, &(min - 1).to_string()).is_err(), "{}", row.name);
        assert!(apply(row, "nonesuch").is_err(), "{}", row.name);
    }
}

#[test]
fn percentile_outside_its_range_is_named_with_its_place() {
    let row = find_option("percentile_list").unwrap();
    for (text, part, range) in [("50:101", "101", 3..6), ("0:50", "0", 0..1)] {
        let error = apply(row, text).unwrap_err();
        let message = format!("`{part}` must be above 0 and at most 100");
        assert_eq!((error.message, error.part), (message, Some(range)));
    }
}
