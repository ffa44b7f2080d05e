//! Notes needed to interpret the rows of a comparison.

use super::figure::{IoPattern, Measure};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A note needed to interpret the rows. Documents have its sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum ComparisonNote {
    /// Two compared parts have different patterns.
    PatternsDiffer {
        /// Pattern of the first side.
        a: IoPattern,
        /// Pattern of the second side.
        b: IoPattern,
    },
    /// Two compared parts have different names.
    NamesDiffer {
        /// Name on the first side.
        a: String,
        /// Name on the second side.
        b: String,
    },
    /// Some rates were not steady. Tables mark them.
    NotSteady,
    /// The intervals of some results come from samples.
    NoTimeSeries,
    /// The intervals of some results include a drift.
    RateDrifted,
    /// The rates vary slowly, and this decides a verdict.
    RatesVarySlowly,
    /// Each machine is compared with itself.
    SameMachines,
    /// The spread of earlier runs changes a verdict.
    EarlierRuns {
        /// Number of earlier runs.
        runs: usize,
        /// Their standard deviation beyond their intervals, as a share of the figure.
        spread: f64,
        /// The first part with such a verdict.
        part: String,
        /// The measure of its row.
        measure: Measure,
    },
    /// A note of a command, or of a stored comparison.
    Other(String),
}

impl ComparisonNote {
    /// Whether the sentence names the sides by the letters A and B.
    #[must_use]
    pub fn names_sides(&self) -> bool {
        matches!(
            self,
            ComparisonNote::PatternsDiffer { .. } | ComparisonNote::NamesDiffer { .. }
        )
    }
}

impl fmt::Display for ComparisonNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparisonNote::PatternsDiffer { a, b } => {
                write!(f, "Patterns differ: A ran {a}; B ran {b}")
            }
            ComparisonNote::NamesDiffer { a, b } => {
                write!(f, "{a} of A is compared with {b} of B")
            }
            ComparisonNote::NotSteady => {
                f.write_str("* not steady: the rate drifted or jumped during the run")
            }
            ComparisonNote::NoTimeSeries => f.write_str(
                "Some results have no time series: their intervals come from number, mean and \
                 deviation of samples, with an assumed correlation",
            ),
            ComparisonNote::RateDrifted => f.write_str(
                "The rate of some runs drifted: their intervals include the drift and are wide",
            ),
            ComparisonNote::RatesVarySlowly => f.write_str(
                "The rates vary slowly: the verdict accounts for the difference between repeated \
                 runs, not only for the uncertainty of each mean",
            ),
            ComparisonNote::SameMachines => f.write_str(
                "Both sides ran on the same machines: each machine is compared with itself",
            ),
            ComparisonNote::EarlierRuns {
                runs,
                spread,
                part,
                measure,
            } => write!(
                f,
                "{runs} earlier runs of this target differ by {:.1} % (standard deviation beyond \
                 their intervals): the verdict accounts for this difference between runs, not \
                 only for the uncertainty of each mean (first in {part}, {})",
                100.0 * spread,
                measure.title()
            ),
            ComparisonNote::Other(sentence) => f.write_str(sentence),
        }
    }
}

impl From<ComparisonNote> for String {
    fn from(note: ComparisonNote) -> String {
        note.to_string()
    }
}

impl From<String> for ComparisonNote {
    fn from(sentence: String) -> ComparisonNote {
        ComparisonNote::Other(sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_in_a_document_is_its_sentence() {
        let note = ComparisonNote::NamesDiffer {
            a: "old".to_owned(),
            b: "new".to_owned(),
        };
        let sentence = "old of A is compared with new of B";
        assert_eq!(serde_json::to_value(&note).unwrap(), sentence);
        let read: ComparisonNote = serde_json::from_value(sentence.into()).unwrap();
        assert_eq!(read, ComparisonNote::Other(sentence.to_owned()));
    }

    #[test]
    fn letters_of_sides_are_in_notes_that_name_sides() {
        let note = ComparisonNote::PatternsDiffer {
            a: IoPattern::default(),
            b: IoPattern::default(),
        };
        assert!(note.names_sides());
        assert!(!ComparisonNote::SameMachines.names_sides());
    }
}
