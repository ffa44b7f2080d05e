//! Tests of the number of I/Os in a call of the backend.

use super::worker_parts::{DEPTH, job, parts};
use crate::io::{Backend, Completion, FileHandle, Slab};
use crate::worker::clock::{Clock, SimClock};
use crate::worker::{Worker, WorkerStep};
use iosonde_job::plan::ReadWriteMode;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

const CALL_LIMIT: u32 = 4;

/// The longest time of an I/O with which calls grow.
const FAST_NS: u64 = 5_000;

/// Carries out each I/O in its call, for some time of the clock. `OF_ENGINE`: the engine does so by
/// design.
struct DeviceInCall<const OF_ENGINE: bool> {
    clock: SimClock,
    device: TestedDevice,
    submitted: usize,
    reaps: usize,
    in_flight: Vec<u32>,
    calls: Rc<RefCell<Vec<usize>>>,
}

/// Behaviour of the device.
#[derive(Clone, Copy)]
struct TestedDevice {
    /// Time of an I/O by its number.
    io_ns: fn(usize) -> u64,
    /// I/Os that each reap leaves in flight, if it can.
    left: usize,
    /// Whether every third reap returns no I/O.
    has_empty_reaps: bool,
}

const FAST: TestedDevice = TestedDevice {
    io_ns: |_| FAST_NS,
    left: 0,
    has_empty_reaps: false,
};

impl<const OF_ENGINE: bool> Backend for DeviceInCall<OF_ENGINE> {
    const SYNCHRONOUS: bool = false;
    const CARRIES_OUT_IN_SUBMIT: bool = OF_ENGINE;

    fn submit(&mut self, _: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        for slot in batch {
            let io_ns = (self.device.io_ns)(self.submitted);
            self.clock.advance_to(self.clock.now_ns() + io_ns);
            self.submitted += 1;
            self.in_flight.push(*slot);
        }
        self.calls.borrow_mut().push(batch.len());
        Ok(batch.len())
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.reaps += 1;
        if self.device.has_empty_reaps && self.reaps.is_multiple_of(3) {
            return Ok(());
        }
        let count = self.in_flight.len().saturating_sub(self.device.left);
        let count = count.max(min);
        done.extend(self.in_flight.drain(..count).map(|slot| Completion {
            slot,
            result: slab.slots[slot as usize].len as i32,
        }));
        Ok(())
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}

/// The number of I/Os in each call of a job that reads 16 times as many as its depth.
fn calls<const OF_ENGINE: bool>(device: TestedDevice, call_limit_at_once: u32) -> Vec<usize> {
    let job = job(ReadWriteMode::Read, true, 1);
    let clock = SimClock::default();
    let calls = Rc::new(RefCell::new(Vec::new()));
    let backend = DeviceInCall::<OF_ENGINE> {
        clock: clock.clone(),
        device,
        submitted: 0,
        reaps: 0,
        in_flight: Vec::new(),
        calls: calls.clone(),
    };
    let mut parts = parts(&job, DEPTH, &clock);
    parts.rules.call_limit = CALL_LIMIT;
    parts.rules.call_limit_at_once = call_limit_at_once;
    parts.end_sync_files.clear();
    let mut worker = Worker::new(backend, clock, parts);
    while worker.step() != WorkerStep::Done {}
    let ios = worker.finish().recorder.measured_ios();
    assert_eq!(ios, 16 * u64::from(DEPTH), "each block is read once");
    calls.take()
}

fn most<const OF_ENGINE: bool>(device: TestedDevice, call_limit_at_once: u32) -> Option<usize> {
    calls::<OF_ENGINE>(device, call_limit_at_once)
        .into_iter()
        .max()
}

#[test]
fn calls_grow_while_all_ios_are_soon_complete_at_each_reap() {
    let calls = calls::<false>(FAST, u32::MAX);
    let (small, large) = calls.split_at(16);
    assert_eq!(small, [4; 16], "four rounds of four calls");
    assert_eq!(large, [16; 12]);
}

#[test]
fn calls_stay_small_on_a_slow_device_that_completes_ios_in_the_call() {
    let slow: [fn(usize) -> u64; 2] = [|_| FAST_NS + 1, |_| 10_000_000];
    for io_ns in slow {
        let device = TestedDevice { io_ns, ..FAST };
        assert_eq!(most::<false>(device, u32::MAX), Some(4), "{}", io_ns(0));
    }
}

#[test]
fn calls_are_small_again_after_a_slow_io() {
    let device = TestedDevice {
        io_ns: |number| if number == 160 { 10_000_000 } else { 1_000 },
        ..FAST
    };
    let calls = calls::<false>(device, u32::MAX);
    let expected: Vec<usize> = [vec![4; 16], vec![16; 7], vec![4; 16], vec![16]].concat();
    assert_eq!(calls, expected, "the slow I/O is in the seventh large call");
}

#[test]
fn calls_stay_small_if_a_reap_leaves_ios_in_flight() {
    let queues = TestedDevice { left: 1, ..FAST };
    assert_eq!(most::<false>(queues, u32::MAX), Some(4));
    let pauses = TestedDevice {
        has_empty_reaps: true,
        ..FAST
    };
    assert_eq!(most::<false>(pauses, u32::MAX), Some(4));
}

#[test]
fn calls_stay_small_by_the_rules_and_for_engines_that_carry_out_ios() {
    assert_eq!(most::<false>(FAST, CALL_LIMIT), Some(4));
    assert_eq!(most::<true>(FAST, u32::MAX), Some(4));
}
