//! What is to be run: the typed, resolved form of a job file.
//!
//! A [`Plan`] holds no option as text except for the record of what was given. Every number has its unit in its name,
//! every "unset" has been resolved, and the engine may rely on the rules written at each field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three directions data moves in. Also the index into [`PerDirection`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Device to memory.
    Read = 0,
    /// Memory to device.
    Write = 1,
    /// Discard.
    Trim = 2,
}

impl Direction {
    /// All directions, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// fio's name of the direction: `read`, `write`, `trim`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// One value for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PerDirectionOf{T}")]
pub struct PerDirection<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// Builds each direction's value.
    pub fn from_fn(mut make: impl FnMut(Direction) -> T) -> Self {
        PerDirection {
            read: make(Direction::Read),
            write: make(Direction::Write),
            trim: make(Direction::Trim),
        }
    }

    /// The three values beside their directions, in fio's order.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::ALL
            .into_iter()
            .map(|direction| (direction, &self[direction]))
    }
}

impl<T: Clone> PerDirection<T> {
    /// The same value for all directions.
    pub fn all(value: T) -> Self {
        PerDirection {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

impl<T> std::ops::Index<Direction> for PerDirection<T> {
    type Output = T;
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }
}

impl<T> std::ops::IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

/// Everything one invocation runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Jobs in the order they were written. `numjobs` is not expanded here.
    pub jobs: Vec<Job>,
    /// Options given in `[global]` sections or before the first `--name`, as fio's JSON reports them.
    pub global_options: Vec<GivenOption>,
}

/// An option as it was given: canonical name and the text of its value ("" when it stands without one).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenOption {
    /// Canonical option name, e.g. `rw` for `readwrite`.
    pub name: String,
    /// Value text after expansion.
    pub value: String,
}

/// One section of a job file, or one `--name` group of a command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Section name. Not unique.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// How many clones run it, at least 1.
    pub numjobs: u32,
    /// Reporting group: counted up by `stonewall` and `new_group` as fio does.
    pub groupid: u32,
    /// Options of this section, as fio's JSON reports them under "job options".
    pub given: Vec<GivenOption>,
    /// Where the data are.
    pub files: Files,
    /// What is done with them.
    pub workload: Workload,
    /// How I/O is issued.
    pub io: IoMethod,
    /// When the job runs and how fast it may go.
    pub schedule: Schedule,
    /// What is measured and reported.
    pub measure: Measure,
    /// Which errors are survived.
    pub errors: ErrorPolicy,
    /// Whether and how contents are checked.
    pub verify: Option<Verify>,
}

// ---------------------------------------------------------------- where

/// A length or position: absolute, or relative to the file's size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// In bytes.
    Bytes(u64),
    /// Per cent of the file or device (of `size` for `io_size`).
    Percent(f64),
}

/// Where the data are: `filename`, `directory`, `size` and their kin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// `filename`: explicit paths. Empty: names are made from [`Files::filename_format`].
    pub filenames: Vec<String>,
    /// `directory`: one or more; clones take them in turn.
    pub directories: Vec<String>,
    /// `filename_format`; fio's default is `$jobname.$jobnum.$filenum`.
    pub filename_format: Option<String>,
    /// `opendir`: take all files below this directory.
    pub opendir: Option<String>,
    /// `nrfiles`: files per clone, at least 1.
    pub nrfiles: u32,
    /// `openfiles`: how many are open at once; 0 is all.
    pub openfiles: u32,
    /// `file_service_type`.
    pub file_service: FileService,
    /// `filesize`: each file's size, drawn from this range.
    pub filesize: Option<(u64, u64)>,
    /// `size`: over all files of one clone. `None`: the size of the existing file or device.
    pub size: Option<Extent>,
    /// `io_size`: bytes to move; `None` is the same as `size`.
    pub io_size: Option<Extent>,
    /// `offset`: where each file's region starts.
    pub offset: Extent,
    /// `offset_increment`: added once per clone.
    pub offset_increment: Extent,
    /// `offset_align` in bytes; 0 is none.
    pub offset_align: u64,
    /// `fill_device`: write until the device is full; ENOSPC then ends the job without an error.
    pub fill_device: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `create_serialize`.
    pub create_serialize: bool,
    /// `create_fsync`.
    pub create_fsync: bool,
    /// `create_on_open`.
    pub create_on_open: bool,
    /// `create_only`: lay out the files and stop.
    pub create_only: bool,
    /// `overwrite`: lay files out before they are written.
    pub overwrite: bool,
    /// `file_append`.
    pub file_append: bool,
    /// `pre_read`.
    pub pre_read: bool,
    /// `invalidate`: drop the page cache of a file before it is used.
    pub invalidate: bool,
    /// `unlink`: remove files when the job is done.
    pub unlink: bool,
    /// `unlink_each_loop`.
    pub unlink_each_loop: bool,
    /// `allow_file_create`.
    pub allow_file_create: bool,
    /// `allow_mounted_write`: consent to write to a block device in use.
    pub allow_mounted_write: bool,
    /// `fadvise_hint`: what the kernel is told about the order of I/O to come.
    pub fadvise: Fadvise,
}

