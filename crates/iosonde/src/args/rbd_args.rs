//! The command line of `rbd bench`.

use super::output_file::text_file;
use super::{AccessArgs, BenchFormat, ConsentArgs, KeepArgs, positive_size};
use crate::failure::CommandError;
use clap::{Args, Subcommand};
use iosonde_job::plan::Ceph;
use iosonde_report::rbd::{ImageBenchHeader, ImageIoPattern, ImageIoType};
use std::path::PathBuf;

pub(crate) const RBD_EXAMPLES: &str = "\
Examples:
  iosonde rbd bench --io-type write testbench/disk1
  iosonde rbd bench --io-type read --io-size 4M --io-pattern rand testbench/disk1
  iosonde rbd bench --io-type rw --rw-mix-read 70 --io-threads 32 -p testbench --image disk1

An image with a file system or another signature, or one that is open elsewhere, is not written \
without --allow-overwrite=rbd://POOL/IMAGE.";

/// Pool of an image without one, as in `rbd`.
const DEFAULT_POOL: &str = "rbd";

/// `iosonde rbd`.
#[derive(Debug, Args)]
pub(crate) struct RbdArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(subcommand)]
    pub(crate) command: RbdCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RbdCommand {
    /// Read or write an image: the table and summary of `rbd bench`, with percentiles and
    /// confidence intervals
    #[command(after_help = RBD_EXAMPLES)]
    Bench(ImageBenchArgs),
}

/// Options of the measurement and of its output.
#[derive(Debug, Clone, Args)]
pub(crate) struct ImageBenchArgs {
    /// The image: [POOL/[NAMESPACE/]]IMAGE, or its snapshot, IMAGE@SNAPSHOT, which is only read
    #[arg(value_name = "IMAGE")]
    spec: Option<String>,
    /// Name of the image, instead of IMAGE
    #[arg(long, conflicts_with = "spec", value_name = "NAME")]
    image: Option<String>,
    /// Operations on the image
    #[arg(long, value_enum, value_name = "TYPE")]
    io_type: ImageIoType,
    /// Size of an operation
    #[arg(long, default_value = "4K", value_parser = positive_size, value_name = "SIZE")]
    io_size: u64,
    /// Operations in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024),
        value_name = "N")]
    io_threads: u32,
    /// Bytes of all operations
    #[arg(long, default_value = "1G", value_parser = positive_size, value_name = "SIZE")]
    io_total: u64,
    /// Order of the offsets
    #[arg(long, value_enum, default_value_t = ImageIoPattern::Seq, value_name = "PATTERN")]
    io_pattern: ImageIoPattern,
    /// Share of reads with --io-type readwrite, in percent
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100),
        value_name = "PERCENT")]
    rw_mix_read: u32,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = BenchFormat::Plain, value_name = "FORMAT")]
    pub(crate) format: BenchFormat,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

impl ImageBenchArgs {
    /// Parameters of the benchmark.
    pub(crate) fn header(&self) -> ImageBenchHeader {
        ImageBenchHeader {
            io_type: self.io_type,
            io_bytes: self.io_size,
            io_threads: self.io_threads,
            total_bytes: self.io_total,
            pattern: self.io_pattern,
            read_percent: self.rw_mix_read,
        }
    }

    /// The image and how its cluster is accessed.
    pub(crate) fn image(&self, access: &AccessArgs) -> Result<Ceph, CommandError> {
        let spec = self.image.as_deref().or(self.spec.as_deref());
        let parts: Vec<&str> = spec.unwrap_or_default().split('/').collect();
        let (pool, namespace, image) = match parts[..] {
            [image] => (None, None, image),
            [pool, image] => (Some(pool), None, image),
            [pool, namespace, image] => (Some(pool), Some(namespace), image),
            _ => (None, None, ""),
        };
        let given = (access.pool_name(), access.namespace.as_deref());
        let contradicts = |own: Option<&str>, given: Option<&str>| {
            own.zip(given).is_some_and(|(own, given)| own != given)
        };
        let is_wrong = image.is_empty() || pool == Some("") || namespace == Some("");
        if is_wrong || contradicts(pool, given.0) || contradicts(namespace, given.1) {
            return Err(CommandError::usage(
                match spec {
                    None => "no image is named".to_owned(),
                    Some(spec) if is_wrong => format!("`{spec}` names no image"),
                    Some(spec) => format!("`{spec}` contradicts -p or -N"),
                },
                "name one image: POOL/IMAGE, or -p POOL --image IMAGE; `rbd ls POOL` lists them",
            ));
        }
        if self.io_type.writes() && image.contains('@') {
            return Err(CommandError::usage(
                format!("{image}: a snapshot is read-only"),
                "read the snapshot with --io-type read, or write its image",
            ));
        }
        Ok(Ceph {
            access: access.access(),
            pool: pool.or(given.0).unwrap_or(DEFAULT_POOL).to_owned(),
            namespace: namespace.or(given.1).map(str::to_owned),
            image: Some(image.to_owned()),
            ..Ceph::default()
        })
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
        rbd: RbdArgs,
    }

    fn read(line: &str) -> Result<(ImageBenchHeader, Result<Ceph, CommandError>), String> {
        let words = Words::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        let RbdCommand::Bench(bench) = &words.rbd.command;
        Ok((bench.header(), bench.image(&words.rbd.access)))
    }

    fn place(line: &str) -> Option<(String, Option<String>, Option<String>)> {
        let ceph = read(line).unwrap().1.ok()?;
        Some((ceph.pool, ceph.namespace, ceph.image))
    }

    #[test]
    fn command_lines_of_rbd_bench_are_parsed() {
        let (head, _) = read("bench --io-type write p/i").unwrap();
        assert_eq!((head.io_bytes, head.io_threads), (4096, 16));
        assert_eq!(head.total_bytes, 1 << 30);
        assert_eq!(head.pattern, ImageIoPattern::Seq);
        let line = "bench p/i --io-type rw --io-size 4M --io-threads 1 --io-total 2G --io-pattern \
                    full-seq --rw-mix-read 70";
        let (head, _) = read(line).unwrap();
        assert_eq!(head.io_type, ImageIoType::ReadWrite);
        assert_eq!((head.io_bytes, head.total_bytes), (4 << 20, 2 << 30));
        assert_eq!(head.pattern, ImageIoPattern::FullSeq);
        assert_eq!((head.io_threads, head.read_percent), (1, 70));
        for wrong in [
            "bench p/i",
            "bench --io-type trim p/i",
            "bench --io-type read --io-size 0 p/i",
            "bench --io-type rw --rw-mix-read 101 p/i",
            "bench --io-type read p/i --image j",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn image_is_named_in_each_form_of_rbd() {
        let text = |text: &str| Some(text.to_owned());
        let found = |pool: &str, namespace: Option<String>, image: &str| {
            Some((pool.to_owned(), namespace, text(image)))
        };
        for (line, expected) in [
            ("bench --io-type read i", found("rbd", None, "i")),
            ("bench --io-type read p/i@s", found("p", None, "i@s")),
            ("bench --io-type read p/n/i", found("p", text("n"), "i")),
            ("bench --io-type read -p p --image i", found("p", None, "i")),
            (
                "-p p -N n bench --io-type read i",
                found("p", text("n"), "i"),
            ),
            ("bench --io-type read", None),
            ("bench --io-type read p/", None),
            ("bench --io-type read -p q p/i", None),
            ("bench --io-type write p/i@s", None),
        ] {
            assert_eq!(place(line), expected, "{line}");
        }
    }
}
