//! The kernel thread of a ring (SQPOLL), as `/proc` shows it.

use super::setup::{SetupFlags, builder};
use crate::sys::ring_options::RingOptions;
use io_uring::opcode;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

/// Directory of the threads of this process.
const THREADS: &str = "/proc/self/task";

/// Start of the names of these kernel threads.
const NAME_START: &str = "iou-sqp-";

/// Creates a ring with a kernel thread for a moment, and returns the text of the thread's
/// `/proc/self/task/TID/status`. `None`: before Linux 5.12 it is no thread of this process. Other
/// threads must not create such rings at the same time.
///
/// # Errors
/// The kernel refuses the ring, or `/proc` is not mounted.
pub(crate) fn sqpoll_thread_status() -> io::Result<Option<String>> {
    let before = list_sqpoll_threads()?;
    let options = RingOptions {
        sqpoll: true,
        ..RingOptions::default()
    };
    let mut ring = builder(2, options, SetupFlags::NONE).build(2)?;
    // SAFETY: the entry refers to no memory.
    let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
    debug_assert!(pushed.is_ok(), "a new ring has room for an entry");
    // The thread sets its name and its CPUs before it takes the first entry.
    ring.submit_and_wait(1)?;
    let after = list_sqpoll_threads()?;
    let status = |id: &OsString| fs::read_to_string(Path::new(THREADS).join(id).join("status"));
    Ok(after.difference(&before).find_map(|id| status(id).ok()))
}

/// Returns the numbers of all threads of this process with the name of such a kernel thread.
fn list_sqpoll_threads() -> io::Result<BTreeSet<OsString>> {
    let mut found = BTreeSet::new();
    for thread in fs::read_dir(THREADS)? {
        let id = thread?.file_name();
        // A thread may end meanwhile.
        let name = fs::read_to_string(Path::new(THREADS).join(&id).join("comm"));
        if name.is_ok_and(|name| name.starts_with(NAME_START)) {
            found.insert(id);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqpoll_thread_of_a_ring_has_a_name_and_cpus() {
        let status = sqpoll_thread_status().unwrap().unwrap();
        let has_line = |start: &str| status.lines().any(|line| line.starts_with(start));
        assert!(has_line("Name:\tiou-sqp-"), "{status}");
        assert!(has_line("Cpus_allowed_list:\t"), "{status}");
    }
}
