//! What studies write: their result, and targets that hold something.

use super::{ConsentArgs, TextFormat};
use clap::Args;
use std::path::PathBuf;

/// How and where the result is written, and what else may be.
#[derive(Debug, Args)]
pub(crate) struct WrittenArgs {
    /// How the result is written
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    pub(crate) format: TextFormat,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}
