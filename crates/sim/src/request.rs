//! An I/O that arrives at the device, and its outcome.

use super::faults::SECTOR;
use iosonde_workload::Op;

/// Largest result of a trim that is not whole: `i32::MAX` stands for all bytes of a larger trim.
const SHORT_TRIM_BYTES_MAX: u64 = i32::MAX as u64 / SECTOR * SECTOR;

/// One I/O that arrives at the device.
#[derive(Debug, Clone, Copy)]
pub struct SimRequest {
    /// The operation.
    pub op: Op,
    /// Number of the file, from [`SimDevice::place`](super::SimDevice::place).
    pub file: u32,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the I/O bypasses the page cache.
    pub direct: bool,
}

impl SimRequest {
    /// Returns the result of moving this number of bytes. A number above `i32::MAX` would be
    /// an errno, so a whole trim of more bytes has `i32::MAX`.
    pub(super) fn result(&self, moved_bytes: u64) -> i32 {
        let most = match self.op == Op::Trim && moved_bytes < self.bytes {
            true => SHORT_TRIM_BYTES_MAX,
            false => i32::MAX as u64,
        };
        moved_bytes.min(most) as i32
    }

    /// Returns the bytes that a result stands for, or the errno of a failure.
    pub(super) fn moved_bytes(&self, result: i32) -> Result<u64, i32> {
        match result {
            ..0 => Err(-result),
            i32::MAX if self.op == Op::Trim => Ok(self.bytes),
            _ => Ok(result as u64),
        }
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Completion time; always after the arrival.
    pub done_ns: u64,
    /// Bytes moved (0 for a flush), or the negated errno. `i32::MAX` stands for all bytes of a
    /// trim.
    pub result: i32,
    /// Whether the device did the I/O; false if the cache served it.
    pub from_device: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_large_trims_are_no_errnos() {
        let trim = SimRequest {
            op: Op::Trim,
            file: 0,
            offset: 0,
            bytes: 3 << 30,
            direct: true,
        };
        assert_eq!(trim.result(3 << 30), i32::MAX);
        assert_eq!(trim.moved_bytes(i32::MAX), Ok(3 << 30));
        let short = trim.result(5 << 29);
        assert!(short > 0 && short % 512 == 0, "{short} bytes end a sector");
        assert_eq!(trim.moved_bytes(short), Ok(short as u64));
        assert_eq!(trim.result(4096), 4096);
        assert_eq!(trim.moved_bytes(-libc::EIO), Err(libc::EIO));
        let read = SimRequest {
            op: Op::Read,
            ..trim
        };
        assert_eq!(read.result(3 << 30), i32::MAX);
        assert_eq!(read.moved_bytes(i32::MAX), Ok(i32::MAX as u64));
    }
}
