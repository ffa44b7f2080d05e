//! What held a run back: from what was seen of the callers, the device and the machine to one verdict with its evidence.
//!
//! [`classify`] is pure. It asks the questions in the order of how direct their evidence is: what the job itself asks for,
//! bounds that are written down, who had no processor time, who waited where. What a single run cannot tell, such as
//! whether a device that is always busy would do more at a higher depth, is judged by the latency: while it is that of an
//! I/O alone, more I/Os in flight mean more I/Os done (Little's law).

mod ceph_rules;
mod cgroup_bounds;
mod local_rules;
#[cfg(test)]
mod tests;

use crate::ceph::CephSide;
use crate::host::IoLimit;
use crate::interval::IntervalCounts;
use crate::machine::CpuShares;
use crate::run::Verdict;
use iosonde_job::plan::PerDirection;

/// What was seen of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// Length of the measured time in seconds.
    pub seconds: f64,
    /// What the callers moved in it.
    pub own: PerDirection<IntervalCounts>,
    /// Flushes that they asked for.
    pub flushes: u64,
    /// The callers.
    pub callers: Callers,
    /// Why the job cannot go faster than it asks to, where it was as fast as that.
    pub job_limit: Option<String>,
    /// Where the files are.
    pub place: Place,
    /// The device that did most; `None` where none is known.
    pub device: Option<DeviceLoad>,
    /// Bounds of control groups on the devices under the files.
    pub limits: Vec<IoLimit>,
    /// Share of the bytes that the callers moved and no device did, 0 to 1.
    pub cached: f64,
    /// The processors of the machine.
    pub cpu: Option<CpuShares>,
    /// Whether some jobs began after others had ended: at a stonewall, or by `wait_for`.
    pub phases: bool,
    /// Share of the time in which control groups held this process back, and the processors that they allow.
    pub cpu_throttled: Option<(f64, f64)>,
    /// I/Os per second in each whole interval.
    pub rates: Vec<f64>,
    /// Whether a hypervisor is underneath.
    pub virtual_machine: bool,
    /// The Ceph cluster that was spoken to.
    pub ceph: Option<CephSide>,
    /// Whether some of the I/O went elsewhere than to that cluster, so that it does not explain the figures of all.
    pub beside_ceph: bool,
}

/// Those who issue the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Callers {
    /// How many workers.
    pub workers: usize,
    /// I/Os that all of them may keep in flight.
    pub depth: u64,
    /// The engine, where all use one that waits for each I/O although a higher depth is asked for.
    pub waiting_engine: Option<&'static str>,
    /// Mean latency of an I/O in nanoseconds; 0 where latencies are not measured.
    pub latency_ns: f64,
    /// The shortest.
    pub least_latency_ns: f64,
    /// Share of its time that the busiest worker spent on a processor, in the program and in the kernel.
    pub busiest: (f64, f64),
    /// Share of its time that this worker was ready to run and waited for a processor.
    pub queued: f64,
    /// Mean share of their time that workers slept.
    pub asleep: f64,
    /// Share of their time that workers spent in fsync and its kin, and how long each took in nanoseconds.
    pub flushing: (f64, f64),
    /// Whether completions are polled for: such workers are always busy.
    pub polling: bool,
    /// Whether all I/O is O_DIRECT.
    pub direct: bool,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// No file at all: the null engine.
    #[default]
    Nowhere,
    /// Block devices themselves.
    Device,
    /// A file system on block devices, by its type.
    FileSystem(String),
    /// A file system in memory, by its type.
    Memory(String),
    /// Another machine or a process serves them: its description.
    Served(String),
}

/// What a device did in the measured time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceLoad {
    /// Kernel name.
    pub name: String,
    /// Share of the time with requests in flight, 0 to 1.
    pub busy: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
    /// Mean time of a request in nanoseconds.
    pub request_ns: f64,
    /// Requests completed.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Whether it is a disk that turns and serves one request at a time.
    pub rotational: bool,
    /// Whether others' I/O can be told from ours by counting: nothing between the files and the device multiplies I/O.
    pub plain: bool,
}

/// Shorter runs than this say nothing: the kernel counts a device's time in milliseconds.
const SHORTEST_SECONDS: f64 = 0.2;

/// What held the run back, then findings beside it. The first is missing where a cache did it, which has its own verdict,
/// and all are where the run was too short.
pub fn classify(seen: &Observed) -> (Option<Verdict>, Vec<Verdict>) {
    if seen.ios() == 0 || seen.seconds < SHORTEST_SECONDS {
        return (None, Vec::new());
    }
    let main = local_rules::main(seen);
    let named = main.as_ref().map(|main| main.kind);
    let beside =
        local_rules::others_on_the_device(seen).filter(|finding| Some(finding.kind) != named);
    let cluster = ceph_rules::others(seen);
    let cluster = cluster
        .into_iter()
        .filter(|finding| Some(finding) != main.as_ref());
    let beside = beside.into_iter().chain(cluster).collect();
    (main, beside)
}

impl Observed {
    fn ios(&self) -> u64 {
        self.own.iter().map(|(_, counts)| counts.ios).sum()
    }

    /// Mean number of I/Os in flight, by Little's law; where latencies are not measured, as many as there may be.
    fn in_flight(&self) -> f64 {
        match self.callers.latency_ns {
            0.0 => self.callers.depth as f64,
            latency_ns => self.ios() as f64 / self.seconds * latency_ns / 1e9,
        }
    }
}
