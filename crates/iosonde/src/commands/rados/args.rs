//! The command line of `rados bench`.

use super::objects::LAST_RUN;
use crate::args::KeepArgs;
use crate::failure::Failure;
use crate::report::rados::Mode;
use clap::{Args, Subcommand, ValueEnum};
use iosonde_job::plan::{CEPH_TIMEOUT_S, CephAccess};
use iosonde_job::value::{Bytes, bytes};
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde rados bench -p testbench 30 write -b 4M -t 16 --no-cleanup
  iosonde rados bench -p testbench 30 rand -t 16      of what the first has left
  iosonde rados bench -p testbench 30 seq -t 16 -f json -o seq.json
  iosonde rados cleanup -p testbench

The objects are those of `rados bench`: either program reads and removes what the other wrote.";

/// What a write does unless it is told.
const DEFAULT_OP_BYTES: u64 = 4 << 20;

/// Arguments of `iosonde rados`.
#[derive(Debug, Args)]
pub(crate) struct RadosArgs {
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(subcommand)]
    pub(super) command: RadosCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum RadosCommand {
    /// Write objects to a pool, or read them again: table and summary of `rados bench`, percentiles, confidence
    #[command(after_help = EXAMPLES)]
    Bench(BenchArgs),
    /// Remove what a `write --no-cleanup` has left, or runs that were killed
    Cleanup(CleanupArgs),
}

/// Which pool of which cluster. As with `rados`, before the command or behind it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct AccessArgs {
    /// The pool
    #[arg(long, short, global = true, value_name = "POOL")]
    pool: Option<String>,
    /// Namespace of the objects in the pool
    #[arg(long, short = 'N', global = true, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// Ceph's configuration file [default: CEPH_CONF, or /etc/ceph/ceph.conf]
    #[arg(long, short, global = true, alias = "ceph-conf", value_name = "FILE")]
    conf: Option<String>,
    /// The client without its type, e.g. admin
    #[arg(long, global = true, alias = "user", value_name = "ID")]
    id: Option<String>,
    /// The client with its type, e.g. client.admin
    #[arg(
        long,
        short,
        global = true,
        alias = "ceph-client",
        conflicts_with = "id",
        value_name = "TYPE.ID"
    )]
    name: Option<String>,
    /// File with the client's key
    #[arg(
        long,
        short,
        global = true,
        alias = "ceph-keyring",
        value_name = "FILE"
    )]
    keyring: Option<String>,
    /// Name of the cluster: its configuration is /etc/ceph/NAME.conf
    #[arg(long, global = true, value_name = "NAME")]
    cluster: Option<String>,
    /// Seconds after which what the cluster does not answer is an error
    #[arg(long = "timeout", global = true, aliases = ["ceph-timeout", "rados-osd-op-timeout", "rados_osd_op_timeout"],
        default_value_t = CEPH_TIMEOUT_S, value_parser = clap::value_parser!(u32).range(1..), value_name = "SECONDS")]
    timeout_s: u32,
}

impl AccessArgs {
    /// How the cluster is reached.
    pub(super) fn access(&self) -> CephAccess {
        CephAccess {
            conf: self.conf.clone(),
            cluster: self.cluster.clone(),
            client: self.name.clone().or_else(|| self.id.clone()),
            keyring: self.keyring.clone(),
            timeout_s: self.timeout_s,
        }
    }

    /// The pool, without which there is nothing to do.
    pub(super) fn pool(&self) -> Result<&str, Failure> {
        self.pool.as_deref().ok_or_else(|| {
            Failure::usage(
                "no pool is named",
                "name it with -p POOL; `ceph osd pool ls` lists them",
            )
        })
    }
}

/// What is measured, and how it is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// How long; 0 ends with --max-objects, with the last object (seq) or with Ctrl-C
    #[arg(value_name = "SECONDS")]
    pub(super) seconds: u64,
    /// What is done
    #[arg(value_enum)]
    pub(super) mode: Mode,
    /// Bytes of an operation that writes, e.g. 4k [default: 4M]; reads are as the writes were
    #[arg(long = "block-size", short = 'b', aliases = ["block_size", "op-size"], value_parser = size, value_name = "SIZE")]
    op_bytes: Option<u64>,
    /// Bytes of an object that is written: a multiple of -b [default: as -b]
    #[arg(long = "object-size", short = 'O', alias = "object_size", value_parser = size, value_name = "SIZE")]
    object_bytes: Option<u64>,
    /// Operations in flight
    #[arg(long = "concurrent-ios", short = 't', alias = "concurrent_ios", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    pub(super) concurrent: u32,
    /// Write so many objects at most; 0 is without a limit
    #[arg(long, alias = "max_objects", default_value_t = 0, value_name = "N")]
    pub(super) max_objects: u64,
    /// Leave what was written, for seq and rand
    #[arg(long, alias = "no_cleanup")]
    pub(super) no_cleanup: bool,
    /// Name of the object that describes what was written
    #[arg(long, alias = "run_name", default_value = LAST_RUN, value_name = "OBJECT")]
    pub(super) run_name: String,
    /// Write over the objects of the last run
    #[arg(long, alias = "reuse_bench")]
    pub(super) reuse_bench: bool,
    /// Do not compare what was read with what was written
    #[arg(long, alias = "no_verify")]
    pub(super) no_verify: bool,
    /// Begin each line with the time
    #[arg(long, alias = "show_time")]
    pub(super) show_time: bool,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t = Written::Plain, value_name = "FORMAT")]
    pub(super) format: Written,
    /// File for the result, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) keep: KeepArgs,
    #[command(flatten)]
    elsewhere: Elsewhere,
}

