//! Arguments of the commands that store, show and compare results.

use super::output_file::{OutputFileKind, output_file, text_file};
use super::{ExpectArgs, seconds_or_none};
use clap::{Args, ValueEnum};
use iosonde_history::{HistoryOptions, split_label};
use iosonde_report::format::{Format, PivotOf, TextFormat};
use jiff::{Span, Timestamp, Zoned, civil};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How a result is kept: of every command that measures.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeepArgs {
    /// Label the result, e.g. --label disk=new; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// File of the history [default: IOSONDE_STORE, else iosonde/history.db in XDG_DATA_HOME or
    /// ~/.local/share]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Do not store the result in the history
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_save: bool,
}

impl KeepArgs {
    /// Returns the options of the history.
    pub(crate) fn options(&self) -> HistoryOptions {
        HistoryOptions {
            labels: self.labels.iter().cloned().collect(),
            file: self.store.clone(),
            is_wanted: self.is_wanted(),
        }
    }

    /// Whether to store results. The command line takes precedence over the environment.
    pub(crate) fn is_wanted(&self) -> bool {
        let refused = std::env::var_os("IOSONDE_NO_SAVE");
        let is_refused = refused.is_some_and(|value| !value.is_empty() && value != "0");
        !self.no_save && (self.store.is_some() || !is_refused)
    }
}

/// Which history is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// File of the history [default: IOSONDE_STORE, else iosonde/history.db in XDG_DATA_HOME or
    /// ~/.local/share]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

/// A list of percentiles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PercentileList(pub(crate) Vec<f64>);

/// How pivots are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PivotFormat {
    /// Tables for people
    Table,
    /// The complete result, for programs
    Json,
    /// One line per pair of labels
    Csv,
    /// Tables for a report or an issue
    Markdown,
    /// One page of bar charts that works offline
    Html,
}

pub(crate) const SHOW_EXAMPLES: &str = "\
Examples:
  iosonde show 3fa9c1                           a stored result, by its ID in `iosonde list`
  iosonde show 3fa9c1 --from 30s --to 90s       a slice of its time, without what came before
  iosonde show 3fa9c1 --percentiles 99.99:99.999
                                                further percentiles, from stored histograms
  iosonde show --pivot region x device --value randread.max_iops
                                                one figure of all results, by two labels
  iosonde show --pivot kernel x os --value randread.max_iops
                                                the same by facts: `iosonde list --help` has all
  iosonde show --pivot region x device --value read.max_bw --value randread.max_iops \\
      --expect ssd=gcp-pd-ssd:375GiB,machine=n1,vcpus=2 -o pivot.html
                                                charts, with the limits promised for device=ssd";

pub(crate) const LIST_EXAMPLES: &str = "\
Examples:
  iosonde list                                  all results
  iosonde list --last 5                         the latest five
  iosonde list disk=new                         results with this label
  iosonde list os=debian 'kernel=6.8*'          results from machines with this system

Results know these facts, as far as the machine shows them: cloud, region, zone, machine_type, \
node, os, kernel, driver, driver_version, firmware, model, scheduler, disk_size, file_system, \
class, provisioner, ceph_version. A label of the same key takes precedence.";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only results with this label or fact, e.g. os=debian or 'kernel=6.8*'; several conditions
    /// must all hold
    #[arg(value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) selected: Vec<(String, String)>,
    /// The same as an option; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only results of this target, or of targets below this directory
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Only results since this time: a date, e.g. 2026-11-21, or an age, e.g. 3d or 12h
    #[arg(long, value_name = "DATE", value_parser = since_ms)]
    pub(crate) since: Option<u64>,
    /// Only the latest N of the matching results
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<NonZeroUsize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// ID of a result in `iosonde list`, or `latest`, `latest~1`; ID.N is one run of the result
    /// [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only I/O from this time of the run on, e.g. 30s or 2m; the series gives rates and
    /// percentiles of the window
    #[arg(
        long,
        value_name = "TIME",
        value_parser = seconds_or_none,
        conflicts_with_all = ["pivot", "expect"]
    )]
    pub(crate) from: Option<u64>,
    /// Only I/O before this time of the run, e.g. 90s
    #[arg(
        long,
        value_name = "TIME",
        value_parser = seconds_or_none,
        conflicts_with_all = ["pivot", "expect"]
    )]
    pub(crate) to: Option<u64>,
    /// Print these percentiles, computed from the stored histograms, e.g. 99.99:99.999 [default
    /// for a window: 50:90:99:99.9]
    #[arg(
        long,
        value_name = "LIST",
        value_parser = percentiles,
        conflicts_with_all = ["pivot", "expect"]
    )]
    pub(crate) percentiles: Option<PercentileList>,
    /// Print figures of all results instead, by two of their labels or facts (or target, machine,
    /// kind), e.g. --pivot kernel x os --value randread.max_iops
    #[arg(
        long,
        num_args = 1..=3,
        value_name = "LABEL x LABEL",
        requires = "values",
        conflicts_with = "run"
    )]
    pub(crate) pivot: Option<Vec<String>>,
    /// Figure: a job, phase or pattern, then the measure: iops, bw, p99, max_iops, ...; may be
    /// repeated, for one table or chart each
    #[arg(long = "value", value_name = "FIGURE", requires = "pivot")]
    pub(crate) values: Vec<String>,
    /// Only results with this label or fact, e.g. os=debian; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label, requires = "pivot")]
    pub(crate) labels: Vec<(String, String)>,
    /// Statistic for a pair of labels with several results or repetitions; their number is printed
    /// with the figure [default: mean]
    #[arg(long, value_enum, requires = "pivot")]
    pub(crate) of: Option<PivotOf>,
    /// Output format; html is a page of charts, only for --pivot [default: table, or html if FILE
    /// ends in .html]
    #[arg(long, value_enum)]
    pub(crate) format: Option<PivotFormat>,
    /// File to write the tables or charts to, instead of standard output
    #[arg(
        long,
        short,
        value_name = "FILE",
        requires = "pivot",
        value_parser = output_file(OutputFileKind::TextOrPage)
    )]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

