//! Tests of I/Os that are alone in flight.

use super::*;
use crate::slot::Completion;
use crate::sys::memory::Slab;
use crate::sys::ring::RingOptions;
use crate::sys::ring::transfer_fixture::{BYTES, create_ring, create_slab, plain_io};
use iosonde_workload::Op;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

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
    let mut slab = create_slab();
    let mut ring = create_ring(&slab, RingOptions::default(), file.as_raw_fd());
    slab.memory.slot_mut(0, BYTES as usize).fill(7);
    let write = plain_io(Op::Write, u64::from(BYTES), BYTES);
    assert_eq!(carry_out(&mut ring, &mut slab, &write), BYTES as i32);
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).unwrap();
    let expected = [vec![0; BYTES as usize], vec![7; BYTES as usize]].concat();
    assert!(contents == expected);
    let read = plain_io(Op::Read, 0, 2 * BYTES - 512);
    assert_eq!(
        ring.transfer_alone(&mut slab.memory, &read, || panic!("it is not submitted")),
        LoneTransfer::Declined,
        "it is longer than its buffer"
    );
    let read = plain_io(Op::Read, u64::from(BYTES) - 512, 1024);
    assert_eq!(carry_out(&mut ring, &mut slab, &read), 1024);
    let bytes = slab.memory.slot(0, 1024);
    assert!(bytes == [vec![0; 512], vec![7; 512]].concat());
    let past_the_end = plain_io(Op::Read, 4 * u64::from(BYTES), BYTES);
    assert_eq!(carry_out(&mut ring, &mut slab, &past_the_end), 0);
    assert_eq!(ring.in_flight, 0);
}

#[test]
fn read_that_waits_is_in_flight_until_it_is_reaped() {
    let (source, mut sink) = std::io::pipe().unwrap();
    let mut slab = create_slab();
    let mut ring = create_ring(&slab, RingOptions::default(), source.as_raw_fd());
    let read = plain_io(Op::Read, 0, 4);
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
    let mut slab = create_slab();
    let fd = file.as_raw_fd();
    let read = plain_io(Op::Read, 0, BYTES);
    for op in [Op::Fsync, Op::Fdatasync, Op::Trim, Op::SyncFileRange] {
        let mut ring = create_ring(&slab, RingOptions::default(), fd);
        let outcome =
            ring.transfer_alone(&mut slab.memory, &plain_io(op, 0, 0), || panic!("{op:?}"));
        assert_eq!(outcome, LoneTransfer::Declined, "{op:?}");
    }
    let forced = RingOptions {
        force_async: 2,
        ..RingOptions::default()
    };
    let mut rings = [
        create_ring(&slab, RingOptions::default(), fd),
        create_ring(&slab, forced, fd),
    ];
    rings[0].set_files(&[fd], false).unwrap();
    for ring in &mut rings {
        let outcome = ring.transfer_alone(&mut slab.memory, &read, || panic!("it is submitted"));
        assert_eq!(outcome, LoneTransfer::Declined);
    }
}
