//! Words of an [`UnsupportedFeature`].

use super::cache_drop_text::cold_remedy;
use crate::run_error::{BufferMemory, NumberedUnit, RefusedEngine, UnsupportedFeature};
use iosonde_job::errno;
use iosonde_job::outside_access::describe_access;
use iosonde_job::plan::Engine;
use std::fmt;

const BUILT_WITHOUT_CEPH: &str = "this iosonde was built without Ceph";
const BUILT_FOR_CLUSTERS: &str = "this build measures only on clusters";

impl fmt::Display for UnsupportedFeature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe_resource(self, formatter)
            .or_else(|| describe_device_or_engine(self, formatter))
            .or_else(|| describe_target_option(self, formatter))
            .unwrap_or_else(|| describe_pod_or_study(self, formatter))
    }
}

/// Describes a feature that needs an engine, memory or a thread. `None` for others.
fn describe_resource(
    feature: &UnsupportedFeature,
    formatter: &mut fmt::Formatter<'_>,
) -> Option<fmt::Result> {
    let written = match feature {
        UnsupportedFeature::IodepthOverMaximum {
            job,
            iodepth,
            limit,
        } => write!(
            formatter,
            "job {job}: iodepth={iodepth} exceeds the maximum of io_uring, {limit} I/Os in \
             flight"
        ),
        UnsupportedFeature::EngineUnavailable { engine, failure } => write!(
            formatter,
            "ioengine={} is not available: {}",
            engine.name(),
            failure.name()
        ),
        UnsupportedFeature::NoEngine { refused } => {
            let reasons: Vec<String> = refused.iter().map(RefusedEngine::to_string).collect();
            formatter.write_str(&reasons.join("; "))
        }
        UnsupportedFeature::EngineNotBuilt { job, engine } => write!(
            formatter,
            "job {job}: this build has no ioengine={}",
            engine.name()
        ),
        UnsupportedFeature::BuffersOverMemory {
            needed_bytes,
            available_bytes,
        } => write!(
            formatter,
            "the buffers of concurrent jobs need {} MiB (iodepth x block size x numjobs), but \
             {} MiB of memory are available",
            needed_bytes >> 20,
            available_bytes >> 20
        ),
        UnsupportedFeature::NoBufferMemory {
            job,
            slots,
            buffer_bytes,
            failure,
            ..
        } => write!(
            formatter,
            "job {job}: no memory for {slots} buffers of {buffer_bytes} bytes: {}",
            failure.name()
        ),
        UnsupportedFeature::NoLockedMemory { bytes, failure } => {
            write!(formatter, "lockmem={bytes}: {failure}")
        }
        UnsupportedFeature::ThreadSettingRefused { setting, failure } => {
            write!(formatter, "{setting} is refused: {failure}")
        }
        UnsupportedFeature::NoThread { purpose, failure } => {
            write!(formatter, "no thread {purpose}: {failure}")
        }
        _ => return None,
    };
    Some(written)
}

