//! The workload generator: computes the offset, size, direction, file and contents of the next I/O.
//!
//! The crate is pure. It makes no system call, and a [`Generator`] allocates nothing after its
//! construction. Equal [`Seeds`] give equal I/Os on every machine: integers come from xoshiro256++,
//! and the few floating-point functions come from `libm` instead of the platform.
//!
//! * [`generator`] combines the parts and counts bytes and passes.
//! * [`files`] picks the file, `mix` the direction, `position` the offset, `block_size` the
//!   length.
//! * `permutation` is the random map for blocks of one size, `block_map` the one for mixed
//!   sizes.
//! * [`distribution`] draws blocks with replacement.
//! * [`buffers`] fills write buffers, [`verify`] fills and checks the blocks of a verify job.

mod block_map;
mod block_size;
mod budget;
pub mod buffers;
pub mod distribution;
pub mod files;
pub mod generator;
mod mismatch;
mod mix;
mod permutation;
mod position;
mod position_rules;
pub mod rados_bench;
pub mod rng;
pub mod verify;
mod workload_error;

pub use files::{FileLayout, FileRegion};
pub use generator::{Generator, StartOver};
pub use rng::Seeds;
pub use workload_error::WorkloadError;

use iosonde_job::plan::Direction;

/// The operation of an [`Io`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Discard `len` bytes at `offset`.
    Trim,
    /// fsync(2) on the file.
    Fsync,
    /// fdatasync(2) on the file.
    Fdatasync,
    /// sync_file_range(2) over `offset` and `len`, where a `len` of 0 reaches to the end of the
    /// file.
    SyncFileRange,
}

impl Op {
    /// The direction in which the operation moves data; `None` for the syncs.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Op::Read => Some(Direction::Read),
            Op::Write => Some(Direction::Write),
            Op::Trim => Some(Direction::Trim),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => None,
        }
    }
}

impl From<Direction> for Op {
    #[inline]
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Trim,
        }
    }
}

/// One I/O to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Io {
    /// Position in the file, in bytes from its start.
    pub offset: u64,
    /// Length in bytes; 0 for fsync and fdatasync.
    pub len: u32,
    /// Index of the file in the layout.
    pub file: u32,
    /// The operation.
    pub op: Op,
}

impl Io {
    /// A placeholder to fill arrays with before [`Generator::fill`] overwrites them.
    pub const EMPTY: Io = Io {
        offset: 0,
        len: 0,
        file: 0,
        op: Op::Read,
    };
}
