//! What has to hold for any text that is read, however broken: each function here takes bytes and panics where it does not.
//!
//! `cargo test -p iosonde-fuzz` runs them on the corpus and on mutations of it, on any toolchain. With nightly and cargo-fuzz,
//! `cargo fuzz run job_file --features libfuzzer` lets coverage guide the search.

pub mod documents;
pub mod mutate;
pub mod proc;
pub mod words;

use std::ffi::OsString;

use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::{PerDirection, Replay};
use iosonde_job::syntax::ini;
use iosonde_job::trace;
use iosonde_job::value::{self, Bytes, TimeUnit, ValueError};
use iosonde_job::{Parsed, parse};

/// A job file: it is read, or every error can be shown; the plan of a good one is the same each time.
pub fn job_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let env = world().file("job.fio", &text);
    judge(&["job.fio".into()], &env);
}

/// A command line, one argument per line.
pub fn command_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let args: Vec<OsString> = text.lines().map(OsString::from).collect();
    judge(&args, &world());
}

/// The value of an option, read as each kind of value there is.
pub fn value(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text = text.as_ref();
    for base in [Bytes::Binary, Bytes::Decimal] {
        points_into(text, value::bytes(text, base));
        points_into(text, value::signed_bytes(text, base));
        points_into(text, value::extent(text, base));
        points_into(text, value::block_sizes(text, base));
        points_into(text, value::byte_zones(text, base));
    }
    for unit in [TimeUnit::Seconds, TimeUnit::Microseconds] {
        points_into(text, value::time_ns(text, unit));
    }
    points_into(text, value::integer(text));
    points_into(text, value::boolean(text));
    points_into(text, value::float(text));
    points_into(text, value::percent(text));
    points_into(text, value::percent_zones(text));
    points_into(text, value::cpu_list(text));
    points_into(text, value::node_list(text));
    points_into(text, value::pattern(text, |_| None));
    points_into(text, value::pattern_with_fields(text, |_| None));
    let bytes = |part: &str| value::bytes(part, Bytes::Binary);
    points_into(text, value::ranges(text, bytes));
    points_into(
        text,
        value::directions(text, &mut PerDirection::all(0), bytes),
    );
    points_into(text, iosonde_job::errno::errno_lists(text));
    let _ = value::colons(text);
    let _ = value::expression::evaluate(text, |word| word.parse().ok());
}

/// A trace of any format: it is read, or its error says where and what; each of its I/Os has a file and an end.
pub fn trace(data: &[u8]) {
    match trace::parse(data) {
        Ok(mut trace) => {
            assert!(
                trace
                    .ios
                    .iter()
                    .all(|io| (io.file as usize) < trace.files.len())
            );
            let ends = trace.ends();
            assert!(ends.iter().all(|end| *end <= i64::MAX as u64));
            let bytes = trace.bytes();
            trace.shape(
                &Replay {
                    scale: 3,
                    align_bytes: 4096,
                    speed_percent: 50,
                    ..Replay::default()
                },
                true,
            );
            assert!(trace.bytes() <= bytes && !trace.directions().write);
        }
        Err(error) => assert!(!error.place.is_empty() && !error.problem.is_empty()),
    }
}

/// A small world with what job files may refer to.
fn world() -> FakeEnv {
    FakeEnv::new()
        .set("SIZE", "64k")
        .set("NAME", "a b")
        .file("included.fio", "bs=8k\nrw=randread\n")
        .file("self.fio", "include self.fio\n")
        .file("-", "[stdin]\nsize=4k\n")
        .device("/dev/sdx")
}

fn judge(args: &[OsString], env: &FakeEnv) {
    match parse(args, env) {
        Ok(parsed) => {
            let again =
                parse(args, env).unwrap_or_else(|errors| panic!("parsed once only: {errors}"));
            assert_eq!(
                parsed.plan, again.plan,
                "the same text must give the same plan"
            );
            shown(&parsed);
        }
        Err(diagnostics) => {
            assert!(diagnostics.has_errors(), "refused without an error");
            readable(&diagnostics);
        }
    }
}

fn shown(parsed: &Parsed) {
    readable(&parsed.warnings);
    for line in &parsed.command_lines {
        assert!(
            line.starts_with("fio"),
            "a command line must begin with the program: {line}"
        );
    }
}

/// Rendering walks all spans, so that one beyond its text or within a character panics here.
fn readable(diagnostics: &Diagnostics) {
    let plain = diagnostics.render(false);
    let colored = diagnostics.render(true);
    assert_eq!(
        plain.is_empty(),
        diagnostics.list.is_empty(),
        "a diagnostic must say something"
    );
    assert!(colored.len() >= plain.len());
}

/// An error must say what is wrong, and point into its text.
fn points_into<T>(text: &str, parsed: Result<T, ValueError>) {
    let Err(error) = parsed else { return };
    assert!(
        !error.message.is_empty(),
        "an error without words for {text:?}"
    );
    if let Some(part) = error.part {
        assert!(
            text.get(part.clone()).is_some(),
            "{part:?} is not a part of {text:?}"
        );
    }
}

/// Reads an INI text alone, without the meaning of its options.
pub fn sections(data: &[u8]) {
    let env = world().file("job.fio", &String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let _ = ini::read("job.fio", None, &env, &mut diagnostics);
    readable(&diagnostics);
}
