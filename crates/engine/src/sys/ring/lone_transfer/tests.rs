//! Tests of I/Os that are alone in flight.

use super::*;
use crate::slot::{Completion, RoundTransfer, Slot};
use crate::sys::memory::{MemoryKind, Slab};
use crate::sys::ring::RingOptions;
use crate::sys::rw::RwFlags;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};

const BYTES: u32 = 4096;

fn slab() -> Slab {
    Slab {
        slots: vec![Slot::IDLE; 2].into(),
        memory: IoMemory::map(2, BYTES as usize, 0, MemoryKind::Pages).unwrap(),
    }
}

/// A ring over one registered file, with registered buffers.
fn ring(slab: &Slab, options: RingOptions, fd: RawFd) -> Ring {
    let mut ring = Ring::new(2, options, &slab.memory).unwrap();
    ring.register_buffers(&slab.memory).unwrap();
    ring.set_files(&[fd], true).unwrap();
    ring
}

fn io(op: Op, offset: u64, len: u32) -> Io {
    Io {
        offset,
        len,
        file: 0,
        op,
    }
}

/// The result of an I/O that completes within its call or later, after it was submitted.
fn carry_out(ring: &mut Ring, slab: &mut Slab, io: &Io) -> i32 {
    let mut was_submitted = false;
    let outcome = ring.transfer_alone(&mut slab.memory, io, || was_submitted = true);
    assert!(was_submitted, "{outcome:?}");
    if let LoneTransfer::Completed(result) = outcome {
        return result;
    }
    let mut done = Vec::new();
    ring.reap(&mut slab.memory, 1, None, &mut done).unwrap();
    done[0].result
}

#[test]
fn write_and_read_alone_move_the_bytes() {
    let mut file = tempfile::tempfile().unwrap();
    let mut slab = slab();
    let mut ring = ring(&slab, RingOptions::default(), file.as_raw_fd());
    slab.memory.slot_mut(0, BYTES as usize).fill(7);
    let write = io(Op::Write, u64::from(BYTES), BYTES);
    assert_eq!(carry_out(&mut ring, &mut slab, &write), BYTES as i32);
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).unwrap();
    let expected = [vec![0; BYTES as usize], vec![7; BYTES as usize]].concat();
    assert!(contents == expected);
    let read = io(Op::Read, 0, 2 * BYTES - 512);
    assert_eq!(
        ring.transfer_alone(&mut slab.memory, &read, || panic!("it is not submitted")),
        LoneTransfer::Declined,
        "it is longer than its buffer"
    );
    let read = io(Op::Read, u64::from(BYTES) - 512, 1024);
    assert_eq!(carry_out(&mut ring, &mut slab, &read), 1024);
    let bytes = slab.memory.slot(0, 1024);
    assert!(bytes == [vec![0; 512], vec![7; 512]].concat());
    let past_the_end = io(Op::Read, 4 * u64::from(BYTES), BYTES);
    assert_eq!(carry_out(&mut ring, &mut slab, &past_the_end), 0);
    assert_eq!(ring.in_flight, 0);
}

#[test]
fn read_that_waits_is_in_flight_until_it_is_reaped() {
    let (source, mut sink) = std::io::pipe().unwrap();
    let mut slab = slab();
    let mut ring = ring(&slab, RingOptions::default(), source.as_raw_fd());
    let read = io(Op::Read, 0, 4);
    let mut was_submitted = false;
    let outcome = ring.transfer_alone(&mut slab.memory, &read, || was_submitted = true);
    assert_eq!((outcome, was_submitted), (LoneTransfer::InFlight, true));
    assert!(slab.memory.is_in_flight(SLOT), "the kernel writes to it");
    assert_eq!(ring.in_flight, 1);
    let second = ring.transfer_alone(&mut slab.memory, &read, || panic!("it is not submitted"));
    assert_eq!(second, LoneTransfer::Declined);
    sink.write_all(b"four").unwrap();
    let mut done = Vec::new();
    ring.reap(&mut slab.memory, 1, None, &mut done).unwrap();
    assert!(matches!(done[..], [Completion { slot: 0, result: 4 }]));
    assert_eq!(slab.memory.slot(0, 4), b"four");
    assert_eq!(ring.in_flight, 0);
}

