//! Options for the output of studies, and for targets that they may overwrite.

use super::ConsentArgs;
use super::output_file::text_file;
use clap::Args;
use iosonde_report::format::TextFormat;
use std::path::PathBuf;

/// How and where the result is written, and what else may be.
#[derive(Debug, Args)]
pub(crate) struct WrittenArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}
