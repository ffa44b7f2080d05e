//! getrusage(2): processor time, context switches and page faults.

use iosonde_result::run::CpuUse;

/// Resource usage of the calling thread so far.
pub(crate) fn read_thread_use() -> CpuUse {
    usage_of(super::linux::RUSAGE_THREAD)
}

/// Resource usage of all threads of this process so far.
pub(crate) fn read_process_use() -> CpuUse {
    usage_of(libc::RUSAGE_SELF)
}

fn usage_of(who: libc::c_int) -> CpuUse {
    // SAFETY: rusage is plain data for which zeros are valid; getrusage writes exactly one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let nanos =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    CpuUse {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        queued_ns: 0,
        context_switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        major_faults: usage.ru_majflt as u64,
        minor_faults: usage.ru_minflt as u64,
    }
}
