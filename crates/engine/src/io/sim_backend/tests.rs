//! Tests of the backend's interface: slots, buffers, contents, errors.

use super::*;
use crate::sys::memory::{IoMemory, MemoryKind};
use iosonde_job::plan::Direction;
use iosonde_sim::SimSpec;

const SECOND: u64 = 1_000_000_000;

fn spec(text: &str) -> SimSpec {
    SimSpec::parse(text).unwrap()
}

/// A minimal worker that keeps all its slots in flight.
struct BackendDriver {
    slab: Slab,
    backend: SimBackend,
    clock: SimClock,
    device: Rc<RefCell<SimDevice>>,
}

impl BackendDriver {
    fn new(device: Rc<RefCell<SimDevice>>, depth: u32, bytes: u32) -> BackendDriver {
        let memory = IoMemory::map(depth as usize, bytes as usize, 0, MemoryKind::Pages).unwrap();
        let slab = Slab {
            slots: vec![Slot::IDLE; depth as usize].into(),
            memory,
        };
        let clock = SimClock::default();
        let mut backend = SimBackend::new(Rc::clone(&device), clock.clone(), true);
        let size = 1 << 30;
        backend
            .set_files(&[FileHandle {
                fd: 3,
                block_device: false,
                size,
            }])
            .unwrap();
        BackendDriver {
            slab,
            backend,
            clock,
            device,
        }
    }

    fn with(text: &str, depth: u32, bytes: u32) -> BackendDriver {
        BackendDriver::new(SimDevice::shared(spec(text)).unwrap(), depth, bytes)
    }

    fn submit(&mut self, slot: u32, op: Op, offset: u64, len: u32) {
        self.slab.slots[slot as usize] = Slot {
            op,
            offset,
            len,
            ..Slot::IDLE
        };
        assert_eq!(self.backend.submit(&mut self.slab, &[slot]).unwrap(), 1);
    }

    /// Advances the clock to the next completions.
    fn reap(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.clock
            .advance_to(self.backend.next_completion_ns().expect("I/O in flight"));
        self.backend
            .reap(&mut self.slab, 1, None, &mut done)
            .unwrap();
        done
    }

    fn result(&mut self, op: Op, offset: u64, len: u32) -> i32 {
        self.submit(0, op, offset, len);
        let done = self.reap();
        assert_eq!(done.len(), 1);
        done[0].result
    }
}

/// IOPS of a closed loop of reads through the backend, without the first second.
fn rate(device: Rc<RefCell<SimDevice>>, depth: u32, bytes: u32, until_ns: u64) -> f64 {
    let mut driver = BackendDriver::new(device, depth, bytes);
    let mut count = 0u64;
    for slot in 0..depth {
        driver.submit(slot, Op::Read, u64::from(slot) * u64::from(bytes), bytes);
    }
    while driver.clock.now_ns() < until_ns {
        for Completion { slot, .. } in driver.reap() {
            count += u64::from(driver.clock.now_ns() > SECOND);
            driver.submit(slot, Op::Read, 0, bytes);
        }
    }
    count as f64 * 1e9 / (driver.clock.now_ns() - SECOND) as f64
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected,
        "{found} instead of {expected}"
    );
}

#[test]
fn simulated_rate_matches_closed_form_over_depths_and_sizes() {
    let text = "read_us=80,write_us=30,read_bw=1g,parallel=8,link_bw=600m,delay_us=120,\
                cap_read_iops=40k,cap_bw=500m:1m,worker_us=15";
    for bytes in [512, 4096, 16384, 131_072] {
        for depth in [1, 2, 5, 8, 13, 40, 200] {
            let device = SimDevice::shared(spec(text)).unwrap();
            let expected = spec(text)
                .closed_loop_iops(bytes, Direction::Read, depth)
                .unwrap();
            let found = rate(device, depth, bytes as u32, 4 * SECOND);
            close(found, expected, 0.001);
        }
    }
}

