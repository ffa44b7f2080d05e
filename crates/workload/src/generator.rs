//! The sequence of I/Os of one clone: a seeded state machine over files, offsets and budgets.
//!
//! # Passes
//! A *pass* ends when no file has a block left: every block of the random map is used, or the end
//! of the region is reached. The rules are those of fio 3.33, found by running it:
//! * All passes together move `loops` times `size`, or `loops` times `io_size` if it is given.
//!   `loops=N` makes at most N passes; `io_size` adds passes until it is reached.
//! * With `randrepeat` (the default) each pass repeats the same sequence, else it has its own.
//! * Without a random map (`norandommap`, or any distribution but uniform) there is one pass.
//! * `time_based` never ends. Each random file starts over on its own, each time in a new order,
//!   and so does a single sequential file. Several sequential files start over together when all
//!   are done. `time_based` overrides `number_ios` and `io_size`.
//! * A last block that does not fit into the file is never issued.

use super::block_size::BlockSizes;
use super::budget::{SequenceLimits, SequenceProgress};
use super::files::{FileLayout, FilePicker};
use super::mix::{DirectionMix, SyncSchedule};
use super::position::{FilePosition, OffsetSource, PositionStreams};
use super::position_rules::PositionRules;
use super::rng::{Seeds, Stream};
use super::workload_error::WorkloadError;
use super::{Io, Op};
use iosonde_job::plan::{Direction, Job, ReadWriteMode};

/// The part that starts over. A buffered job drops its pages from the page cache first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOver {
    /// A new pass over all files.
    Pass,
    /// Another round through the file of this index, within the pass.
    File(u32),
}

/// I/Os computed in advance for callers that take them one by one.
const AHEAD: usize = 16;

/// The generator of the I/Os of one clone. The [module](self) describes its passes.
///
/// A clone of a fresh generator replays the same sequence. `verify` finds written data again in
/// this way, without a record of them.
#[derive(Debug, Clone)]
pub struct Generator {
    rules: PositionRules,
    seeds: Seeds,
    files: Vec<FilePosition>,
    picker: FilePicker,
    mix: DirectionMix,
    mode: ReadWriteMode,
    syncs: SyncSchedule,
    draws: PositionStreams,
    /// I/Os until the next new random offset (`rw_sequencer`).
    until_fresh: u32,
    /// trimwrite: the write that follows the last trim.
    paired_write: Option<Io>,
    budget: SequenceLimits,
    progress: SequenceProgress,
    /// The direction whose sizes all I/Os have, where [`Generator::fill_simple`] applies.
    simple: Option<Direction>,
    /// I/Os computed but not yet returned: `ahead[ahead_next..ahead_end]`.
    ahead: [Io; AHEAD],
    ahead_next: usize,
    ahead_end: usize,
    /// Set by [`Generator::stop_where_it_starts_over`].
    stops: bool,
    stop: Option<StartOver>,
    /// The I/O to return first after a stop.
    resumed: Option<Io>,
}

impl Generator {
    /// A generator for one clone of a job over the files of `layout`.
    ///
    /// # Errors
    /// Fails if the workload is invalid or does not fit these files.
    pub fn new(job: &Job, layout: &FileLayout, seeds: Seeds) -> Result<Self, WorkloadError> {
        let workload = &job.workload;
        check(job, layout)?;
        let endless = job.schedule.time_based;
        let nonuniform = FilePicker::is_nonuniform(job.files.file_service.kind);
        let single = layout.files.len() == 1;
        let rules = PositionRules::new(
            workload,
            (endless && single) || nonuniform,
            endless || nonuniform,
        );
        let files = layout
            .files
            .iter()
            .zip(0u64..)
            .map(|(region, index)| FilePosition::new(*region, index, workload, &rules, &seeds))
            .collect::<Result<Vec<_>, _>>()?;
        let syncs = SyncSchedule::new(workload, files.len());
        let simple = simple_shape(job, &rules, &files, &syncs);
        Ok(Generator {
            budget: SequenceLimits::new(job, layout, &rules),
            picker: FilePicker::new(
                job.files.file_service,
                files.len() as u32,
                job.files.openfiles,
                &seeds,
            )?,
            mix: DirectionMix::new(workload, seeds.stream(Stream::Mix, 0)),
            mode: workload.rw.mode,
            draws: derive_streams(&seeds),
            until_fresh: 1,
            paired_write: None,
            progress: SequenceProgress {
                passes: 1,
                ..SequenceProgress::default()
            },
            rules,
            seeds,
            files,
            syncs,
            simple,
            ahead: [Io::EMPTY; AHEAD],
            ahead_next: 0,
            ahead_end: 0,
            stops: false,
            stop: None,
            resumed: None,
        })
    }

    /// Makes the sequence pause wherever it starts over: one call then returns `None`, as at the
    /// end. [`Generator::take_stop`] tells a pause from the end.
    pub fn stop_where_it_starts_over(&mut self) {
        self.stops = true;
    }

    /// The pause that made the last call return `None`. `None` means that the sequence has ended.
    /// Must be called before the next I/O is taken.
    pub fn take_stop(&mut self) -> Option<StartOver> {
        self.stop.take()
    }

