//! The command line of `rados bench`.

use super::output_file::text_file;
use super::{KeepArgs, MadePoolArgs, positive_size};
use crate::failure::CommandError;
use clap::{Args, Subcommand, ValueEnum};
use iosonde_job::plan::{CEPH_TIMEOUT_S, CephAccess, WrittenParts};
use iosonde_report::rados::RadosMode;
use std::path::PathBuf;

/// The end of `iosonde rados --help`.
pub(crate) const RADOS_EXAMPLES: &str = "\
Examples:
  iosonde rados bench -p testbench 30 write -b 4M     30 s of writes; removes its objects
  iosonde rados cleanup -p testbench                  removes the objects of the last run";

const RADOS_BENCH_EXAMPLES: &str = "\
Examples:
  iosonde rados bench -p testbench 30 write -b 4M -t 16 --no-cleanup
  iosonde rados bench -p testbench 30 rand -t 16      reads the objects of the first
  iosonde rados bench -p testbench 30 seq -t 16 -f json -o seq.json
  iosonde rados cleanup -p testbench

The objects are those of `rados bench`: both programs read and remove each other's objects.";

const CLEANUP_EXAMPLES: &str = "\
Examples:
  iosonde rados cleanup -p testbench                  removes the objects of the last run
  iosonde rados cleanup -p testbench --prefix benchmark_data";

/// Default name of the object that describes the last benchmark. `--run-name` sets another.
pub(crate) const LAST_RUN: &str = "benchmark_last_metadata";
/// Default bytes of a write operation.
const DEFAULT_OP_BYTES: u64 = 4 << 20;
/// Longest object and operation, in bytes.
const OBJECT_BYTES_MAX: u64 = 1 << 30;

/// Arguments of `iosonde rados`.
#[derive(Debug, Args)]
pub(crate) struct RadosArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(subcommand)]
    pub(crate) command: RadosCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RadosCommand {
    /// Write objects to a pool or read them back: the table and summary of `rados bench`, with
    /// percentiles and confidence intervals
    #[command(after_help = RADOS_BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Remove objects that `write --no-cleanup` or killed runs have left
    #[command(after_help = CLEANUP_EXAMPLES)]
    Cleanup(CleanupArgs),
}

/// Which pool of which cluster. As with `rados`, before the command or behind it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct AccessArgs {
    /// Name of the pool
    #[arg(long, short, global = true, value_name = "POOL")]
    pool: Option<String>,
    /// Namespace of the objects in the pool
    #[arg(long, short = 'N', global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Ceph's configuration file [default: CEPH_CONF, or /etc/ceph/ceph.conf]
    #[arg(long, short, global = true, alias = "ceph-conf", value_name = "FILE")]
    conf: Option<String>,
    /// Ceph client without its type, e.g. admin
    #[arg(long, global = true, alias = "user", value_name = "ID")]
    id: Option<String>,
    /// Ceph client with its type, e.g. client.admin
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
    /// Name of the cluster, which selects the configuration file /etc/ceph/NAME.conf
    #[arg(long, global = true, value_name = "NAME")]
    cluster: Option<String>,
    /// Timeout of a request to the cluster, in seconds; a request that times out is an error
    #[arg(
        long = "timeout",
        global = true,
        aliases = ["ceph-timeout", "rados-osd-op-timeout", "rados_osd_op_timeout"],
        default_value_t = CEPH_TIMEOUT_S,
        value_parser = clap::value_parser!(u32).range(1..),
        value_name = "SECONDS"
    )]
    timeout_s: u32,
}

impl AccessArgs {
    /// How the cluster is accessed.
    pub(crate) fn access(&self) -> CephAccess {
        CephAccess {
            conf: self.conf.clone(),
            cluster: self.cluster.clone(),
            client: self.name.clone().or_else(|| self.id.clone()),
            keyring: self.keyring.clone(),
            timeout_s: self.timeout_s,
        }
    }