/// Describes a feature that a device, a command or an engine does not support. `None` for others.
fn describe_device_or_engine(
    feature: &UnsupportedFeature,
    formatter: &mut fmt::Formatter<'_>,
) -> Option<fmt::Result> {
    let written = match feature {
        UnsupportedFeature::SchedulerRefused {
            job,
            scheduler,
            path,
            failure,
            ..
        } => write!(
            formatter,
            "job {job}: ioscheduler={scheduler}: {path} cannot be set: {failure}"
        ),
        UnsupportedFeature::NoShell {
            moment,
            command,
            failure,
        } => write!(
            formatter,
            "exec_{moment}={command}: sh cannot be started: {failure}"
        ),
        UnsupportedFeature::OutsideAccess {
            job,
            option,
            value,
            kind,
        } => formatter.write_str(&describe_access(job, option, value, *kind)),
        UnsupportedFeature::SizesMismatch { job, problem }
        | UnsupportedFeature::InvalidSimulation { job, problem } => {
            write!(formatter, "job {job}: {problem}")
        }
        UnsupportedFeature::MixedSimulation => {
            formatter.write_str("the run mixes simulated jobs with other jobs")
        }
        UnsupportedFeature::SimulatedDeviceTooSmall { job, failure } => write!(
            formatter,
            "job {job}: its files do not fit on the simulated device: {failure}"
        ),
        UnsupportedFeature::FileNotRegistered { failure } => write!(
            formatter,
            "the engine cannot register a newly opened file: {failure}"
        ),
        UnsupportedFeature::MmapFixedSize { job } => write!(
            formatter,
            "job {job}: fill_device needs files that grow, but ioengine=mmap maps files of a fixed \
             size"
        ),
        UnsupportedFeature::MmapKeepsFilesOpen { job } => write!(
            formatter,
            "job {job}: ioengine=mmap maps all files for the whole run"
        ),
        UnsupportedFeature::ReplayOnCeph { job } => write!(
            formatter,
            "{job}: read_iolog opens the files named in its trace, which a Ceph target does not \
             have"
        ),
        _ => return None,
    };
    Some(written)
}

/// Describes an option or a name that does not fit the machine or the target. `None` for others.
fn describe_target_option(
    feature: &UnsupportedFeature,
    formatter: &mut fmt::Formatter<'_>,
) -> Option<fmt::Result> {
    let written = match feature {
        UnsupportedFeature::NoSuchNumber {
            option,
            unit,
            number,
            online,
        } => write!(
            formatter,
            "{option}: {unit} {number} does not exist; this machine has {online}"
        ),
        UnsupportedFeature::OtherCephCluster { job, option, value } => write!(
            formatter,
            "job {job} uses another Ceph cluster ({option}={value}) than the target"
        ),
        UnsupportedFeature::OptionOfOtherTarget {
            job,
            option,
            value,
            other_source,
            other_value,
        } => write!(
            formatter,
            "job {job}: {option}={value}, but {other_source} is {other_value}"
        ),
        UnsupportedFeature::NoPool { job } => {
            write!(formatter, "job {job}: the option pool= is missing")
        }
        UnsupportedFeature::NotCephTarget { target } => {
            write!(formatter, "{target} is not a Ceph target")
        }
        UnsupportedFeature::BuiltWithoutCeph => formatter.write_str(BUILT_WITHOUT_CEPH),
        UnsupportedFeature::BuiltForClusters => formatter.write_str(BUILT_FOR_CLUSTERS),
        UnsupportedFeature::CephLibrary {
            library, reason, ..
        } => write!(formatter, "{library} cannot be loaded: {reason}"),
        UnsupportedFeature::CachesNotDropped {
            layer,
            place,
            failure,
        } => {
            let layer = layer.name();
            write!(
                formatter,
                "--cold {layer}: {place} cannot drop its caches: {failure}"
            )
        }
        UnsupportedFeature::Cluster(obstacle) => write!(formatter, "{obstacle}"),
        UnsupportedFeature::UnknownScheme { target, scheme } => write!(
            formatter,
            "{target}: targets with the scheme {scheme}:// are not supported"
        ),
        UnsupportedFeature::OutsideAccessInPod {
            job,
            option,
            value,
            kind,
        } => write!(
            formatter,
            "{}: jobs in a pod access only their volume",
            describe_access(job, option, value, *kind)
        ),
        _ => return None,
    };
    Some(written)
}

