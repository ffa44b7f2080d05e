//! Words of findings about the machine.

use super::finding_cause::MachineCause;
use super::finding_words::FindingWords;
use super::io_path_cause::IoUringRefusal;
use crate::words;

pub(super) fn describe(cause: &MachineCause) -> FindingWords {
    match cause {
        MachineCause::CpuGovernor { governor, driver } => cpu_governor(governor, driver.as_deref()),
        MachineCause::OnBattery => on_battery(),
        MachineCause::CpuBusy {
            busy_percent,
            cpus,
            load_average,
        } => cpu_busy(*busy_percent, *cpus, *load_average),
        MachineCause::CpuSteal { steal_percent } => cpu_steal(*steal_percent),
        MachineCause::MemoryLow {
            available_bytes,
            memory_bytes,
        } => memory_low(*available_bytes, *memory_bytes),
        MachineCause::SwapInUse { used_bytes } => swap_in_use(*used_bytes),
        MachineCause::DirtyPages { dirty_bytes } => dirty_pages(*dirty_bytes),
        MachineCause::IoUring {
            error,
            disabled_level,
            container,
            refusal,
        } => io_uring(error.as_deref(), *disabled_level, *container, *refusal),
        MachineCause::AioExhausted {
            reserved_requests,
            limit_requests,
        } => aio_exhausted(*reserved_requests, *limit_requests),
        MachineCause::Memlock { limit_bytes } => memlock(*limit_bytes),
        MachineCause::OldKernel {
            release,
            has_io_uring,
        } => old_kernel(release, *has_io_uring),
        MachineCause::SlowClock { clock, better } => slow_clock(clock, better.as_deref()),
        MachineCause::CgroupCpu { limit_cpus, cpus } => cgroup_cpu(*limit_cpus, *cpus),
        MachineCause::CgroupMemory { limit_bytes } => cgroup_memory(*limit_bytes),
        MachineCause::VirtualMachine { cloud } => virtual_machine(cloud.as_deref()),
        MachineCause::Container => container_text(),
        MachineCause::Maintenance { work, pid } => maintenance(work, *pid),
    }
}

fn cpu_governor(governor: &str, driver: Option<&str>) -> FindingWords {
    let driver = driver
        .map(|driver| format!(" (driver {driver})"))
        .unwrap_or_default();
    FindingWords::new(
        "cpu-governor",
        format!("the CPU frequency governor is {governor}{driver}"),
        "CPUs lower their frequency while they wait for I/O: latency at a low iodepth is higher \
         and varies",
    )
    .remedy("set the governor to performance while you measure")
    .command("echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor")
}

fn on_battery() -> FindingWords {
    FindingWords::new(
        "on-battery",
        "the machine runs on battery power",
        "CPUs, links and disks save power and are slower",
    )
    .remedy("connect the power supply")
}

fn cpu_busy(busy_percent: f64, cpus: Option<u32>, load_average: Option<f64>) -> FindingWords {
    let load = load_average.map(|one| format!(", load average {one:.2}"));
    let cpus = cpus.map_or_else(|| "all".to_owned(), |cpus| cpus.to_string());
    FindingWords::new(
        "cpu-busy",
        format!(
            "other programs use {busy_percent:.0} % of the time of {cpus} CPUs{}",
            load.unwrap_or_default()
        ),
        "too little CPU time is left for issuing I/O: rates at a high iodepth are too low, \
         latencies too high",
    )
    .remedy("stop these programs, or measure later")
    .command("top -b -n 1 -o %CPU | head -n 15")
}

fn cpu_steal(steal_percent: f64) -> FindingWords {
    FindingWords::new(
        "cpu-steal",
        format!("the hypervisor withheld {steal_percent:.1} % of this machine's CPU time (steal)"),
        "latencies include times in which this machine did not run",
    )
    .remedy("use a machine with dedicated CPUs, or measure more than once")
}

fn memory_low(available_bytes: u64, memory_bytes: u64) -> FindingWords {
    FindingWords::new(
        "memory-low",
        format!(
            "{} of {} memory are available",
            words::bytes(available_bytes),
            words::bytes(memory_bytes)
        ),
        "the kernel reclaims memory during the measurement, which stalls I/O",
    )
    .remedy("stop programs that use much memory")
    .command("ps -eo pid,rss,comm --sort=-rss | head")
}

fn swap_in_use(used_bytes: u64) -> FindingWords {
    FindingWords::new(
        "swap-in-use",
        format!("{} of swap space are in use", words::bytes(used_bytes)),
        "swapping programs in or out causes extra I/O",
    )
    .remedy("free memory, then swap everything in")
    .command("sudo swapoff -a && sudo swapon -a")
}

fn dirty_pages(dirty_bytes: u64) -> FindingWords {
    FindingWords::new(
        "dirty-pages",
        format!(
            "{} of dirty pages in the page cache",
            words::bytes(dirty_bytes)
        ),
        "the kernel will write them during the measurement",
    )
    .remedy("write them first")
    .command("sync")
}

