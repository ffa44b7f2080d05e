//! Contents of verified blocks, and the check of blocks that were read.
//!
//! A written block is divided into intervals (`verify_interval`, or the whole block). Each interval
//! has a [`header`] with its offset and the number of its write, a digest of the rest, and a
//! payload. The numbers in the header determine the payload, so the check can name the wrong byte
//! and its expected value, and tells misplaced blocks from stale ones.
//!
//! The last interval of a block includes the remainder. If blocks of such sizes overlap
//! (`bs_unaligned` with `norandommap`), one block cuts the other's intervals in two and no check is
//! possible. Such a job must be refused.

pub mod checksum;
pub mod header;
pub mod pattern;
pub mod written;

use super::rados_bench;
use super::rng::{Rng, mix64};
use checksum::{Digest, digest};
use header::{HEADER_BYTES, Header};
use iosonde_job::lowercase_hex;
use iosonde_job::plan::{Verify, VerifyMethod};
use iosonde_job::value::greatest_common_divisor;
use pattern::PatternTemplate;

pub use super::mismatch::{Mismatch, MismatchKind};

/// The reason why a verified job cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Writes may overwrite parts of intervals, which then hold neither the old nor the new data.
    #[error(
        "verification cannot tell blocks that overlap in part from damaged ones: \
         places must be multiples of the {interval_bytes} bytes between headers \
         (bs_unaligned with norandommap, blockalign, negative skips)"
    )]
    Overlap {
        /// Bytes per header.
        interval_bytes: u64,
    },
    /// The header does not fit into an interval.
    #[error(
        "verify: an interval of {interval_bytes} bytes cannot hold the header of \
         {needed_bytes} bytes at verify_offset={at_bytes}"
    )]
    IntervalTooSmall {
        /// `verify_interval`, or the smallest block.
        interval_bytes: u64,
        /// Length of header and digest in bytes.
        needed_bytes: u64,
        /// `verify_offset`.
        at_bytes: u64,
    },
    /// Blocks of different sizes must consist of whole intervals.
    #[error("verify_interval={interval_bytes} does not divide the block size {block_bytes}")]
    IntervalDoesNotDivide {
        /// `verify_interval`.
        interval_bytes: u64,
        /// A block size of the job.
        block_bytes: u64,
    },
    /// `verify=pattern` without `verify_pattern`.
    #[error("verify=pattern needs a verify_pattern")]
    NoPattern,
}

/// The write that a block must be from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedWrite {
    /// Exactly the write of this number.
    Exactly(u64),
    /// This write or an earlier one: several writes were in flight at once, or no record was kept.
    AtMost(u64),
    /// Any write: another run wrote the block (`verify_only`).
    Any,
}

impl ExpectedWrite {
    fn allows(self, generation: u64) -> bool {
        match self {
            ExpectedWrite::Exactly(exact) => generation == exact,
            ExpectedWrite::AtMost(most) => generation <= most,
            ExpectedWrite::Any => true,
        }
    }
}

/// Fills and checks verified blocks.
#[derive(Debug, Clone)]
pub struct Verifier {
    method: VerifyMethod,
    interval_bytes: usize,
    header_at: usize,
    pattern: Option<PatternTemplate>,
    seed: u64,
}

impl Verifier {
    /// A verifier for blocks of these sizes in bytes. `seed` is the seed of the job; blocks with
    /// another seed do not match.
    ///
    /// Without `verify_interval` the interval is the greatest common divisor of all sizes, so that
    /// a block may overwrite part of a block of another size.
    ///
    /// # Errors
    /// Fails if an interval cannot hold the header or divide a block size, or without a pattern.
    pub fn new(verify: &Verify, block_sizes: &[u64], seed: u64) -> Result<Self, VerifyError> {
        let smallest = block_sizes.iter().copied().min().unwrap_or(0);
        let head_bytes = verify.header_offset_bytes
            + (HEADER_BYTES + checksum::digest_bytes(verify.method)) as u64;
        let interval_bytes = match verify.interval_bytes {
            0 => match block_sizes.iter().copied().fold(0, greatest_common_divisor) {
                common if common >= head_bytes => common,
                _ => smallest,
            },
            bytes => bytes.min(smallest),
        };
        let pattern = verify.pattern.as_ref().map(PatternTemplate::new);
        let is_pattern = matches!(
            verify.method,
            VerifyMethod::Pattern | VerifyMethod::PatternHeader
        );
        if is_pattern && pattern.as_ref().is_none_or(PatternTemplate::is_empty) {
            return Err(VerifyError::NoPattern);
        }
        let verifier = Verifier {
            method: verify.method,
            interval_bytes: interval_bytes as usize,
            header_at: verify.header_offset_bytes as usize,
            pattern: pattern.filter(|pattern| !pattern.is_empty()),
            seed,
        };
        verifier.check_sizes(verify, block_sizes)?;
        Ok(verifier)
    }

