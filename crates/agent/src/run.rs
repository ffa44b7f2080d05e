//! Mode `run`: runs a plan from a file or standard input. Prints messages and the result.

use crate::Failure;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::Plan;
use iosonde_machine::bounded_read::{self, TEXT_BYTES_MAX};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, Progress};
use iosonde_result::run::Event;
use iosonde_result::session::Session;
use iosonde_result::wire::{Message, ProgressReport, end_run, line};
use std::ffi::OsString;
use std::io::{self, Write};

/// Runs the plan. A plan whose jobs fail still has a result.
pub(crate) fn run(words: &[OsString]) -> Result<(), Failure> {
    let plan = read(words).map_err(|problem| Failure::new(2, problem))?;
    let interrupt = crate::serve::signals()?;
    let runner = LocalRunner {
        interrupt,
        ..LocalRunner::default()
    };
    let mut session = runner.open();
    let mut told = Told::default();
    let outcome = session.run(&plan, &mut told);
    let closed = Box::new(session).close();
    let failed = outcome.as_ref().err().map(ToString::to_string);
    end_run(outcome, told.intervals, &mut |message| tell(&message));
    match failed.or(closed.err().map(|error| error.to_string())) {
        Some(problem) => Err(Failure::new(3, problem)),
        None => Ok(()),
    }
}

fn read(words: &[OsString]) -> Result<Plan, String> {
    let bytes = match words {
        [] => bounded_read::standard_input(TEXT_BYTES_MAX)
            .map_err(|error| format!("standard input: {error}"))?,
        [file] => bounded_read::file(file, TEXT_BYTES_MAX)
            .map_err(|error| format!("{}: {error}", file.to_string_lossy()))?,
        _ => return Err("one file at most is read".to_owned()),
    };
    serde_json::from_slice(&bytes).map_err(|error| format!("this is no plan: {error}"))
}

fn tell(message: &Message) {
    let mut out = io::stdout().lock();
    // A closed standard output is ignored: the run continues to its end.
    let _ = out
        .write_all(line(message).as_bytes())
        .and_then(|()| out.flush());
}

/// Prints the messages of a run.
#[derive(Default)]
struct Told {
    /// Number of intervals printed so far, which the result need not repeat.
    intervals: usize,
}

impl Observer for Told {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        tell(&Message::Progress(ProgressReport::from(progress)));
        Control::Continue
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.intervals += 1;
        tell(&Message::Interval(Box::new(interval.clone())));
        Control::Continue
    }

    fn event(&mut self, event: &Event) {
        tell(&Message::Event(event.clone()));
    }
}
