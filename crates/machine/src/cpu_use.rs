//! Processor time of this process and its threads.

use crate::sys::getrusage;
use iosonde_result::run::CpuUse;

/// What the calling thread has used so far, with how long it waited for a processor: that takes a
/// look into /proc.
pub fn cpu_use_and_queued() -> CpuUse {
    CpuUse {
        queued_ns: queued_ns(),
        ..getrusage::of_thread()
    }
}

/// What all threads of this process have used so far.
pub fn process_cpu_use() -> CpuUse {
    getrusage::of_process()
}

/// How long the calling thread was ready to run and waited for a processor, in nanoseconds; 0 where the kernel does not
/// tell.
pub fn queued_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    // Time on a processor, time waiting for one, turns on one.
    let mut fields = text.split_ascii_whitespace();
    fields
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}
