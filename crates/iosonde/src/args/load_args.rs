//! Arguments of `iosonde load`.

use super::{
    BesideArgs, CephArgs, ClusterArgs, ColdArgs, KeepArgs, PodsArgs, RenderArgs, WrittenArgs,
    parse_size, seconds, seconds_or_none, switch,
};
use clap::{Args, ValueEnum};
use iosonde_study::load::Objective;

/// The end of `iosonde load --help`.
pub(crate) const LOAD_EXAMPLES: &str = "\
Examples:
  iosonde load                                  4k random reads in this directory
  iosonde load /mnt/data --slo p99=2ms          find the highest rate with a p99 of at most 2 ms
  iosonde load --rw randrw --rwmixread 70 --bs 8k /srv
  iosonde load --rates 1k,2k,4k,8k /mnt/data    offer these rates
  iosonde load --matrix 10 /mnt/data            also offer pairs of read and write rates

Load is open loop: I/Os arrive at the offered rate even while earlier I/Os are in flight. Latency \
counts from the intended start of an I/O, so a stall delays all I/Os that arrive during it. This \
avoids coordinated omission.";

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// A directory, a file, a block device, rados://POOL, rbd://POOL/IMAGE, a target in a
    /// Kubernetes cluster, e.g. sc://CLASS, or sim:NAME, a simulated device; `iosonde probe sim:`
    /// lists the names
    #[arg(default_value = ".", value_name = "TARGET")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "A directory, a file, a block device, a target in a Kubernetes cluster, e.g. \
                    sc://CLASS, or sim:NAME, a simulated device; `iosonde probe sim:` lists the \
                    names"
        )
    )]
    pub(crate) target: String,
    /// Access pattern
    #[arg(long, value_enum, default_value_t = LoadKind::Randread)]
    pub(crate) rw: LoadKind,
    /// Percentage of reads, for rw and randrw
    #[arg(
        long,
        default_value_t = 50,
        value_parser = clap::value_parser!(u8).range(1..=99),
        value_name = "PERCENT"
    )]
    pub(crate) rwmixread: u8,
    /// Block size of an I/O
    #[arg(long, default_value = "4k", value_parser = block, value_name = "SIZE")]
    pub(crate) bs: u64,
    /// Offered rates in IOPS, e.g. 500,1k,2k [default: 5 % to 110 % of the capacity, which is
    /// measured first]
    #[arg(long, value_delimiter = ',', value_parser = parse_rate, value_name = "IOPS,...")]
    pub(crate) rates: Vec<f64>,
    /// Latency objective, e.g. p99=2ms or max=50ms: iosonde searches for the highest rate that
    /// keeps it; may be repeated
    #[arg(long, value_name = "PERCENTILE=TIME")]
    pub(crate) slo: Vec<Objective>,
    /// Also offer all pairs of read and write rates, with this number of steps each
    #[arg(
        long,
        value_parser = clap::value_parser!(u8).range(2..=40),
        num_args = 0..=1,
        default_missing_value = "10",
        value_name = "STEPS"
    )]
    pub(crate) matrix: Option<u8>,
    /// Arrival process of the I/Os: poisson is that of many independent users
    #[arg(long, value_enum, default_value_t = ArrivalKind::Poisson)]
    pub(crate) arrivals: ArrivalKind,
    /// Measuring time of each rate, e.g. 10 or 1m
    #[arg(long, default_value = "4", value_parser = seconds, value_name = "TIME")]
    pub(crate) runtime: u64,
    /// Ramp time before each measurement, e.g. 1 or 500ms, as fio's ramp_time; 0 is no ramp
    #[arg(long, default_value = "1", value_parser = seconds_or_none, value_name = "TIME")]
    pub(crate) ramp: u64,
    /// Number of jobs for reads and for writes; each job is a thread
    #[arg(
        long,
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024),
        value_name = "N"
    )]
    pub(crate) numjobs: u32,
    /// Maximum I/Os in flight per thread; further I/Os queue in iosonde, and the wait counts as
    /// latency
    #[arg(
        long,
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=32768),
        value_name = "N"
    )]
    pub(crate) iodepth: u32,
    /// Size of the working set [default: 4g, or a tenth of the free space if that is less]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Whether to bypass the page cache with O_DIRECT, 0 or 1
    #[arg(
        long,
        default_value = "1",
        value_parser = switch,
        action = clap::ArgAction::Set,
        value_name = "0|1"
    )]
    pub(crate) direct: bool,
    /// Seed of the offsets, the arrivals and the order of the rates
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the table of all rates and all notes; `iosonde show` prints them later
    #[arg(long)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    #[command(flatten)]
    pub(crate) cold: ColdArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) pods: PodsArgs,
    #[command(flatten)]
    pub(crate) ceph: CephArgs,
    #[command(flatten)]
    pub(crate) render: RenderArgs,
}

/// fio's words for what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadKind {
    /// Random reads
    Randread,
    /// Random writes
    Randwrite,
    /// Random reads and writes
    Randrw,
    /// Sequential reads
    Read,
    /// Sequential writes
    Write,
    /// Sequential reads and writes
    Rw,
}

/// When I/Os arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalKind {
    /// Poisson process: arrivals are independent
    Poisson,
    /// Constant intervals
    Constant,
}

fn block(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes @ 512..=0x1000_0000 => Ok(bytes),
        _ => Err("must lie between 512 bytes and 256 MiB".to_owned()),
    }
}

/// Parses a rate in I/Os per second, where k is 1000.
fn parse_rate(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix(['k', 'K', 'm', 'M']) {
        Some(number) if text.ends_with(['k', 'K']) => (number, 1e3),
        Some(number) => (number, 1e6),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if value * unit >= 1.0 && value.is_finite() => Ok(value * unit),
        Ok(_) => Err("must be at least 1 per second".to_owned()),
        Err(_) => Err("not a rate: write for example 500 or 2k".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramp_may_be_zero_but_runtime_may_not() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            load: LoadArgs,
        }
        let parsed = |words: &[&str]| <Program as clap::Parser>::try_parse_from(words);
        assert_eq!(parsed(&["load", "--ramp", "0"]).unwrap().load.ramp, 0);
        assert!(parsed(&["load", "--runtime", "0"]).is_err());
    }

    #[test]
    fn rate_suffix_k_means_1000() {
        assert_eq!(parse_rate("2k"), Ok(2000.0));
        assert_eq!(parse_rate("1.5M"), Ok(1.5e6));
        assert_eq!(parse_rate("500"), Ok(500.0));
        for text in ["", "k", "0", "-5", "inf", "1g", "0.5"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