/// `fadvise_hint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fadvise {
    /// Nothing is told.
    None,
    /// What fits `rw`: fio's default.
    Pattern,
    /// POSIX_FADV_RANDOM
    Random,
    /// POSIX_FADV_SEQUENTIAL
    Sequential,
}

/// `file_service_type`: which open file the next I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileService {
    /// How the next file is picked.
    pub kind: FileServiceKind,
    /// I/Os before another file is picked, at least 1.
    pub every: u32,
}

/// How the next file is picked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileServiceKind {
    /// One after the other.
    RoundRobin,
    /// One is finished before the next is begun.
    Sequential,
    /// Uniformly at random.
    Random,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this h.
    Pareto(f64),
    /// Gauss with this deviation.
    Gauss(f64),
}

/// `fallocate`: how space is reserved before a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallocate {
    /// Not at all.
    None,
    /// fallocate(2) where it is supported.
    Native,
    /// posix_fallocate(3).
    Posix,
    /// FALLOC_FL_KEEP_SIZE.
    Keep,
    /// ftruncate(2).
    Truncate,
}

// ---------------------------------------------------------------- what

/// What is done: directions, block sizes, order, contents.
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
    /// `bs_is_seq_rand`: the read size is that of sequential, the write size that of random I/O.
    pub bs_is_seq_rand: bool,
    /// `rwmixread`, 0 to 100.
    pub rwmix_read_percent: u8,
    /// `percentage_random`, 0 to 100. 100 for random modes unless given.
    pub percentage_random: PerDirection<u8>,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `norandommap`, `softrandommap`.
    pub random_map: RandomMap,
    /// `random_generator`, as given.
    pub random_generator: RandomGenerator,
    /// `randrepeat`: the same sequence at every run.
    pub randrepeat: bool,
    /// `allrandrepeat`.
    pub allrandrepeat: bool,
    /// `randseed`.
    pub randseed: Option<u64>,
    /// `number_ios`: I/Os to complete before the job ends.
    pub number_ios: Option<u64>,
    /// `fsync`: after every N writes; 0 is never.
    pub fsync_every: u32,
    /// `fdatasync`: after every N writes; 0 is never.
    pub fdatasync_every: u32,
    /// `sync_file_range`.
    pub sync_file_range: Option<SyncFileRange>,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// `zonemode=strided` with its sizes.
    pub zones: Option<StridedZones>,
    /// What write buffers hold.
    pub buffers: Buffers,
}

/// `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadWrite {
    /// Which directions take part.
    pub mode: Mode,
    /// Random rather than sequential order.
    pub random: bool,
}

/// The directions of `rw`, whatever their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
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
}

impl ReadWrite {
    /// Whether I/O of this direction is part of the mode.
    pub fn has(self, direction: Direction) -> bool {
        match self.mode {
            Mode::Read => direction == Direction::Read,
            Mode::Write => direction == Direction::Write,
            Mode::Trim => direction == Direction::Trim,
            Mode::ReadWrite => direction != Direction::Trim,
            Mode::TrimWrite => direction != Direction::Read,
        }
    }

    /// fio's name: `randread`, `rw`, ...
    pub fn name(self) -> &'static str {
        match (self.mode, self.random) {
            (Mode::Read, false) => "read",
            (Mode::Read, true) => "randread",
            (Mode::Write, false) => "write",
            (Mode::Write, true) => "randwrite",
            (Mode::Trim, false) => "trim",
            (Mode::Trim, true) => "randtrim",
            (Mode::ReadWrite, false) => "rw",
            (Mode::ReadWrite, true) => "randrw",
            (Mode::TrimWrite, false) => "trimwrite",
            (Mode::TrimWrite, true) => "randtrimwrite",
        }
    }
}

