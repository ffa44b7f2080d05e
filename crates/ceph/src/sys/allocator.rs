//! Settings of the C library's allocator, from which librados takes its copies of written data.

/// Freed bytes that stay in the process: twice what librados has in flight by default
/// (`objecter_inflight_op_bytes`, 100 MiB).
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 256 << 20;
/// Largest block that is not mapped and unmapped by itself: the largest value that glibc accepts.
#[cfg(target_env = "gnu")]
const LARGEST_HEAP_BLOCK: libc::c_int = 32 << 20;

/// Keeps freed memory for the next copy, in one heap for all threads. glibc otherwise returns the
/// copies of large writes to the kernel, which clears the pages of each new copy: a fifth of the
/// CPU time of a write of 4 MiB. Other C libraries keep their settings.
pub(super) fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt locks the allocator; any thread may call it at any time. A setting that glibc
    // refuses stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_HEAP_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Page faults of the calling thread so far.
    fn page_faults() -> i64 {
        // SAFETY: zeroed integers are a valid rusage, which getrusage fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: getrusage writes only to this struct.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        usage.ru_minflt
    }

    #[test]
    fn copies_of_large_writes_reuse_freed_memory() {
        const ROUNDS: i64 = 4;
        keep_freed_memory();
        let copy_in_flight = || {
            let copies: Vec<Vec<u8>> = (0..8).map(|_| vec![1; 4 << 20]).collect();
            drop(black_box(copies));
        };
        copy_in_flight();
        let before = page_faults();
        (0..ROUNDS).for_each(|_| copy_in_flight());
        // A round whose pages are new takes 8192 page faults.
        assert!(page_faults() - before < ROUNDS * 512);
    }
}
