//! Backend of simulated devices.

#[cfg(test)]
mod tests;

use super::{Backend, Completion, FileHandle, Op, Slab, Slot};
use crate::clock::{Clock, SimClock};
use iosonde_sim::{PAGE_BYTES, Reply, SimDevice, SimFile, SimRequest, TokenBucket};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::rc::Rc;

/// Data read from ranges that were never written.
static ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];

/// An I/O in flight, ordered by completion time, then by submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    done_ns: u64,
    number: u64,
    slot: u32,
    result: i32,
    from_device: bool,
}

/// Backend of one worker on a simulated device.
#[derive(Debug)]
pub(crate) struct SimBackend {
    device: Rc<RefCell<SimDevice>>,
    clock: SimClock,
    direct: bool,
    files: Vec<u32>,
    worker: Option<TokenBucket>,
    pending: BinaryHeap<Reverse<Pending>>,
    submitted: u64,
}

impl SimBackend {
    /// A backend of `device` at the time of `clock`. `direct` bypasses the simulated page cache.
    ///
    /// In the handles given to [`Backend::set_files`], `fd` is any number that names the file.
    /// Workers that give the same number use the same file.
    pub(crate) fn new(device: Rc<RefCell<SimDevice>>, clock: SimClock, direct: bool) -> SimBackend {
        let gap_ns = device.borrow().spec().worker_ns;
        let worker = (gap_ns > 0).then(|| TokenBucket::new(1e9 / gap_ns as f64, 0.0));
        SimBackend {
            device,
            clock,
            direct,
            files: Vec::new(),
            worker,
            pending: BinaryHeap::new(),
            submitted: 0,
        }
    }

    fn request(&self, slot: &Slot) -> SimRequest {
        let bytes = if slot.op.direction().is_some() {
            slot.len - slot.moved
        } else {
            0
        };
        SimRequest {
            op: slot.op,
            file: self.files[slot.file as usize],
            offset: slot.offset + u64::from(slot.moved),
            bytes: u64::from(bytes),
            direct: self.direct,
        }
    }

    fn submit_one(&mut self, now_ns: u64, slab: &Slab, index: u32) {
        let slot = &slab.slots[index as usize];
        let request = self.request(slot);
        let mut device = self.device.borrow_mut();
        let Reply {
            mut done_ns,
            result,
            from_device,
        } = device.submit(now_ns, &request);
        if let Some(worker) = &mut self.worker {
            done_ns = done_ns.max(worker.take(now_ns as f64, 1.0, 1.0).round() as u64);
        }
        if result > 0 && device.stores() {
            match slot.op {
                Op::Write => {
                    let from = slot.moved as usize;
                    let data = slab.memory.slot(index, from + result as usize);
                    device.keep(&request, &data[from..]);
                }
                Op::Trim => device.discard(&request, result),
                _ => {}
            }
        }
        assert!(done_ns >= now_ns, "no I/O completes before it begins");
        let number = self.submitted;
        self.submitted += 1;
        self.pending.push(Reverse(Pending {
            done_ns,
            number,
            slot: index,
            result,
            from_device,
        }));
    }

    /// Completes one I/O: a read copies its data to the buffer.
    fn finish(&self, slab: &mut Slab, pending: &Pending) {
        let slot = slab.slots[pending.slot as usize];
        let mut device = self.device.borrow_mut();
        let request = self.request(&slot);
        device.completed(&request, pending.result, pending.from_device);
        if slot.op != Op::Read || pending.result <= 0 || !device.stores() {
            return;
        }
        let from = slot.moved as usize;
        device.recall(&request, pending.result as usize, |range, held| {
            let data = held.unwrap_or(&ZEROS[..range.len()]);
            let buffer = slab.memory.slot_mut(pending.slot, from + range.end);
            buffer[from + range.start..].copy_from_slice(data);
        });
    }
}

impl Backend for SimBackend {
    const SYNCHRONOUS: bool = false;
    const PUBLISHES_IN_FLIGHT: bool = true;

    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        let now_ns = self.clock.now_ns();
        for index in batch {
            self.submit_one(now_ns, slab, *index);
        }
        Ok(batch.len())
    }

    /// Never waits, whatever `min` and the timeout are: simulated time does not advance meanwhile.
    fn reap(
        &mut self,
        slab: &mut Slab,
        _min: usize,
        _timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        while let Some(Reverse(pending)) = self.pending.peek().copied()
            && pending.done_ns <= now_ns
        {
            self.pending.pop();
            self.finish(slab, &pending);
            done.push(Completion {
                slot: pending.slot,
                result: pending.result,
            });
        }
        Ok(())
    }

    fn next_completion_ns(&self) -> Option<u64> {
        self.pending.peek().map(|pending| pending.0.done_ns)
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        let files: Vec<SimFile> = handles
            .iter()
            .map(|handle| SimFile {
                id: handle.fd,
                bytes: handle.size,
            })
            .collect();
        self.files = self.device.borrow_mut().place(&files)?;
        Ok(())
    }
}