/// The modifier after the colon of `rw`, and `rw_sequencer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequencer {
    /// Random modes: a new offset is drawn only every this many I/Os (1: each).
    pub every: u32,
    /// Sequential modes: bytes added to the offset after each I/O; negative skips back.
    pub skip_bytes: i64,
    /// `rw_sequencer`.
    pub kind: SequencerKind,
}

/// What the I/Os between two drawn offsets do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SequencerKind {
    /// Go on behind the last.
    Sequential,
    /// Repeat the same offset.
    Identical,
}

/// Block sizes of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockSize {
    /// All the same, in bytes.
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
        /// Position of the hottest block, 0 to 1; `None` scatters by hashing, as fio does.
        center: Option<f64>,
    },
    /// `pareto:h[:center]`.
    Pareto {
        /// Power.
        h: f64,
        /// As for zipf.
        center: Option<f64>,
    },
    /// `normal:deviation[:center]`, deviation in per cent.
    Normal {
        /// Standard deviation in per cent of the range.
        deviation_percent: f64,
        /// As for zipf.
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

/// Whether each block is visited once per pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RandomMap {
    /// Exactly once.
    Exact,
    /// `softrandommap`: exactly once where memory allows; here always possible.
    Soft,
    /// `norandommap`: drawn with replacement.
    None,
}

/// `random_generator`, as given. All are served by one generator of ours; `lfsr` also implies an exact map.
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
    /// Called after this many writes.
    pub every: u32,
}

/// `zonemode=strided`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StridedZones {
    /// `zonesize`: bytes of I/O before moving on.
    pub zone_size_bytes: u64,
    /// `zonerange`: bytes of one zone that I/O may touch.
    pub zone_range_bytes: u64,
    /// `zoneskip`: bytes skipped between zones.
    pub zone_skip_bytes: u64,
}

/// What write buffers hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Buffers {
    /// How they are filled.
    pub fill: BufferFill,
    /// `buffer_compress_percentage`.
    pub compress_percent: u8,
    /// `buffer_compress_chunk` in bytes.
    pub compress_chunk_bytes: u64,
    /// `dedupe_percentage`.
    pub dedupe_percent: u8,
    /// `dedupe_mode=working_set` with this per cent of the size.
    pub dedupe_working_set_percent: Option<u8>,
    /// `dedupe_global`: jobs with it share the working set.
    pub dedupe_global: bool,
}

/// How write buffers are filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BufferFill {
    /// Random once, then a few words changed at every I/O (`scramble_buffers`, fio's default).
    Scramble,
    /// Random once, never changed (`scramble_buffers=0`).
    Once,
    /// `refill_buffers`: random at every I/O.
    Refill,
    /// `zero_buffers`.
    Zero,
    /// `buffer_pattern`: these bytes over and over.
    Pattern(Vec<u8>),
}

// ---------------------------------------------------------------- how

/// `ioengine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring, else libaio, else psync: iosonde's own choice.
    Auto,
    /// io_uring.
    IoUring,
    /// Linux native AIO.
    Libaio,
    /// lseek and read/write.
    Sync,
    /// pread/pwrite.
    Psync,
    /// readv/writev on neighbouring I/Os.
    Vsync,
    /// preadv/pwritev.
    Pvsync,
    /// preadv2/pwritev2.
    Pvsync2,
    /// Memory mapping and memcpy.
    Mmap,
    /// No I/O at all.
    Null,
    /// The simulated device.
    Sim,
}

impl Engine {
    /// fio's name of the engine.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::IoUring => "io_uring",
            Engine::Libaio => "libaio",
            Engine::Sync => "sync",
            Engine::Psync => "psync",
            Engine::Vsync => "vsync",
            Engine::Pvsync => "pvsync",
            Engine::Pvsync2 => "pvsync2",
            Engine::Mmap => "mmap",
            Engine::Null => "null",
            Engine::Sim => "sim",
        }
    }
}

