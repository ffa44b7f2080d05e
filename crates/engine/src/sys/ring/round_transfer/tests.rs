//! Tests of rounds that one call of the kernel submits and completes.

use super::*;
use crate::sys::ring::RingOptions;
use crate::sys::ring::transfer_fixture::{BYTES, create_ring, create_slab, plain_io};
use iosonde_workload::Op;
use std::io::Write;
use std::os::fd::AsRawFd;

#[test]
fn round_of_reads_completes_in_one_call() {
    let mut file = tempfile::tempfile().unwrap();
    let mut slab = create_slab();
    let bytes = BYTES as usize;
    let blocks = [vec![1; bytes], vec![2; bytes], vec![3; bytes]].concat();
    file.write_all(&blocks).unwrap();
    let mut ring = create_ring(&slab, RingOptions::default(), file.as_raw_fd());
    let ios = [2, 1].map(|block| plain_io(Op::Read, block * u64::from(BYTES), BYTES));
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
    let mut slab = create_slab();
    let mut ring = create_ring(&slab, RingOptions::default(), source.as_raw_fd());
    let ios = [plain_io(Op::Read, 0, 4); 2];
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
    let mut slab = create_slab();
    let mut ring = create_ring(&slab, RingOptions::default(), file.as_raw_fd());
    let read = plain_io(Op::Read, 0, BYTES);
    let too_long = plain_io(Op::Read, 0, 2 * BYTES);
    for ios in [
        &[read, plain_io(Op::Fsync, 0, 0)][..],
        &[read, too_long],
        &[read; 3],
    ] {
        let submitted = || panic!("it is submitted");
        let outcome = ring.transfer_round(&mut slab.memory, ios, &mut Vec::new(), submitted);
        assert_eq!(outcome, RoundTransfer::Declined, "{ios:?}");
        assert_eq!(ring.in_flight, 0);
    }
}
