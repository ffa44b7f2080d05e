//! Reads fio's text format. Each line is `FILE ACTION [OFFSET LENGTH]`; in version 3, the time in
//! microseconds precedes it.

use super::trace_problem::{VERSION_2, VERSION_3};
use super::{Timing, Trace, TraceError, TraceProblem, TracedFile, TracedIo, TracedOp};
use crate::plan::Direction;
use std::collections::{HashMap, HashSet};

/// Reads a trace in text format.
pub(super) fn parse(bytes: &[u8]) -> Result<Trace, TraceError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().map(str::trim).zip(1u64..);
    let stamped = match lines.next() {
        Some((first, _)) if first.starts_with(VERSION_2) => false,
        Some((first, _)) if first.starts_with(VERSION_3) => true,
        _ => return Err(error_at_line(1, TraceProblem::NoHeader)),
    };
    let mut reader = TraceReader::new(stamped);
    for (line, number) in lines {
        reader
            .line(line)
            .map_err(|problem| error_at_line(number, problem))?;
    }
    Ok(reader.trace)
}

fn error_at_line(line: u64, problem: TraceProblem) -> TraceError {
    TraceError {
        place: format!("line {line}"),
        problem,
    }
}

struct TraceReader {
    trace: Trace,
    stamped: bool,
    numbers: HashMap<String, u32>,
    /// Files that were opened, and files that were opened again since their last I/O.
    opened: HashSet<String>,
    reopened: HashSet<String>,
    /// Version 2: sum of the pauses so far, in nanoseconds.
    paused_ns: u64,
    /// Version 3: added to the times after a second header, in nanoseconds.
    base_ns: u64,
    last_ns: u64,
}

impl TraceReader {
    fn new(stamped: bool) -> TraceReader {
        TraceReader {
            trace: Trace {
                timing: match stamped {
                    true => Timing::Stamps,
                    false => Timing::Pauses,
                },
                ..Trace::default()
            },
            stamped,
            numbers: HashMap::new(),
            opened: HashSet::new(),
            reopened: HashSet::new(),
            paused_ns: 0,
            base_ns: 0,
            last_ns: 0,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), TraceProblem> {
        if line.is_empty() {
            return Ok(());
        }
        if line == VERSION_2 || line == VERSION_3 {
            return self.again(line == VERSION_3);
        }
        let mut words = line.split_ascii_whitespace();
        let at_ns = match self.stamped {
            true => self.stamp(words.next().unwrap_or_default())?,
            false => self.paused_ns,
        };
        let file = words.next().ok_or(TraceProblem::NoFile)?;
        let action = words.next().ok_or(TraceProblem::NoAction)?;
        let numbers = (words.next(), words.next());
        if words.next().is_some() {
            return Err(TraceProblem::TooManyWords);
        }
        let (offset, length) = match (action, numbers) {
            ("open", (None, None)) => {
                self.open(file);
                return Ok(());
            }
            ("add" | "close" | "unlink", (None, None)) => return Ok(()),
            (_, (Some(offset), Some(len))) => (number(offset)?, number(len)?),
            _ => {
                let action = action.to_owned();
                return Err(TraceProblem::NoRange { action });
            }
        };
        if action == "wait" {
            return self.pause(offset);
        }
        let op = traced_op(action)?;
        let too_large = |_| TraceProblem::LengthTooLarge { length };
        let len = u32::try_from(length).map_err(too_large)?;
        let end = offset.checked_add(u64::from(len));
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err(TraceProblem::OffsetTooLarge { offset });
        }
        let reopened = self.reopened.remove(file);
        let file = self.file(file);
        self.trace.ios.push(TracedIo {
            at_ns,
            offset,
            len,
            file,
            op,
            reopened,
        });
        Ok(())
    }

    fn open(&mut self, file: &str) {
        if !self.opened.insert(file.to_owned()) {
            self.reopened.insert(file.to_owned());
        }
    }

    /// Reads a second header, written when another job appended to the file. Its times start at 0
    /// again.
    fn again(&mut self, stamped: bool) -> Result<(), TraceProblem> {
        if stamped != self.stamped {
            return Err(TraceProblem::VersionChange);
        }
        self.base_ns = self.last_ns;
        Ok(())
    }

    fn stamp(&mut self, word: &str) -> Result<u64, TraceProblem> {
        let at_ns = number(word)?
            .saturating_mul(1000)
            .saturating_add(self.base_ns);
        self.last_ns = self.last_ns.max(at_ns);
        Ok(at_ns)
    }

    fn pause(&mut self, us: u64) -> Result<(), TraceProblem> {
        if self.stamped {
            return Err(TraceProblem::WaitInVersion3);
        }
        self.paused_ns = self.paused_ns.saturating_add(us.saturating_mul(1000));
        Ok(())
    }

    fn file(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.trace.files.len() as u32;
        self.trace.files.push(TracedFile::Path(name.to_owned()));
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn traced_op(action: &str) -> Result<TracedOp, TraceProblem> {
    Ok(match action {
        "read" => TracedOp::Data(Direction::Read),
        "write" => TracedOp::Data(Direction::Write),
        "trim" => TracedOp::Data(Direction::Trim),
        "sync" => TracedOp::Sync,
        "datasync" => TracedOp::Datasync,
        "sync_file_range" => TracedOp::SyncFileRange,
        _ => {
            return Err(TraceProblem::UnknownAction {
                action: action.to_owned(),
            });
        }
    })
}

fn number(word: &str) -> Result<u64, TraceProblem> {
    word.parse().map_err(|_| TraceProblem::NotNumber {
        word: word.to_owned(),
    })
}