pub(crate) const EXPORT_EXAMPLES: &str = "\
Examples:
  iosonde export latest -o latest.json          the last result, as a JSON document
  iosonde export 3fa9c1 --format markdown       a result as Markdown, for an issue
  iosonde export 3fa9c1 --series -o series.csv  its time series
  iosonde export --history -o n1.db             the whole history, for `iosonde import`";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// ID of a result in `iosonde list`, or `latest`, `latest~1`; ID.N is one run of the result
    #[arg(value_name = "RUN", required_unless_present = "history")]
    pub(crate) run: Option<String>,
    /// Write the whole history as one file, which `iosonde import` adds to that of another machine
    #[arg(long, conflicts_with_all = ["run", "format", "series", "expect"])]
    pub(crate) history: bool,
    /// Output format [default: json, or csv with --series]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write one line of CSV per interval: IOPS, bandwidth and latency, with the activity of
    /// devices (the columns of sar -d) and CPUs, and pressure stall information (PSI)
    #[arg(long)]
    pub(crate) series: bool,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

pub(crate) const RM_EXAMPLES: &str = "\
Examples:
  iosonde rm 3fa9c1                             a result, by its ID in `iosonde list`
  iosonde rm 3fa9c1 7be001                      two results
  iosonde rm latest --yes                       the last one, without a question";

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// IDs of results in `iosonde list`, or `latest`, `latest~1`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Do not ask before removing a result that is named `latest`, or by fewer digits of its ID
    /// than in `iosonde list`
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

pub(crate) const IMPORT_EXAMPLES: &str = "\
Examples:
  iosonde import n1.json --label node=n1        a result in a file
  ssh n1 iosonde export --history | iosonde import -
                                                all results of another machine
  iosonde import n1.db n2.db n3.db              several histories; known results are skipped";

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files with results of iosonde (`--format json`) or fio (`--output-format=json` or json+), or
    /// histories of other machines (`iosonde export --history`); `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Label the results, e.g. with the node where they ran: --label node=n1; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = split_label)]
    pub(crate) labels: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

pub(crate) const COMPARE_EXAMPLES: &str = "\
Examples:
  iosonde compare latest~1 latest               the last two results
  iosonde compare 3fa9c1 7be001                 two results, by their IDs in `iosonde list`
  iosonde compare before.json after.json        two result files, of iosonde or fio
  iosonde compare disk=old disk=new             all results with these labels
  iosonde compare os=debian os=centos           all results from machines with these systems
  iosonde compare disk=old disk=new --expect gcp-pd-ssd:375GiB,machine=n1,vcpus=8
                                                both, and the limits that are promised
  iosonde compare main.json this.json --fail-if-slower 5%
                                                for CI: exit status 6 if slower by 5 % or more

A figure is faster or slower if the 95 % interval of its ratio excludes 1. Exit status 6 requires \
more: the difference must be significant after correction for the number of compared figures. If \
no figure is decided and B looks slower by the given share or more, the exit status is 12.";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Baseline: an ID or `latest~1`, a file, or a label or fact KEY=VALUE
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Result to compare with A: an ID or `latest`, a file, or a label or fact KEY=VALUE
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// Exit with status 6 if B is significantly slower than A, by this share or more
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) fail_if_slower: Option<f64>,
    /// Print all figures, also those without a difference, and the spread of several results
    #[arg(long)]
    pub(crate) details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Parses `5%` or `5` as 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0 to 99, e.g. 5%".to_owned()),
    }
}

/// Parses a list of percentiles as in fio's `percentile_list`, which colons separate.
fn percentiles(text: &str) -> Result<PercentileList, String> {
    let parse = |word: &str| word.trim().parse::<f64>().ok();
    let all: Option<Vec<f64>> = text.split([':', ',']).map(parse).collect();
    all.filter(|all| {
        all.iter()
            .all(|percent| *percent > 0.0 && *percent <= 100.0)
    })
    .map(PercentileList)
    .ok_or_else(|| "write percentiles above 0 and at most 100, e.g. 99.99:99.999".to_owned())
}

/// Parses a local date, a date and time, or an age, to milliseconds since the Unix epoch.
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
    ms.ok_or_else(|| "write a date, e.g. 2026-11-21, or an age, e.g. 3d or 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_separated_by_colons_or_commas() {
        let parsed = percentiles("50:99.99,100").unwrap();
        assert_eq!(parsed, PercentileList(vec![50.0, 99.99, 100.0]));
        for wrong in ["", "0", "101", "99:", "p99", "nan"] {
            assert!(percentiles(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_and_dates_are_parsed() {
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
