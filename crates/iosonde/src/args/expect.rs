//! Arguments of the commands that hold what was measured against what was promised.

use clap::Args;
use std::path::PathBuf;

/// What is expected.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExpectArgs {
    /// Hold it against what a vendor publishes, e.g. gcp-pd-ssd:375GiB,machine=n1,vcpus=8, as
    /// `iosonde limits` takes it; may be repeated
    #[arg(long, value_name = "PRODUCT:KEY=VALUE,...")]
    pub(crate) expect: Vec<String>,
    /// A limits file of your own, beside the published one; docs/limits.md describes it
    #[arg(long, value_name = "FILE", requires = "expect")]
    pub(crate) limits_file: Option<PathBuf>,
}
