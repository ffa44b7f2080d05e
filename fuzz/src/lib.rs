//! Properties of all texts, however broken: each function takes bytes and panics on a violation.
//!
//! `cargo test --test smoke` checks corpus and mutations on any toolchain. With nightly and
//! cargo-fuzz, `cargo fuzz run job_file --features libfuzzer` adds guidance by coverage.

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
use iosonde_job::{ParsedCommand, parse};

/// Reads a job file: its plan is the same each time, or every error can be rendered.
pub fn job_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let env = world().file("job.fio", &text);
    judge(&["job.fio".into()], &env);
}

/// Reads a command line, one argument per line.
pub fn command_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let args: Vec<OsString> = text.lines().map(OsString::from).collect();
    judge(&args, &world());
}

/// Reads the value of an option as each kind of value.
pub fn value(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text = text.as_ref();
    for base in [Bytes::Binary, Bytes::Decimal] {
        points_into(text, value::bytes(text, base));
        points_into(text, value::extent(text, base));
        points_into(text, value::block_sizes(text, base));
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
    points_into(text, value::pattern(text, |_| None));
    let bytes = |part: &str| value::bytes(part, Bytes::Binary);
    points_into(text, value::ranges(text, bytes));
    points_into(
        text,
        value::directions(text, &mut PerDirection::from_value(0), bytes),
    );
    let _ = value::expression::evaluate(text, |word| word.parse().ok());
    option_values(text);
}

/// Reads the first line as the value of options whose parsers are not public.
fn option_values(text: &str) {
    let line = text.lines().next().unwrap_or_default();
    let args = [
        "--name=fuzz".to_owned(),
        format!("--rw=read:{line}"),
        format!("--random_distribution=zoned_abs:{line}"),
        format!("--verify_pattern={line}"),
        format!("--numa_cpu_nodes={line}"),
        format!("--ignore_error={line}"),
        format!("--filename={line}"),
    ];
    judge(&args.map(OsString::from), &world());
}

/// Reads a trace: each I/O has a file and a valid end, or the error has a place and a message.
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
        Err(error) => assert!(!error.place.is_empty() && !error.problem.to_string().is_empty()),
    }
}

/// Returns an environment with the files, devices and variables that job files may name.
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

fn shown(parsed: &ParsedCommand) {
    readable(&parsed.warnings);
    for line in &parsed.command_lines {
        assert!(
            line.starts_with("fio"),
            "a command line must begin with the program: {line}"
        );
    }
}

/// Renders diagnostics, which panics on a span outside its text or within a character.
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

/// Checks that an error has a message and a range within its text.
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

/// Reads only the sections of an INI text, without the meaning of its options.
pub fn sections(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let env = world().file("job.fio", &text);
    let mut diagnostics = Diagnostics::default();
    let _ = ini::parse("job.fio", text, &env, &mut diagnostics);
    readable(&diagnostics);
}
