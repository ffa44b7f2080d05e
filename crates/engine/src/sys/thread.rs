//! Settings of the calling thread: CPU affinity, priorities, identity, memory policy, timers.

use crate::sys::c_library as libc;
use iosonde_job::plan::{IoPriority, NumaMemKind, NumaMemPolicy};
use std::io;

/// Binds the calling thread to these CPUs.
pub(crate) fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    // Sized by the highest CPU number, because cpu_set_t ends at 1024.
    let highest = cpus.iter().max().map_or(0, |cpu| *cpu as usize);
    let mut mask = vec![0u64; highest / 64 + 1];
    for cpu in cpus {
        mask[*cpu as usize / 64] |= 1 << (cpu % 64);
    }
    let length = size_of_val(mask.as_slice());
    // SAFETY: the kernel reads `length` bytes of the mask.
    let returned = unsafe { libc::sched_setaffinity(0, length, mask.as_ptr().cast()) };
    check(returned)
}

/// Sets the calling thread's nice value.
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// Changes the user and group of the calling thread only; `None` keeps one. The C library's
/// functions would change all threads of the process.
pub(crate) fn set_identity(uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    if let Some(gid) = gid {
        // SAFETY: the call takes no pointer to memory.
        check(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    }
    if let Some(uid) = uid {
        // SAFETY: the call takes no pointer to memory.
        check(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })?;
    }
    Ok(())
}

/// Sets the calling thread's I/O priority.
pub(crate) fn set_ioprio(priority: IoPriority) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: the call takes no pointer to memory.
    check(unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            WHO_PROCESS,
            0,
            libc::c_int::from(ioprio_bits(priority)),
        )
    })
}

/// The kernel's encoding of an I/O priority.
pub(crate) fn ioprio_bits(priority: IoPriority) -> u16 {
    (u16::from(priority.class) << 13) | u16::from(priority.level)
}

/// Sets the calling thread's memory policy.
pub(crate) fn set_memory_policy(policy: &NumaMemPolicy) -> io::Result<()> {
    let mode: libc::c_int = match policy.kind {
        NumaMemKind::Default => 0,
        NumaMemKind::Prefer => 1,
        NumaMemKind::Bind => 2,
        NumaMemKind::Interleave => 3,
        NumaMemKind::Local => 4,
    };
    let mut mask = [0u64; 16];
    for node in &policy.nodes {
        let word = mask
            .get_mut(*node as usize / 64)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node % 64);
    }
    let (pointer, bits) = if policy.nodes.is_empty() {
        (std::ptr::null(), 0)
    } else {
        (mask.as_ptr(), 64 * 16 + 1)
    };
    // SAFETY: the kernel reads at most `bits - 1` bits from the mask, which has that many.
    check(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) })
}

/// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard limit.
pub(crate) fn raise_open_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit writes one rlimit, setrlimit reads one. On failure open(2) reports EMFILE.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Sets the timer slack of the calling thread to 1 ns, so that sleeps do not end up to 50 us late.
pub(crate) fn set_fine_timers() {
    // SAFETY: no memory is passed. If the call fails, sleeps are only less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: the call takes no pointer to memory. glibc has gettid(3) since 2.30 only.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn check(returned: impl Into<i64>) -> io::Result<()> {
    if returned.into() < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
