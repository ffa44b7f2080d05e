//! Processor time of this process and its threads.

use crate::sys::getrusage;
use iosonde_result::run::CpuUse;

/// Processor time of the calling thread so far, with its time in the run queue (from /proc).
pub fn cpu_use_and_queued() -> CpuUse {
    CpuUse {
        queued_ns: queued_ns(),
        ..getrusage::read_thread_use()
    }
}

/// Processor time of all threads of this process so far.
pub(crate) fn process_cpu_use() -> CpuUse {
    getrusage::read_process_use()
}

/// Time in nanoseconds that the calling thread waited in the run queue for a processor; 0 if the
/// kernel does not report it.
pub fn queued_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    // The fields are time on a processor, time in the run queue, number of timeslices.
    let mut fields = text.split_ascii_whitespace();
    fields
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}
