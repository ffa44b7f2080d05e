//! Runs command lines drawn from the option table with fio and iosonde on a small file. Exit, I/O
//! counts, bytes, files, JSON keys and system calls must agree. `generated/disagreements.toml`
//! lists known classes of differences with reasons; a difference of no class fails the test.

mod command_line;
mod disagreement;
mod observation;
mod self_test;
mod targets_kept;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, thread};

use iosonde_e2e::{Program, ours, require};

use command_line::CommandLine;
use disagreement::{Difference, KnownClasses, differences};
use observation::{Ending, observe};

/// Each number determines a command line and its mutation.
const FULL_LINES: u64 = 2000;
const SLICE_LINES: u64 = 75;
/// Programs at once per CPU: most of their time is waiting, in fio for its own threads.
const RUNS_PER_PROCESSOR: usize = 4;
/// One line in this many is also compared by its system calls.
const TRACED_EVERY: u64 = 8;

#[test]
fn generated_command_lines_agree_with_fio_slice() {
    ours!();
    require!(Root, Strace);
    compare_lines(0..SLICE_LINES);
}

#[test]
#[ignore = "long"]
fn generated_command_lines_agree_with_fio_all() {
    ours!();
    require!(Root, Strace);
    let first =
        env::var("IOSONDE_GENERATED_FIRST").map_or(0, |text| text.parse().expect("a number"));
    let end = env::var("IOSONDE_GENERATED_END")
        .map_or(FULL_LINES, |text| text.parse().expect("a number"));
    compare_lines(first..end);
}

#[test]
fn disagreement_classes_have_reasons() {
    let known = KnownClasses::load();
    for class in known.iter() {
        assert!(
            class.reason.len() > 20,
            "{}: {:?} is no reason",
            class.id,
            class.reason
        );
    }
}

#[test]
fn command_line_is_determined_by_its_number() {
    assert_eq!(CommandLine::draw(7), CommandLine::draw(7));
    assert_ne!(CommandLine::draw(7), CommandLine::draw(8));
    assert_ne!(CommandLine::draw(7), CommandLine::draw(7).mutate(7));
}

/// Results over all lines.
#[derive(Default)]
struct Tally {
    runs: u64,
    timeouts_of_fio: u64,
    races: u64,
    by_class: BTreeMap<String, u64>,
    unknown: Vec<String>,
}

fn compare_lines(numbers: std::ops::Range<u64>) {
    let known = KnownClasses::load();
    let next = AtomicU64::new(numbers.start);
    let tally = Mutex::new(Tally::default());
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors * RUNS_PER_PROCESSOR;
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    let line = CommandLine::draw(number);
                    let mutated = line.mutate(number);
                    for line in [line, mutated] {
                        let is_traced = number.is_multiple_of(TRACED_EVERY);
                        compare_line(&line, number, is_traced, &known, &tally);
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no thread panicked");
    report(&tally, &known);
    assert!(
        tally.unknown.is_empty(),
        "{} differences of no class:\n{}",
        tally.unknown.len(),
        tally.unknown.join("\n")
    );
}

fn compare_line(
    line: &CommandLine,
    number: u64,
    is_traced: bool,
    known: &KnownClasses,
    tally: &Mutex<Tally>,
) {
    if line.races() {
        tally.lock().expect("no thread panicked").races += 1;
        return;
    }
    let fio = observe(Program::Fio, line, is_traced);
    let is_without_result = fio.ending == Ending::Success && fio.jobs.is_empty();
    if is_without_result || matches!(fio.ending, Ending::Timeout | Ending::Signal(_)) {
        // fio hangs or crashes, or its JSON is invalid: nothing can be compared.
        tally.lock().expect("no thread panicked").timeouts_of_fio += 1;
        return;
    }
    let subject = observe(Program::Iosonde, line, is_traced);
    let text = line.text();
    let mut tally = tally.lock().expect("no thread panicked");
    tally.runs += 1;
    for difference in differences(line, &fio, &subject) {
        match known.find(&text, &difference) {
            Some(class) => *tally.by_class.entry(class.id.clone()).or_insert(0) += 1,
            None => tally.unknown.push(describe(number, &text, &difference)),
        }
    }
}

fn describe(number: u64, line: &str, difference: &Difference) -> String {
    format!(
        "{number} {:?}: {}
    {line}",
        difference.field, difference.detail
    )
}

fn report(tally: &Tally, known: &KnownClasses) {
    let mut text = format!(
        "{} command lines compared, {} on which fio hangs or crashes, {} whose result is a race\n",
        tally.runs, tally.timeouts_of_fio, tally.races
    );
    for class in known.iter() {
        let count = tally.by_class.get(&class.id).copied().unwrap_or_default();
        writeln!(text, "{count:5}  {}: {}", class.id, class.reason).expect("a string");
    }
    println!("{text}");
}
