//! Output formats, as users name them.

use clap::ValueEnum;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people
    Table,
    /// The complete result, for programs
    Json,
    /// One line per figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
    /// fio's JSON, with one job per phase
    FioJson,
}

/// How lists and comparisons are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Tables for people
    Table,
    /// The complete result, for programs
    Json,
    /// One line per result or figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
}

/// How several results of a pair of labels, and repetitions within one, become a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PivotOf {
    /// Geometric mean; all machines have the same weight
    #[default]
    Mean,
    /// Median
    Median,
    /// Highest figure; for latencies and depths the lowest
    Best,
    /// Last repetition of the latest result
    Latest,
}

impl PivotOf {
    /// Returns the words before `of 3 results`.
    pub fn words(self) -> &'static str {
        match self {
            PivotOf::Mean => "geometric mean",
            PivotOf::Median => "median",
            PivotOf::Best => "best",
            PivotOf::Latest => "latest",
        }
    }
}
