//! [`TraceProblem`]: why a line or a record of a trace cannot be read.

use std::fmt;

pub(super) const VERSION_2: &str = "fio version 2 iolog";
pub(super) const VERSION_3: &str = "fio version 3 iolog";

/// The problem of a line or a record of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceProblem {
    /// The trace starts with no known header.
    NoHeader,
    /// A second header has another version.
    VersionChange,
    /// A line has no file name.
    NoFile,
    /// A line has no action.
    NoAction,
    /// A line has more words than its action takes.
    TooManyWords,
    /// An action has no offset or no length.
    NoRange {
        /// The action.
        action: String,
    },
    /// The action is not known.
    UnknownAction {
        /// The action.
        action: String,
    },
    /// A word is not a whole number.
    NotNumber {
        /// The word.
        word: String,
    },
    /// The length exceeds 32 bits.
    LengthTooLarge {
        /// The length in bytes.
        length: u64,
    },
    /// The I/O ends beyond the longest file.
    OffsetTooLarge {
        /// The offset in bytes.
        offset: u64,
    },
    /// A trace of version 3 has the action `wait`.
    WaitInVersion3,
    /// The trace ends within a record.
    CutRecord,
    /// The data is no record.
    NotRecord,
    /// The record is not of version 7 of blktrace's format.
    RecordVersion,
    /// The sector is beyond the longest file.
    SectorTooLarge,
}

impl fmt::Display for TraceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceProblem::NoHeader => write!(
                f,
                "a trace starts with `{VERSION_3}` or `{VERSION_2}`, or is a binary file of \
                 blkparse -d"
            ),
            TraceProblem::VersionChange => f.write_str("the trace changes its version"),
            TraceProblem::NoFile => f.write_str("the file name is missing"),
            TraceProblem::NoAction => f.write_str("the action is missing"),
            TraceProblem::TooManyWords => f.write_str("the line has too many words"),
            TraceProblem::NoRange { action } => {
                write!(f, "`{action}` needs an offset and a length")
            }
            TraceProblem::UnknownAction { action } => write!(
                f,
                "unknown action `{action}`; valid actions: read, write, trim, sync, datasync, \
                 wait, add, open, close"
            ),
            TraceProblem::NotNumber { word } => write!(f, "`{word}` is not a whole number"),
            TraceProblem::LengthTooLarge { length } => {
                write!(f, "the length {length} is too large")
            }
            TraceProblem::OffsetTooLarge { offset } => {
                write!(f, "the offset {offset} is too large")
            }
            TraceProblem::WaitInVersion3 => {
                f.write_str("version 3 has no `wait`: its lines start with a time")
            }
            TraceProblem::CutRecord => f.write_str("the trace ends within a record"),
            TraceProblem::NotRecord => f.write_str("the data is no record"),
            TraceProblem::RecordVersion => {
                f.write_str("the record is not of version 7 of blktrace's format")
            }
            TraceProblem::SectorTooLarge => f.write_str("the sector is too large"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_problem_has_words() {
        let name = || "NAME".to_owned();
        let words = [
            TraceProblem::NoHeader,
            TraceProblem::VersionChange,
            TraceProblem::NoFile,
            TraceProblem::NoAction,
            TraceProblem::TooManyWords,
            TraceProblem::NoRange { action: name() },
            TraceProblem::UnknownAction { action: name() },
            TraceProblem::NotNumber { word: name() },
            TraceProblem::LengthTooLarge { length: 9 },
            TraceProblem::OffsetTooLarge { offset: 9 },
            TraceProblem::WaitInVersion3,
            TraceProblem::CutRecord,
            TraceProblem::NotRecord,
            TraceProblem::RecordVersion,
            TraceProblem::SectorTooLarge,
        ];
        insta::assert_snapshot!(words.map(|problem| problem.to_string()).join("\n"), @r"
        a trace starts with `fio version 3 iolog` or `fio version 2 iolog`, or is a binary file of blkparse -d
        the trace changes its version
        the file name is missing
        the action is missing
        the line has too many words
        `NAME` needs an offset and a length
        unknown action `NAME`; valid actions: read, write, trim, sync, datasync, wait, add, open, close
        `NAME` is not a whole number
        the length 9 is too large
        the offset 9 is too large
        version 3 has no `wait`: its lines start with a time
        the trace ends within a record
        the data is no record
        the record is not of version 7 of blktrace's format
        the sector is too large
        ");
    }
}
