//! Which targets may be lost.

use clap::Args;
use iosonde_machine::consent::Consent;
use std::path::PathBuf;

/// Consent to overwrite targets.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConsentArgs {
    /// Consent to overwrite this file or block device, or the block volume of this claim
    /// (pvc://NAME) or storage class (sc://CLASS); may be repeated
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow_overwrite: Vec<PathBuf>,
    /// Write to this target of --allow-overwrite even while it is mounted, swapped to, part of
    /// another device or open elsewhere; may be repeated
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow_in_use: Vec<PathBuf>,
}

impl ConsentArgs {
    /// The consent, with the disks that the names mean now.
    pub(crate) fn noted(&self) -> Consent {
        Consent::to_overwrite(&self.allow_overwrite).and_in_use(&self.allow_in_use)
    }
}