#[test]
fn completions_are_reaped_in_completion_order() {
    let mut driver = BackendDriver::with("read_us=100,write_us=30,parallel=4", 4, 4096);
    for (slot, op) in [Op::Read, Op::Write, Op::Read, Op::Write]
        .into_iter()
        .enumerate()
    {
        driver.submit(slot as u32, op, 0, 4096);
    }
    let mut early = Vec::new();
    driver
        .backend
        .reap(&mut driver.slab, 4, None, &mut early)
        .unwrap();
    assert!(
        early.is_empty(),
        "nothing is over at the time of submission"
    );
    let order = |done: Vec<Completion>| done.iter().map(|done| done.slot).collect::<Vec<_>>();
    assert_eq!(order(driver.reap()), [1, 3]);
    assert_eq!(driver.clock.now_ns(), 30_000);
    assert_eq!(order(driver.reap()), [0, 2]);
    assert_eq!(driver.clock.now_ns(), 100_000);
    assert_eq!(driver.backend.next_completion_ns(), None);
}

#[test]
fn simulated_read_returns_written_data() {
    let mut driver = BackendDriver::with("store=1", 1, 8192);
    driver.slab.memory.slot_mut(0, 8192).fill(0xa5);
    assert_eq!(driver.result(Op::Write, 1000, 5000), 5000);
    assert_eq!(driver.result(Op::Trim, 2000, 1000), 1000);
    driver.slab.memory.slot_mut(0, 8192).fill(1);
    assert_eq!(driver.result(Op::Read, 0, 8192), 8192);
    let read = driver.slab.memory.slot(0, 8192);
    for (at, byte) in read.iter().enumerate() {
        let written = (1000..6000).contains(&at) && !(2000..3000).contains(&at);
        assert_eq!(*byte, if written { 0xa5 } else { 0 }, "at {at}");
    }
}

#[test]
fn trim_of_over_2_gib_discards_its_whole_range() {
    let mut driver = BackendDriver::with("store=1", 1, 4096);
    driver.slab.memory.slot_mut(0, 4096).fill(0xa5);
    let last = (3 << 30) - 4096;
    assert_eq!(driver.result(Op::Write, last, 4096), 4096);
    assert_eq!(driver.result(Op::Trim, 0, 3 << 30), i32::MAX);
    assert_eq!(driver.result(Op::Read, last, 4096), 4096);
    assert_eq!(driver.slab.memory.slot(0, 4096), [0; 4096]);
    let counters = driver.device.borrow().counters(driver.clock.now_ns());
    assert_eq!(counters.bytes.trim, 3 << 30);
}

#[test]
fn short_io_continues_where_it_stopped() {
    let mut driver = BackendDriver::with("store=1,short=0.8", 1, 65536);
    let pattern: Vec<u8> = (0..65536u32).map(|at| (at / 7) as u8).collect();
    driver
        .slab
        .memory
        .slot_mut(0, 65536)
        .copy_from_slice(&pattern);
    for op in [Op::Write, Op::Read] {
        driver.submit(0, op, 12345, 65536);
        let mut rounds = 0;
        loop {
            let moved = driver.reap()[0].result;
            assert!(moved > 0);
            driver.slab.slots[0].moved += moved as u32;
            if driver.slab.slots[0].moved == 65536 {
                break;
            }
            rounds += 1;
            driver.backend.submit(&mut driver.slab, &[0]).unwrap();
        }
        assert!(rounds > 0, "no transfer was short");
        if op == Op::Write {
            driver.slab.memory.slot_mut(0, 65536).fill(0);
        }
    }
    assert_eq!(driver.slab.memory.slot(0, 65536), pattern);
}

#[test]
fn flipped_bit_is_read_where_it_was_written() {
    let mut driver = BackendDriver::with("flip=3", 1, 4096);
    driver.slab.memory.slot_mut(0, 4096).fill(0x77);
    for write in 0..5 {
        driver.result(Op::Write, write * 4096, 4096);
    }
    for write in 0..5 {
        driver.result(Op::Read, write * 4096, 4096);
        let wrong = driver
            .slab
            .memory
            .slot(0, 4096)
            .iter()
            .filter(|byte| **byte != 0x77)
            .count();
        assert_eq!(wrong, usize::from(write == 2), "write {write}");
    }
}

