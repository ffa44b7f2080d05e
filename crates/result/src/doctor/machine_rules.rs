//! Findings about the machine.

use super::{Remedied, found};
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{Conditions, Finding};
use crate::host::Host;
use crate::words;

const MACHINE: &str = "machine";

pub(super) fn findings(host: &Host, now: &Conditions) -> Vec<Finding> {
    let found = [
        governor(host),
        battery(now),
        busy(host, now),
        steal(now),
        little_memory(host),
        swap(host),
        dirty_pages(now),
        io_uring(host, now),
        aio(now),
        locked_memory(now),
        old_kernel(host),
        clock(host, now),
        cpu_quota(host),
        memory_bound(host),
        virtual_machine(host),
        container(host),
    ];
    found
        .into_iter()
        .flatten()
        .chain(maintenance(now))
        .collect()
}

fn governor(host: &Host) -> Option<Finding> {
    let governor = host.cpu.governor.as_deref()?;
    let words: Vec<&str> = governor.split(", ").collect();
    if words.iter().all(|word| *word == "performance") {
        return None;
    }
    let severity = if words.contains(&"powersave") {
        Warning
    } else {
        Note
    };
    let driver = host.cpu.frequency_driver.as_deref();
    let driver = driver
        .map(|driver| format!(" (driver {driver})"))
        .unwrap_or_default();
    Some(
        found(
            severity,
            "cpu-governor",
            MACHINE,
            format!("the processors' frequency governor is {governor}{driver}"),
            "processors slow down while they wait for I/O: latency at low depth is higher and varies",
        )
        .remedy("let them run at full speed while you measure")
        .command("echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"),
    )
}

fn battery(now: &Conditions) -> Option<Finding> {
    (now.on_battery == Some(true)).then(|| {
        found(
            Warning,
            "on-battery",
            MACHINE,
            "the machine runs on its battery",
            "processors, links and disks save power, and are slower for it",
        )
        .remedy("plug it in")
    })
}

/// CPU utilisation from which on a generator may lack processor time.
const BUSY_PERCENT: f64 = 50.0;

fn busy(host: &Host, now: &Conditions) -> Option<Finding> {
    let busy = now.cpu_busy_percent.filter(|busy| *busy >= BUSY_PERCENT)?;
    let load = now
        .load_average
        .map(|[one, ..]| format!(", load average {one:.2}"));
    let cpus = host
        .cpu
        .online
        .map_or_else(|| "the".to_owned(), |cpus| cpus.to_string());
    Some(
        found(
            Warning,
            "cpu-busy",
            MACHINE,
            format!("other programs use {busy:.0} % of {cpus} processors' time{}", load.unwrap_or_default()),
            "too little is left for issuing I/O: rates at high depth are too low, latencies too high",
        )
        .remedy("stop what is running, or measure when it is quiet")
        .command("top -b -n 1 -o %CPU | head -n 15"),
    )
}

/// Less steal time is the hypervisor's own housekeeping.
const STEAL_PERCENT: f64 = 2.0;

fn steal(now: &Conditions) -> Option<Finding> {
    let steal = now
        .cpu_steal_percent
        .filter(|steal| *steal >= STEAL_PERCENT)?;
    Some(
        found(
            Warning,
            "cpu-steal",
            MACHINE,
            format!("the hypervisor gave {steal:.1} % of the processors' time to others"),
            "latencies contain times in which this machine stood still",
        )
        .remedy("use a machine with processors of its own, or measure more than once"),
    )
}

/// With less memory, the kernel reclaims memory while data are written.
const LITTLE_MEMORY_BYTES: u64 = 256 << 20;

fn little_memory(host: &Host) -> Option<Finding> {
    let (all, available) = (host.memory_bytes?, host.memory_available_bytes?);
    (available < LITTLE_MEMORY_BYTES.max(all / 20)).then(|| {
        found(
            Warning,
            "memory-low",
            MACHINE,
            format!(
                "{} of {} memory are available",
                words::bytes(available),
                words::bytes(all)
            ),
            "the kernel reclaims memory while you measure, which stalls I/O",
        )
        .remedy("stop what needs the memory")
        .command("ps -eo pid,rss,comm --sort=-rss | head")
    })
}

/// Less used swap is from long ago and has no effect.
const SWAP_BYTES: u64 = 64 << 20;