/// How I/O is issued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoMethod {
    /// `ioengine`.
    pub engine: Engine,
    /// `iodepth`, at least 1.
    pub iodepth: u32,
    /// `iodepth_batch_submit`; `None` when the job sets none: the engine may then batch as it likes.
    pub batch_submit: Option<u32>,
    /// `iodepth_batch_complete_min`; 0 polls.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`; `None` when not set.
    pub batch_complete_max: Option<u32>,
    /// `iodepth_low`: when full, drain to this depth before filling again; `None` is the same as `iodepth`.
    pub iodepth_low: Option<u32>,
    /// `serialize_overlap`.
    pub serialize_overlap: bool,
    /// `io_submit_mode=offload`.
    pub offload: bool,
    /// `direct`: O_DIRECT.
    pub direct: bool,
    /// `sync`: O_SYNC or O_DSYNC.
    pub sync: SyncMode,
    /// Engine-specific: polling, registration and so on.
    pub uring: UringOptions,
    /// `nowait`: RWF_NOWAIT.
    pub nowait: bool,
    /// `cmdprio_percentage`, for reads and writes.
    pub cmdprio_percent: PerDirection<u8>,
    /// `cmdprio_class` and `cmdprio`: the priority of those I/Os; real time, level 0, unless given.
    pub cmdprio: PerDirection<IoPriority>,
    /// `cmdprio_bssplit`: the share of prioritised I/Os for each block size instead of `cmdprio_percent`.
    pub cmdprio_split: Option<PerDirection<Vec<CmdprioPart>>>,
    /// `hipri_percentage` of pvsync2.
    pub hipri_percent: u8,
    /// `thread` given. Jobs are threads in any case.
    pub thread: bool,
    /// `nice`.
    pub nice: Option<i32>,
    /// `prioclass` and `prio`: I/O priority.
    pub ioprio: Option<IoPriority>,
    /// `cpus_allowed`, `cpumask`: CPU numbers.
    pub cpus_allowed: Option<Vec<u32>>,
    /// `cpus_allowed_policy=split`: each clone gets one of them.
    pub cpus_split: bool,
    /// `numa_cpu_nodes`.
    pub numa_cpu_nodes: Option<Vec<u32>>,
    /// `numa_mem_policy`.
    pub numa_mem_policy: Option<NumaMemPolicy>,
    /// `mem`.
    pub mem: Memory,
    /// `iomem_align` in bytes; 0 is the page size.
    pub mem_align_bytes: u64,
    /// `hugepage-size` in bytes, for the kinds of memory that use huge pages.
    pub hugepage_bytes: u64,
    /// `lockmem` in bytes.
    pub lockmem_bytes: u64,
    /// The simulated device, for [`Engine::Sim`]: `key=value,...` of its model.
    pub sim: Option<String>,
}

/// `sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// Neither flag.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// Options of the io_uring engine (and pvsync2's `hipri`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UringOptions {
    /// `hipri`: poll for completions.
    pub hipri: bool,
    /// `registerfiles`; `None` when the job does not say: the engine registers when it can.
    pub registerfiles: Option<bool>,
    /// `fixedbufs`; `None` as above.
    pub fixedbufs: Option<bool>,
    /// `sqthread_poll`.
    pub sqthread_poll: bool,
    /// `sqthread_poll_cpu`.
    pub sqthread_poll_cpu: Option<u32>,
    /// `nonvectored`; `None` when not given. Ours are always non-vectored unless this is `Some(false)`.
    pub nonvectored: Option<bool>,
    /// `force_async`: IOSQE_ASYNC on every Nth; 0 is none.
    pub force_async: u32,
}

/// I/O priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoPriority {
    /// 0 none, 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 (highest) to 7.
    pub level: u8,
}

/// One entry of `cmdprio_bssplit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CmdprioPart {
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Share of the I/Os of this size, in per cent.
    pub percent: u8,
    /// Their priority.
    pub priority: IoPriority,
}

/// `numa_mem_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaMemPolicy {
    /// default, prefer, bind, interleave or local.
    pub kind: NumaMemKind,
    /// Nodes it applies to.
    pub nodes: Vec<u32>,
}

/// The kinds of memory policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumaMemKind {
    /// MPOL_DEFAULT
    Default,
    /// MPOL_PREFERRED
    Prefer,
    /// MPOL_BIND
    Bind,
    /// MPOL_INTERLEAVE
    Interleave,
    /// MPOL_LOCAL
    Local,
}

/// `mem`: where I/O buffers come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// malloc
    Malloc,
    /// shm
    Shm,
    /// shmhuge
    ShmHuge,
    /// mmap, optionally of a file
    Mmap(Option<String>),
    /// mmaphuge, optionally of a file
    MmapHuge(Option<String>),
    /// mmapshared
    MmapShared,
}