#[test]
fn workers_that_name_the_same_file_share_it() {
    let device = SimDevice::shared(spec("store=1")).unwrap();
    let mut writer = BackendDriver::new(Rc::clone(&device), 1, 4096);
    let mut reader = BackendDriver::new(device, 1, 4096);
    writer.slab.memory.slot_mut(0, 4096).fill(9);
    writer.result(Op::Write, 4096, 4096);
    reader.clock.advance_to(SECOND);
    reader.result(Op::Read, 4096, 4096);
    assert_eq!(reader.slab.memory.slot(0, 4096), [9; 4096]);
}

#[test]
fn errors_are_reported_and_counted() {
    let mut driver = BackendDriver::with(
        "read_error=0.25:ETIMEDOUT,fsync_error=1,trim_us=10",
        1,
        4096,
    );
    let results: Vec<i32> = (0..10_000)
        .map(|_| driver.result(Op::Read, 0, 4096))
        .collect();
    let failed = results
        .iter()
        .filter(|result| **result == -libc::ETIMEDOUT)
        .count();
    assert!(failed.abs_diff(2500) < 220, "{failed}");
    assert!(
        results
            .iter()
            .all(|result| [4096, -libc::ETIMEDOUT].contains(result))
    );
    assert_eq!(driver.result(Op::Fsync, 0, 0), -libc::EIO);
    assert_eq!(driver.result(Op::Trim, 0, 4096), 4096);
    let counters = driver.device.borrow().counters(driver.clock.now_ns());
    assert_eq!(counters.errors, failed as u64 + 1);
    assert_eq!(counters.ios.read, 10_000 - failed as u64);
    assert_eq!(counters.bytes.read, 4096 * counters.ios.read);
    assert_eq!(counters.ios.trim, 1);
}

#[test]
fn sim_counters_match_those_of_a_block_device() {
    let mut driver = BackendDriver::with(
        "cache=1m,cache_direct=1,dirty=1m,writeback_bw=1m,read_us=100",
        1,
        65536,
    );
    driver.result(Op::Read, 0, 4096);
    driver.clock.advance_to(SECOND);
    driver.result(Op::Read, 0, 4096);
    driver.result(Op::Write, 0, 65536);
    let counters = |driver: &BackendDriver, now_ns| driver.device.borrow().counters(now_ns);
    let now_ns = driver.clock.now_ns();
    assert_eq!(counters(&driver, now_ns).ios.read, 1);
    assert_eq!(counters(&driver, now_ns).cache_reads, 1);
    assert_eq!(counters(&driver, now_ns).busy_ns, 100_000);
    assert!(
        counters(&driver, now_ns).bytes.write < 100,
        "still in the cache"
    );
    assert_eq!(
        counters(&driver, now_ns + SECOND).bytes.write,
        65536,
        "written back"
    );
}

#[test]
fn worker_time_limits_the_rate_of_each_worker() {
    let text = "read_us=10,parallel=8,worker_us=100";
    assert!(
        (rate(SimDevice::shared(spec(text)).unwrap(), 4, 512, 3 * SECOND) - 10_000.0).abs() < 2.0
    );
    let device = SimDevice::shared(spec(text)).unwrap();
    let mut drivers = [
        BackendDriver::new(Rc::clone(&device), 4, 512),
        BackendDriver::new(device, 4, 512),
    ];
    let mut count = 0;
    for driver in &mut drivers {
        (0..4).for_each(|slot| driver.submit(slot, Op::Read, 0, 512));
    }
    loop {
        let next = |driver: &BackendDriver| driver.backend.next_completion_ns().unwrap();
        let now_ns = drivers.iter().map(next).min().unwrap();
        if now_ns >= SECOND {
            break;
        }
        for driver in &mut drivers {
            driver.clock.advance_to(now_ns);
            let mut done = Vec::new();
            driver
                .backend
                .reap(&mut driver.slab, 0, None, &mut done)
                .unwrap();
            count += done.len();
            done.iter()
                .for_each(|done| driver.submit(done.slot, Op::Read, 0, 512));
        }
    }
    assert!(count.abs_diff(20_000) <= 8, "{count}");
}
