//! Tests of the ring and of its submission queue entries.

use super::entry_maker::remaining;
use super::*;
use crate::slot::Slot;
use crate::sys::memory::MemoryKind;
use crate::sys::rw::RwFlags;
use io_uring::types::{Fd, Fixed};
use io_uring::{opcode, squeue};
use iosonde_workload::Op;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

const DEPTH: u32 = 4;
const BYTES: usize = 4096;

struct Fixture {
    ring: Ring,
    slab: Slab,
    file: File,
}

impl Fixture {
    /// A ring over a file of ones, whose calls use its plain descriptor.
    fn new() -> Fixture {
        let mut fixture = Fixture::registered();
        fixture.ring.descriptor.unregister();
        fixture
    }

    /// A ring over a file of ones, whose calls use the index of its registered descriptor.
    fn registered() -> Fixture {
        Fixture::with(RingOptions::default())
    }

    /// A ring with these options over a file of ones.
    fn with(options: RingOptions) -> Fixture {
        let mut slots = vec![Slot::IDLE; DEPTH as usize];
        for slot in &mut slots {
            (slot.op, slot.len) = (Op::Read, BYTES as u32);
        }
        let slab = Slab {
            slots: slots.into(),
            memory: IoMemory::map(DEPTH as usize, BYTES, 0, MemoryKind::Pages).unwrap(),
        };
        let mut ring = Ring::new(DEPTH, options, &slab.memory).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[1; BYTES]).unwrap();
        ring.set_files(&[file.as_raw_fd()], false).unwrap();
        Fixture { ring, slab, file }
    }

    fn submit(&mut self, slots: &[u32]) {
        assert_eq!(self.ring.submit(&mut self.slab, slots), slots.len());
    }

    /// Slots completed, once there are `min` of them.
    fn reap(&mut self, min: usize) -> io::Result<Vec<u32>> {
        let mut done = Vec::new();
        self.ring
            .reap(&mut self.slab.memory, min, None, &mut done)?;
        assert!(done.iter().all(|over| over.result == BYTES as i32));
        let mut slots: Vec<_> = done.iter().map(|over| over.slot).collect();
        slots.sort_unstable();
        Ok(slots)
    }

    fn holds_ones(&self, slot: u32) -> bool {
        *self.slab.memory.slot(slot, BYTES) == [1; BYTES]
    }

    /// Replaces the ring's descriptor by a file, so that calls fail. Returns a duplicate of it.
    fn break_ring(&self) -> RawFd {
        let fd = self.ring.ring.as_raw_fd();
        // SAFETY: no memory is passed, and both descriptors belong to this fixture.
        let kept = unsafe { libc::dup(fd) };
        self.replace(self.file.as_raw_fd());
        kept
    }

    fn replace(&self, with: RawFd) {
        // SAFETY: no memory is passed, and the fixture owns the descriptor.
        let replaced = unsafe { libc::dup2(with, self.ring.ring.as_raw_fd()) };
        assert!(replaced >= 0);
    }
}

#[test]
fn unsubmitted_ios_go_with_the_next_submit_once() {
    let mut fixture = Fixture::new();
    let kept = fixture.break_ring();
    fixture.submit(&[0, 1]);
    fixture.replace(kept);
    fixture.submit(&[2]);
    assert_eq!(fixture.reap(3).unwrap(), [0, 1, 2]);
    assert!((0..3).all(|slot| fixture.holds_ones(slot)) && !fixture.holds_ones(3));
    assert_eq!(fixture.ring.in_flight, 0);
}

#[test]
fn persistent_submit_error_is_returned_by_reap() {
    let mut fixture = Fixture::new();
    fixture.break_ring();
    fixture.submit(&[0, 1]);
    let error = fixture.reap(1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    // The kernel consumed nothing, so nothing is in flight.
    assert!(fixture.ring.await_in_flight());
}

#[test]
fn registered_ring_needs_no_descriptor() {
    let mut fixture = Fixture::registered();
    assert!(
        fixture.ring.flags().contains(&"registered_ring"),
        "Linux 5.18 or newer"
    );
    let kept = fixture.break_ring();
    fixture.submit(&[0, 1]);
    assert_eq!(fixture.reap(2).unwrap(), [0, 1]);
    fixture.replace(kept);
    fixture.ring.descriptor.unregister();
    assert!(!fixture.ring.flags().contains(&"registered_ring"));
    fixture.submit(&[2]);
    assert_eq!(fixture.reap(1).unwrap(), [2]);
}

#[test]
fn dropped_rings_release_their_registration() {
    // The kernel registers at most 16 rings of a thread.
    for _ in 0..17 {
        let fixture = Fixture::registered();
        assert!(fixture.ring.descriptor.is_registered());
    }
}

#[test]
fn wait_with_timeout_returns_without_completions() {
    for mut fixture in [Fixture::new(), Fixture::registered()] {
        let mut done = Vec::new();
        let timeout_ns = Some(1_000_000);
        let memory = &mut fixture.slab.memory;
        fixture.ring.reap(memory, 1, timeout_ns, &mut done).unwrap();
        assert!(done.is_empty());
        let error = fixture
            .ring
            .descriptor
            .enter_within(0, 1, Duration::from_millis(1))
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ETIME));
    }
}

