//! Tests of trims whose length is no result of a call.

use super::worker_parts::{DEPTH, job, parts};
use crate::io::immediate::ImmediateBackend;
use crate::io::null::Null;
use crate::io::{Op, Slot};
use crate::worker::Worker;
use crate::worker::clock::SimClock;
use iosonde_job::plan::{Direction, ReadWriteMode};

#[test]
fn trim_of_over_2_gib_counts_in_full() {
    let job = job(ReadWriteMode::Read, true, 1);
    let clock = SimClock::default();
    let backend = ImmediateBackend::new(Null, DEPTH);
    let mut worker = Worker::new(backend, clock.clone(), parts(&job, DEPTH, &clock));
    let index = worker.free.pop().expect("a free slot");
    worker.parts.slab.slots[index as usize] = Slot {
        op: Op::Trim,
        len: 3 << 30,
        ..Slot::IDLE
    };
    worker.in_flight = 1;
    worker.record_special(index, i32::MAX);
    worker.parts.recorder.reaped(1, 0);
    assert!(worker.failure.is_none());
    assert!(worker.batch.is_empty(), "no rest of the trim follows");
    assert_eq!(worker.parts.recorder.ios(Direction::Trim), 1);
}
