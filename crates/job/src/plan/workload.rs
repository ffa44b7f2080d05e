//! The I/Os of a job: directions, block sizes, order, contents.

use super::{Direction, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The I/Os of a job: directions, block sizes, order, contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// `rw`.
    pub rw: ReadWrite,
    /// `rw=randread:N` or `rw=write:4k`, and `rw_sequencer`.
    pub sequencer: Sequencer,
    /// `bs`, `bsrange`, `bssplit`.
    pub block_size: PerDirection<BlockSize>,
    /// `blockalign` in bytes; 0 is the smallest block size of the direction.
    pub block_align: PerDirection<u64>,
    /// `bs_unaligned`.
    pub bs_unaligned: bool,
    /// `bs_is_seq_rand`: the read size applies to sequential I/O, the write size to random I/O.
    pub bs_is_seq_rand: bool,
    /// `rwmixread`, 0 to 100.
    pub rwmix_read_percent: u8,
    /// `percentage_random`, 0 to 100. The default of random modes is 100.
    pub percentage_random: PerDirection<u8>,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `norandommap`, `softrandommap`.
    pub random_map: RandomMap,
    /// `random_generator`, as given.
    pub random_generator: RandomGenerator,
    /// `randrepeat`: the same sequence in every run.
    pub randrepeat: bool,
    /// `allrandrepeat`.
    pub allrandrepeat: bool,
    /// `randseed`.
    pub randseed: Option<u64>,
    /// `number_ios`: number of completed I/Os after which the job ends.
    pub number_ios: Option<u64>,
    /// `fsync`: one after every N writes; 0 is never.
    pub fsync_every: u32,
    /// `fdatasync`: one after every N writes; 0 is never.
    pub fdatasync_every: u32,
    /// `sync_file_range`.
    pub sync_file_range: Option<SyncFileRange>,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// `zonemode=strided` with its sizes.
    pub zones: Option<StridedZones>,
    /// Contents of the write buffers.
    pub buffers: Buffers,
}

/// `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadWrite {
    /// Directions of the I/O.
    pub mode: ReadWriteMode,
    /// Whether the order is random.
    pub random: bool,
}

/// The directions of `rw`, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadWriteMode {
    /// read, randread
    Read,
    /// write, randwrite
    Write,
    /// trim, randtrim
    Trim,
    /// rw, readwrite, randrw
    ReadWrite,
    /// trimwrite, randtrimwrite: a block is trimmed, then written
    TrimWrite,
    /// All three; only traces have them.
    All,
}

/// The names of `rw` in a job file.
pub(crate) const READ_WRITE_NAMES: &[(&str, ReadWrite)] = &[
    ("read", read_write(ReadWriteMode::Read, false)),
    ("write", read_write(ReadWriteMode::Write, false)),
    ("trim", read_write(ReadWriteMode::Trim, false)),
    ("randread", read_write(ReadWriteMode::Read, true)),
    ("randwrite", read_write(ReadWriteMode::Write, true)),
    ("randtrim", read_write(ReadWriteMode::Trim, true)),
    ("rw", read_write(ReadWriteMode::ReadWrite, false)),
    ("readwrite", read_write(ReadWriteMode::ReadWrite, false)),
    ("randrw", read_write(ReadWriteMode::ReadWrite, true)),
    ("trimwrite", read_write(ReadWriteMode::TrimWrite, false)),
    ("randtrimwrite", read_write(ReadWriteMode::TrimWrite, true)),
];

/// The name of all directions, which only traces have.
const READ_WRITE_TRIM: &str = "readwritetrim";

const fn read_write(mode: ReadWriteMode, random: bool) -> ReadWrite {
    ReadWrite { mode, random }
}

impl ReadWriteMode {
    /// The direction of all I/O. `None`: the mode is a mix.
    pub fn only_direction(self) -> Option<Direction> {
        match self {
            ReadWriteMode::Read => Some(Direction::Read),
            ReadWriteMode::Write => Some(Direction::Write),
            ReadWriteMode::Trim => Some(Direction::Trim),
            ReadWriteMode::ReadWrite | ReadWriteMode::TrimWrite | ReadWriteMode::All => None,
        }
    }
}