#[test]
fn ring_drop_keeps_buffers_of_inflight_ios_mapped() {
    let mut fixture = Fixture::new();
    let address = fixture.slab.memory.slot(0, BYTES).as_ptr();
    fixture.submit(&[0]);
    fixture.ring.in_flight += 1;
    fixture.break_ring();
    let Fixture { ring, slab, .. } = fixture;
    drop(ring);
    drop(slab);
    assert!(is_mapped(address));
    let Fixture { ring, slab, .. } = Fixture::new();
    drop(ring);
    let address = slab.memory.slot(0, BYTES).as_ptr();
    drop(slab);
    assert!(
        !is_mapped(address),
        "a buffer without I/O in flight is unmapped"
    );
}

#[test]
fn buffers_stay_mapped_while_a_ring_exists() {
    let Fixture { ring, slab, .. } = Fixture::new();
    let address = slab.memory.slot(0, BYTES).as_ptr();
    drop(slab);
    assert!(is_mapped(address), "the kernel may write to them");
    drop(ring);
    assert!(!is_mapped(address));
}

#[test]
fn slot_that_the_kernel_must_not_get_panics() {
    type FixtureChange = fn(&mut Fixture);
    let changes: [(&str, &[u32], FixtureChange); 6] = [
        ("in flight", &[0, 0], |_| {}),
        ("no such slot", &[DEPTH], |_| {}),
        ("no such buffer", &[DEPTH], |fixture| {
            fixture.slab.slots = vec![Slot::IDLE; DEPTH as usize + 1].into();
        }),
        ("longer than its buffer", &[0], |fixture| {
            fixture.slab.slots[0].len = BYTES as u32 + 1;
        }),
        ("moved more than its length", &[0], |fixture| {
            fixture.slab.slots[0].moved = BYTES as u32 + 1;
        }),
        ("other memory", &[0], |fixture| {
            let other = IoMemory::map(DEPTH as usize, BYTES, 0, MemoryKind::Pages);
            fixture.slab.memory = other.unwrap();
        }),
    ];
    for (why, batch, change) in changes {
        for vectored in [false, true] {
            let mut fixture = Fixture::new();
            fixture.ring.maker.options.vectored = vectored;
            change(&mut fixture);
            let Fixture { ring, slab, .. } = &mut fixture;
            let submit = AssertUnwindSafe(|| ring.submit(slab, batch));
            assert!(catch_unwind(submit).is_err(), "{why}, vectored {vectored}");
        }
    }
}

fn is_mapped(address: *const u8) -> bool {
    // SAFETY: mincore(2) writes one byte for one page, and fails if the page is not mapped.
    unsafe { libc::mincore(address.cast_mut().cast(), BYTES, &mut 0) == 0 }
}

/// The entry of a read or write by the builder of the crate `io-uring`.
fn built(maker: &EntryMaker, slab: &Slab, index: u32, forced: bool) -> squeue::Entry {
    let slot = &slab.slots[index as usize];
    let (address, length) = remaining(slab, slot, index);
    let flags = maker.options.rw_flags.select(slot.op == Op::Write);
    macro_rules! build {
        ($opcode:ident, $fd:expr, $pointer:expr $(, $buffer:expr)?) => {
            opcode::$opcode::new($fd, $pointer, length $(, $buffer)?)
                .offset(slot.offset + u64::from(slot.moved))
                .ioprio(slot.priority)
                .rw_flags(flags)
                .build()
        };
    }
    macro_rules! build_on {
        ($fd:expr) => {
            match (slot.op, maker.fixed_buffers) {
                (Op::Read, true) => build!(ReadFixed, $fd, address, 0),
                (Op::Read, false) => build!(Read, $fd, address),
                (_, true) => build!(WriteFixed, $fd, address.cast_const(), 0),
                (_, false) => build!(Write, $fd, address.cast_const()),
            }
        };
    }
    let entry = match maker.registered_files {
        true => build_on!(Fixed(slot.file)),
        false => build_on!(Fd(maker.files[slot.file as usize])),
    };
    let entry = entry.user_data(u64::from(index));
    match forced {
        true => entry.flags(squeue::Flags::ASYNC),
        false => entry,
    }
}