    /// The pool, if it is given.
    pub(crate) fn pool_name(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// The pool. Fails if it is not given.
    pub(crate) fn pool(&self) -> Result<&str, CommandError> {
        self.pool.as_deref().ok_or_else(|| {
            CommandError::usage(
                "no pool is named",
                "name a pool with -p POOL; `ceph osd pool ls` lists all pools",
            )
        })
    }
}

/// Options of the measurement and of its output.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// Duration in seconds; 0 runs until --max-objects, the last object (seq) or Ctrl-C
    #[arg(value_name = "SECONDS")]
    pub(crate) seconds: u64,
    /// Access pattern
    #[arg(value_enum)]
    pub(crate) mode: RadosMode,
    /// Size of a write, e.g. 4k [default: 4M]; reads use the size of the earlier writes
    #[arg(
        long = "block-size",
        short = 'b',
        aliases = ["block_size", "op-size"],
        value_parser = object_size,
        value_name = "SIZE"
    )]
    op_bytes: Option<u64>,
    /// Size of a written object, a multiple of -b, e.g. 16M [default: the size of -b]
    #[arg(
        long = "object-size",
        short = 'O',
        alias = "object_size",
        value_parser = object_size,
        value_name = "SIZE"
    )]
    object_bytes: Option<u64>,
    /// Operations in flight
    #[arg(long = "concurrent-ios", short = 't', alias = "concurrent_ios", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    pub(crate) concurrent: u32,
    /// Maximum number of objects to write; 0 is no limit
    #[arg(long, alias = "max_objects", default_value_t = 0, value_name = "N")]
    pub(crate) max_objects: u64,
    /// Keep the written objects, for seq and rand
    #[arg(long, alias = "no_cleanup")]
    pub(crate) no_cleanup: bool,
    /// Name of the object that describes the written objects
    #[arg(long, alias = "run_name", default_value = LAST_RUN, value_name = "OBJECT")]
    pub(crate) run_name: String,
    /// Overwrite the objects of the last run
    #[arg(long, alias = "reuse_bench")]
    pub(crate) reuse_bench: bool,
    /// Do not verify the contents of read objects
    #[arg(long, alias = "no_verify")]
    pub(crate) no_verify: bool,
    /// Print the time at the start of each line
    #[arg(long, alias = "show_time")]
    pub(crate) show_time: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = BenchFormat::Plain, value_name = "FORMAT")]
    pub(crate) format: BenchFormat,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    written_parts: WrittenPartsArgs,
    #[command(flatten)]
    pub(crate) made_pool: MadePoolArgs,
}

/// Parts of objects that `write` writes. Words of `rados bench`.
#[derive(Debug, Clone, Args)]
struct WrittenPartsArgs {
    /// Write the contents of objects: the default without --write-omap and --write-xattr
    #[arg(long, alias = "write_object")]
    write_object: bool,
    /// Write values of -b bytes to the object maps (omap); such objects cannot be read back
    #[arg(long, alias = "write_omap")]
    write_omap: bool,
    /// Write extended attributes of -b bytes (at most 64k in most clusters); such objects cannot be
    /// read back
    #[arg(long, alias = "write_xattr")]
    write_xattr: bool,
    /// Hints on how objects will be used are not given.
    #[arg(long, alias = "no_hints", hide = true)]
    no_hints: bool,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchFormat {
    /// One line per second, then the summary
    Plain,
    /// JSON on one line
    Json,
    /// JSON with indentation
    JsonPretty,
}

/// Options that select the objects to remove.
#[derive(Debug, Clone, Args)]
pub(crate) struct CleanupArgs {
    /// Name of the object that describes the written objects
    #[arg(long, alias = "run_name", default_value = LAST_RUN, value_name = "OBJECT")]
    pub(crate) run_name: String,
    /// Remove all objects with this name prefix, which must begin with benchmark_data: leftovers of
    /// interrupted benchmarks; the prefix iosonde- lists leftovers of other killed commands of
    /// iosonde, and the command that removes each
    #[arg(long, conflicts_with = "run_name", value_name = "NAME")]
    pub(crate) prefix: Option<String>,
    /// Remove the whole pool, which a killed command made with --make-pool; without -p, remove all
    /// such pools whose command has ended
    #[arg(long, conflicts_with_all = ["run_name", "prefix"])]
    pub(crate) made_pool: bool,
}

impl BenchArgs {
    /// Parts of objects that are written. Fails if the objects could not be read later.
    pub(crate) fn parts(&self) -> Result<WrittenParts, CommandError> {
        let given = &self.written_parts;
        let (omap, xattr) = (given.write_omap, given.write_xattr);
        let data = given.write_object || !(omap || xattr);
        let problem = match (self.mode.is_write(), data) {
            (false, _) if omap || xattr => "reads read only the contents of objects",
            (true, false) if self.no_cleanup => "objects without contents cannot be read later",
            _ => return Ok(WrittenParts { data, omap, xattr }),
        };
        let option = if omap {
            "--write-omap"
        } else {
            "--write-xattr"
        };
        Err(CommandError::usage(
            format!("{option} does not fit: {problem}"),
            "use it with write and without --no-cleanup, or add --write-object",
        ))
    }