/// Words of `rados bench` that change nothing here, or that have no counterpart.
#[derive(Debug, Clone, Args)]
struct Elsewhere {
    /// Contents go to the objects: there is no other way.
    #[arg(long, alias = "write_object", hide = true)]
    write_object: bool,
    /// Hints on how objects will be used are not given.
    #[arg(long, alias = "no_hints", hide = true)]
    no_hints: bool,
    #[arg(long, alias = "write_omap", hide = true)]
    write_omap: bool,
    #[arg(long, alias = "write_xattr", hide = true)]
    write_xattr: bool,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Written {
    /// A line each second, then the summary
    Plain,
    /// One line
    Json,
    /// Indented
    JsonPretty,
}

/// What is to be removed.
#[derive(Debug, Clone, Args)]
pub(crate) struct CleanupArgs {
    /// Name of the object that describes what was written
    #[arg(long, alias = "run_name", default_value = LAST_RUN, value_name = "OBJECT")]
    pub(super) run_name: String,
    /// Remove all objects whose names begin with this, which must begin with benchmark_data: what interrupted benchmarks
    /// have left; iosonde- says what other commands of iosonde have left that were killed, and how each is removed
    #[arg(long, conflicts_with = "run_name", value_name = "NAME")]
    pub(super) prefix: Option<String>,
}

impl BenchArgs {
    /// Bytes of an operation and of an object that are to be written.
    pub(super) fn sizes(&self) -> Result<(u64, u64), Failure> {
        let unlike = |option: &str| {
            Failure::usage(
                format!("{option} is not measured"),
                "leave it out: contents are written to the objects themselves",
            )
        };
        if self.elsewhere.write_omap {
            return Err(unlike("--write-omap"));
        }
        if self.elsewhere.write_xattr {
            return Err(unlike("--write-xattr"));
        }
        let op_bytes = self
            .op_bytes
            .or(self.object_bytes.map(|bytes| bytes.min(DEFAULT_OP_BYTES)))
            .unwrap_or(DEFAULT_OP_BYTES);
        let object_bytes = self.object_bytes.unwrap_or(op_bytes);
        if !object_bytes.is_multiple_of(op_bytes) {
            return Err(Failure::usage(
                format!("objects of {object_bytes} bytes are not made of operations of {op_bytes}"),
                "choose an --object-size that is a multiple of -b",
            ));
        }
        Ok((op_bytes, object_bytes))
    }
}

fn size(text: &str) -> Result<u64, String> {
    match bytes(text, Bytes::Binary) {
        Ok(0) => Err("must be more than 0".to_owned()),
        Ok(size) if size > 1 << 30 => Err("must be 1g at most".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Words {
        #[command(flatten)]
        rados: RadosArgs,
    }

    fn read(line: &str) -> Result<(AccessArgs, BenchArgs), String> {
        let words = Words::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        match words.rados.command {
            RadosCommand::Bench(bench) => Ok((words.rados.access, bench)),
            RadosCommand::Cleanup(_) => Err("cleanup".to_owned()),
        }
    }

    #[test]
    fn command_lines_of_the_article_are_understood() {
        let (access, bench) = read("bench -p testbench 30 write -b 4M -t 16 --no-cleanup").unwrap();
        assert_eq!(access.pool().unwrap(), "testbench");
        assert_eq!((bench.seconds, bench.mode), (30, Mode::Write));
        assert_eq!(bench.sizes().unwrap(), (4 << 20, 4 << 20));
        assert!(bench.no_cleanup && !bench.no_verify);
        let (_, bench) = read("bench -p testbench 30 rand -t 16").unwrap();
        assert_eq!((bench.mode, bench.concurrent), (Mode::Rand, 16));
    }

    #[test]
    fn options_stand_anywhere_and_are_written_as_ceph_does() {
        let line = "-p x -N ns --id bench -c /c bench --max_objects=5 10 seq --no-verify -f json-pretty --run-name mine --show-time";
        let (access, bench) = read(line).unwrap();
        assert_eq!(access.pool().unwrap(), "x");
        assert_eq!(access.namespace.as_deref(), Some("ns"));
        assert_eq!(access.access().client.as_deref(), Some("bench"));
        assert_eq!((bench.max_objects, bench.run_name.as_str()), (5, "mine"));
        assert_eq!(bench.format, Written::JsonPretty);
        assert!(bench.show_time && bench.no_verify);
        let (access, _) = read("bench 1 write -n client.x -k /k --rados-osd-op-timeout 5").unwrap();
        assert_eq!(access.access().timeout_s, 5);
        assert!(access.pool().is_err());
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let sizes = |line: &str| read(line).unwrap().1.sizes();
        assert_eq!(sizes("bench 1 write -b 4k -O 64k").unwrap(), (4096, 65536));
        assert_eq!(sizes("bench 1 write -O 64k").unwrap(), (65536, 65536));
        assert!(sizes("bench 1 write -b 4k -O 6k").is_err());
        assert!(sizes("bench 1 write -b 8k -O 4k").is_err());
        assert!(sizes("bench 1 write --write-omap").is_err());
        assert!(read("bench 1 write -t 0").is_err());
        assert!(read("bench 1 trim").is_err());
        assert!(read("bench write").is_err());
    }
}
