//! Verification of a worker's I/O: prepares writes, selects the blocks to read, and checks them.

use crate::io::Slot;
use iosonde_job::plan::{
    BlockSize, Direction, Engine, Job, RandomMap, ReadWriteMode, Verify, VerifyMethod,
};
use iosonde_result::run::IoFailure;
use iosonde_workload::verify::written::WriteRecord;
use iosonde_workload::verify::{ExpectedWrite, Mismatch, Verifier, VerifyError};
use iosonde_workload::{Generator, Io, Op};
use std::collections::VecDeque;
use std::path::Path;

/// Maximum size of the record of writes, per file.
const RECORD_LIMIT_BYTES: u64 = 1 << 30;

/// Maximum number of blocks preallocated for `verify_backlog`; a longer backlog grows as it fills.
const MOST_BACKLOG_READY: u64 = 1 << 20;

/// Source of the blocks to read back.
enum ReadBack {
    /// The blocks left in the backlog.
    Backlog,
    /// All recorded blocks by offset: files from `file` on, from interval `offset` on.
    Scan {
        unit_bytes: u64,
        file: usize,
        offset: u64,
    },
    /// The writes of the generator, repeated as reads.
    Replay(Box<Generator>),
}

/// Verified region of a file.
#[derive(Debug, Clone, Copy)]
struct Region {
    start: u64,
    end: u64,
}

/// Verification of one worker.
pub(crate) struct Verification {
    rule: Verify,
    verifier: Verifier,
    written: Vec<WriteRecord>,
    regions: Vec<Region>,
    /// Whether every read is verified, not only those that verification issues.
    checks_all_reads: bool,
    /// Whether buffers hold the data read. If not (null engine), as in fio none is compared.
    has_data: bool,
    reads_back: bool,
    backlog: VecDeque<Io>,
    /// Backlog reads still to be issued in this batch.
    batch_left: u64,
    read_back: ReadBack,
    fixed_unit: Option<u64>,
    fresh: Generator,
    /// Writes since the last read-back.
    writes: u64,
    /// Writes whose offsets a replay reads back.
    to_replay: u64,
    replayed: u64,
}

/// A mismatch, without the name of its file.
#[derive(Debug)]
pub(crate) struct BlockMismatch {
    file: u32,
    mismatch: Mismatch,
}

impl BlockMismatch {
    /// Converts the mismatch into a failure of the worker.
    pub(crate) fn in_file(self, names: &[String]) -> IoFailure {
        let file = names.get(self.file as usize).cloned();
        let place = file.as_deref().unwrap_or("the file").to_owned();
        IoFailure {
            errno: libc::EILSEQ,
            operation: "verify".to_owned(),
            offset: Some(self.mismatch.offset),
            message: format!("{place}: {}", self.mismatch),
            file,
        }
    }
}

impl Verification {
    /// Returns the verification of a job, if any, over the files of the fresh `generator`.
    pub(crate) fn new(
        job: &Job,
        regions: &[(u64, u64)],
        generator: &Generator,
    ) -> Result<Option<Verification>, VerifyError> {
        let Some(rule) = &job.verify else {
            return Ok(None);
        };
        let sizes = block_sizes(job);
        // The seed is the workload's, not the clone's: another job may verify these writes.
        let seed = job.workload.randseed.unwrap_or(0x69_6f_73_6f_6e_64_65);
        let verifier = Verifier::new(rule, &sizes, seed)?;
        let unit = verifier.interval_bytes();
        if may_overlap_in_part(job, unit) {
            return Err(VerifyError::Overlap {
                interval_bytes: unit,
            });
        }
        let changes = job.workload.rw.has(Direction::Write);
        let written = regions
            .iter()
            .map(|(start, size)| {
                let limit = if changes && !rule.verify_only {
                    RECORD_LIMIT_BYTES
                } else {
                    0
                };
                WriteRecord::new(*start, *size, unit, limit, job.io.iodepth)
            })
            .collect();
        let align = job.workload.block_align.write;
        let aligned = !job.workload.bs_unaligned && (align == 0 || align.is_multiple_of(unit));
        let whole = sizes.iter().all(|size| size % unit == 0);
        let fixed_unit = (aligned && whole && sizes.len() == 1).then(|| sizes[0]);
        Ok(Some(Verification {
            verifier,
            written,
            regions: regions
                .iter()
                .map(|(start, size)| Region {
                    start: *start,
                    end: start + size,
                })
                .collect(),
            checks_all_reads: job.workload.rw.mode == ReadWriteMode::Read,
            has_data: job.io.engine != Engine::Null,
            reads_back: changes && rule.do_verify,
            backlog: VecDeque::with_capacity(
                rule.backlog.min(MOST_BACKLOG_READY) as usize + job.io.iodepth as usize,
            ),
            batch_left: 0,
            read_back: ReadBack::Backlog,
            fixed_unit,
            fresh: generator.clone(),
            writes: 0,
            to_replay: 0,
            replayed: 0,
            rule: rule.clone(),
        }))
    }

