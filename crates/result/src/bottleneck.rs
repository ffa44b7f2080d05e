//! Finds the bottleneck of a run: turns observations into one verdict with its evidence.
//!
//! [`classify`] is pure. It asks its questions in the order of how direct their evidence is: the
//! job's own limits, configured limits, processors without idle time, and places where I/Os waited.
//! A single run cannot show whether a busy device would do more at a higher depth. Latency decides:
//! while it equals that of a single I/O, more I/Os in flight complete more I/Os (Little's law).

mod ceph_rules;
mod cgroup_bounds;
mod condition_text;
mod local_rules;
#[cfg(test)]
mod tests;
mod verdict_text;
#[cfg(test)]
mod verdict_text_tests;

pub use verdict_text::verdict;

use crate::ceph::CephSide;
use crate::host::IoLimit;
use crate::interval::IntervalCounts;
use crate::machine::CpuShares;
use crate::network::NetworkLoad;
use crate::run::Verdict;
use crate::verdict_cause::VerdictCause;
use iosonde_job::plan::PerDirection;

/// Observations of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunObservation {
    /// Length of the measured time in seconds.
    pub seconds: f64,
    /// I/Os and bytes of the workers in that time.
    pub own: PerDirection<IntervalCounts>,
    /// Number of flushes that the workers requested.
    pub flushes: u64,
    /// Observations of the workers.
    pub callers: WorkerObservation,
    /// Reason why the job limits itself, if it reached that limit.
    pub job_limit: Option<VerdictCause>,
    /// Location of the files.
    pub place: FileLocation,
    /// Device with the most I/O. `None` if no device is known.
    pub device: Option<DeviceLoad>,
    /// Control group limits on the devices that hold the files.
    pub limits: Vec<IoLimit>,
    /// Share of the workers' bytes that no device moved, from 0 to 1.
    pub cached: f64,
    /// Use of the machine's processors.
    pub cpu: Option<CpuShares>,
    /// Whether some jobs began after others had ended, because of `stonewall` or `wait_for`.
    pub phases: bool,
    /// Share of the time in which control groups throttled the CPU time of this process, and their
    /// quota in processors.
    pub cpu_throttled: Option<(f64, f64)>,
    /// IOPS of each complete interval.
    pub rates: Vec<f64>,
    /// Whether the machine is virtual.
    pub virtual_machine: bool,
    /// Ceph cluster that the run used.
    pub ceph: Option<CephSide>,
    /// Traffic of the busiest network interface. `None` if it is not known.
    pub network: Option<NetworkLoad>,
    /// Whether some of the I/O went elsewhere, so that the cluster does not explain all figures.
    pub beside_ceph: bool,
}

/// Observations of the workers, which issue the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorkerObservation {
    /// Number of workers.
    pub workers: usize,
    /// Sum of the iodepths: I/Os that all workers may keep in flight.
    pub depth: u64,
    /// Synchronous engine in use, if all workers use one although a higher iodepth was requested.
    pub waiting_engine: Option<&'static str>,
    /// Mean latency of an I/O in nanoseconds. 0 if latencies are not measured.
    pub latency_ns: f64,
    /// Shortest latency of an I/O in nanoseconds.
    pub least_latency_ns: f64,
    /// CPU shares of the busiest worker, in user mode and in the kernel.
    pub busiest: (f64, f64),
    /// Share of the time in which this worker was runnable and waited for a processor.
    pub queued: f64,
    /// Share of the time in which workers slept, on average.
    pub asleep: f64,
    /// Share of the time that workers spent in fsync, fdatasync and sync_file_range, and the mean
    /// latency of these in nanoseconds.
    pub flushing: (f64, f64),
    /// Whether workers poll for completions. Such workers are always busy.
    pub polling: bool,
    /// Whether all I/O uses O_DIRECT.
    pub direct: bool,
}

/// Location of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FileLocation {
    /// No files: the null engine, or objects of Ceph.
    #[default]
    Nowhere,
    /// Block devices.
    Device,
    /// A file system on block devices, with its type.
    FileSystem(String),
    /// A file system in memory, with its type.
    Memory(String),
    /// Files served by another machine or a process, with a description of the service.
    Served(String),
}

/// Activity of a device in the measured time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceLoad {
    /// Kernel name.
    pub name: String,
    /// Share of the time in which requests were in flight, from 0 to 1.
    pub busy: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
    /// Mean time per request in nanoseconds.
    pub request_ns: f64,
    /// Number of completed requests.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Whether the device is a rotating disk, which serves one request at a time.
    pub rotational: bool,
    /// Whether I/O of other users can be counted, because nothing between the files and the device
    /// multiplies I/O.
    pub plain: bool,
}

/// Shorter runs get no verdict, because the kernel counts a device's time in milliseconds.
const SHORTEST_SECONDS: f64 = 0.2;

/// Returns the bottleneck, and additional findings. There is no bottleneck if a cache served the
/// I/O, which has its own verdict. Both are empty if the run was too short.
pub fn classify(seen: &RunObservation) -> (Option<Verdict>, Vec<Verdict>) {
    if seen.ios() == 0 || seen.seconds < SHORTEST_SECONDS {
        return (None, Vec::new());
    }
    let main = local_rules::find_local_bottleneck(seen);
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

impl RunObservation {
    fn ios(&self) -> u64 {
        self.own.iter().map(|(_, counts)| counts.ios).sum()
    }

    /// Returns the mean number of I/Os in flight, by Little's law. If latencies are not measured,
    /// it is the sum of the iodepths.
    fn in_flight(&self) -> f64 {
        match self.callers.latency_ns {
            0.0 => self.callers.depth as f64,
            latency_ns => self.ios() as f64 / self.seconds * latency_ns / 1e9,
        }
    }
}
