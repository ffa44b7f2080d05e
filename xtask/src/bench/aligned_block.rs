//! Buffers of the bare loops.

/// Length of a read.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Buffer of a read.
#[derive(Clone)]
#[repr(C, align(4096))]
pub(super) struct AlignedBlock(pub(super) [u8; BLOCK_BYTES as usize]);

impl AlignedBlock {
    /// A buffer of zeros.
    pub(super) const ZEROED: AlignedBlock = AlignedBlock([0; BLOCK_BYTES as usize]);
}
