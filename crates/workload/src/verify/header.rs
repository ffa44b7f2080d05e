//! The header of a verified interval: 48 bytes, little endian.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..4 | magic |
//! | 4..6 | version |
//! | 6..8 | verify method, as numbered by `method_code` |
//! | 8..12 | length of the interval in bytes |
//! | 12..16 | 0 |
//! | 16..24 | offset of the interval in the file, in bytes |
//! | 24..32 | seed of the job |
//! | 32..40 | generation: number of the job's write |
//! | 40..44 | 0 |
//! | 44..48 | crc32c of bytes 0..44 |
//!
//! The digest of the payload follows.

use super::{Mismatch, MismatchKind};
use iosonde_job::plan::VerifyMethod;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 48;
const MAGIC: u32 = 0x6973_6e64;
const VERSION: u16 = 1;
/// The first two bytes of fio's headers, little endian.
const MAGIC_OF_FIO: u16 = 0xacca;

/// The header of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `method_code` of the verify method.
    pub method: u16,
    /// Length of the interval in bytes.
    pub len: u32,
    /// Position of the interval in the file, in bytes.
    pub offset: u64,
    /// Seed of the job that wrote the interval.
    pub seed: u64,
    /// Number of the job's write.
    pub generation: u64,
}

/// A header that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The magic number found.
    Magic(u32),
    /// The version found.
    Version(u16),
    /// The computed and the stored checksum.
    Checksum(u32, u32),
}

impl HeaderError {
    /// The mismatch of a header at this offset of the file.
    pub(super) fn at(self, offset: u64) -> Mismatch {
        let (what, expected, got) = match self {
            HeaderError::Magic(got) => {
                let what = match got as u16 == MAGIC_OF_FIO {
                    true => MismatchKind::Foreign,
                    false => MismatchKind::Magic,
                };
                (what, format!("{MAGIC:08x}"), format!("{got:08x}"))
            }
            HeaderError::Version(got) => (
                MismatchKind::Header,
                format!("version {VERSION}"),
                format!("version {got}"),
            ),
            HeaderError::Checksum(computed, stored) => (
                MismatchKind::HeaderChecksum,
                format!("{computed:08x}"),
                format!("{stored:08x}"),
            ),
        };
        Mismatch {
            offset,
            what,
            expected,
            got,
        }
    }
}

impl Header {
    /// Writes the header to the start of `buf`.
    pub fn write(&self, buf: &mut [u8]) {
        let head = &mut buf[..HEADER_BYTES];
        head.fill(0);
        head[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        head[4..6].copy_from_slice(&VERSION.to_le_bytes());
        head[6..8].copy_from_slice(&self.method.to_le_bytes());
        head[8..12].copy_from_slice(&self.len.to_le_bytes());
        head[16..24].copy_from_slice(&self.offset.to_le_bytes());
        head[24..32].copy_from_slice(&self.seed.to_le_bytes());
        head[32..40].copy_from_slice(&self.generation.to_le_bytes());
        let sum = crc32c::crc32c(&head[..44]);
        head[44..48].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads a header from the start of `buf`.
    ///
    /// # Errors
    /// Returns the reason why the header is unreadable.
    pub fn read(buf: &[u8]) -> Result<Header, HeaderError> {
        let head = &buf[..HEADER_BYTES];
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let short = |at: usize| u16::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if word(0) != MAGIC {
            return Err(HeaderError::Magic(word(0)));
        }
        let sum = crc32c::crc32c(&head[..44]);
        if sum != word(44) {
            return Err(HeaderError::Checksum(sum, word(44)));
        }
        if short(4) != VERSION {
            return Err(HeaderError::Version(short(4)));
        }
        Ok(Header {
            method: short(6),
            len: word(8),
            offset: long(16),
            seed: long(24),
            generation: long(32),
        })
    }

    /// Checks that `found`, at this offset of the file, equals this header.
    pub(super) fn compare(&self, found: &Header, offset: u64) -> Result<(), Mismatch> {
        let differs = |what, name: &str, expected: u64, got: u64| {
            Err(Mismatch {
                offset,
                what,
                expected: format!("{name} {expected}"),
                got: format!("{name} {got}"),
            })
        };
        if found.offset != self.offset {
            return differs(MismatchKind::Offset, "offset", self.offset, found.offset);
        }
        if found.method != self.method {
            return differs(
                MismatchKind::Header,
                "check",
                self.method.into(),
                found.method.into(),
            );
        }
        if found.len != self.len {
            return differs(
                MismatchKind::Header,
                "length",
                self.len.into(),
                found.len.into(),
            );
        }
        if found.seed != self.seed {
            return differs(MismatchKind::Header, "seed", self.seed, found.seed);
        }
        Ok(())
    }
}

/// The number of a verify method in headers. Never reused: blocks outlive program versions.
pub(crate) fn method_code(method: VerifyMethod) -> u16 {
    match method {
        VerifyMethod::Null => 0,
        VerifyMethod::Crc32c => 1,
        VerifyMethod::Crc32 => 2,
        VerifyMethod::Crc16 => 3,
        VerifyMethod::Crc7 => 4,
        VerifyMethod::Crc64 => 5,
        VerifyMethod::Md5 => 6,
        VerifyMethod::Sha1 => 7,
        VerifyMethod::Sha256 => 8,
        VerifyMethod::Sha512 => 9,
        VerifyMethod::Xxhash => 10,
        VerifyMethod::Pattern => 11,
        VerifyMethod::PatternHeader => 12,
        VerifyMethod::RadosBench => 13,
    }
}