pub(super) fn bytes_of(entry: squeue::Entry) -> [u8; 64] {
    // SAFETY: an entry is 64 bytes of plain integers without padding.
    unsafe { std::mem::transmute(entry) }
}

#[test]
fn handwritten_entry_equals_the_built_one() {
    let mut fixture = Fixture::new();
    let slots = [
        (Op::Read, 0, 0, 0),
        (Op::Read, 1 << 40, 512, 0x4003),
        (Op::Write, 4096, 0, 0xffff),
        (Op::Write, u64::MAX - BYTES as u64, 4095, 1),
    ];
    for (index, (op, offset, moved, priority)) in slots.into_iter().enumerate() {
        fixture.slab.slots[index] = Slot {
            op,
            offset,
            moved,
            priority,
            len: BYTES as u32,
            file: index as u32 % 2,
            ..Slot::IDLE
        };
    }
    let Fixture { ring, slab, .. } = &mut fixture;
    let maker = &mut ring.maker;
    maker.files = vec![5, i32::MAX];
    let mut seen = std::collections::HashSet::new();
    for combination in 0..16u32 {
        let is_set = |bit: u32| combination & (1 << bit) != 0;
        maker.fixed_buffers = is_set(0);
        maker.registered_files = is_set(1);
        maker.options.rw_flags = match is_set(2) {
            true => RwFlags {
                read: libc::RWF_NOWAIT,
                write: libc::RWF_NOWAIT | libc::RWF_ATOMIC,
            },
            false => RwFlags::default(),
        };
        let forced = is_set(3);
        for index in 0..DEPTH {
            let slot = slab.slots[index as usize];
            let written = bytes_of(maker.transfer(slab, &slot, index, forced));
            let expected = bytes_of(built(maker, slab, index, forced));
            assert_eq!(written, expected, "{slot:?}, combination {combination:04b}");
            seen.insert(written);
        }
    }
    assert_eq!(
        seen.len(),
        16 * DEPTH as usize,
        "each combination has its own entry"
    );
}

#[test]
fn handwritten_discard_equals_the_built_command() {
    let mut fixture = Fixture::new();
    let maker = &mut fixture.ring.maker;
    maker.files = vec![5, i32::MAX];
    for (offset, len, file) in [(0, 512, 0), (1 << 40, u32::MAX, 1), (4096, 1 << 20, 1)] {
        fixture.slab.slots[1] = Slot {
            op: Op::Trim,
            offset,
            len,
            file,
            priority: 0x4003,
            ..Slot::IDLE
        };
        let slot = fixture.slab.slots[1];
        let mut command = [0; 16];
        command[..8].copy_from_slice(&u64::from(len).to_ne_bytes());
        macro_rules! build_on {
            ($fd:expr) => {
                opcode::UringCmd16::new($fd, 0x1200)
                    .cmd(command)
                    .addr(Some(offset))
                    .build()
            };
        }
        for registered in [false, true] {
            maker.registered_files = registered;
            let written = maker.other(&fixture.slab, &slot, 1, registered);
            let built = match registered {
                true => build_on!(Fixed(file)).flags(squeue::Flags::ASYNC),
                false => build_on!(Fd(maker.files[file as usize])),
            };
            let built = built.user_data(1);
            assert_eq!(bytes_of(written), bytes_of(built), "{slot:?}, {registered}");
        }
    }
}

/// A ring of `DEPTH` slots with these options.
fn ring_with(options: RingOptions) -> Ring {
    let memory = IoMemory::map(DEPTH as usize, BYTES, 0, MemoryKind::Pages).unwrap();
    Ring::new(DEPTH, options, &memory).unwrap()
}

#[test]
fn wait_features_are_named_if_the_kernel_has_them() {
    let rule = MinWait {
        slots: 2,
        wait_us: 10,
    };
    let plain = ring_with(RingOptions::default());
    let ring = ring_with(RingOptions {
        no_iowait: true,
        min_wait: Some(rule),
        ..RingOptions::default()
    });
    let parameters = ring.ring.params();
    for (name, is_known) in [
        ("no_iowait", parameters.is_feature_no_iowait()),
        ("min_wait", parameters.is_feature_min_timeout()),
    ] {
        assert_eq!(ring.flags().contains(&name), is_known, "{name}");
        assert!(!plain.flags().contains(&name), "{name}");
    }
}