/// Describes a feature that pods or a study do not support. The functions above describe the last
/// variants. They are listed so that the compiler reports a variant without a text.
fn describe_pod_or_study(
    feature: &UnsupportedFeature,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match feature {
        UnsupportedFeature::NoEmbeddedAgent => {
            formatter.write_str("this build of iosonde contains no agent for pods")
        }
        UnsupportedFeature::ReplayInPod { job } => {
            write!(
                formatter,
                "{job}: a pod cannot read the trace of read_iolog"
            )
        }
        UnsupportedFeature::LogsInPod { job } => write!(
            formatter,
            "{job}: logs (write_bw_log, write_lat_log, ...) would stay in the pod"
        ),
        UnsupportedFeature::TooSlowForLoads {
            target,
            iops_hundredths,
        } => write!(
            formatter,
            "{target}: the target reaches at most {}.{:02} IOPS, too few for a load study",
            iops_hundredths / 100,
            iops_hundredths % 100
        ),
        UnsupportedFeature::IodepthOverMaximum { .. }
        | UnsupportedFeature::EngineUnavailable { .. }
        | UnsupportedFeature::NoEngine { .. }
        | UnsupportedFeature::EngineNotBuilt { .. }
        | UnsupportedFeature::BuffersOverMemory { .. }
        | UnsupportedFeature::NoBufferMemory { .. }
        | UnsupportedFeature::NoLockedMemory { .. }
        | UnsupportedFeature::ThreadSettingRefused { .. }
        | UnsupportedFeature::NoThread { .. }
        | UnsupportedFeature::NoSuchNumber { .. }
        | UnsupportedFeature::SchedulerRefused { .. }
        | UnsupportedFeature::NoShell { .. }
        | UnsupportedFeature::OutsideAccess { .. }
        | UnsupportedFeature::SizesMismatch { .. }
        | UnsupportedFeature::InvalidSimulation { .. }
        | UnsupportedFeature::MixedSimulation
        | UnsupportedFeature::SimulatedDeviceTooSmall { .. }
        | UnsupportedFeature::FileNotRegistered { .. }
        | UnsupportedFeature::MmapFixedSize { .. }
        | UnsupportedFeature::MmapKeepsFilesOpen { .. }
        | UnsupportedFeature::ReplayOnCeph { .. }
        | UnsupportedFeature::OtherCephCluster { .. }
        | UnsupportedFeature::OptionOfOtherTarget { .. }
        | UnsupportedFeature::NoPool { .. }
        | UnsupportedFeature::NotCephTarget { .. }
        | UnsupportedFeature::BuiltWithoutCeph
        | UnsupportedFeature::BuiltForClusters
        | UnsupportedFeature::CephLibrary { .. }
        | UnsupportedFeature::CachesNotDropped { .. }
        | UnsupportedFeature::Cluster(_)
        | UnsupportedFeature::UnknownScheme { .. }
        | UnsupportedFeature::OutsideAccessInPod { .. } => write!(formatter, "{feature:?}"),
    }
}

impl fmt::Display for NumberedUnit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NumberedUnit::Cpu => "CPU",
            NumberedUnit::NumaNode => "NUMA node",
        })
    }
}

impl fmt::Display for RefusedEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engine, failure) = (self.engine.name(), self.failure.name());
        write!(formatter, "{engine} is not available: {failure}")
    }
}