    fn check_sizes(&self, verify: &Verify, block_sizes: &[u64]) -> Result<(), VerifyError> {
        let interval_bytes = self.interval_bytes as u64;
        let needed_bytes = self.head_bytes() as u64;
        if self.has_header() && verify.header_offset_bytes + needed_bytes > interval_bytes {
            return Err(VerifyError::IntervalTooSmall {
                interval_bytes,
                needed_bytes,
                at_bytes: verify.header_offset_bytes,
            });
        }
        let uneven = block_sizes.iter().find(|bytes| {
            interval_bytes == 0
                || (verify.interval_bytes != 0 && !bytes.is_multiple_of(interval_bytes))
        });
        match uneven {
            Some(&block_bytes) => Err(VerifyError::IntervalDoesNotDivide {
                interval_bytes,
                block_bytes,
            }),
            None => Ok(()),
        }
    }

    /// Bytes per header.
    pub fn interval_bytes(&self) -> u64 {
        self.interval_bytes as u64
    }

    fn has_header(&self) -> bool {
        !matches!(
            self.method,
            VerifyMethod::Pattern | VerifyMethod::RadosBench | VerifyMethod::Null
        )
    }

    /// Length of header and digest in bytes.
    fn head_bytes(&self) -> usize {
        HEADER_BYTES + checksum::digest_bytes(self.method)
    }

    /// Fills a block that is to be written at `offset` as the `generation`-th write.
    pub fn fill(&self, buf: &mut [u8], offset: u64, generation: u64) {
        if self.method == VerifyMethod::RadosBench {
            rados_bench::prepare(buf);
            return rados_bench::stamp(buf, offset);
        }
        for range in self.intervals(buf.len()) {
            let at = offset + range.start as u64;
            let interval = &mut buf[range];
            self.fill_payload(interval, at, generation);
            if !self.carries_head(interval) {
                continue;
            }
            let header = self.header(interval.len(), at, generation);
            let sum = self.digest_around(interval);
            let head = &mut interval[self.header_at..];
            header.write(head);
            head[HEADER_BYTES..HEADER_BYTES + sum.len()].copy_from_slice(&sum);
        }
    }

    /// Checks a block that was read from `offset`.
    ///
    /// # Errors
    /// Returns the first mismatch.
    pub fn check(&self, buf: &[u8], offset: u64, expected: ExpectedWrite) -> Result<(), Mismatch> {
        match self.method {
            VerifyMethod::Null => return Ok(()),
            VerifyMethod::RadosBench => return rados_bench::check(buf, offset),
            _ => {}
        }
        for range in self.intervals(buf.len()) {
            let at = offset + range.start as u64;
            let interval = &buf[range];
            if self.carries_head(interval) {
                self.check_interval(interval, at, expected)?;
            } else if self.pattern.is_some() {
                self.compare(interval, at, 0, MismatchKind::Pattern)?;
            }
        }
        Ok(())
    }

    /// The intervals of a block of this length.
    fn intervals(&self, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let interval = self.interval_bytes;
        let count = (len / interval).max(1);
        (0..count).map(move |index| {
            let end = if index + 1 == count {
                len
            } else {
                (index + 1) * interval
            };
            index * interval..end
        })
    }

