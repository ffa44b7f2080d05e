//! Arguments of the commands that keep, show and compare results.

use super::{ExpectArgs, Format};
use crate::store::split_label;
use clap::{Args, ValueEnum};
use jiff::{Span, Timestamp, Zoned, civil};
use std::path::PathBuf;

/// How a result is kept: of every command that measures.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeepArgs {
    /// Label the result, e.g. --label disk=new; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// File of the history [default: iosonde/history.db in the XDG data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Do not keep the result in the history
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_save: bool,
}

impl KeepArgs {
    /// Whether anything is to be kept. What the command line says counts more than the environment.
    pub(crate) fn is_wanted(&self) -> bool {
        let refused = std::env::var_os("IOSONDE_NO_SAVE");
        let is_refused = refused.is_some_and(|value| !value.is_empty() && value != "0");
        !self.no_save && (self.store.is_some() || !is_refused)
    }
}

/// Which history is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// File of the history [default: iosonde/history.db in the XDG data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

/// How lists and comparisons are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For people
    Table,
    /// All that is known, for programs
    Json,
    /// One line for each result or figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
}

/// How pivots are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PivotFormat {
    /// For people
    Table,
    /// All that is known, for programs
    Json,
    /// One line for each pair of labels
    Csv,
    /// Tables for a report or an issue
    Markdown,
    /// One page with grouped bars, that opens anywhere, offline
    Html,
}

/// How several results of a pair of labels, and repetitions within one, become a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PivotOf {
    /// Their geometric mean, each machine with the same weight
    #[default]
    Mean,
    /// The one in the middle
    Median,
    /// The highest; of latencies and depths the lowest
    Best,
    /// The last repetition of the latest result
    Latest,
}

impl PivotOf {
    /// In words, before `of 3 results`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            PivotOf::Mean => "geometric mean",
            PivotOf::Median => "median",
            PivotOf::Best => "best",
            PivotOf::Latest => "latest",
        }
    }
}

pub(crate) const SHOW_EXAMPLES: &str = "\
Examples:
  iosonde show 3fa9c1                           a stored result, as `list` names it
  iosonde show --pivot region x device --value randread.max_iops
                                                one figure of all results, by two labels
  iosonde show --pivot region x device --value read.max_bw --value randread.max_iops \\
      --expect ssd=gcp-pd-ssd:375GiB,machine=n1,vcpus=2 -o pivot.html
                                                charts, with what is promised of device=ssd";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only results with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only results of this target, or of what is below this directory
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Only results since then: a date such as 2026-11-21, or a time ago such as 3d or 12h
    #[arg(long, value_name = "DATE", value_parser = since_ms)]
    pub(crate) since: Option<u64>,
    /// How the list is written
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Id of a result, as `list` shows it, or `latest`, `latest~1`; ID.N is one run of it
    /// [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Instead: figures of all results, by two of their labels (or target, machine, kind), e.g.
    /// --pivot region x device --value randread.max_iops
    #[arg(long, num_args = 1..=3, value_name = "LABEL x LABEL", requires = "values", conflicts_with = "run")]
    pub(crate) pivot: Option<Vec<String>>,
    /// A figure: a job, phase or pattern, and what of it: iops, bw, p99, max_iops, ...; may be
    /// repeated, each is a table or chart of its own
    #[arg(long = "value", value_name = "FIGURE", requires = "pivot")]
    pub(crate) values: Vec<String>,
    /// Only results with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label, requires = "pivot")]
    pub(crate) labels: Vec<(String, String)>,
    /// What a figure is where a pair of labels has several results, or one has repetitions; how
    /// many stands beside it [default: mean]
    #[arg(long, value_enum, requires = "pivot")]
    pub(crate) of: Option<PivotOf>,
    /// How it is written; html is a page with charts, of figures only [default: table, and html if
    /// FILE ends in .html]
    #[arg(long, value_enum)]
    pub(crate) format: Option<PivotFormat>,
    /// File to write tables or charts to, instead of standard output
    #[arg(long, short, value_name = "FILE", requires = "pivot")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Id of a result, as `list` shows it, or `latest`, `latest~1`; ID.N is one run of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// How it is written [default: json, and csv with --series]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// One line of CSV for each interval: IOPS, bandwidth and latency beside what the devices, the
    /// processors and the pressure on them did (the columns of sar -d, and PSI)
    #[arg(long)]
    pub(crate) series: bool,
    /// File to write it to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Ids of results, as `list` shows them, or `latest`, `latest~1`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files with results of iosonde (`--format json`) or fio (`--output-format=json` or json+); - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Label the results, e.g. --label node=n1, which says where they ran; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

pub(crate) const COMPARE_EXAMPLES: &str = "\
Examples:
  iosonde compare 3fa9c1 7be001                 two results, as `list` names them
  iosonde compare latest~1 latest               the last two
  iosonde compare before.json after.json        two files, of iosonde or of fio
  iosonde compare disk=old disk=new             all results with these labels
  iosonde compare disk=old disk=new --expect gcp-pd-ssd:375GiB,machine=n1,vcpus=8
                                                and what was promised, beside both
  iosonde compare main.json this.json --fail-if-slower 5%
                                                for CI: exit status 6 if slower by 5 % or more

A figure is called faster or slower if the 95 % interval of the ratio does not hold 1. Exit status 6
needs more: that the difference is shown even though all figures were looked at together.";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to compare with: an id or `latest~1`, a file, or a label key=value
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// What is compared: an id or `latest`, a file, or a label key=value
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// Exit with status 6 if B is shown to be slower by this share or more
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) fail_if_slower: Option<f64>,
    /// How the comparison is written
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// `5%` or `5`, as 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0 to 99, e.g. 5%".to_owned()),
    }
}

/// A date, a date with a time, or a time ago, as milliseconds of the Unix epoch. Dates are local.
fn since_ms(text: &str) -> Result<u64, String> {
    let now = Zoned::now();
    let local = |at: civil::DateTime| at.to_zoned(now.time_zone().clone()).ok();
    let zoned = if let Ok(at) = text.parse::<Timestamp>() {
        Some(at.to_zoned(now.time_zone().clone()))
    } else if let Ok(at) = text.parse::<civil::DateTime>() {
        local(at)
    } else if let Ok(day) = text.parse::<civil::Date>() {
        local(day.at(0, 0, 0, 0))
    } else if let Ok(ago) = text.trim_end_matches("ago").trim().parse::<Span>() {
        now.checked_sub(ago.abs()).ok()
    } else {
        None
    };
    let ms = zoned.map(|at| at.timestamp().as_millisecond());
    let ms = ms.and_then(|ms| u64::try_from(ms).ok());
    ms.ok_or_else(|| "write a date such as 2026-11-21, or a time ago such as 3d or 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_dates() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("2.5"), Ok(0.025));
        assert!(share("5 percent").is_err() && share("-1%").is_err() && share("nan").is_err());
        assert_eq!(since_ms("2026-11-21T00:00:00Z"), Ok(1_795_219_200_000));
        let day = since_ms("2026-11-21").unwrap();
        let half_a_day = 43_200_000 + 7_200_000;
        assert!(day.abs_diff(1_795_219_200_000) <= half_a_day);
        let minute = since_ms("2026-11-21T01:01").unwrap();
        assert_eq!(minute - day, 61 * 60_000);
        let ago = |text| since_ms(text).unwrap();
        assert!(ago("3d") < ago("2h") && ago("2 hours ago") <= ago("1h"));
        assert!(since_ms("yesterday-ish").is_err());
    }
}
