//! Findings about the machine.

use super::finding_cause::{FindingCause, MachineCause};
use super::finding_text;
use super::io_path_cause::IoUringRefusal;
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{Finding, MachineConditions, Severity};
use crate::host::Host;
use iosonde_job::errno::{EACCES, ENOSYS, EPERM};

fn found(severity: Severity, cause: MachineCause) -> Finding {
    finding_text::finding(severity, "machine", FindingCause::Machine(cause))
}

pub(super) fn findings(host: &Host, now: &MachineConditions) -> Vec<Finding> {
    let found = [
        governor(host),
        battery(now),
        busy_machine_finding(host, now),
        steal(now),
        little_memory(host),
        swap_finding(host),
        dirty_pages(now),
        io_uring(host, now),
        aio_limit_finding(now),
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
    let governors = host.cpu.governor.as_ref()?;
    if governors.iter().all(|governor| governor == "performance") {
        return None;
    }
    let severity = if governors.contains("powersave") {
        Warning
    } else {
        Note
    };
    let cause = MachineCause::CpuGovernor {
        governor: governors.to_string(),
        driver: host.cpu.frequency_driver.clone(),
    };
    Some(found(severity, cause))
}

fn battery(now: &MachineConditions) -> Option<Finding> {
    (now.on_battery == Some(true)).then(|| found(Warning, MachineCause::OnBattery))
}

/// CPU utilisation from which on a generator may lack processor time.
const BUSY_PERCENT: f64 = 50.0;

fn busy_machine_finding(host: &Host, now: &MachineConditions) -> Option<Finding> {
    let busy_percent = now.cpu_busy_percent.filter(|busy| *busy >= BUSY_PERCENT)?;
    let cause = MachineCause::CpuBusy {
        busy_percent,
        cpus: host.cpu.online,
        load_average: now.load_average.map(|[one, ..]| one),
    };
    Some(found(Warning, cause))
}

/// Less steal time is the hypervisor's own housekeeping.
const STEAL_PERCENT: f64 = 2.0;

fn steal(now: &MachineConditions) -> Option<Finding> {
    let steal_percent = now
        .cpu_steal_percent
        .filter(|steal| *steal >= STEAL_PERCENT)?;
    Some(found(Warning, MachineCause::CpuSteal { steal_percent }))
}

/// With less memory, the kernel reclaims memory while data are written.
const LITTLE_MEMORY_BYTES: u64 = 256 << 20;

fn little_memory(host: &Host) -> Option<Finding> {
    let (memory_bytes, available_bytes) = (host.memory_bytes?, host.memory_available_bytes?);
    (available_bytes < LITTLE_MEMORY_BYTES.max(memory_bytes / 20)).then(|| {
        let cause = MachineCause::MemoryLow {
            available_bytes,
            memory_bytes,
        };
        found(Warning, cause)
    })
}

/// Less used swap is from long ago and has no effect.
const SWAP_BYTES: u64 = 64 << 20;

fn swap_finding(host: &Host) -> Option<Finding> {
    let used_bytes = host.swap_used_bytes.filter(|used| *used >= SWAP_BYTES)?;
    Some(found(Note, MachineCause::SwapInUse { used_bytes }))
}

/// A disk needs seconds to write more dirty pages.
const DIRTY_BYTES: u64 = 256 << 20;

fn dirty_pages(now: &MachineConditions) -> Option<Finding> {
    let dirty_bytes = now.dirty_bytes.filter(|dirty| *dirty >= DIRTY_BYTES)?;
    Some(found(Warning, MachineCause::DirtyPages { dirty_bytes }))
}

fn io_uring(host: &Host, now: &MachineConditions) -> Option<Finding> {
    // A kernel without io_uring has a finding of its own.
    if kernel_before(host, 5, 1) {
        return None;
    }
    let disabled_level = now.io_uring_disabled.filter(|level| *level > 0);
    let error = now.io_uring_error.clone();
    // Level 1 applies only to unprivileged processes, so io_uring may be available.
    if error.is_none() && disabled_level != Some(2) {
        return None;
    }
    let cause = MachineCause::IoUring {
        error,
        disabled_level,
        container: host.platform.container,
        refusal: io_uring_refusal(host, now, disabled_level),
    };
    Some(found(Warning, cause))
}

/// Mode of a process with seccomp filters in `/proc/self/status`.
const SECCOMP_FILTER: u32 = 2;

/// Distinguishes the origins of a refusal. The sysctl fails with EPERM, a seccomp filter with the
/// errno of its profile: EPERM with Docker and containerd, ENOSYS with Podman.
fn io_uring_refusal(
    host: &Host,
    now: &MachineConditions,
    disabled_level: Option<u32>,
) -> IoUringRefusal {
    let is_filtered = now.io_path.seccomp_mode == Some(SECCOMP_FILTER);
    // A kernel with io_uring has the sysctl since Linux 6.6.
    let may_have_io_uring = now.io_uring_disabled.is_some() || kernel_before(host, 6, 6);
    match now.io_uring_errno {
        None | Some(EPERM) if disabled_level.is_some() => IoUringRefusal::Sysctl,
        Some(EPERM) if is_filtered => IoUringRefusal::SeccompFilter,
        Some(ENOSYS) if is_filtered && may_have_io_uring => IoUringRefusal::SeccompFilter,
        Some(EPERM | EACCES) => IoUringRefusal::SecurityModule,
        Some(ENOSYS) => IoUringRefusal::KernelWithout,
        _ => IoUringRefusal::Unknown,
    }
}

/// Requests that a job with a high iodepth reserves.
const AIO_REQUESTS: u64 = 1024;

fn aio_limit_finding(now: &MachineConditions) -> Option<Finding> {
    let (reserved_requests, limit_requests) = (now.aio_in_use?, now.aio_max?);
    (limit_requests.saturating_sub(reserved_requests) < AIO_REQUESTS).then(|| {
        let cause = MachineCause::AioExhausted {
            reserved_requests,
            limit_requests,
        };
        found(Note, cause)
    })
}

/// Size of the buffers of a deep queue of large requests, and of a few jobs.
const LOCKED_BYTES: u64 = 64 << 20;

fn locked_memory(now: &MachineConditions) -> Option<Finding> {
    let limit_bytes = now
        .locked_memory_bytes
        .filter(|bytes| *bytes < LOCKED_BYTES)?;
    Some(found(Note, MachineCause::Memlock { limit_bytes }))
}

fn kernel_version(host: &Host) -> Option<(u32, u32)> {
    let mut numbers = host.kernel.as_deref()?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel_before(host: &Host, major: u32, minor: u32) -> bool {
    kernel_version(host).is_some_and(|version| version < (major, minor))
}

fn old_kernel(host: &Host) -> Option<Finding> {
    let has_io_uring = !kernel_before(host, 5, 1);
    if !kernel_before(host, 6, 1) {
        return None;
    }
    let cause = MachineCause::OldKernel {
        release: host.kernel.clone().unwrap_or_default(),
        has_io_uring,
    };
    Some(found(if has_io_uring { Note } else { Warning }, cause))
}

/// Clock sources that are read over a bus, not from a register.
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

fn clock(host: &Host, now: &MachineConditions) -> Option<Finding> {
    let clock = host
        .clock_source
        .as_deref()
        .filter(|clock| SLOW_CLOCKS.contains(clock))?;
    let better = now
        .clock_sources
        .iter()
        .find(|other| ["tsc", "kvm-clock", "arch_sys_counter"].contains(&other.as_str()));
    let cause = MachineCause::SlowClock {
        clock: clock.to_owned(),
        better: better.cloned(),
    };
    Some(found(Warning, cause))
}

fn cpu_quota(host: &Host) -> Option<Finding> {
    let (limit_cpus, cpus) = (host.cgroup.cpu_quota?, host.cpu.online?);
    if limit_cpus >= f64::from(cpus) {
        return None;
    }
    let severity = if limit_cpus < 1.0 { Warning } else { Note };
    Some(found(
        severity,
        MachineCause::CgroupCpu { limit_cpus, cpus },
    ))
}

/// With a lower limit, buffered writes wait for the device from the start.
const LITTLE_BOUND_BYTES: u64 = 512 << 20;

fn memory_bound(host: &Host) -> Option<Finding> {
    let bounds = [host.cgroup.memory_bytes, host.cgroup.memory_high_bytes];
    let limit_bytes = bounds
        .into_iter()
        .flatten()
        .min()
        .filter(|bound| *bound < LITTLE_BOUND_BYTES)?;
    Some(found(Warning, MachineCause::CgroupMemory { limit_bytes }))
}

fn virtual_machine(host: &Host) -> Option<Finding> {
    let cloud = || host.platform.cloud.clone();
    (host.platform.virtual_machine == Some(true))
        .then(|| found(Note, MachineCause::VirtualMachine { cloud: cloud() }))
}

fn container(host: &Host) -> Option<Finding> {
    host.platform
        .container
        .then(|| found(Note, MachineCause::Container))
}

fn maintenance(now: &MachineConditions) -> Vec<Finding> {
    let each = now.maintenance.iter().map(|running| {
        let cause = MachineCause::Maintenance {
            work: running.what.clone(),
            pid: running.pid,
        };
        found(Warning, cause)
    });
    each.collect()
}
