//! The processor's time stamp counter.

/// Whether this processor has a counter that [`ticks`] can read.
pub(crate) const HAS_COUNTER: bool = cfg!(target_arch = "x86_64");

/// Reads the counter. May run before earlier instructions have finished, a few nanoseconds early.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let low: u32;
    let high: u32;
    // SAFETY: the instruction writes eax and edx, and nothing else. Without `nomem` the compiler
    // keeps accesses to completions before it.
    unsafe {
        std::arch::asm!(
            "rdtsc",
            out("eax") low,
            out("edx") high,
            options(nostack, preserves_flags),
        );
    }
    (u64::from(high) << 32) | u64::from(low)
}

/// Reads nothing: there is no counter.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks() -> u64 {
    0
}