// ---------------------------------------------------------------- when

/// When the job runs and how fast it may go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// `stonewall`: wait for all jobs before this one to end.
    pub stonewall: bool,
    /// `wait_for`: wait for the job of this name to end.
    pub wait_for: Option<String>,
    /// `startdelay` drawn from this range, in nanoseconds.
    pub startdelay_ns: (u64, u64),
    /// `runtime`; 0 is no limit.
    pub runtime_ns: u64,
    /// `time_based`: repeat until `runtime` is over.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp_time_ns: u64,
    /// `loops`, at least 1.
    pub loops: u32,
    /// `exitall`: when this job ends, others end.
    pub exitall: Option<ExitWhat>,
    /// `exitall_on_error`.
    pub exitall_on_error: bool,
    /// `thinktime` and its kin.
    pub thinktime: Option<ThinkTime>,
    /// `rate` in bytes per second.
    pub rate_bytes: PerDirection<Option<u64>>,
    /// `rate_min` in bytes per second: the job fails below it.
    pub rate_min_bytes: PerDirection<Option<u64>>,
    /// `rate_iops`.
    pub rate_iops: PerDirection<Option<u64>>,
    /// `rate_iops_min`.
    pub rate_iops_min: PerDirection<Option<u64>>,
    /// `rate_process=poisson`.
    pub rate_poisson: bool,
    /// `rate_ignore_thinktime`.
    pub rate_ignore_thinktime: bool,
    /// `rate_cycle`: window of the `rate_min` checks, in nanoseconds.
    pub rate_cycle_ns: u64,
    /// `latency_target` and its kin.
    pub latency_target: Option<LatencyTarget>,
    /// `max_latency` in nanoseconds.
    pub max_latency_ns: PerDirection<Option<u64>>,
    /// `steadystate` and its kin.
    pub steady_state: Option<SteadyState>,
    /// `flow` and its kin.
    pub flow: Option<Flow>,
}

/// `exit_what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitWhat {
    /// Jobs of the same group.
    Group,
    /// Running jobs, in any group.
    Stonewall,
    /// All, also those still to start.
    All,
}

/// `thinktime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkTime {
    /// Pause in nanoseconds.
    pub pause_ns: u64,
    /// `thinktime_spin`: the first part of it is spent spinning.
    pub spin_ns: u64,
    /// `thinktime_blocks`: pause after this many blocks.
    pub blocks: u32,
    /// `thinktime_blocks_type=issue` counts issued rather than completed blocks.
    pub count_issued: bool,
    /// `thinktime_iotime`: pause only after this much time of I/O; 0 is off.
    pub iotime_ns: u64,
}

/// `latency_target`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTarget {
    /// Completion latency to stay below.
    pub target_ns: u64,
    /// `latency_window`.
    pub window_ns: u64,
    /// `latency_percentile`.
    pub percentile: f64,
    /// `latency_run`: go on after the depth is found.
    pub run: bool,
}

/// `steadystate`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// What must hold still.
    pub metric: SteadyMetric,
    /// Whether the limit is on the slope instead of the deviation from the mean.
    pub slope: bool,
    /// The limit: per cent when `percent`, else in the metric's unit (IOPS or KiB/s).
    pub limit: f64,
    /// Whether `limit` is in per cent.
    pub percent: bool,
    /// `ss_dur`.
    pub duration_ns: u64,
    /// `ss_ramp`.
    pub ramp_ns: u64,
    /// `ss_interval`.
    pub interval_ns: u64,
}

/// What `steadystate` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMetric {
    /// I/Os per second.
    Iops,
    /// Bandwidth.
    Bandwidth,
}

/// `flow`: jobs that share an id keep their I/O counts in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// `flow_id`.
    pub id: u32,
    /// `flow`: weight.
    pub weight: i64,
    /// `flow_sleep` in nanoseconds.
    pub sleep_ns: u64,
}

// ---------------------------------------------------------------- measure

