//! `iosonde limits`: what was promised?

mod csv;
mod json;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod words;

use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, ValueEnum};
use iosonde_machine::bounded_read;
use iosonde_study::limits::{self, ChosenBandwidth, Limits, LimitsError, Query};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde limits                                       all products
  iosonde limits gcp-pd-ssd --size 375GiB --machine n1 --vcpus 8
  iosonde limits gcp-pd-ssd --size 375GiB --as-of 2016
  iosonde limits aws-gp3 --size 1TiB --iops 16000 --throughput 500 --machine m5.large
  iosonde limits gcp-local-ssd-nvme --disks 24 --machine n1-standard-8 --service gke
  iosonde limits azure-premium-ssd:size=1TiB,with=performance-plus

The last form is the one that `probe --expect` takes. docs/limits.md describes the limits file.";

/// Arguments of `iosonde limits`.
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// Product, e.g. gcp-pd-ssd; may be followed by :KEY=VALUE,... [default: list all]
    #[arg(value_name = "PRODUCT")]
    pub(crate) product: Option<String>,
    /// Size of each volume, e.g. 375GiB or 2TiB; GiB if there is no unit
    #[arg(long, value_parser = limits::size_gib, value_name = "SIZE")]
    pub(crate) size: Option<f64>,
    /// Number of volumes or local disks, all on one machine
    #[arg(long, visible_alias = "count", value_parser = limits::count, value_name = "N")]
    pub(crate) disks: Option<u32>,
    /// Machine type or family, e.g. n1-standard-8, n1, m5.large
    #[arg(long, value_name = "TYPE")]
    pub(crate) machine: Option<String>,
    /// Number of its vCPUs, where the type does not tell
    #[arg(long, value_parser = limits::count, value_name = "N")]
    pub(crate) vcpus: Option<u32>,
    /// Its processor, where the type does not tell, e.g. "Ice Lake"
    #[arg(long, value_name = "NAME")]
    pub(crate) cpu: Option<String>,
    /// Provisioned IOPS of each volume, e.g. 16000 or 16k
    #[arg(long, value_parser = limits::iops, value_name = "IOPS")]
    pub(crate) iops: Option<f64>,
    /// Provisioned bandwidth of each volume, e.g. 500MiB/s; the vendor's unit if there is none
    #[arg(long, value_parser = limits::bandwidth, value_name = "BANDWIDTH")]
    pub(crate) throughput: Option<ChosenBandwidth>,
    /// An option that was taken, e.g. performance-plus; may be repeated
    #[arg(long, value_name = "OPTION")]
    pub(crate) with: Vec<String>,
    /// Service through which the machine is had, e.g. gke
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// The year, month or day whose limits are meant, e.g. 2016 or 2016-08-12 [default: the newest]
    #[arg(long, value_parser = limits::date, value_name = "DATE")]
    pub(crate) as_of: Option<String>,
    /// A limits file of your own, beside the published one
    #[arg(long, visible_alias = "limits-file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = LimitsFormat::Table)]
    pub(crate) format: LimitsFormat,
    /// File to write it to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How limits are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitsFormat {
    /// For people
    Table,
    /// All that is known, for programs
    Json,
    /// One line for each figure
    Csv,
    /// Tables for a report or an issue
    Markdown,
}

/// Prints what was promised, or all products.
pub(crate) fn run(args: &LimitsArgs) -> Result<(), Failure> {
    let text = answer(args)?;
    Output::open(args.output.as_deref())?.save(&text)
}

fn answer(args: &LimitsArgs) -> Result<String, Failure> {
    let limits = read(args.file.as_deref())?;
    let Some(product) = &args.product else {
        if let Some(option) = args.about_a_product() {
            return Err(Failure::usage(
                format!("--{option} needs a product"),
                "name one before it; `iosonde limits` alone lists all",
            ));
        }
        let list = limits.list();
        return match args.format {
            LimitsFormat::Table => Ok(table::list(&list)),
            LimitsFormat::Json => json::list(&list),
            LimitsFormat::Csv => Ok(csv::list(&list)),
            LimitsFormat::Markdown => Ok(markdown::list(&list)),
        };
    };
    let query = query(product, args).map_err(refused)?;
    let promise = limits.evaluate(&query).map_err(refused)?;
    match args.format {
        LimitsFormat::Table => Ok(table::promise(&promise)),
        LimitsFormat::Json => json::promise(&promise),
        LimitsFormat::Csv => Ok(csv::promise(&promise)),
        LimitsFormat::Markdown => Ok(markdown::promise(&promise)),
    }
}

/// The published limits, and those of a file.
pub(crate) fn read(path: Option<&Path>) -> Result<Cow<'static, Limits>, Failure> {
    let published = Limits::published();
    let Some(path) = path else {
        return Ok(Cow::Borrowed(published));
    };
    let name = path.display().to_string();
    let text = bounded_read::text(path).map_err(|error| {
        Failure::usage(
            format!("{name}: {error}"),
            "name a limits file; docs/limits.md describes it",
        )
    })?;
    match published.with_file(&name, &text) {
        Ok(limits) => Ok(Cow::Owned(limits)),
        Err(error) => Err(Failure::usage(
            error.to_string(),
            "docs/limits.md describes the limits file",
        )),
    }
}

/// What the flags say counts, and what they leave open is as in the product's own text.
fn query(product: &str, args: &LimitsArgs) -> Result<Query, LimitsError> {
    let mut query: Query = product.parse()?;
    query.size_gib = args.size.or(query.size_gib);
    query.disks = args.disks.or(query.disks);
    query.machine = args.machine.clone().or(query.machine);
    query.vcpus = args.vcpus.or(query.vcpus);
    query.cpu = args.cpu.clone().or(query.cpu);
    query.iops = args.iops.or(query.iops);
    query.bandwidth = args.throughput.or(query.bandwidth);
    query.with.extend(args.with.iter().cloned());
    let service = args.service.as_ref().map(|service| service.to_lowercase());
    query.service = service.or(query.service);
    query.as_of = args.as_of.clone().or(query.as_of);
    Ok(query)
}

impl LimitsArgs {
    /// A flag that says nothing without a product.
    fn about_a_product(&self) -> Option<&'static str> {
        [
            (self.size.is_some(), "size"),
            (self.disks.is_some(), "disks"),
            (self.machine.is_some(), "machine"),
            (self.vcpus.is_some(), "vcpus"),
            (self.cpu.is_some(), "cpu"),
            (self.iops.is_some(), "iops"),
            (self.throughput.is_some(), "throughput"),
            (!self.with.is_empty(), "with"),
            (self.service.is_some(), "service"),
            (self.as_of.is_some(), "as-of"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// There is no answer: the arguments are to be changed.
pub(crate) fn refused(error: LimitsError) -> Failure {
    Failure::usage(error.to_string(), error.remedy())
}
