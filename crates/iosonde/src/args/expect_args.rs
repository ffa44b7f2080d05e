//! Arguments of the commands that compare measurements with promises.

use clap::Args;
use std::path::PathBuf;

/// Expected figures.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExpectArgs {
    /// Compare with a vendor's published limits, e.g. gcp-pd-ssd:375GiB,machine=n1,vcpus=8, in the
    /// syntax of `iosonde limits`; may be repeated
    #[arg(long, value_name = "PRODUCT:KEY=VALUE,...")]
    pub(crate) expect: Vec<String>,
    /// File with further limits, added to the published ones; docs/limits.md describes the format
    #[arg(long, value_name = "FILE", requires = "expect")]
    pub(crate) limits_file: Option<PathBuf>,
}