impl UnsupportedFeature {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        self.resource_or_engine_remedy()
            .or_else(|| self.target_option_remedy())
            .unwrap_or_else(|| self.pod_or_study_remedy().to_owned())
    }

    /// Returns the action for a resource, a device or an engine. `None` for others.
    fn resource_or_engine_remedy(&self) -> Option<String> {
        let remedy = match self {
            UnsupportedFeature::IodepthOverMaximum { .. } => {
                "use a smaller iodepth and more jobs (numjobs=)"
            }
            UnsupportedFeature::EngineUnavailable { engine, failure } => {
                describe_engine_remedy(*engine, failure.errno())
            }
            UnsupportedFeature::NoEngine { .. } => {
                "run on a kernel or in a container that allows io_uring or native AIO"
            }
            UnsupportedFeature::EngineNotBuilt { .. } => {
                "run iosonde on a machine that can reach the Ceph cluster"
            }
            UnsupportedFeature::BuffersOverMemory { .. } => {
                "use a smaller iodepth, block size or number of jobs"
            }
            UnsupportedFeature::NoBufferMemory { memory, .. } => describe_memory_remedy(*memory),
            UnsupportedFeature::NoLockedMemory { .. } => {
                "raise the limit on locked memory (ulimit -l), or use a smaller lockmem="
            }
            UnsupportedFeature::ThreadSettingRefused { .. } => {
                "omit the option, or run with the required permission"
            }
            UnsupportedFeature::NoThread { .. } => {
                "use a smaller numjobs=, or raise the limit on threads (ulimit -u, the control \
                 group's pids.max) or memory"
            }
            UnsupportedFeature::NoSuchNumber { online, .. } => {
                return Some(format!("use numbers of {online}"));
            }
            UnsupportedFeature::SchedulerRefused { offered, .. } => {
                return Some(format!(
                    "use a scheduler of the device ({offered}), as root, or omit ioscheduler"
                ));
            }
            UnsupportedFeature::NoShell { moment, .. } => {
                return Some(format!(
                    "omit exec_{moment}, or run the job on a system with a shell"
                ));
            }
            UnsupportedFeature::OutsideAccess { .. } => {
                "omit the option, or run the job with `iosonde fio`"
            }
            UnsupportedFeature::SizesMismatch { .. } => {
                "change the sizes in the job so that they fit together"
            }
            UnsupportedFeature::InvalidSimulation { .. } => {
                "see docs/sim.md for the keys of a simulated device"
            }
            UnsupportedFeature::MixedSimulation => "use ioengine=sim in all jobs or in none",
            UnsupportedFeature::SimulatedDeviceTooSmall { .. } => {
                "use a smaller size=, or a larger capacity of the simulated device"
            }
            UnsupportedFeature::FileNotRegistered { .. } => {
                "omit openfiles= and unlink_each_loop, or use another ioengine"
            }
            UnsupportedFeature::MmapFixedSize { .. } => "use another ioengine, or add size=",
            UnsupportedFeature::MmapKeepsFilesOpen { .. } => {
                "omit openfiles= and unlink_each_loop, or use another ioengine"
            }
            UnsupportedFeature::ReplayOnCeph { .. } => {
                "map the image (rbd map) and set replay_redirect= to the device, e.g. /dev/rbd0"
            }
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Returns the action for an option or a name that does not fit the target. `None` for others.
    fn target_option_remedy(&self) -> Option<String> {
        let remedy = match self {
            UnsupportedFeature::OtherCephCluster { option, .. } => {
                return Some(format!(
                    "omit {option}= in the job, and set the cluster with --ceph-conf FILE"
                ));
            }
            UnsupportedFeature::OptionOfOtherTarget { option, .. } => {
                return Some(format!(
                    "omit {option}= in the job, or use the same value for both"
                ));
            }
            UnsupportedFeature::NoPool { .. } => "add pool=",
            UnsupportedFeature::NotCephTarget { .. } => "use rados://POOL or rbd://POOL/IMAGE",
            UnsupportedFeature::BuiltWithoutCeph => {
                "install the archive or package for glibc (linux-gnu instead of linux-static), or \
                 build with `cargo build --release`"
            }
            UnsupportedFeature::BuiltForClusters => {
                "run iosonde on a Linux machine, or name a target in a cluster, such as sc://CLASS"
            }
            UnsupportedFeature::CephLibrary { package, .. } => {
                return Some(format!(
                    "install the package with the library (Debian, Ubuntu: apt-get install \
                     {package})"
                ));
            }
            UnsupportedFeature::CachesNotDropped { layer, failure, .. } => {
                cold_remedy(*layer, failure.errno())
            }
            UnsupportedFeature::Cluster(obstacle) => return Some(obstacle.remedy()),
            UnsupportedFeature::UnknownScheme { .. } => {
                "name a directory, a file or a block device"
            }
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Returns the action for a feature that pods or a study do not support. The functions above
    /// know the action of the last variants, as with the description.
    fn pod_or_study_remedy(&self) -> &'static str {
        match self {
            UnsupportedFeature::NoEmbeddedAgent => {
                "build it with `cargo build --release` where the static C library is installed \
                 (Debian: libc6-dev, Fedora: glibc-static), or set IOSONDE_AGENT to the agent's \
                 executable"
            }
            UnsupportedFeature::ReplayInPod { .. } => {
                "replay the trace on this machine, or describe it with rw=, bssplit= and rate="
            }
            UnsupportedFeature::LogsInPod { .. } => {
                "leave out the logs; --output-format=json contains the intervals"
            }
            UnsupportedFeature::OutsideAccessInPod { .. } => {
                "leave out the option, and use kubectl before and after the I/O"
            }
            UnsupportedFeature::TooSlowForLoads { .. } => "use probe, or a smaller --bs",
            UnsupportedFeature::IodepthOverMaximum { .. }
            | UnsupportedFeature::EngineUnavailable { .. }
            | UnsupportedFeature::NoEngine { .. }
            | UnsupportedFeature::EngineNotBuilt { .. }
            | UnsupportedFeature::BuffersOverMemory { .. }
            | UnsupportedFeature::NoBufferMemory { .. }
            | UnsupportedFeature::NoLockedMemory { .. }
            | UnsupportedFeature::ThreadSettingRefused { .. }
            | UnsupportedFeature::NoThread { .. }
            | UnsupportedFeature::NoSuchNumber { .. }
            | UnsupportedFeature::SchedulerRefused { .. }
            | UnsupportedFeature::NoShell { .. }
            | UnsupportedFeature::OutsideAccess { .. }
            | UnsupportedFeature::SizesMismatch { .. }
            | UnsupportedFeature::InvalidSimulation { .. }
            | UnsupportedFeature::MixedSimulation
            | UnsupportedFeature::SimulatedDeviceTooSmall { .. }
            | UnsupportedFeature::FileNotRegistered { .. }
            | UnsupportedFeature::MmapFixedSize { .. }
            | UnsupportedFeature::MmapKeepsFilesOpen { .. }
            | UnsupportedFeature::ReplayOnCeph { .. }
            | UnsupportedFeature::OtherCephCluster { .. }
            | UnsupportedFeature::OptionOfOtherTarget { .. }
            | UnsupportedFeature::NoPool { .. }
            | UnsupportedFeature::NotCephTarget { .. }
            | UnsupportedFeature::BuiltWithoutCeph
            | UnsupportedFeature::BuiltForClusters
            | UnsupportedFeature::CephLibrary { .. }
            | UnsupportedFeature::CachesNotDropped { .. }
            | UnsupportedFeature::Cluster(_)
            | UnsupportedFeature::UnknownScheme { .. } => "omit the feature",
        }
    }
}

fn describe_engine_remedy(engine: Engine, errno: Option<i32>) -> &'static str {
    match (engine, errno) {
        (Engine::IoUring, Some(errno::EPERM | errno::ENOSYS)) => {
            "use ioengine=libaio: io_uring is disabled (kernel.io_uring_disabled, or a container's \
             seccomp profile)"
        }
        (Engine::Libaio, Some(errno::EAGAIN)) => {
            "raise fs.aio-max-nr, or use fewer jobs or a smaller iodepth"
        }
        (Engine::IoUring, Some(errno::ENOMEM)) => {
            "raise the limit on locked memory (ulimit -l), or use a smaller iodepth"
        }
        (Engine::Mmap, _) => "use another ioengine: the file cannot be mapped",
        _ => "use another ioengine",
    }
}

fn describe_memory_remedy(memory: BufferMemory) -> &'static str {
    match memory {
        BufferMemory::HugePages => {
            "reserve huge pages of hugepage-size (sysctl vm.nr_hugepages), or omit mem="
        }
        BufferMemory::File => "use a file on a file system with free space, or omit mem=",
        BufferMemory::Ordinary => "use a smaller iodepth, block size or number of jobs",
    }
}