    /// Only a truncated block is too small for a header; no job writes one.
    fn carries_head(&self, interval: &[u8]) -> bool {
        self.has_header() && interval.len() >= self.header_at + self.head_bytes()
    }

    fn check_interval(
        &self,
        interval: &[u8],
        at: u64,
        expected: ExpectedWrite,
    ) -> Result<(), Mismatch> {
        let head = &interval[self.header_at..];
        let found = Header::read(head).map_err(|error| error.at(at + self.header_at as u64))?;
        let right = self.header(interval.len(), at, found.generation);
        right.compare(&found, at + self.header_at as u64)?;
        if !expected.allows(found.generation) {
            return Err(Mismatch {
                offset: at,
                what: MismatchKind::Generation,
                expected: format!("write {expected:?}"),
                got: format!("write {}", found.generation),
            });
        }
        let sum = self.digest_around(interval);
        let stored = &head[HEADER_BYTES..HEADER_BYTES + sum.len()];
        if self.method == VerifyMethod::PatternHeader {
            return self.compare(interval, at, found.generation, MismatchKind::Pattern);
        }
        if *stored == *sum {
            return Ok(());
        }
        self.compare(interval, at, found.generation, MismatchKind::Payload)?;
        Err(Mismatch {
            offset: at + (self.header_at + HEADER_BYTES) as u64,
            what: MismatchKind::Digest,
            expected: lowercase_hex(&sum),
            got: lowercase_hex(stored),
        })
    }

    fn header(&self, len: usize, offset: u64, generation: u64) -> Header {
        Header {
            method: header::method_code(self.method),
            len: len as u32,
            offset,
            seed: self.seed,
            generation,
        }
    }

    /// The digest of an interval without its header and digest.
    fn digest_around(&self, interval: &[u8]) -> Digest {
        let (before, rest) = interval.split_at(self.header_at);
        digest(self.method, before, &rest[self.head_bytes()..])
    }

    fn fill_payload(&self, interval: &mut [u8], offset: u64, generation: u64) {
        match &self.pattern {
            Some(pattern) => pattern.fill(interval, offset),
            None => self.payload(offset, generation).fill(interval),
        }
    }

    fn payload(&self, offset: u64, generation: u64) -> Rng {
        Rng::new(mix64(mix64(self.seed ^ mix64(offset)) ^ generation))
    }

    /// Compares an interval, without its header and digest, with the expected contents. It works in
    /// pieces on the stack to avoid an allocation.
    fn compare(
        &self,
        interval: &[u8],
        at: u64,
        generation: u64,
        what: MismatchKind,
    ) -> Result<(), Mismatch> {
        const PIECE: usize = 512;
        let head = if self.has_header() {
            self.header_at..self.header_at + self.head_bytes()
        } else {
            0..0
        };
        let mut rng = self.payload(at, generation);
        let mut right = [0u8; PIECE];
        for (index, got) in interval.chunks(PIECE).enumerate() {
            let start = index * PIECE;
            let right = &mut right[..got.len()];
            match &self.pattern {
                Some(pattern) => pattern.fill_from(right, at, start),
                None => rng.fill(right),
            }
            let wrong =
                (0..got.len()).find(|&i| got[i] != right[i] && !head.contains(&(start + i)));
            if let Some(i) = wrong {
                let until = got.len().min(i + 8);
                return Err(Mismatch {
                    offset: at + (start + i) as u64,
                    what,
                    expected: lowercase_hex(&right[i..until]),
                    got: lowercase_hex(&got[i..until]),
                });
            }
        }
        Ok(())
    }

    /// The number of the write in the header of an interval; `None` if the header cannot be read.
    pub fn generation_in(&self, interval: &[u8]) -> Option<u64> {
        if !self.carries_head(interval) {
            return None;
        }
        Header::read(&interval[self.header_at..])
            .ok()
            .map(|header| header.generation)
    }

    /// The contents of a correct block, for `verify_dump`.
    pub fn expected_block(&self, len: usize, offset: u64, generation: u64) -> Vec<u8> {
        let mut block = vec![0; len];
        self.fill(&mut block, offset, generation);
        block
    }
}

#[cfg(test)]
mod tests;