impl ReadWrite {
    /// Reads the value of `rw`, of a job file of fio or as [`name`](Self::name) writes it, with or
    /// without a number after a colon: `randrw:8`. `None`: fio has no such value.
    pub fn from_rw(value: &str) -> Option<ReadWrite> {
        let name = value.split(':').next().unwrap_or_default().trim();
        let traced = (name == READ_WRITE_TRIM).then(|| read_write(ReadWriteMode::All, false));
        let known = READ_WRITE_NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, rw)| *rw).or(traced)
    }

    /// Whether the mode includes this direction.
    pub fn has(self, direction: Direction) -> bool {
        match self.mode {
            ReadWriteMode::Read => direction == Direction::Read,
            ReadWriteMode::Write => direction == Direction::Write,
            ReadWriteMode::Trim => direction == Direction::Trim,
            ReadWriteMode::ReadWrite => direction != Direction::Trim,
            ReadWriteMode::TrimWrite => direction != Direction::Read,
            ReadWriteMode::All => true,
        }
    }

    /// fio's name: `randread`, `rw`, ...
    pub fn name(self) -> &'static str {
        match (self.mode, self.random) {
            (ReadWriteMode::Read, false) => "read",
            (ReadWriteMode::Read, true) => "randread",
            (ReadWriteMode::Write, false) => "write",
            (ReadWriteMode::Write, true) => "randwrite",
            (ReadWriteMode::Trim, false) => "trim",
            (ReadWriteMode::Trim, true) => "randtrim",
            (ReadWriteMode::ReadWrite, false) => "rw",
            (ReadWriteMode::ReadWrite, true) => "randrw",
            (ReadWriteMode::TrimWrite, false) => "trimwrite",
            (ReadWriteMode::TrimWrite, true) => "randtrimwrite",
            (ReadWriteMode::All, _) => READ_WRITE_TRIM,
        }
    }
}

/// The modifier after the colon of `rw`, and `rw_sequencer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequencer {
    /// Random modes: number of I/Os for each drawn offset; 1 draws an offset for each I/O.
    pub every: u32,
    /// Sequential modes: bytes added to the offset after each I/O; negative skips back.
    pub skip_bytes: i64,
    /// `rw_sequencer`.
    pub kind: SequencerKind,
}

/// Offset of the I/Os between two drawn offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SequencerKind {
    /// The end of the previous I/O.
    Sequential,
    /// The same offset again.
    Identical,
}

/// Block sizes of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockSize {
    /// One size, in bytes.
    Fixed(u64),
    /// `bsrange`: uniformly drawn multiples of `min` up to `max`.
    Range {
        /// Smallest, in bytes.
        min: u64,
        /// Largest, in bytes.
        max: u64,
    },
    /// `bssplit`: sizes in bytes with weights in per cent that sum to 100.
    Split(Vec<(u64, u8)>),
}

impl BlockSize {
    /// The smallest block, in bytes.
    pub fn min(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { min, .. } => *min,
            BlockSize::Split(split) => split.iter().map(|part| part.0).min().unwrap_or(0),
        }
    }

    /// The largest block, in bytes.
    pub fn max(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { max, .. } => *max,
            BlockSize::Split(split) => split.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }
}

/// Multiplier that scatters the hot blocks of zipf, pareto and normal over the range. The drawn
/// value is multiplied modulo 2^64, then shifted and taken modulo the number of blocks. The
/// constant is fio's: 2^64 divided by the square of the golden ratio, made prime (D. E. Knuth, "The
/// Art of Computer Programming", volume 3, section 6.4).
pub const SCATTER_MULTIPLIER: u64 = 0x61c8_8646_80b5_83eb;

/// `random_distribution`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Each block equally likely.
    Random,
    /// `zipf:theta[:center]`.
    Zipf {
        /// Skew.
        theta: f64,
        /// Position of the hottest block, 0 to 1; drawn at random if `None`. The other blocks are
        /// scattered over the range, as in fio.
        center: Option<f64>,
    },
    /// `pareto:h[:center]`.
    Pareto {
        /// Power.
        h: f64,
        /// Position of the hottest block, as for zipf.
        center: Option<f64>,
    },
    /// `normal:deviation[:center]`, deviation in per cent.
    Normal {
        /// Width of a uniform draw, in per cent of the range. As in fio, it is not the standard
        /// deviation: the draw widens a normal distribution whose standard deviation is 8.3 % of
        /// the range.
        deviation_percent: f64,
        /// Shift of the blocks, 0 to 1. The blocks are scattered, so the mean stays in the middle.
        center: Option<f64>,
    },
    /// `zoned:access%/range%:...`.
    Zoned(PerDirection<Vec<PercentZone>>),
    /// `zoned_abs:access%/bytes:...`.
    ZonedAbs(PerDirection<Vec<ByteZone>>),
}