fn io_uring(
    error: Option<&str>,
    disabled_level: Option<u32>,
    container: bool,
    refusal: IoUringRefusal,
) -> FindingWords {
    let evidence = match (disabled_level, error) {
        (Some(level), Some(error)) => {
            format!("io_uring is not available: {error}; kernel.io_uring_disabled is {level}")
        }
        (Some(level), None) => format!("kernel.io_uring_disabled is {level}"),
        (None, Some(error)) => format!("io_uring is not available: {error}"),
        (None, None) => "io_uring is not available".to_owned(),
    };
    let text = FindingWords::new(
        "io-uring",
        evidence,
        "slower system calls are used instead, which lowers the figures of a fast device",
    );
    match (refusal, disabled_level, container) {
        (IoUringRefusal::Sysctl, ..) | (IoUringRefusal::Unknown, Some(_), _) => text
            .remedy("enable io_uring while you measure")
            .command("sudo sysctl -w kernel.io_uring_disabled=0"),
        (IoUringRefusal::SeccompFilter, _, true) => text.remedy(
            "the container's seccomp profile forbids io_uring: use a profile that allows \
             io_uring_setup, io_uring_enter and io_uring_register, such as \
             docs/seccomp/io-uring.json",
        ),
        (IoUringRefusal::SeccompFilter, _, false) => text.remedy(
            "a seccomp filter forbids io_uring: in a systemd service, add SystemCallFilter=@aio; \
             else run outside of the sandbox",
        ),
        (IoUringRefusal::SecurityModule, ..) => text
            .remedy("a security module such as SELinux forbids io_uring: allow it in its policy")
            .command("sudo dmesg | grep -iE 'avc|denied' | tail"),
        (IoUringRefusal::KernelWithout, ..) => text.remedy(
            "the kernel was built without io_uring, or a sandbox such as gVisor replaces it: use \
             another kernel",
        ),
        (IoUringRefusal::Unknown, None, _) => text.remedy(
            "a seccomp filter may forbid io_uring, the kernel may lack it, or a limit of this \
             process (ulimit -a) may be reached",
        ),
    }
}

fn aio_exhausted(reserved: u64, limit: u64) -> FindingWords {
    FindingWords::new(
        "aio-exhausted",
        format!("{reserved} of {limit} requests of native AIO are reserved"),
        "jobs with ioengine=libaio may fail with EAGAIN",
    )
    .remedy("raise the limit")
    .command(format!(
        "sudo sysctl -w fs.aio-max-nr={}",
        limit.saturating_mul(4).max(1_048_576)
    ))
}

fn memlock(limit_bytes: u64) -> FindingWords {
    FindingWords::new(
        "memlock",
        format!(
            "this process may lock {} of memory (RLIMIT_MEMLOCK)",
            words::bytes(limit_bytes)
        ),
        "larger buffers cannot be registered with io_uring, so each I/O costs more CPU time; \
         lockmem= fails",
    )
    .remedy(
        "raise the limit: LimitMEMLOCK= of a systemd service, /etc/security/limits.conf, or for \
         one shell as root",
    )
    .command("ulimit -l unlimited")
}

fn old_kernel(release: &str, has_io_uring: bool) -> FindingWords {
    let effect = match has_io_uring {
        false => "this kernel has no io_uring: iosonde uses slower system calls instead",
        true => {
            "each I/O costs a little more CPU time: io_uring lacks deferred task work (Linux 6.1)"
        }
    };
    FindingWords::new(
        "old-kernel",
        format!("the kernel is Linux {release}"),
        effect,
    )
    .remedy("compare only with results of the same kernel, or use a newer kernel")
}

fn slow_clock(clock: &str, better: Option<&str>) -> FindingWords {
    let text = FindingWords::new(
        "slow-clock",
        format!("the kernel's clock source is {clock}"),
        "each clock reading takes a microsecond or more, which adds to the latency of a fast \
         device",
    );
    match better {
        Some(better) => text
            .remedy(format!(
                "use {better}, unless the kernel log reports it as unstable"
            ))
            .command(format!(
                "echo {better} | sudo tee \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource"
            )),
        None => text.remedy("see the kernel log for the reason why the TSC is not used"),
    }
}

fn cgroup_cpu(limit_cpus: f64, cpus: u32) -> FindingWords {
    FindingWords::new(
        "cgroup-cpu",
        format!(
            "control groups allow this process the time of {} of {cpus} CPUs",
            (limit_cpus * 100.0).round() / 100.0
        ),
        "the CPU limit lowers the rate of a fast device, and latencies include waits for the next \
         CPU period",
    )
    .remedy(
        "raise cpu.max of the group (a pod's CPU limit), or compare only results with the same \
         limit",
    )
}

fn cgroup_memory(limit_bytes: u64) -> FindingWords {
    FindingWords::new(
        "cgroup-memory",
        format!(
            "control groups allow this process {} of memory, page cache included",
            words::bytes(limit_bytes)
        ),
        "the memory limit throttles buffered I/O, and the kernel may kill a large job",
    )
    .remedy("raise memory.max and memory.high of the group (a pod's memory limit)")
}

fn virtual_machine(cloud: Option<&str>) -> FindingWords {
    let (evidence, remedy) = match cloud {
        Some(cloud) => (
            format!("this is a virtual machine of {cloud}"),
            "compare the figures with the vendor's published limits: see `iosonde limits`",
        ),
        None => (
            "this is a virtual machine".to_owned(),
            "measure more than once: the host's cache is not visible from this machine",
        ),
    };
    FindingWords::new(
        "virtual-machine",
        evidence,
        "the host may cache, limit or share the disk",
    )
    .remedy(remedy)
}

fn container_text() -> FindingWords {
    FindingWords::new(
        "container",
        "this process runs in a container",
        "its root is mostly an overlay on a disk that all containers share; bounds and other users \
         may be out of sight",
    )
    .remedy("measure a volume, not the container's root")
}

fn maintenance(work: &str, pid: u32) -> FindingWords {
    FindingWords::new(
        "maintenance",
        format!("running now: {work} (process {pid})"),
        "its I/O uses part of the device's time",
    )
    .remedy("wait until it ends")
}