fn swap(host: &Host) -> Option<Finding> {
    let used = host.swap_used_bytes.filter(|used| *used >= SWAP_BYTES)?;
    Some(
        found(
            Note,
            "swap-in-use",
            MACHINE,
            format!("{} of swap space are in use", words::bytes(used)),
            "programs that are swapped in or out do I/O of their own",
        )
        .remedy("free memory, then bring back what was swapped out")
        .command("sudo swapoff -a && sudo swapon -a"),
    )
}

/// A disk needs seconds to write more dirty pages.
const DIRTY_BYTES: u64 = 256 << 20;

fn dirty_pages(now: &Conditions) -> Option<Finding> {
    let dirty = now.dirty_bytes.filter(|dirty| *dirty >= DIRTY_BYTES)?;
    Some(
        found(
            Warning,
            "dirty-pages",
            MACHINE,
            format!(
                "{} in the page cache wait to be written",
                words::bytes(dirty)
            ),
            "the kernel will write them while you measure",
        )
        .remedy("have them written first")
        .command("sync"),
    )
}

fn io_uring(host: &Host, now: &Conditions) -> Option<Finding> {
    // A kernel without io_uring has a finding of its own.
    if kernel_before(host, 5, 1) {
        return None;
    }
    let disabled = now.io_uring_disabled.filter(|level| *level > 0);
    let refused = now.io_uring_error.as_deref();
    let evidence = match (disabled, refused) {
        (Some(level), Some(error)) => {
            format!("io_uring cannot be used: {error}; kernel.io_uring_disabled is {level}")
        }
        (Some(2), None) => "kernel.io_uring_disabled is 2".to_owned(),
        (_, None) => return None,
        (None, Some(error)) => format!("io_uring cannot be used: {error}"),
    };
    let finding = found(
        Warning,
        "io-uring",
        MACHINE,
        evidence,
        "slower system calls are used instead, which a fast device shows",
    );
    Some(match (disabled, host.platform.container) {
        (Some(_), _) => finding
            .remedy("allow it while you measure")
            .command("sudo sysctl -w kernel.io_uring_disabled=0"),
        (None, true) => finding.remedy("a container's seccomp profile forbids it: run with one that allows io_uring_setup, io_uring_enter and io_uring_register"),
        (None, false) => finding.remedy("a seccomp filter forbids it, or the kernel was built without it: run outside of the sandbox, or with another kernel"),
    })
}

/// Requests that a job with a high iodepth reserves.
const AIO_REQUESTS: u64 = 1024;

fn aio(now: &Conditions) -> Option<Finding> {
    let (used, max) = (now.aio_in_use?, now.aio_max?);
    (max.saturating_sub(used) < AIO_REQUESTS).then(|| {
        found(
            Note,
            "aio-exhausted",
            MACHINE,
            format!("{used} of {max} requests of native AIO are reserved"),
            "jobs with ioengine=libaio may fail with EAGAIN",
        )
        .remedy("allow more")
        .command(format!(
            "sudo sysctl -w fs.aio-max-nr={}",
            (max * 4).max(1_048_576)
        ))
    })
}

/// Size of the buffers of a deep queue of large requests, and of a few jobs.
const LOCKED_BYTES: u64 = 64 << 20;

fn locked_memory(now: &Conditions) -> Option<Finding> {
    let bytes = now
        .locked_memory_bytes
        .filter(|bytes| *bytes < LOCKED_BYTES)?;
    Some(
        found(
            Note,
            "memlock",
            MACHINE,
            format!("this process may lock {} of memory (RLIMIT_MEMLOCK)", words::bytes(bytes)),
            "larger buffers cannot be registered with io_uring: each I/O costs more processor time; lockmem= fails",
        )
        .remedy("raise the limit: LimitMEMLOCK= of a systemd service, /etc/security/limits.conf, or for one shell as root")
        .command("ulimit -l unlimited"),
    )
}

