//! Why runs cannot be added, with remedies.

use super::RunDifference;
use std::fmt;

/// Differences that an error names.
const SHOWN_DIFFERENCES: usize = 3;

/// Why runs cannot be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeError {
    /// Fewer than two runs.
    TooFew,
    /// A run is named twice, or is the same measurement as another.
    Twice {
        /// The first name.
        first: String,
        /// The other name.
        other: String,
    },
    /// Two results, of which at least one is a sum, contain the same run.
    Contained {
        /// The first result.
        first: String,
        /// The other result.
        other: String,
        /// The run.
        run: String,
    },
    /// A run has no I/O.
    NoIo {
        /// The run.
        name: String,
    },
    /// Two runs measured different workloads.
    Unlike {
        /// The first run.
        first: String,
        /// The other run.
        other: String,
        /// The differences, at least one.
        differences: Vec<RunDifference>,
    },
    /// The runs took place neither at the same time nor one after another.
    PartlyAtOnce {
        /// A run.
        first: String,
        /// A run that overlaps it in part.
        other: String,
    },
}

impl MergeError {
    /// Returns the action that helps.
    pub fn remedy(&self) -> &'static str {
        match self {
            MergeError::TooFew => "name two runs or more, by their IDs in `iosonde list`",
            MergeError::Twice { .. } => "name each run once",
            MergeError::Contained { .. } => "name the single runs, each once, instead of their sum",
            MergeError::NoIo { .. } => "leave the run out",
            MergeError::Unlike { .. } => {
                "merge runs of the same jobs; `iosonde compare` shows runs that differ side by side"
            }
            MergeError::PartlyAtOnce { .. } => {
                "add --timing parallel if they ran at the same time and clocks differ, or --timing \
                 serial to take their rates as a mean"
            }
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::TooFew => f.write_str("a sum needs at least two runs"),
            MergeError::Twice { first, other } if first == other => {
                write!(f, "the run {first} is named twice")
            }
            MergeError::Twice { first, other } => {
                write!(f, "{first} and {other} are the same measurement")
            }
            MergeError::Contained { first, other, run } => write!(
                f,
                "{first} and {other} both contain the run {run}, which would count twice"
            ),
            MergeError::NoIo { name } => write!(f, "the run {name} has no I/O"),
            MergeError::Unlike {
                first,
                other,
                differences,
            } => {
                let shown: Vec<String> = (differences.iter().take(SHOWN_DIFFERENCES))
                    .map(RunDifference::to_string)
                    .collect();
                let more = match differences.len().saturating_sub(SHOWN_DIFFERENCES) {
                    0 => String::new(),
                    count => format!("; and {count} more"),
                };
                write!(f, "{first} and {other} differ: {}{more}", shown.join("; "))
            }
            MergeError::PartlyAtOnce { first, other } => write!(
                f,
                "{first} and {other} ran at the same time only in part, so it is unclear whether \
                 their rates add up"
            ),
        }
    }
}

impl std::error::Error for MergeError {}
