//! Settings of a worker's thread: locked memory, CPU affinity, priorities, memory policy, user.

use crate::sys::memory::LockedMemory;
use crate::sys::thread;
use iosonde_job::plan::Job;
use iosonde_result::run_error::{NumberedUnit, RunError, UnsupportedFeature};

/// Locks the memory that the job asks for (`lockmem`).
pub(super) fn lock_memory(job: &Job) -> Result<Option<LockedMemory>, RunError> {
    let bytes = job.io.lockmem_bytes;
    if bytes == 0 {
        return Ok(None);
    }
    match LockedMemory::lock(bytes as usize) {
        Ok(locked) => Ok(Some(locked)),
        Err(error) => Err(UnsupportedFeature::NoLockedMemory {
            bytes,
            failure: (&error).into(),
        }
        .into()),
    }
}

/// Returns the job's I/O priority in the kernel's encoding; 0 stands for none.
pub(super) fn own_priority(job: &Job) -> u16 {
    job.io.ioprio.map_or(0, thread::ioprio_bits)
}

/// Applies the CPU affinity, priorities and memory policy of the job to the thread.
pub(super) fn apply_thread_settings(job: &Job, clone: u32) -> Result<(), RunError> {
    let io = &job.io;
    let refused = |setting: String| {
        move |error: std::io::Error| {
            RunError::from(UnsupportedFeature::ThreadSettingRefused {
                setting,
                failure: (&error).into(),
            })
        }
    };
    if let Some(cpus) = &io.cpus_allowed {
        check_numbers("cpus_allowed", NumberedUnit::Cpu, cpus, CPUS_ONLINE)?;
        let mine = if io.cpus_split {
            vec![cpus[clone as usize % cpus.len()]]
        } else {
            cpus.clone()
        };
        thread::set_affinity(&mine).map_err(refused(format!("cpus_allowed={mine:?}")))?;
    }
    if let Some(nodes) = &io.numa_cpu_nodes {
        check_numbers(
            "numa_cpu_nodes",
            NumberedUnit::NumaNode,
            nodes,
            NODES_ONLINE,
        )?;
        let cpus = cpus_of_nodes(nodes);
        thread::set_affinity(&cpus).map_err(refused(format!("numa_cpu_nodes={nodes:?}")))?;
    }
    if let Some(policy) = &io.numa_mem_policy {
        thread::set_memory_policy(policy).map_err(refused("numa_mem_policy".to_owned()))?;
    }
    if let Some(nice) = io.nice {
        thread::set_nice(nice).map_err(refused(format!("nice={nice}")))?;
    }
    if let Some(priority) = io.ioprio {
        thread::set_ioprio(priority).map_err(refused("prio".to_owned()))?;
    }
    thread::set_fine_timers();
    // Last, as another user may lack the rights for the calls above.
    thread::set_identity(io.uid, io.gid).map_err(refused("uid or gid".to_owned()))
}

/// sysfs files that list the online processors and NUMA nodes.
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
const NODES_ONLINE: &str = "/sys/devices/system/node/online";

/// Refuses processors or NUMA nodes that this machine lacks: the kernel accepts a mask if any
/// exists. Without the sysfs file, only the kernel's own check applies.
fn check_numbers(
    option: &str,
    unit: NumberedUnit,
    asked: &[u32],
    path: &str,
) -> Result<(), RunError> {
    match std::fs::read_to_string(path) {
        Ok(online) => check_listed(option, unit, asked, &online),
        Err(_) => Ok(()),
    }
}

fn check_listed(
    option: &str,
    unit: NumberedUnit,
    asked: &[u32],
    online: &str,
) -> Result<(), RunError> {
    let there = cpu_list(online);
    let Some(missing) = asked.iter().find(|number| !there.contains(number)) else {
        return Ok(());
    };
    let online = online.trim();
    Err(UnsupportedFeature::NoSuchNumber {
        option: option.to_owned(),
        unit,
        number: *missing,
        online: online.to_owned(),
    }
    .into())
}

/// Returns the processors on which a job asks its workers to run, whatever its policy. `None`:
/// those of the process.
pub(super) fn cpus_of_workers(job: &Job) -> Option<Vec<u32>> {
    let of_nodes = job.io.numa_cpu_nodes.as_deref().map(cpus_of_nodes);
    of_nodes.or_else(|| job.io.cpus_allowed.clone())
}

/// Returns the processors that are online. `None` without the file of sysfs.
pub(super) fn online_cpus() -> Option<Vec<u32>> {
    let online = std::fs::read_to_string(CPUS_ONLINE).ok()?;
    Some(cpu_list(&online))
}

/// Returns the processors of NUMA nodes, as sysfs lists them.
fn cpus_of_nodes(nodes: &[u32]) -> Vec<u32> {
    let lists = nodes.iter().filter_map(|node| {
        std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok()
    });
    lists.flat_map(|list| cpu_list(&list)).collect()
}

/// Parses a list such as `0-3,8`.
pub(super) fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse::<u32>().ok()?..=high.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_of_sysfs_are_parsed() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list("\n"), [] as [u32; 0]);
    }

    #[test]
    fn missing_processor_error_lists_the_existing() {
        let unit = NumberedUnit::Cpu;
        let check = |asked: &[u32]| check_listed("cpus_allowed", unit, asked, "0-1,4\n");
        assert!(check(&[0, 4]).is_ok());
        let missing = UnsupportedFeature::NoSuchNumber {
            option: "cpus_allowed".to_owned(),
            unit,
            number: 2,
            online: "0-1,4".to_owned(),
        };
        assert_eq!(check(&[0, 1, 2]), Err(RunError::from(missing)));
    }
}
