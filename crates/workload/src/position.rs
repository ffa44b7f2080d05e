//! The position of the next I/O in a file: random, sequential, backwards, with holes, in zones.

use super::Io;
use super::block_map::BlockMap;
use super::distribution::BlockDistribution;
use super::files::FileRegion;
use super::permutation::Cover;
use super::position_rules::{MapKind, PositionRules};
use super::rng::{Rng, Seeds, Stream};
use super::workload_error::WorkloadError;
use iosonde_job::plan::{
    Direction, Distribution, PerDirection, SequencerKind, StridedZones, Workload,
};

impl PositionRules {
    /// Number of positions at which a smallest block fits into `bytes`.
    fn positions(&self, direction: Direction, bytes: u64) -> u64 {
        let align = self.align_bytes[direction];
        let overhang = self.unit_bytes[direction].saturating_sub(align);
        bytes.saturating_sub(overhang) / align
    }
}

/// The source of random offsets of a file.
#[derive(Debug, Clone)]
pub(super) enum OffsetSource {
    /// The region holds no block.
    Empty,
    /// Draws with replacement.
    Drawn(BlockDistribution),
    /// Each block once, for blocks of one size.
    Covered(Cover),
    /// Each block once as the first block of an I/O.
    FirstBlocks(Cover),
    /// Each block once, in I/Os of mixed sizes.
    Mapped(BlockMap),
}

/// The range of one I/O, in bytes from the start of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IoRange {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Random streams for size and randomness; offsets have their own stream.
#[derive(Debug, Clone)]
pub(super) struct PositionStreams {
    pub(super) size: Rng,
    pub(super) sequential: Rng,
}

/// The state of one file.
#[derive(Debug, Clone)]
pub(super) struct FilePosition {
    pub(super) region: FileRegion,
    pub(super) rng: Rng,
    pub(super) sources: Vec<OffsetSource>,
    pub(super) source_of: PerDirection<usize>,
    /// Relative to the region or the zone.
    last_start: PerDirection<Option<u64>>,
    last_end: PerDirection<u64>,
    zone_start: u64,
    zone_done_bytes: u64,
    /// The last position is the first of another round through the file.
    starts_over: bool,
}

impl FilePosition {
    pub(super) fn new(
        region: FileRegion,
        index: u64,
        workload: &Workload,
        rules: &PositionRules,
        seeds: &Seeds,
    ) -> Result<Self, WorkloadError> {
        let mut file = FilePosition {
            region,
            rng: seeds.stream(Stream::Offset, index),
            sources: Vec::new(),
            source_of: PerDirection::from_value(0),
            last_start: PerDirection::from_value(None),
            last_end: PerDirection::from_value(0),
            zone_start: 0,
            zone_done_bytes: 0,
            starts_over: false,
        };
        if rules.random {
            file.make_sources(index, workload, rules, seeds)?;
        }
        file.restart(None);
        Ok(file)
    }

    /// Creates one source per direction. All directions share a map, so that a pass of `randrw`
    /// visits each block once, by a read or by a write. Without a map, directions with equal block
    /// sizes share a source.
    fn make_sources(
        &mut self,
        index: u64,
        workload: &Workload,
        rules: &PositionRules,
        seeds: &Seeds,
    ) -> Result<(), WorkloadError> {
        let mut made: Vec<Direction> = Vec::new();
        for direction in Direction::ALL.into_iter().filter(|d| workload.rw.has(*d)) {
            let zoned = matches!(
                workload.distribution,
                Distribution::Zoned(_) | Distribution::ZonedAbs(_)
            );
            let same = |other: &Direction| {
                rules.map != MapKind::None
                    || !zoned
                        && rules.random_sizes[*other] == rules.random_sizes[direction]
                        && rules.align_bytes[*other] == rules.align_bytes[direction]
            };
            if let Some(shared) = made.iter().position(same) {
                self.source_of[direction] = shared;
                continue;
            }
            // All directions use the same stream, so that reads and writes share hot blocks.
            let mut rng = seeds.stream(Stream::Placement, index);
            let source = self.make_source(direction, workload, rules, &mut rng)?;
            self.source_of[direction] = self.sources.len();
            self.sources.push(source);
            made.push(direction);
        }
        Ok(())
    }

    fn make_source(
        &self,
        direction: Direction,
        workload: &Workload,
        rules: &PositionRules,
        rng: &mut Rng,
    ) -> Result<OffsetSource, WorkloadError> {
        let bytes = self.span(rules);
        let align = rules.align_bytes[direction];
        let positions = rules.positions(direction, bytes);
        if positions == 0 {
            return Ok(OffsetSource::Empty);
        }
        let drawn =
            |rng| BlockDistribution::new(&workload.distribution, direction, positions, align, rng);
        let map_blocks = bytes
            / rules
                .unit_bytes
                .iter()
                .map(|(_, bytes)| *bytes)
                .min()
                .unwrap_or(1);
        Ok(match rules.map {
            MapKind::None => OffsetSource::Drawn(drawn(rng)?),
            MapKind::OneSize => OffsetSource::Covered(Cover::new(positions, rng)),
            MapKind::FirstBlocks => OffsetSource::FirstBlocks(Cover::new(map_blocks, rng)),
            MapKind::MixedSizes { is_soft } => match BlockMap::new(map_blocks) {
                Some(map) => OffsetSource::Mapped(map),
                None if is_soft => OffsetSource::Drawn(drawn(rng)?),
                None => return Err(WorkloadError::MapSize { blocks: map_blocks }),
            },
        })
    }