    /// Bytes of a write operation and of a new object.
    pub(crate) fn sizes(&self) -> Result<(u64, u64), CommandError> {
        let op_bytes = self
            .op_bytes
            .or(self.object_bytes.map(|bytes| bytes.min(DEFAULT_OP_BYTES)))
            .unwrap_or(DEFAULT_OP_BYTES);
        let object_bytes = self.object_bytes.unwrap_or(op_bytes);
        if !object_bytes.is_multiple_of(op_bytes) {
            return Err(CommandError::usage(
                format!(
                    "the object size of {object_bytes} bytes is not a multiple of the block size \
                     of {op_bytes} bytes"
                ),
                "choose an --object-size that is a multiple of -b",
            ));
        }
        Ok((op_bytes, object_bytes))
    }
}

/// Parses the size of an object or of an operation on it.
fn object_size(text: &str) -> Result<u64, String> {
    match positive_size(text)? {
        size if size > OBJECT_BYTES_MAX => Err("must be at most 1g".to_owned()),
        size => Ok(size),
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
    fn article_command_lines_are_parsed() {
        let (access, bench) = read("bench -p testbench 30 write -b 4M -t 16 --no-cleanup").unwrap();
        assert_eq!(access.pool().unwrap(), "testbench");
        assert_eq!((bench.seconds, bench.mode), (30, RadosMode::Write));
        assert_eq!(bench.sizes().unwrap(), (4 << 20, 4 << 20));
        assert!(bench.no_cleanup && !bench.no_verify);
        let (_, bench) = read("bench -p testbench 30 rand -t 16").unwrap();
        assert_eq!((bench.mode, bench.concurrent), (RadosMode::Rand, 16));
    }

    #[test]
    fn options_are_accepted_anywhere_in_ceph_spelling() {
        let line = "-p x -N ns --id bench -c /c bench --max_objects=5 10 seq --no-verify -f \
                    json-pretty --run-name mine --show-time";
        let (access, bench) = read(line).unwrap();
        assert_eq!(access.pool().unwrap(), "x");
        assert_eq!(access.namespace.as_deref(), Some("ns"));
        assert_eq!(access.access().client.as_deref(), Some("bench"));
        assert_eq!((bench.max_objects, bench.run_name.as_str()), (5, "mine"));
        assert_eq!(bench.format, BenchFormat::JsonPretty);
        assert!(bench.show_time && bench.no_verify);
        let (access, _) = read("bench 1 write -n client.x -k /k --rados-osd-op-timeout 5").unwrap();
        assert_eq!(access.access().timeout_s, 5);
        assert!(access.pool().is_err());
    }

    #[test]
    fn written_parts_follow_options() {
        let parts = |line: &str| read(line).unwrap().1.parts();
        assert!(parts("bench 1 write").unwrap().is_data_only());
        assert!(
            parts("bench 1 write --write-object")
                .unwrap()
                .is_data_only()
        );
        let omap = WrittenParts {
            data: false,
            omap: true,
            xattr: false,
        };
        assert_eq!(parts("bench 1 write --write_omap").unwrap(), omap);
        let all = "bench 1 write --write-omap --write-xattr --write-object --no-cleanup";
        let all_parts = WrittenParts {
            data: true,
            omap: true,
            xattr: true,
        };
        assert_eq!(parts(all).unwrap(), all_parts);
        assert!(parts("bench 1 write --write-xattr --no-cleanup").is_err());
        assert!(parts("bench 1 rand --write-omap").is_err());
    }

    #[test]
    fn unsupported_sizes_and_modes_are_refused() {
        let sizes = |line: &str| read(line).unwrap().1.sizes();
        assert_eq!(sizes("bench 1 write -b 4k -O 64k").unwrap(), (4096, 65536));
        assert_eq!(sizes("bench 1 write -O 64k").unwrap(), (65536, 65536));
        assert!(sizes("bench 1 write -b 4k -O 6k").is_err());
        assert!(sizes("bench 1 write -b 8k -O 4k").is_err());
        assert!(read("bench 1 write -t 0").is_err());
        assert!(read("bench 1 trim").is_err());
        assert!(read("bench write").is_err());
    }
}
