//! Options that permit overwriting targets.

use clap::Args;
use iosonde_machine::consent::Consent;
use std::path::PathBuf;

/// Consent to overwrite targets.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConsentArgs {
    /// Permit overwriting this file, block device or Ceph image (rbd://POOL/IMAGE), or the block
    /// volume of this claim (pvc://NAME) or storage class (sc://CLASS); may be repeated
    #[arg(long, value_name = "TARGET")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Permit overwriting this file or block device, or the block volume of this \
                    claim (pvc://NAME) or storage class (sc://CLASS); may be repeated"
        )
    )]
    pub(crate) allow_overwrite: Vec<PathBuf>,
    /// Permit writing to this target of --allow-overwrite even if it is mounted, in use as swap,
    /// part of another device or open in another process; may be repeated
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow_in_use: Vec<PathBuf>,
}

impl ConsentArgs {
    /// Returns the consent, resolved to the disks that the names mean now.
    pub(crate) fn noted(&self) -> Consent {
        Consent::to_overwrite(&self.allow_overwrite).and_in_use(&self.allow_in_use)
    }
}