    /// Fills `out` from its start and returns the number of I/Os. The number is less than the
    /// length of `out` only at the end or at a pause.
    pub fn fill(&mut self, out: &mut [Io]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            if let Some(shape) = self.simple
                && self.ahead_next == self.ahead_end
                && self.resumed.is_none()
            {
                filled += self.fill_simple(shape, &mut out[filled..]);
                if filled == out.len() {
                    break;
                }
            }
            match self.next_io() {
                Some(io) => {
                    out[filled] = io;
                    filled += 1;
                }
                None => break,
            }
        }
        filled
    }

    /// The next I/O; `None` at the end or at a pause.
    #[inline]
    pub fn next_io(&mut self) -> Option<Io> {
        match self.take_ahead() {
            None => self.make(),
            io => io,
        }
    }

    /// The next I/O in the given direction instead of the mix, for jobs with rates per direction.
    ///
    /// `direction` must be one of the job's. A sync that is due comes first.
    pub fn next_io_of(&mut self, direction: Direction) -> Option<Io> {
        if let Some(io) = self.take_ahead() {
            // All directions have the same blocks here; otherwise nothing is computed in advance.
            let op = direction.into();
            return Some(Io { op, ..io });
        }
        self.make_general(Some(direction))
    }

    #[inline]
    fn take_ahead(&mut self) -> Option<Io> {
        if self.ahead_next == self.ahead_end {
            return None;
        }
        let io = self.ahead.get(self.ahead_next).copied();
        self.ahead_next += 1;
        io
    }

    #[inline(never)]
    fn make(&mut self) -> Option<Io> {
        if let Some(shape) = self.simple
            && self.resumed.is_none()
        {
            let mut ahead = [Io::EMPTY; AHEAD];
            self.ahead_end = self.fill_simple(shape, &mut ahead);
            (self.ahead, self.ahead_next) = (ahead, 0);
            if let Some(io) = self.take_ahead() {
                return Some(io);
            }
        }
        self.make_general(None)
    }

    fn make_general(&mut self, wanted: Option<Direction>) -> Option<Io> {
        debug_assert!(self.stop.is_none(), "the caller has not taken the stop");
        if let Some(io) = self.resumed.take() {
            return Some(io);
        }
        let io = match self.syncs.take() {
            Some(sync) => (!self.is_over()).then_some(sync),
            None => self.next_data(wanted),
        };
        if self.stop.is_some() {
            self.resumed = io;
            return None;
        }
        io
    }

    /// Passes begun, at least 1.
    pub fn passes(&self) -> u64 {
        self.progress.passes
    }

    /// Largest block that is read or written, in bytes: the buffer size that the sequence needs. 0
    /// if all I/Os are trims, which have no buffer.
    pub fn buffer_bytes(&self) -> u64 {
        match self.mode {
            ReadWriteMode::Trim => 0,
            _ => self.budget.max_block_bytes,
        }
    }

    fn is_over(&self) -> bool {
        self.budget.is_over(&self.progress)
    }

    fn next_data(&mut self, wanted: Option<Direction>) -> Option<Io> {
        if let Some(write) = self.paired_write.take() {
            self.account(&write);
            return Some(write);
        }
        if self.is_over() {
            return None;
        }
        let direction = match wanted {
            Some(direction) => direction,
            None => self.mix.next_direction(),
        };
        self.until_fresh -= 1;
        let fresh = self.until_fresh == 0;
        if fresh {
            self.until_fresh = self.rules.sequencer.every.max(1);
        }
        let io = self.locate(direction, fresh)?;
        if self.mode == ReadWriteMode::TrimWrite {
            self.paired_write = Some(Io {
                op: Op::Write,
                ..io
            });
        }
        self.account(&io);
        Some(io)
    }

    /// Finds a file with a block left. Ends the sequence if a whole new pass has no block.
    fn locate(&mut self, direction: Direction, fresh: bool) -> Option<Io> {
        let mut restarted = false;
        loop {
            let Some(file) = self.picker.pick() else {
                if restarted || !self.begin_pass() {
                    self.stop = None;
                    self.progress.ended = true;
                    return None;
                }
                restarted = true;
                continue;
            };
            let place = self.files[file as usize].next_range(
                &self.rules,
                direction,
                fresh,
                &mut self.draws,
            );
            match place {
                None => self.picker.finish(file),
                Some(place) => {
                    assert!(
                        place.offset + place.len <= self.files[file as usize].region.file_bytes,
                        "no I/O reaches beyond its file: {place:?}"
                    );
                    if self.files[file as usize].take_starts_over() && self.stops {
                        self.stop.get_or_insert(StartOver::File(file));
                    }
                    return Some(Io {
                        offset: place.offset,
                        len: place.len as u32,
                        file,
                        op: direction.into(),
                    });
                }
            }
        }
    }

    fn account(&mut self, io: &Io) {
        self.syncs.note(io);
        let len = u64::from(io.len);
        let counts = self.mode != ReadWriteMode::TrimWrite || io.op == Op::Write;
        self.progress.add(1, len, if counts { len } else { 0 });
    }

    fn begin_pass(&mut self) -> bool {
        if !self.budget.allows_pass_after(&self.progress) {
            self.progress.ended = true;
            return false;
        }
        self.progress.passes += 1;
        let again = self.seeds.repeat_each_pass();
        self.picker
            .restart(again.then(|| self.seeds.stream(Stream::File, 0)));
        for (file, index) in self.files.iter_mut().zip(0..) {
            file.restart(again.then(|| self.seeds.stream(Stream::Offset, index)));
        }
        if again {
            self.mix.restart(self.seeds.stream(Stream::Mix, 0));
            self.draws = derive_streams(&self.seeds);
        }
        self.until_fresh = 1;
        self.stop = self.stops.then_some(StartOver::Pass);
        true
    }

    /// Fills `out` with blocks of one size in a single file, up to the end of the pass. This is the
    /// fast path for the common case.
    fn fill_simple(&mut self, shape: Direction, out: &mut [Io]) -> usize {
        let len = self.rules.random_sizes[shape].min();
        let left = self.budget.ios_left(&self.progress, len);
        let room = left.min(out.len() as u64) as usize;
        let out = &mut out[..room];
        let file = &mut self.files[0];
        let count = if self.rules.random {
            let place = (
                file.region.start_bytes,
                self.rules.align_bytes[shape],
                len as u32,
            );
            fill_random(file, place, &mut self.mix, out)
        } else {
            file.fill_sequential(shape, len, out)
        };
        let bytes = count as u64 * len;
        self.progress.add(count as u64, bytes, bytes);
        count
    }
}