    /// Length in bytes of the range of offsets: the zone, or the region's part within the file.
    fn span(&self, rules: &PositionRules) -> u64 {
        let inside = self
            .region
            .file_bytes
            .saturating_sub(self.region.start_bytes);
        match rules.zones {
            Some(zones) => zones.zone_range_bytes,
            None => self.region.size_bytes.min(inside),
        }
    }

    /// Whether the last position is the first of another round through the file. Clears the flag.
    pub(super) fn take_starts_over(&mut self) -> bool {
        std::mem::take(&mut self.starts_over)
    }

    /// Begins a pass. With `rng` the draws restart too.
    pub(super) fn restart(&mut self, rng: Option<Rng>) {
        if let Some(rng) = rng {
            self.rng = rng;
        }
        (self.zone_start, self.zone_done_bytes) = (0, 0);
        self.reset();
    }

    /// Clears the last positions and makes all blocks of the map free.
    fn reset(&mut self) {
        self.last_start = PerDirection::from_value(None);
        self.last_end = PerDirection::from_value(0);
        for source in &mut self.sources {
            match source {
                OffsetSource::Covered(cover) | OffsetSource::FirstBlocks(cover) => {
                    cover.restart(&mut self.rng);
                }
                OffsetSource::Mapped(map) => map.clear(),
                OffsetSource::Drawn(_) | OffsetSource::Empty => {}
            }
        }
    }

    /// The next position for `direction`. `fresh` requests a new random offset; without it
    /// `rw_sequencer` applies. `None` if the file has no block left in this pass.
    pub(super) fn next_range(
        &mut self,
        rules: &PositionRules,
        direction: Direction,
        fresh: bool,
        draws: &mut PositionStreams,
    ) -> Option<IoRange> {
        if let Some(zones) = rules.zones {
            self.enter_zone(zones, direction);
        }
        let place = if !rules.random {
            self.sequential(rules, direction, draws)?
        } else if fresh {
            let percent = rules.percentage_random[direction];
            if percent >= 100 || draws.sequential.percent(percent) {
                self.random(rules, direction, draws)?
            } else {
                self.sequential_or_random(rules, direction, draws)?
            }
        } else {
            match rules.sequencer.kind {
                SequencerKind::Sequential => self.sequential_or_random(rules, direction, draws)?,
                SequencerKind::Identical => self.identical(rules, direction, draws)?,
            }
        };
        let offset = self.region.start_bytes + self.zone_start + place.offset;
        if offset + place.len > self.region.file_bytes {
            return None;
        }
        self.last_start[direction] = Some(place.offset);
        self.last_end[direction] = place.offset + place.len;
        self.zone_done_bytes += place.len;
        Some(IoRange {
            offset,
            len: place.len,
        })
    }

    /// `zonemode=strided`: moves to the next zone after `zonesize` bytes. Starts the zone over if
    /// `zonesize` exceeds its range.
    fn enter_zone(&mut self, zones: StridedZones, direction: Direction) {
        if self.zone_done_bytes >= zones.zone_size_bytes {
            self.zone_done_bytes = 0;
            self.zone_start += zones.zone_range_bytes + zones.zone_skip_bytes;
            if self.region.start_bytes + self.zone_start >= self.region.file_bytes {
                self.zone_start = 0;
            }
            self.last_end[direction] = 0;
        }
        if self.last_end[direction] >= zones.zone_range_bytes {
            self.last_end[direction] = 0;
        }
        if self
            .zone_done_bytes
            .is_multiple_of(zones.zone_range_bytes.max(1))
        {
            self.reset();
        }
    }

    fn sequential_or_random(
        &mut self,
        rules: &PositionRules,
        direction: Direction,
        draws: &mut PositionStreams,
    ) -> Option<IoRange> {
        self.sequential(rules, direction, draws)
            .or_else(|| self.random(rules, direction, draws))
    }

    /// The position after the last I/O of the direction, plus the jump of `rw=write:4k` or
    /// `rw=read:-8k`.
    fn sequential(
        &mut self,
        rules: &PositionRules,
        direction: Direction,
        draws: &mut PositionStreams,
    ) -> Option<IoRange> {
        let size = self.region.size_bytes;
        let mut last_end = self.last_end[direction];
        if rules.rewinds && last_end >= size {
            last_end = 0;
            self.starts_over = true;
        }
        if self.region.start_bytes + self.zone_start + last_end >= self.region.file_bytes {
            return None;
        }
        let offset = match rules.sequencer.skip_bytes {
            skip if skip != 0 && last_end != 0 && !rules.random => self.jump(last_end, skip)?,
            _ => last_end,
        };
        if offset >= size {
            return None;
        }
        let sizes = &rules.sequential_sizes[direction];
        let len = match sizes.fixed() {
            Some(len) => len,
            None => sizes.draw_fitting(size - offset, &mut draws.size)?,
        };
        let end = self.region.start_bytes + self.zone_start + offset + len;
        (end <= self.region.file_bytes).then_some(IoRange { offset, len })
    }