/// A zone of `zoned`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentZone {
    /// Share of the accesses in per cent.
    pub access_percent: u8,
    /// Share of the file in per cent.
    pub size_percent: u8,
}

/// A zone of `zoned_abs`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByteZone {
    /// Share of the accesses in per cent.
    pub access_percent: u8,
    /// Length in bytes; 0 is the rest of the file.
    pub size_bytes: u64,
}

/// `norandommap` and `softrandommap`: whether each block is accessed once per pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RandomMap {
    /// Exactly once.
    Exact,
    /// `softrandommap`: exactly once if memory allows. iosonde's map always fits into memory.
    Soft,
    /// `norandommap`: offsets are drawn with replacement.
    None,
}

/// `random_generator`, as given. iosonde has one generator for all of them; `lfsr` also implies an
/// exact map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RandomGenerator {
    /// fio's default.
    Tausworthe,
    /// 64-bit variant.
    Tausworthe64,
    /// Linear feedback shift register.
    Lfsr,
}

/// `sync_file_range=wait_before,write,wait_after:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncFileRange {
    /// SYNC_FILE_RANGE_WAIT_BEFORE.
    pub wait_before: bool,
    /// SYNC_FILE_RANGE_WRITE.
    pub write: bool,
    /// SYNC_FILE_RANGE_WAIT_AFTER.
    pub wait_after: bool,
    /// Number of writes between two calls.
    pub every: u32,
}

/// `zonemode=strided`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StridedZones {
    /// `zonesize`: bytes of I/O in one zone before the next.
    pub zone_size_bytes: u64,
    /// `zonerange`: bytes of one zone that I/O may touch.
    pub zone_range_bytes: u64,
    /// `zoneskip`: bytes skipped between zones.
    pub zone_skip_bytes: u64,
}

/// Contents of the write buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Buffers {
    /// The way the buffers are filled.
    pub fill: BufferFill,
    /// `buffer_compress_percentage`.
    pub compress_percent: u8,
    /// `buffer_compress_chunk` in bytes.
    pub compress_chunk_bytes: u64,
    /// `dedupe_percentage`.
    pub dedupe_percent: u8,
    /// `dedupe_mode=working_set`: the working set in per cent of the size.
    pub dedupe_working_set_percent: Option<u8>,
    /// `dedupe_global`: jobs with this option share the working set.
    pub dedupe_global: bool,
}

/// The way write buffers are filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BufferFill {
    /// Random contents once, then a few words changed for each I/O (`scramble_buffers`, fio's
    /// default).
    Scramble,
    /// Random contents once, never changed (`scramble_buffers=0`).
    Once,
    /// `refill_buffers`: new random contents for each I/O.
    Refill,
    /// `zero_buffers`.
    Zero,
    /// `buffer_pattern`: these bytes, repeated.
    Pattern(Vec<u8>),
    /// The contents of `rados bench`: the number of the I/O as text, then the letter z.
    RadosBench,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_write_names_are_read_back() {
        let traced = read_write(ReadWriteMode::All, false);
        let known = READ_WRITE_NAMES.iter().map(|(_, rw)| *rw);
        for rw in known.chain([traced]) {
            assert_eq!(ReadWrite::from_rw(rw.name()), Some(rw));
        }
    }

    #[test]
    fn read_write_value_with_number_has_its_mode() {
        let mixed = read_write(ReadWriteMode::ReadWrite, true);
        assert_eq!(ReadWrite::from_rw("randrw:8"), Some(mixed));
        assert_eq!(ReadWrite::from_rw("random"), None);
        assert_eq!(ReadWrite::from_rw(""), None);
    }

    #[test]
    fn mode_of_a_mix_has_no_only_direction() {
        let only = |value: &str| ReadWrite::from_rw(value).unwrap().mode.only_direction();
        assert_eq!(only("randtrim"), Some(Direction::Trim));
        for mix in ["rw", "randrw", "readwrite", "trimwrite", "readwritetrim"] {
            assert_eq!(only(mix), None, "{mix}");
        }
    }
}