#[test]
fn ring_without_newer_features_names_none_and_reads() {
    let features = ["no_sqarray", "registered_ring"];
    let named = |fixture: &Fixture| features.map(|name| fixture.ring.flags().contains(&name));
    let mut fixture = Fixture::with(RingOptions {
        sqarray: true,
        plain_descriptor: true,
        ..RingOptions::default()
    });
    assert_eq!(named(&fixture), [false, false]);
    fixture.submit(&[0, 1]);
    assert_eq!(fixture.reap(2).unwrap(), [0, 1]);
    let newest = Fixture::registered();
    for options in [
        RingOptions {
            sqarray: true,
            ..RingOptions::default()
        },
        RingOptions {
            plain_descriptor: true,
            ..RingOptions::default()
        },
    ] {
        let [has_no_sqarray, is_registered] = named(&newest);
        let expected = [
            has_no_sqarray && !options.sqarray,
            is_registered && !options.plain_descriptor,
        ];
        assert_eq!(named(&Fixture::with(options)), expected, "{options:?}");
    }
}

#[test]
fn hybrid_polling_is_named_if_the_kernel_has_it() {
    let none = RingOptions::default();
    let hybrid = RingOptions {
        hybrid_poll: true,
        ..none
    };
    let polled = |options| RingOptions {
        iopoll: true,
        ..options
    };
    let is_named = |options| ring_with(options).flags().contains(&"hybrid_poll");
    // A feature of Linux 6.15. Hybrid polling is one of 6.13.
    if ring_with(none).ring.params().is_feature_no_iowait() {
        assert!(is_named(polled(hybrid)));
    }
    for options in [none, hybrid, polled(none)] {
        assert!(!is_named(options), "{options:?}");
    }
}

/// The kernel thread of a ring (SQPOLL) as the kernel names it.
fn sqpoll_thread(ring: &Ring) -> String {
    let path = format!("/proc/self/fdinfo/{}", ring.ring.as_raw_fd());
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        // While the thread works, the kernel leaves the line out or writes -1.
        let text = std::fs::read_to_string(&path).unwrap();
        let has_thread = |line: &&str| line.starts_with("SqThread:") && !line.ends_with("-1");
        if let Some(line) = text.lines().find(has_thread) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "{text}");
    }
}

#[test]
fn rings_of_one_job_share_a_kernel_thread() {
    let options = RingOptions {
        sqpoll: true,
        shared_sqpoll: Some(1),
        ..RingOptions::default()
    };
    let other = RingOptions {
        shared_sqpoll: Some(2),
        ..options
    };
    let shares = |fixture: &Fixture| fixture.ring.flags().contains(&"shared_sqpoll");
    let [mut first, mut second, mut alone] = [options, options, other].map(Fixture::with);
    assert_eq!([&first, &second, &alone].map(shares), [false, true, false]);
    for fixture in [&mut first, &mut second, &mut alone] {
        fixture.submit(&[0, 1]);
        assert_eq!(fixture.reap(2).unwrap(), [0, 1]);
    }
    let thread = sqpoll_thread(&second.ring);
    assert_eq!(sqpoll_thread(&first.ring), thread);
    assert_ne!(sqpoll_thread(&alone.ring), thread);
    drop(first);
    second.submit(&[2]);
    assert_eq!(second.reap(1).unwrap(), [2], "the thread remains");
    let next = Fixture::with(options);
    assert!(!shares(&next), "the ring that offered its thread is closed");
}

#[test]
fn shared_kernel_thread_has_the_workers_of_all_rings() {
    let limit = |ring: &Ring| {
        let mut limits = [0, 0];
        let submitter = ring.ring.submitter();
        submitter.register_iowq_max_workers(&mut limits).unwrap();
        limits[0]
    };
    let own = RingOptions {
        sqpoll: true,
        ..RingOptions::default()
    };
    let shared = RingOptions {
        shared_sqpoll: Some(4),
        sharing_rings: 3,
        ..own
    };
    let of_one = limit(&ring_with(own));
    assert!(of_one > 0);
    let rings = [shared, shared].map(ring_with);
    assert_eq!(rings.each_ref().map(limit), [3 * of_one; 2]);
}

#[test]
fn min_wait_returns_with_fewer_completions_than_slots() {
    let mut fixture = Fixture::registered();
    let rule = MinWait {
        slots: DEPTH,
        wait_us: 1_000,
    };
    fixture.ring.min_wait = fixture
        .ring
        .ring
        .params()
        .is_feature_min_timeout()
        .then_some(rule);
    assert_eq!(fixture.ring.missing_slots(rule), 0, "nothing is in flight");
    fixture.submit(&[0, 1]);
    assert_eq!(fixture.ring.missing_slots(rule), 2, "of two in flight");
    assert_eq!(fixture.reap(2).unwrap(), [0, 1]);
    assert_eq!(fixture.ring.in_flight, 0);
}