    /// Fills `out` with blocks of one size that follow the last one, without jumps, zones or a new
    /// round: the same as repeated calls of [`FilePosition::next_range`] for a job's only file.
    pub(super) fn fill_sequential(
        &mut self,
        direction: Direction,
        len: u64,
        out: &mut [Io],
    ) -> usize {
        let first = self.last_end[direction];
        let in_region = self.region.size_bytes.saturating_sub(first).div_ceil(len);
        let start = self.region.start_bytes + first;
        let in_file = self.region.file_bytes.saturating_sub(start) / len;
        let count = in_region.min(in_file).min(out.len() as u64) as usize;
        for (slot, offset) in out[..count].iter_mut().zip((start..).step_by(len as usize)) {
            *slot = Io {
                offset,
                len: len as u32,
                file: 0,
                op: direction.into(),
            };
        }
        self.last_end[direction] = first + count as u64 * len;
        count
    }

    /// The position after a jump. A jump past one end of the file continues at the other end.
    fn jump(&self, last_end: u64, skip_bytes: i64) -> Option<u64> {
        let target = last_end.checked_add_signed(skip_bytes);
        match target {
            Some(offset) if offset < self.region.file_bytes => Some(offset),
            _ if skip_bytes > 0 => Some(0),
            _ => self
                .region
                .size_bytes
                .min(self.region.file_bytes)
                .checked_add_signed(skip_bytes),
        }
    }

    /// The last offset again (`rw_sequencer=identical`).
    fn identical(
        &mut self,
        rules: &PositionRules,
        direction: Direction,
        draws: &mut PositionStreams,
    ) -> Option<IoRange> {
        let offset = self.last_start[direction].unwrap_or(0);
        let sizes = &rules.random_sizes[direction];
        let len = sizes.draw_fitting(self.span(rules).saturating_sub(offset), &mut draws.size)?;
        Some(IoRange { offset, len })
    }

    fn random(
        &mut self,
        rules: &PositionRules,
        direction: Direction,
        draws: &mut PositionStreams,
    ) -> Option<IoRange> {
        let align = rules.align_bytes[direction];
        let sizes = &rules.random_sizes[direction];
        // An alignment above the block size leaves gaps. The aligned blocks are used again until
        // all bytes are moved.
        let remaps = rules.remaps || align > sizes.max();
        let span = self.span(rules);
        let zone_start_bytes = self.region.start_bytes + self.zone_start;
        match &mut self.sources[self.source_of[direction]] {
            OffsetSource::Empty => None,
            OffsetSource::Drawn(blocks) => {
                let offset = blocks.draw(&mut self.rng) * align;
                let len = sizes.draw_fitting(span.saturating_sub(offset), &mut draws.size)?;
                Some(IoRange { offset, len })
            }
            OffsetSource::Covered(cover) => {
                self.starts_over |= rules.remaps && cover.remaining() == 0;
                let block = next_or_restart(cover, remaps, &mut self.rng)?;
                Some(IoRange {
                    offset: block * align,
                    len: sizes.min(),
                })
            }
            OffsetSource::FirstBlocks(cover) => {
                self.starts_over |= rules.remaps && cover.remaining() == 0;
                let offset = next_or_restart(cover, rules.remaps, &mut self.rng)? * align;
                let len = sizes.draw_fitting(span.saturating_sub(offset), &mut draws.size)?;
                Some(IoRange { offset, len })
            }
            OffsetSource::Mapped(map) => {
                let first = self.rng.below(rules.positions(direction, span).max(1));
                let first = match map.next_free(first) {
                    None if rules.remaps => {
                        map.clear();
                        self.starts_over = true;
                        first
                    }
                    free => free?,
                };
                let offset = first * align;
                if offset >= span {
                    return None;
                }
                let len = match sizes.fixed() {
                    Some(len) => len,
                    None => sizes.draw_fitting(span.saturating_sub(offset), &mut draws.size)?,
                };
                if zone_start_bytes + offset + len > self.region.file_bytes {
                    return None;
                }
                // As in fio, the unit is the smallest block of this direction.
                let unit = rules.unit_bytes[direction];
                let free = map.take(first, len.div_ceil(unit));
                Some(IoRange {
                    offset,
                    len: len.min(free * unit),
                })
            }
        }
    }
}

#[inline]
fn next_or_restart(cover: &mut Cover, restart: bool, rng: &mut Rng) -> Option<u64> {
    if cover.remaining() == 0 {
        if !restart {
            return None;
        }
        cover.restart(rng);
    }
    Some(cover.next_unchecked())
}
