//! Test of the entries of the short paths.

use super::*;
use crate::slot::Slot;
use crate::sys::ring::RingOptions;
use crate::sys::ring::tests::bytes_of;
use crate::sys::ring::transfer_fixture::create_slab;
use crate::sys::rw::RwFlags;
use std::os::fd::AsRawFd;

#[test]
fn plain_entry_equals_that_of_a_batch() {
    let file = tempfile::tempfile().unwrap();
    let mut slab = create_slab();
    let flags = RwFlags {
        read: libc::RWF_NOWAIT,
        write: libc::RWF_NOWAIT | libc::RWF_DSYNC,
    };
    for (registers_buffers, rw_flags) in [(false, flags), (true, RwFlags::default())] {
        let options = RingOptions {
            rw_flags,
            ..RingOptions::default()
        };
        let mut ring = Ring::new(2, options, &slab.memory).unwrap();
        if registers_buffers {
            ring.register_buffers(&slab.memory).unwrap();
        }
        ring.set_files(&[file.as_raw_fd(); 2], true).unwrap();
        for (op, offset, file) in [(Op::Read, 1 << 40, 1), (Op::Write, 4096, 0)] {
            let io = Io {
                offset,
                len: 512,
                file,
                op,
            };
            slab.slots[0] = Slot {
                op,
                offset,
                file,
                len: 512,
                ..Slot::IDLE
            };
            let of_batch = ring.maker.transfer(&slab, &slab.slots[0], 0, false);
            let alone = ring.plain_entries.unwrap().entry(&io, 0);
            let [alone, of_batch] = [alone, of_batch].map(bytes_of);
            assert_eq!(alone, of_batch, "{io:?}");
        }
    }
}