/// What is measured and reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// `group_reporting`.
    pub group_reporting: bool,
    /// Submission latency is recorded (`disable_slat`, `gtod_reduce`).
    pub slat: bool,
    /// Completion latency is recorded.
    pub clat: bool,
    /// Total latency is recorded.
    pub lat: bool,
    /// Bandwidth samples are taken (`disable_bw_measurement`).
    pub bw: bool,
    /// `slat_percentiles`.
    pub slat_percentiles: bool,
    /// `clat_percentiles`.
    pub clat_percentiles: bool,
    /// `lat_percentiles`.
    pub lat_percentiles: bool,
    /// `percentile_list`; fio's twenty by default.
    pub percentiles: Vec<f64>,
    /// `significant_figures`.
    pub significant_figures: u32,
    /// `unified_rw_reporting`.
    pub unified: UnifiedReporting,
    /// `stats=0`: left out of the group's sums.
    pub stats: bool,
    /// `write_bw_log`, ...: what is logged and where.
    pub logs: Logs,
    /// `bwavgtime` in nanoseconds.
    pub bw_window_ns: u64,
    /// `iopsavgtime` in nanoseconds.
    pub iops_window_ns: u64,
    /// `disk_util`.
    pub disk_util: bool,
    /// `kb_base`, 1024 or 1000: whether sizes are printed in KiB or kB.
    pub kb_base: u32,
    /// `unit_base`: 8 prints bytes, 1 prints bits, 0 leaves the choice to the printer.
    pub unit_base: u32,
}

/// `unified_rw_reporting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnifiedReporting {
    /// Each direction by itself.
    None,
    /// All directions summed.
    Mixed,
    /// Both.
    Both,
}

/// Logs, each with the prefix of its file names. "" stands for the job's name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Logs {
    /// `write_bw_log`.
    pub bw: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`: slat, clat and lat files.
    pub lat: Option<String>,
    /// `write_hist_log`.
    pub hist: Option<String>,
    /// `per_job_logs`.
    pub per_job: bool,
    /// `log_avg_msec`; 0 logs every I/O.
    pub avg_ms: u64,
    /// `log_hist_msec`.
    pub hist_ms: u64,
    /// `log_hist_coarseness`.
    pub hist_coarseness: u32,
    /// `log_max_value`: the window's maximum instead of its mean.
    pub max_value: bool,
    /// `log_offset`.
    pub offset: bool,
    /// `log_prio`.
    pub prio: bool,
    /// `log_unix_epoch`.
    pub unix_epoch: bool,
}

/// Which errors are survived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorPolicy {
    /// `continue_on_error`: go on after errors of reads.
    pub continue_read: bool,
    /// ... of writes.
    pub continue_write: bool,
    /// ... of verification.
    pub continue_verify: bool,
    /// `ignore_error`: errno values that are not even counted, for read, write and verify.
    pub ignore: [Vec<i32>; 3],
    /// `error_dump`.
    pub dump: bool,
}

// ---------------------------------------------------------------- verify

/// `verify` and its kin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verify {
    /// Which check.
    pub method: VerifyMethod,
    /// `do_verify`: read back after a write phase.
    pub do_verify: bool,
    /// `verify_only`: do no writes, check what an earlier run wrote.
    pub verify_only: bool,
    /// `verify_fatal`: stop at the first mismatch.
    pub fatal: bool,
    /// `verify_dump`.
    pub dump: bool,
    /// `verify_interval` in bytes; 0 is the block size.
    pub interval_bytes: u64,
    /// `verify_offset` in bytes.
    pub header_offset_bytes: u64,
    /// `verify_pattern`.
    pub pattern: Option<VerifyPattern>,
    /// `verify_backlog`: verify after this many writes; 0 is off.
    pub backlog: u64,
    /// `verify_backlog_batch`; 0 is the same as the backlog.
    pub backlog_batch: u64,
    /// `verify_async`: number of checking threads; checked inline when 0.
    pub r#async: u32,
    /// `verifysort`.
    pub sort: bool,
}

/// The checks of `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum VerifyMethod {
    Crc32c,
    Crc32,
    Crc16,
    Crc7,
    Crc64,
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Xxhash,
    /// The pattern alone, without a header.
    Pattern,
    /// The pattern behind a header.
    PatternHeader,
    /// Reads without a check.
    Null,
}

/// `verify_pattern`: fixed bytes and `%o` fields (the block's offset, 8 bytes little endian).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyPattern {
    /// The parts in order.
    pub parts: Vec<PatternPart>,
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternPart {
    /// Literal bytes.
    Bytes(Vec<u8>),
    /// `%o`: the offset of the I/O's block, 8 bytes.
    Offset,
}