fn kernel_version(host: &Host) -> Option<(u32, u32)> {
    let mut numbers = host.kernel.as_deref()?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel_before(host: &Host, major: u32, minor: u32) -> bool {
    kernel_version(host).is_some_and(|version| version < (major, minor))
}

fn old_kernel(host: &Host) -> Option<Finding> {
    let (severity, effect) = if kernel_before(host, 5, 1) {
        (
            Warning,
            "it has no io_uring: slower system calls are used instead",
        )
    } else if kernel_before(host, 6, 1) {
        (
            Note,
            "its io_uring lacks deferred task work (6.1): each I/O costs a little more processor time",
        )
    } else {
        return None;
    };
    let kernel = host.kernel.as_deref().unwrap_or_default();
    Some(
        found(
            severity,
            "old-kernel",
            MACHINE,
            format!("the kernel is Linux {kernel}"),
            effect,
        )
        .remedy("compare only with results of the same kernel, or use a newer one"),
    )
}

/// Clock sources that are read over a bus, not from a register.
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

fn clock(host: &Host, now: &Conditions) -> Option<Finding> {
    let clock = host
        .clock_source
        .as_deref()
        .filter(|clock| SLOW_CLOCKS.contains(clock))?;
    let finding = found(
        Warning,
        "slow-clock",
        MACHINE,
        format!("the kernel's clock source is {clock}"),
        "each reading of the clock takes a microsecond or more, which a fast device shows",
    );
    let better = now
        .clock_sources
        .iter()
        .find(|other| ["tsc", "kvm-clock", "arch_sys_counter"].contains(&other.as_str()));
    Some(match better {
        Some(better) => finding.remedy(format!("use {better}, unless the kernel's log says that it is unstable")).command(format!(
            "echo {better} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        None => finding.remedy("see the kernel's log for why the processors' own clock is not used"),
    })
}

fn cpu_quota(host: &Host) -> Option<Finding> {
    let (quota, cpus) = (host.cgroup.cpu_quota?, host.cpu.online?);
    if quota >= f64::from(cpus) {
        return None;
    }
    let severity = if quota < 1.0 { Warning } else { Note };
    Some(
        found(
            severity,
            "cgroup-cpu",
            MACHINE,
            format!("control groups give this process {} of {cpus} CPUs' time", (quota * 100.0).round() / 100.0),
            "a fast device is held back by it, and latencies contain the times of waiting for the next period",
        )
        .remedy("raise cpu.max of the group (a pod's CPU limit), or compare only within the same bound"),
    )
}

/// With a lower limit, buffered writes wait for the device from the start.
const LITTLE_BOUND_BYTES: u64 = 512 << 20;

fn memory_bound(host: &Host) -> Option<Finding> {
    let bounds = [host.cgroup.memory_bytes, host.cgroup.memory_high_bytes];
    let bound = bounds
        .into_iter()
        .flatten()
        .min()
        .filter(|bound| *bound < LITTLE_BOUND_BYTES)?;
    Some(
        found(
            Warning,
            "cgroup-memory",
            MACHINE,
            format!(
                "control groups allow this process {} of memory, page cache included",
                words::bytes(bound)
            ),
            "buffered I/O is throttled by it, and a large job may be killed",
        )
        .remedy("raise memory.max and memory.high of the group (a pod's memory limit)"),
    )
}

fn virtual_machine(host: &Host) -> Option<Finding> {
    if host.platform.virtual_machine != Some(true) {
        return None;
    }
    let evidence = match &host.platform.cloud {
        Some(cloud) => format!("this is a virtual machine of {cloud}"),
        None => "this is a virtual machine".to_owned(),
    };
    let remedy = match &host.platform.cloud {
        Some(_) => "hold the figures against what the vendor publishes: see `iosonde limits`",
        None => "measure more than once; what the host's cache holds, this machine cannot see",
    };
    Some(
        found(
            Note,
            "virtual-machine",
            MACHINE,
            evidence,
            "its host may cache, cap and share the disk",
        )
        .remedy(remedy),
    )
}

fn container(host: &Host) -> Option<Finding> {
    host.platform.container.then(|| {
        found(
            Note,
            "container",
            MACHINE,
            "this process runs in a container",
            "its root is mostly an overlay on a disk that all containers share; bounds and other users may be out of sight",
        )
        .remedy("measure a volume, not the container's root")
    })
}

fn maintenance(now: &Conditions) -> Vec<Finding> {
    let each = now.maintenance.iter().map(|work| {
        found(
            Warning,
            "maintenance",
            MACHINE,
            format!("running now: {} (process {})", work.what, work.pid),
            "its I/O takes part of the device's time while it lasts",
        )
        .remedy("wait for its end")
    });
    each.collect()
}
