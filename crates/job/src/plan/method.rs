//! The way I/O is issued: engine, depth, memory, priorities.

use super::{Ceph, PerDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// POSIX AIO, through threads of the C library.
    Posixaio,
    /// lseek and read/write.
    Sync,
    /// pread/pwrite.
    Psync,
    /// readv/writev on adjacent I/Os.
    Vsync,
    /// preadv/pwritev.
    Pvsync,
    /// preadv2/pwritev2.
    Pvsync2,
    /// Memory mapping and memcpy.
    Mmap,
    /// Objects of a Ceph pool, through librados.
    Rados,
    /// A Ceph image, through librbd.
    Rbd,
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
            Engine::Posixaio => "posixaio",
            Engine::Sync => "sync",
            Engine::Psync => "psync",
            Engine::Vsync => "vsync",
            Engine::Pvsync => "pvsync",
            Engine::Pvsync2 => "pvsync2",
            Engine::Mmap => "mmap",
            Engine::Rados => "rados",
            Engine::Rbd => "rbd",
            Engine::Null => "null",
            Engine::Sim => "sim",
        }
    }

    /// Whether the engine opens files of this machine by path.
    pub fn has_paths(self) -> bool {
        !matches!(
            self,
            Engine::Null | Engine::Sim | Engine::Rados | Engine::Rbd
        )
    }

    /// Whether each call returns only when its I/O is complete. Such an engine has one I/O in
    /// flight, whatever the depth.
    pub fn is_synchronous(self) -> bool {
        matches!(
            self,
            Engine::Sync | Engine::Psync | Engine::Pvsync | Engine::Pvsync2 | Engine::Mmap
        )
    }

    /// Whether the engine uses a Ceph cluster.
    pub fn is_ceph(self) -> bool {
        matches!(self, Engine::Rados | Engine::Rbd)
    }
}

/// Engine, depth, memory and priorities of the I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoMethod {
    /// `ioengine`.
    pub engine: Engine,
    /// `iodepth`, at least 1.
    pub iodepth: u32,
    /// `iodepth_batch_submit`. `None` if the job does not set it: the engine chooses its batches.
    pub batch_submit: Option<u32>,
    /// `iodepth_batch_complete_min`; 0 polls.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`; `None` if not set.
    pub batch_complete_max: Option<u32>,
    /// `iodepth_low`: once the queue is full, drain it to this depth before filling it again.
    /// `None` is the same as `iodepth`.
    pub iodepth_low: Option<u32>,
    /// `serialize_overlap`.
    pub serialize_overlap: bool,
    /// `io_submit_mode=offload`.
    pub offload: bool,
    /// `direct`: O_DIRECT.
    pub direct: bool,
    /// `sync`: O_SYNC or O_DSYNC.
    pub sync: SyncMode,
    /// Options of the io_uring engine: polling, registered files and buffers.
    pub uring: UringOptions,
    /// `nowait`: RWF_NOWAIT.
    pub nowait: bool,
    /// `uncached`: RWF_DONTCACHE on buffered reads and writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncached: bool,
    /// `atomic`: RWF_ATOMIC on writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
    /// `cmdprio_percentage`, for reads and writes.
    pub cmdprio_percent: PerDirection<u8>,
    /// `cmdprio_class` and `cmdprio`: the priority of those I/Os. The default is real time, level
    /// 0.
    pub cmdprio: PerDirection<IoPriority>,
    /// `cmdprio_bssplit`: the share of prioritised I/Os for each block size; replaces
    /// `cmdprio_percent`.
    pub cmdprio_split: Option<PerDirection<Vec<CmdprioPart>>>,
    /// `hipri_percentage` of pvsync2.
    pub hipri_percent: u8,
    /// Whether `thread` is given. Jobs are threads in any case.
    pub thread: bool,
    /// `nice`.
    pub nice: Option<i32>,
    /// `prioclass` and `prio`: I/O priority.
    pub ioprio: Option<IoPriority>,
    /// `cpus_allowed`, `cpumask`: CPU numbers.
    pub cpus_allowed: Option<Vec<u32>>,
    /// `cpus_allowed_policy=split`: each clone gets one of the CPUs.
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
    /// `write_hint`: expected lifetime of the written data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_hint: Option<WriteHint>,
    /// `ioscheduler`: the I/O scheduler of the devices below the files during the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// `uid`: the user that opens the files and does the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// `gid`: the group that opens the files and does the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// The simulated device of [`Engine::Sim`]: `key=value,...` of its model.
    pub sim: Option<String>,
    /// The Ceph options of [`Engine::Rados`] and [`Engine::Rbd`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<Box<Ceph>>,
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

/// `write_hint`, in the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteHint {
    /// RWH_WRITE_LIFE_NONE
    None = 1,
    /// RWH_WRITE_LIFE_SHORT
    Short = 2,
    /// RWH_WRITE_LIFE_MEDIUM
    Medium = 3,
    /// RWH_WRITE_LIFE_LONG
    Long = 4,
    /// RWH_WRITE_LIFE_EXTREME
    Extreme = 5,
}

/// Options of the io_uring engine (and pvsync2's `hipri`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UringOptions {
    /// `hipri`: poll for completions.
    pub hipri: bool,
    /// `registerfiles`. `None` if not set: the engine registers the files if it can.
    pub registerfiles: Option<bool>,
    /// `fixedbufs`. `None` if not set: the engine registers the buffers if it can.
    pub fixedbufs: Option<bool>,
    /// `sqthread_poll`.
    pub sqthread_poll: bool,
    /// `sqthread_poll_cpu`.
    pub sqthread_poll_cpu: Option<u32>,
    /// `nonvectored`; `None` if not set. iosonde uses non-vectored I/O unless this is
    /// `Some(false)`.
    pub nonvectored: Option<bool>,
    /// `force_async`: IOSQE_ASYNC on every Nth I/O; 0 is none.
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
    /// Share of the I/Os of this size that have the priority, in per cent.
    pub percent: u8,
    /// Priority of these I/Os.
    pub priority: IoPriority,
}

/// `numa_mem_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaMemPolicy {
    /// The policy.
    pub kind: NumaMemKind,
    /// Nodes of the policy.
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

/// `mem`: the memory of the I/O buffers.
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
