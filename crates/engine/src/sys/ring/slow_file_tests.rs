//! Test that a ring dropped by a panic writes nothing to the memory of its former buffers.

use super::{Ring, RingOptions};
use crate::slot::Slot;
use crate::sys::memory::{IoMemory, MemoryKind, Slab};
use iosonde_workload::Op;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BYTES: usize = 4096;

/// A file without zero pages, each read of which takes a second.
struct SlowFile {
    path: PathBuf,
    server: Child,
    _directory: tempfile::TempDir,
}

impl SlowFile {
    fn serve() -> SlowFile {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slow");
        File::create(&path).unwrap();
        let server = Command::new("nbdfuse")
            .arg(&path)
            .args(["[", "nbdkit", "--exit-with-parent", "--filter=delay"])
            .args(["pattern", "1M", "rdelay=1", "]"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            assert!(Instant::now() < deadline, "nbdfuse does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        SlowFile {
            path,
            server,
            _directory: directory,
        }
    }
}

impl Drop for SlowFile {
    fn drop(&mut self) {
        // Lazy unmount (-z), because the ring may still have the file open.
        let unmount = Command::new("fusermount3")
            .arg("-uz")
            .arg(&self.path)
            .status();
        drop(unmount);
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Reads the file's first page into a slot and panics meanwhile. Returns the slot's address.
fn panic_while_reading(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let slot = Slot {
        op: Op::Read,
        len: BYTES as u32,
        ..Slot::IDLE
    };
    let mut slab = Slab {
        slots: vec![slot].into(),
        memory: IoMemory::map(1, BYTES, 0, MemoryKind::Pages).unwrap(),
    };
    let address = slab.memory.slot(0, BYTES).as_ptr().addr();
    let ended = catch_unwind(AssertUnwindSafe(move || {
        let options = RingOptions {
            force_async: 1,
            ..RingOptions::default()
        };
        let mut ring = Ring::new(1, options, &slab.memory).unwrap();
        ring.set_files(&[file.as_raw_fd()], false).unwrap();
        assert_eq!(ring.submit(&mut slab, &[0]), 1);
        // A kernel worker has started the read by then, and ends it before `DRAIN_TIMEOUT`.
        std::thread::sleep(Duration::from_millis(950));
        let _dropped_in_this_order = (ring, slab, file);
        panic!("in the middle of an I/O");
    }));
    assert!(ended.is_err());
    address
}

#[test]
#[ignore = "needs FUSE"]
fn late_read_does_not_write_unmapped_buffers() {
    let slow = SlowFile::serve();
    let address = panic_while_reading(&slow.path);
    // SAFETY: MAP_FIXED_NOREPLACE does not replace an existing mapping.
    let taken = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        let wanted = std::ptr::without_provenance_mut(address);
        mmap_anonymous(wanted, BYTES, ProtFlags::READ | ProtFlags::WRITE, flags)
    };
    // If the buffers are still mapped, no other code can get their memory.
    let Ok(memory) = taken else { return };
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: the page was just mapped, and belongs to this test alone.
    let bytes = unsafe { std::slice::from_raw_parts(memory.cast::<u8>(), BYTES) };
    assert!(bytes.iter().all(|byte| *byte == 0), "written from behind");
}