#[test]
fn ios_of_another_kind_are_declined() {
    let file = tempfile::tempfile().unwrap();
    let mut slab = slab();
    let fd = file.as_raw_fd();
    let read = io(Op::Read, 0, BYTES);
    for op in [Op::Fsync, Op::Fdatasync, Op::Trim, Op::SyncFileRange] {
        let mut ring = ring(&slab, RingOptions::default(), fd);
        let outcome = ring.transfer_alone(&mut slab.memory, &io(op, 0, 0), || panic!("{op:?}"));
        assert_eq!(outcome, LoneTransfer::Declined, "{op:?}");
    }
    let forced = RingOptions {
        force_async: 2,
        ..RingOptions::default()
    };
    let mut rings = [
        ring(&slab, RingOptions::default(), fd),
        ring(&slab, forced, fd),
    ];
    rings[0].set_files(&[fd], false).unwrap();
    for ring in &mut rings {
        let outcome = ring.transfer_alone(&mut slab.memory, &read, || panic!("it is submitted"));
        assert_eq!(outcome, LoneTransfer::Declined);
    }
}

#[test]
fn entry_alone_equals_that_of_a_batch() {
    let file = tempfile::tempfile().unwrap();
    let mut slab = slab();
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
            let [alone, of_batch] = [alone, of_batch].map(crate::sys::ring::tests::bytes_of);
            assert_eq!(alone, of_batch, "{io:?}");
        }
    }
}

#[test]
fn round_of_reads_completes_in_one_call() {
    let mut file = tempfile::tempfile().unwrap();
    let mut slab = slab();
    let bytes = BYTES as usize;
    let blocks = [vec![1; bytes], vec![2; bytes], vec![3; bytes]].concat();
    file.write_all(&blocks).unwrap();
    let mut ring = ring(&slab, RingOptions::default(), file.as_raw_fd());
    let ios = [2, 1].map(|block| io(Op::Read, block * u64::from(BYTES), BYTES));
    let mut done = Vec::new();
    let mut was_submitted = false;
    let submitted = || was_submitted = true;
    let outcome = ring.transfer_round(&mut slab.memory, &ios, &mut done, submitted);
    assert!(was_submitted);
    if outcome == RoundTransfer::InFlight {
        ring.reap(&mut slab.memory, 2, None, &mut done).unwrap();
    }
    assert_eq!(done.len(), 2, "{outcome:?}");
    assert!(done.iter().all(|it| it.result == BYTES as i32));
    for (slot, byte) in [(0, 3), (1, 2)] {
        assert!(slab.memory.slot(slot, bytes) == vec![byte; bytes], "{slot}");
    }
    assert_eq!(ring.in_flight, 0);
}

#[test]
fn round_that_waits_is_in_flight_until_it_is_reaped() {
    let (source, mut sink) = std::io::pipe().unwrap();
    let mut slab = slab();
    let mut ring = ring(&slab, RingOptions::default(), source.as_raw_fd());
    let ios = [io(Op::Read, 0, 4); 2];
    sink.write_all(b"four").unwrap();
    let mut done = Vec::new();
    let outcome = ring.transfer_round(&mut slab.memory, &ios, &mut done, || {});
    assert_eq!(outcome, RoundTransfer::InFlight, "only one has data");
    assert!(done.is_empty() && ring.in_flight == 2);
    assert!((0..2).all(|slot| slab.memory.is_in_flight(slot)));
    let again = ring.transfer_round(&mut slab.memory, &ios, &mut done, || panic!("submitted"));
    assert_eq!(again, RoundTransfer::Declined);
    sink.write_all(b"more").unwrap();
    ring.reap(&mut slab.memory, 2, None, &mut done).unwrap();
    assert_eq!((done.len(), ring.in_flight), (2, 0));
    assert_eq!(slab.memory.slot(0, 4), b"four");
    assert_eq!(slab.memory.slot(1, 4), b"more");
}

#[test]
fn round_with_an_io_of_another_kind_is_declined_whole() {
    let file = tempfile::tempfile().unwrap();
    let mut slab = slab();
    let mut ring = ring(&slab, RingOptions::default(), file.as_raw_fd());
    let read = io(Op::Read, 0, BYTES);
    let too_long = io(Op::Read, 0, 2 * BYTES);
    for ios in [
        &[read, io(Op::Fsync, 0, 0)][..],
        &[read, too_long],
        &[read; 3],
    ] {
        let submitted = || panic!("it is submitted");
        let outcome = ring.transfer_round(&mut slab.memory, ios, &mut Vec::new(), submitted);
        assert_eq!(outcome, RoundTransfer::Declined, "{ios:?}");
        assert_eq!(ring.in_flight, 0);
    }
}
