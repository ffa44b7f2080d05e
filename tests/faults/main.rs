//! Runs each command under each fault: `./test faults`. A cell is one command under one fault at
//! one location; `table.rs` has its number of hits, `fault_fixture.rs` the three questions after
//! each.
//!
//! `--slice` hits each local cell once, `--pods` selects cells on Kubernetes, `--only WORDS` cells
//! by name, `--update` writes the table into docs/testing.md. A cell that did not run fails.

mod ceph_faults;
mod fault_fixture;
mod history_faults;
mod pod_faults;
mod signals;
mod storage;
mod table;

use std::collections::{BTreeMap, VecDeque};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{env, thread};

use table::{Cell, TargetLocation, cells, documented, hits, write_documented};

/// Concurrent hits per CPU; most of their time is waiting.
const AT_ONCE_PER_PROCESSOR: usize = 3;

/// Results of each cell's hits: `None` if all three questions have the right answer.
type Outcomes = BTreeMap<Cell, Vec<Option<String>>>;

#[derive(Debug, Default)]
struct Options {
    is_slice: bool,
    in_pods: bool,
    only: Vec<String>,
}

impl Options {
    fn is_wanted(&self, cell: Cell) -> bool {
        let name = cell.to_string();
        let is_in_slice = !self.is_slice || cell.location == TargetLocation::Local;
        let is_at_location = self.in_pods == (cell.location == TargetLocation::Pods);
        is_in_slice && is_at_location && self.only.iter().all(|words| name.contains(words))
    }

    fn hits(&self, cell: Cell) -> u32 {
        let planned = hits(cell).unwrap_or(0);
        if self.is_slice {
            planned.min(1)
        } else {
            planned
        }
    }
}

fn main() -> ExitCode {
    let mut options = Options {
        // `cargo test` of the whole workspace runs only the slice.
        is_slice: env::args().count() == 1,
        ..Options::default()
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--slice" => options.is_slice = true,
            "--pods" => options.in_pods = true,
            "--only" => options.only.extend(words.next()),
            "--update" => {
                write_documented();
                return ExitCode::SUCCESS;
            }
            // Options of cargo's own test harness.
            "--all" | "--quiet" | "--ignored" | "--include-ignored" => {}
            _ => {
                eprintln!("usage: faults [--all | --slice | --pods] [--only WORDS]... | --update");
                return ExitCode::from(2);
            }
        }
    }
    let started = Instant::now();
    let outcomes = run_cells(&options);
    report(&options, &outcomes, started)
}

fn run_cells(options: &Options) -> Outcomes {
    let wanted = cells().into_iter().filter(|cell| options.is_wanted(*cell));
    let hits = wanted.flat_map(|cell| (0..options.hits(cell)).map(move |number| (cell, number)));
    // Long hits first, so that none runs alone at the end.
    let mut queue: Vec<_> = hits.collect();
    queue.sort_by_key(|(cell, _)| !cell.subcommand.is_long());
    let (alone, together): (Vec<_>, Vec<_>) = queue
        .into_iter()
        .partition(|(cell, _)| cell.fault.is_alone());
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let outcomes = Mutex::new(Outcomes::new());
    run_hits(together, AT_ONCE_PER_PROCESSOR * processors, &outcomes);
    run_hits(alone, 1, &outcomes);
    outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

fn run_hits(hits: Vec<(Cell, u32)>, threads: usize, outcomes: &Mutex<Outcomes>) {
    let queue = Mutex::new(VecDeque::from(hits));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // In a `while let` the lock would be held during the hit.
                    let next = locked(&queue).pop_front();
                    let Some((cell, number)) = next else { break };
                    let started = Instant::now();
                    let problem = hit(cell, number);
                    let seconds = started.elapsed().as_secs_f64();
                    println!("{cell}, hit {number}: {seconds:.1} s");
                    if let Some(problem) = &problem {
                        println!("{cell}, hit {number}: {problem}");
                    }
                    locked(outcomes).entry(cell).or_default().push(problem);
                }
            });
        }
    });
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hits a command once. Returns `None` if all answers are right.
fn hit(cell: Cell, number: u32) -> Option<String> {
    let outcome = catch_unwind(|| match cell.location {
        TargetLocation::Ceph => ceph_faults::hit(cell, number),
        TargetLocation::Pods => pod_faults::hit(cell, number),
        TargetLocation::Local => {
            let of_kind = [signals::hit, storage::hit, history_faults::hit];
            let outcome = of_kind.iter().find_map(|hit| hit(cell, number));
            outcome.unwrap_or_else(|| Err("no module handles this fault".to_owned()))
        }
    });
    match outcome {
        Ok(outcome) => outcome.err(),
        Err(panic) => Some(match panic.downcast_ref::<String>() {
            Some(text) => format!("the test failed: {text}"),
            None => "the test failed".to_owned(),
        }),
    }
}

/// Prints the table with its counts and the line that `./test` parses.
fn report(options: &Options, outcomes: &Outcomes, started: Instant) -> ExitCode {
    let mut failed = 0;
    let mut passed = 0;
    let mut missing = Vec::new();
    for cell in cells().into_iter().filter(|cell| options.is_wanted(*cell)) {
        let outcomes = outcomes.get(&cell).map(Vec::as_slice).unwrap_or_default();
        let bad = outcomes.iter().flatten().count();
        if outcomes.len() != options.hits(cell) as usize {
            missing.push(cell);
        } else if bad == 0 && !outcomes.is_empty() {
            passed += 1;
        }
        failed += usize::from(bad > 0);
    }
    let good = |cell: Cell| {
        let outcomes = outcomes.get(&cell)?;
        let good = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        Some(format!("{good}/{}", outcomes.len()))
    };
    println!("\n{}", table::render(good));
    for cell in &missing {
        println!("{cell}: did not run");
    }
    failed += missing.len();
    if options.only.is_empty() && !documented() {
        println!(
            "docs/testing.md: its table of faults is not the one in tests/faults/table.rs; write \
             it: cargo test -p iosonde-e2e --test faults -- --update"
        );
        failed += 1;
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "test result: {word}. {passed} passed; {failed} failed; 0 ignored; finished in \
         {seconds:.0}s"
    );
    ExitCode::from(u8::from(failed > 0))
}
