//! Arguments of `iosonde merge`.

use super::KeepArgs;
use super::output_file::text_file;
use clap::{Args, ValueEnum};
use iosonde_report::format::Format;
use iosonde_result::merged_runs::MergeTiming;
use std::path::PathBuf;

/// The end of `iosonde merge --help`.
pub(crate) const MERGE_EXAMPLES: &str = "\
Examples:
  iosonde merge 3fa9c1 7be001                   two results, by their IDs in `iosonde list`
  iosonde merge run=tuesday --name tuesday      all results with this label
  iosonde merge n1.json n2.json n3.json         result files of several machines
  iosonde merge 3fa9c1.2 7be001.2 --timing parallel
                                                one run of each result, at the same time

Rates of runs at the same time add up. Of runs one after another, a rate is the mean over their \
time. Runs of different jobs are refused.";

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Runs to add: IDs of results in `iosonde list`, or `latest`, `latest~1`; ID.N is one run of a
    /// result; labels KEY=VALUE of several results; or JSON files of iosonde
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Name of the sum, stored as its label `name`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Whether the runs took place at the same time [default: by their times]
    #[arg(long, value_enum)]
    pub(crate) timing: Option<TimingWord>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// Whether runs took place at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimingWord {
    /// At the same time: rates add up
    Parallel,
    /// One after another: times add up
    Serial,
}

impl From<TimingWord> for MergeTiming {
    fn from(word: TimingWord) -> MergeTiming {
        match word {
            TimingWord::Parallel => MergeTiming::Parallel,
            TimingWord::Serial => MergeTiming::Serial,
        }
    }
}