    /// Whether the job reads its writes back.
    pub(crate) fn reads_back(&self) -> bool {
        self.reads_back
    }

    /// Whether the job only verifies and writes nothing.
    pub(crate) fn only(&self) -> bool {
        self.rule.verify_only && !self.checks_all_reads
    }

    /// Whether the first mismatch ends the job.
    pub(crate) fn is_fatal(&self) -> bool {
        self.rule.fatal
    }

    /// Fills a block to write and returns its sequence number.
    pub(crate) fn seal(&mut self, slot: &Slot, buffer: &mut [u8]) -> u64 {
        let generation = self.written[slot.file as usize].issue(slot.offset, u64::from(slot.len));
        self.verifier.fill(buffer, slot.offset, generation);
        self.writes += 1;
        generation
    }

    /// Returns the sequence number to keep with a read that will be verified.
    pub(crate) fn expected_sequence(&self, io: &Io) -> u64 {
        self.written[io.file as usize].issued()
    }

    /// Records a failed write: its range may hold any data.
    pub(crate) fn failed(&mut self, slot: &Slot) {
        if slot.op == Op::Write {
            self.written[slot.file as usize].fail(slot.sequence);
        }
    }

    /// Records a completed write, or verifies a completed read.
    pub(crate) fn completed(&mut self, slot: &Slot, buffer: &[u8]) -> Result<(), BlockMismatch> {
        match slot.op {
            Op::Write => {
                self.written[slot.file as usize].complete(slot.sequence);
                if self.rule.backlog > 0 && self.reads_back {
                    self.backlog.push_back(Io {
                        offset: slot.offset,
                        len: slot.len,
                        file: slot.file,
                        op: Op::Read,
                    });
                }
                Ok(())
            }
            Op::Read if slot.check => self.check_written(slot, buffer),
            Op::Read if self.checks_all_reads => {
                self.check(slot, slot.offset, buffer, ExpectedWrite::Any)
            }
            _ => Ok(()),
        }
    }

    fn check(
        &self,
        slot: &Slot,
        offset: u64,
        part: &[u8],
        expected: ExpectedWrite,
    ) -> Result<(), BlockMismatch> {
        if !self.has_data {
            return Ok(());
        }
        self.verifier
            .check(part, offset, expected)
            .map_err(|mismatch| BlockMismatch {
                file: slot.file,
                mismatch,
            })
    }

    /// Returns the expected data of a block (`verify_dump`): that of the recorded write, or without
    /// a record that of the write that the block itself names.
    fn expected(&self, slot: &Slot, buffer: &[u8]) -> Vec<u8> {
        let unit = self.verifier.interval_bytes() as usize;
        let written = &self.written[slot.file as usize];
        let mut expected = Vec::with_capacity(buffer.len());
        for (index, part) in buffer.chunks(unit.max(1)).enumerate() {
            let offset = slot.offset + (index * unit) as u64;
            let generation = match written.expected(offset) {
                Some(ExpectedWrite::Exactly(generation)) if !self.only() => generation,
                _ => self.verifier.generation_in(part).unwrap_or(0),
            };
            let block = self.verifier.expected_block(part.len(), offset, generation);
            expected.extend(block);
        }
        expected
    }