/// Fills `out` with random blocks. `place`: start of the region, alignment, block length in bytes.
#[inline]
fn fill_random(
    file: &mut FilePosition,
    place: (u64, u64, u32),
    mix: &mut DirectionMix,
    out: &mut [Io],
) -> usize {
    let (start, align, len) = place;
    let mut put = |slot: &mut Io, block: u64| {
        *slot = Io {
            offset: start + block * align,
            len,
            file: 0,
            op: mix.next_direction().into(),
        };
    };
    match &mut file.sources[0] {
        OffsetSource::Covered(cover) => {
            let count = cover.remaining().min(out.len() as u64) as usize;
            for slot in &mut out[..count] {
                put(slot, cover.next_unchecked());
            }
            count
        }
        OffsetSource::Drawn(blocks) => {
            for slot in out.iter_mut() {
                put(slot, blocks.draw(&mut file.rng));
            }
            out.len()
        }
        OffsetSource::Empty | OffsetSource::FirstBlocks(_) | OffsetSource::Mapped(_) => 0,
    }
}

impl Iterator for Generator {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        self.next_io()
    }
}

fn derive_streams(seeds: &Seeds) -> PositionStreams {
    PositionStreams {
        size: seeds.stream(Stream::BlockSize, 0),
        sequential: seeds.stream(Stream::SequentialOrRandom, 0),
    }
}

fn check(job: &Job, layout: &FileLayout) -> Result<(), WorkloadError> {
    if layout.files.is_empty() {
        return Err(WorkloadError::NoFiles);
    }
    for (direction, block_size) in job.workload.block_size.iter() {
        if !job.workload.rw.has(direction) && !job.workload.bs_is_seq_rand {
            continue;
        }
        for bytes in [block_size.min(), block_size.max()] {
            if bytes == 0 || bytes > u64::from(u32::MAX) {
                return Err(WorkloadError::BlockSize { bytes });
            }
        }
    }
    match job.workload.zones {
        Some(zones) if zones.zone_size_bytes == 0 || zones.zone_range_bytes == 0 => {
            Err(WorkloadError::Zones)
        }
        _ => Ok(()),
    }
}

/// The direction whose block size applies to all I/Os. `None` if [`Generator::fill_simple`] would
/// make a sequence that differs from the general path.
fn simple_shape(
    job: &Job,
    rules: &PositionRules,
    files: &[FilePosition],
    syncs: &SyncSchedule,
) -> Option<Direction> {
    let rw = job.workload.rw;
    let mut used = Direction::ALL.into_iter().filter(|d| rw.has(*d));
    let one_size = used.clone().all(|d| {
        let fixed = |sizes: &BlockSizes| matches!(sizes, BlockSizes::Fixed(_));
        fixed(&rules.random_sizes[d]) && rules.random_sizes[d] == rules.sequential_sizes[d]
    });
    let straight = if rw.random {
        rules.sequencer.every <= 1
            && matches!(
                files[0].sources[..],
                [OffsetSource::Covered(_) | OffsetSource::Drawn(_)]
            )
            && used.clone().all(|d| rules.percentage_random[d] >= 100)
    } else {
        rules.sequencer.skip_bytes == 0 && used.clone().count() == 1
    };
    let synced = syncs.is_active() && rw.has(Direction::Write);
    let single = files.len() == 1 && rules.zones.is_none() && rw.mode != ReadWriteMode::TrimWrite;
    (single && straight && one_size && !synced)
        .then(|| used.next())
        .flatten()
}

#[cfg(test)]
pub(crate) mod tests;
