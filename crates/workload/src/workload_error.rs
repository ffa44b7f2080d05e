//! Reasons why a workload has no sequence of I/Os.

use super::distribution::DistributionError;

/// The reason why a workload has no sequence of I/Os.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// The layout has no file.
    #[error("the job has no file to work on")]
    NoFiles,
    /// A block of this many bytes cannot be issued.
    #[error("block size {bytes} is out of range: it must be from 1 byte to 4 GiB - 1")]
    BlockSize {
        /// The block size of the job, in bytes.
        bytes: u64,
    },
    /// A zone size or zone range is 0.
    #[error("zonemode=strided needs a zonesize and a zonerange above 0")]
    Zones,
    /// The random map would take too much memory.
    #[error(
        "a random map of {blocks} blocks is too large: the smallest block may be larger, \
         or use norandommap or softrandommap=1"
    )]
    MapSize {
        /// Number of smallest blocks in the file.
        blocks: u64,
    },
    /// The distribution does not exist or does not fit the file.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}