    /// Saves a block that differs and its expected data to `directory` (`verify_dump`), under fio's
    /// names `FILE.OFFSET.received` and `FILE.OFFSET.expected`.
    pub(crate) fn dump(
        &self,
        slot: &Slot,
        buffer: &[u8],
        file: &str,
        directory: &Path,
    ) -> std::io::Result<()> {
        if !self.rule.dump {
            return Ok(());
        }
        let name = Path::new(file).file_name().unwrap_or_default();
        let path = |what: &str| {
            let name = format!("{}.{}.{what}", name.display(), slot.offset);
            directory.join(name)
        };
        if !directory.as_os_str().is_empty() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(path("received"), buffer)?;
        std::fs::write(path("expected"), self.expected(slot, buffer))
    }

    /// Checks each interval against its last write. Skips an interval written since the read was
    /// issued, or by two writes at once, as it may validly hold a mixture.
    fn check_written(&self, slot: &Slot, buffer: &[u8]) -> Result<(), BlockMismatch> {
        let written = &self.written[slot.file as usize];
        if self.only()
            || !written.is_exact()
            || !matches!(self.read_back, ReadBack::Backlog | ReadBack::Scan { .. })
        {
            return self.check(slot, slot.offset, buffer, ExpectedWrite::Any);
        }
        let unit = self.verifier.interval_bytes() as usize;
        let count = (buffer.len() / unit).max(1);
        for index in 0..count {
            let from = index * unit;
            let until = if index + 1 == count {
                buffer.len()
            } else {
                from + unit
            };
            let offset = slot.offset + from as u64;
            match written.expected(offset) {
                Some(ExpectedWrite::Exactly(generation)) if generation <= slot.sequence => {
                    self.check(
                        slot,
                        offset,
                        &buffer[from..until],
                        ExpectedWrite::Exactly(generation),
                    )?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a read of the backlog, if one is due.
    pub(crate) fn next_of_backlog(&mut self) -> Option<Io> {
        if self.rule.backlog == 0 {
            return None;
        }
        if self.batch_left == 0 && self.backlog.len() as u64 >= self.rule.backlog {
            let batch = self.rule.backlog_batch;
            self.batch_left = if batch == 0 { self.rule.backlog } else { batch };
        }
        if self.batch_left == 0 {
            return None;
        }
        // A block with a write in flight stays in the backlog for the end.
        let position = self
            .backlog
            .iter()
            .position(|io| !self.written[io.file as usize].is_busy(io.offset, io.len.into()))?;
        self.batch_left -= 1;
        self.backlog.remove(position)
    }

    /// Starts the read-back phase. Returns whether there is one.
    pub(crate) fn begin_reading(&mut self) -> bool {
        if !self.reads_back {
            return false;
        }
        let exact = self.written.iter().all(WriteRecord::is_exact);
        self.read_back = match self.fixed_unit {
            _ if self.rule.backlog > 0 => ReadBack::Backlog,
            Some(unit_bytes) if exact => ReadBack::Scan {
                unit_bytes,
                file: 0,
                offset: self.regions.first().map_or(0, |region| region.start),
            },
            _ => ReadBack::Replay(Box::new(self.fresh.clone())),
        };
        // The next pass counts separately: its offsets are those of the first pass.
        self.to_replay = std::mem::take(&mut self.writes);
        self.replayed = 0;
        true
    }

    /// Prepares for `verify_only`.
    pub(crate) fn begin_only(&mut self) {
        self.to_replay = u64::MAX;
        self.read_back = ReadBack::Replay(Box::new(self.fresh.clone()));
    }

    /// Returns the next block to read back, or `None` at the end.
    pub(crate) fn next_read(&mut self) -> Option<Io> {
        match &mut self.read_back {
            ReadBack::Backlog => self.backlog.pop_front(),
            ReadBack::Scan {
                unit_bytes,
                file,
                offset,
            } => loop {
                let region = self.regions.get(*file)?;
                // The last block of a sequential pass may cross the end of its region.
                if *offset >= region.end {
                    *file += 1;
                    *offset = self.regions.get(*file)?.start;
                    continue;
                }
                let io = Io {
                    offset: *offset,
                    len: *unit_bytes as u32,
                    file: *file as u32,
                    op: Op::Read,
                };
                *offset += *unit_bytes;
                if self.written[*file].expected(io.offset).is_some() {
                    return Some(io);
                }
            },
            ReadBack::Replay(generator) => loop {
                if self.replayed >= self.to_replay {
                    return None;
                }
                let io = generator.next_io()?;
                if io.op == Op::Write {
                    self.replayed += 1;
                    return Some(Io { op: Op::Read, ..io });
                }
            },
        }
    }
}

/// Whether a write may partly overlap another's interval: no if each block is used once.
fn may_overlap_in_part(job: &Job, unit: u64) -> bool {
    let workload = &job.workload;
    let nothing_to_check = matches!(
        job.verify.as_ref().map(|rule| rule.method),
        Some(VerifyMethod::Null) | None
    );
    if nothing_to_check || !workload.rw.has(Direction::Write) {
        return false;
    }
    let skip = workload.sequencer.skip_bytes;
    if skip < 0 && !skip.unsigned_abs().is_multiple_of(unit) {
        return true;
    }
    let drawn = workload.rw.random && workload.random_map == RandomMap::None;
    let align = match workload.block_align.write {
        0 => workload.block_size.write.min(),
        align => align,
    };
    drawn && (workload.bs_unaligned || !align.is_multiple_of(unit))
}

/// Returns all block sizes of the job's writes, or of its reads if it does not write.
fn block_sizes(job: &Job) -> Vec<u64> {
    let direction = if job.workload.rw.has(Direction::Write) {
        Direction::Write
    } else {
        Direction::Read
    };
    match &job.workload.block_size[direction] {
        BlockSize::Fixed(size) => vec![*size],
        BlockSize::Split(split) if job.workload.bs_unaligned => {
            split.iter().map(|(size, _)| *size).collect()
        }
        // Sizes of a split are rounded down to multiples of the smallest.
        sizes @ BlockSize::Split(split) => {
            let least = sizes.min().max(1);
            split.iter().map(|(size, _)| size - size % least).collect()
        }
        // Sizes of a range are multiples of the smallest.
        BlockSize::Range { min, max } if job.workload.bs_unaligned => vec![*min, *max],
        BlockSize::Range { min, max } => vec![*min, min * 2.min(max / min), max - max % min],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_workload::{FileLayout, Seeds};

    #[test]
    fn mismatched_block_is_dumped_with_its_expected_content() {
        let mut job = Job::new("x");
        job.workload.rw.mode = ReadWriteMode::Write;
        job.verify = Some(Verify {
            dump: true,
            interval_bytes: 512,
            ..Verify::new(VerifyMethod::Crc32c)
        });
        let layout = FileLayout::whole_file(64 << 10);
        let generator = Generator::new(&job, &layout, Seeds::from_u64(1)).unwrap();
        let made = Verification::new(&job, &[(0, 64 << 10)], &generator);
        let mut verification = made.unwrap().unwrap();
        let mut slot = Slot {
            offset: 8192,
            len: 4096,
            op: Op::Write,
            ..Slot::IDLE
        };
        let mut block = vec![0; 4096];
        slot.sequence = verification.seal(&slot, &mut block);
        verification.completed(&slot, &block).unwrap();
        let right = block.clone();
        // One interval loses its payload, another its header.
        block[700] ^= 1;
        block[1024..1100].fill(0);
        let read = Slot {
            op: Op::Read,
            check: true,
            ..slot
        };
        assert!(verification.completed(&read, &block).is_err());
        let directory = tempfile::tempdir().unwrap();
        let saved = verification.dump(&read, &block, "/some/where/f", directory.path());
        saved.unwrap();
        let file = |what: &str| std::fs::read(directory.path().join(format!("f.8192.{what}")));
        assert_eq!(file("received").unwrap(), block);
        assert!(file("expected").unwrap() == right);
    }
}
