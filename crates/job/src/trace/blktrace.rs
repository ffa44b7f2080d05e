//! Reads the kernel's block layer trace: records of 48 bytes that `blktrace` stores and `blkparse
//! -d` merges.
//!
//! As in fio, only the queueing of requests counts. Other records describe later stages of the same
//! requests.

use super::{Timing, Trace, TraceError, TraceProblem, TracedFile, TracedIo, TracedOp};
use crate::plan::Direction;
use std::collections::HashMap;

/// The upper bytes of `magic`; the lowest byte is the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD: usize = 48;
/// A value of the lower half of `action`: a request was queued.
const QUEUE: u32 = 1;
/// Categories in the upper half of `action`.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;
const PASSTHROUGH: u32 = 1 << 25;
const DISCARD: u32 = 1 << 29;
const SECTOR: u64 = 512;
/// The minor number is the lower 20 bits of a device number.
const MINOR_BITS: u32 = 20;

/// Byte order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(raw),
            Order::Big => u16::from_be_bytes(raw),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let (low, high) = (self.u16(bytes, at), self.u16(bytes, at + 2));
        match self {
            Order::Little => (u32::from(high) << 16) | u32::from(low),
            Order::Big => (u32::from(low) << 16) | u32::from(high),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (low, high) = (self.u32(bytes, at), self.u32(bytes, at + 4));
        match self {
            Order::Little => (u64::from(high) << 32) | u64::from(low),
            Order::Big => (u64::from(low) << 32) | u64::from(high),
        }
    }
}

/// Returns the byte order of a block layer trace, or `None` for other contents.
pub(super) fn is_one(bytes: &[u8]) -> Option<Order> {
    let first = bytes.get(..RECORD)?;
    [Order::Little, Order::Big]
        .into_iter()
        .find(|order| order.u32(first, 0) & !0xff == MAGIC)
}

/// Reads a trace.
pub(super) fn parse(bytes: &[u8], order: Order) -> Result<Trace, TraceError> {
    let mut trace = Trace {
        timing: Timing::Stamps,
        ..Trace::default()
    };
    let mut numbers = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let error = |problem| TraceError {
            place: format!("byte {at}"),
            problem,
        };
        let record = bytes
            .get(at..at + RECORD)
            .ok_or_else(|| error(TraceProblem::CutRecord))?;
        match order.u32(record, 0) {
            magic if magic & !0xff != MAGIC => return Err(error(TraceProblem::NotRecord)),
            magic if magic & 0xff != VERSION => {
                return Err(error(TraceProblem::RecordVersion));
            }
            _ => {}
        }
        let (len, action) = (order.u32(record, 24), order.u32(record, 28));
        if let Some(op) = queued(action, len) {
            let sector = order.u64(record, 16);
            let offset = sector
                .checked_mul(SECTOR)
                .filter(|offset| *offset <= i64::MAX as u64 - u64::from(len))
                .ok_or_else(|| error(TraceProblem::SectorTooLarge))?;
            let device = order.u32(record, 36);
            let files = &mut trace.files;
            let file = *numbers.entry(device).or_insert_with(|| {
                files.push(TracedFile::Device {
                    major: device >> MINOR_BITS,
                    minor: device & ((1 << MINOR_BITS) - 1),
                });
                files.len() as u32 - 1
            });
            trace.ios.push(TracedIo {
                reopened: false,
                at_ns: order.u64(record, 8),
                offset,
                len,
                file,
                op,
            });
        }
        at += RECORD + usize::from(order.u16(record, 46));
    }
    Ok(trace)
}

/// Returns the operation of a queued request; `None` for other records.
fn queued(action: u32, len: u32) -> Option<TracedOp> {
    if action & 0xffff != QUEUE || action & (NOTIFY | PASSTHROUGH) != 0 {
        return None;
    }
    Some(match action {
        // A flush request with data is a write, preceded by a flush.
        _ if action & FLUSH != 0 && len == 0 => TracedOp::Sync,
        _ if action & DISCARD != 0 => TracedOp::Data(Direction::Trim),
        _ if action & WRITE != 0 => TracedOp::Data(Direction::Write),
        _ => TracedOp::Data(Direction::Read),
    })
}
