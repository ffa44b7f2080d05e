//! Mode `run`: runs a plan from a file or standard input. Prints messages and the result.

use crate::AgentFailure;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::Plan;
use iosonde_job::errno::describe;
use iosonde_machine::bounded_read::{self, TEXT_BYTES_MAX};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_result::run::RunEvent;
use iosonde_result::session::Session;
use iosonde_result::wire::{AgentMessage, ProgressReport, end_run, json_line};
use std::ffi::OsString;
use std::io::{self, Write};

/// Runs the plan. A plan whose jobs fail still has a result.
pub(crate) fn run(words: &[OsString]) -> Result<(), AgentFailure> {
    let plan = read_plan(words).map_err(|problem| AgentFailure::new(2, problem))?;
    let interrupt = crate::serve::interrupt_on_signals()?;
    let runner = LocalRunner {
        interrupt,
        ..LocalRunner::default()
    };
    let mut session = runner.open();
    let mut printer = MessagePrinter::default();
    let outcome = session.run(&plan, &mut printer);
    let closed = Box::new(session).close();
    let failed = outcome.as_ref().err().map(ToString::to_string);
    end_run(outcome, printer.intervals, &mut |message| {
        print_message(&message)
    });
    match failed.or(closed.err().map(|error| error.to_string())) {
        Some(problem) => Err(AgentFailure::new(3, problem)),
        None => Ok(()),
    }
}

/// Reads the plan from the file or standard input. The caller ends its input.
fn read_plan(words: &[OsString]) -> Result<Plan, String> {
    let bytes = match words {
        [] => bounded_read::standard_input(TEXT_BYTES_MAX)
            .map_err(|error| format!("standard input: {}", describe(&error)))?,
        [file] => bounded_read::read_file(file, TEXT_BYTES_MAX)
            .map_err(|error| format!("{}: {}", file.to_string_lossy(), describe(&error)))?,
        _ => return Err("one file at most is read".to_owned()),
    };
    serde_json::from_slice(&bytes).map_err(|error| format!("this is no plan: {error}"))
}

fn print_message(message: &AgentMessage) {
    let mut out = io::stdout().lock();
    // A closed standard output is ignored: the run continues to its end.
    let _ = out
        .write_all(json_line(message).as_bytes())
        .and_then(|()| out.flush());
}

/// Prints the messages of a run.
#[derive(Default)]
struct MessagePrinter {
    /// Number of intervals printed so far, which the result need not repeat.
    intervals: usize,
}

impl Observer for MessagePrinter {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        print_message(&AgentMessage::Progress(ProgressReport::from(progress)));
        Control::Continue
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.intervals += 1;
        print_message(&AgentMessage::Interval(Box::new(interval.clone())));
        Control::Continue
    }

    fn event(&mut self, event: &RunEvent) {
        print_message(&AgentMessage::Event(event.clone()));
    }
}
