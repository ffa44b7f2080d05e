//! Contents of write buffers.
//!
//! The default costs almost no CPU per I/O. Buffers are filled with random bytes once, so that the
//! data cannot be compressed. Each write changes one word in every 512 bytes, so that the data
//! cannot be deduplicated. Compressible and duplicate contents are generated anew for every write.

use super::rados_bench;
use super::rng::{Rng, Seeds, Stream, mix64};
use iosonde_job::plan::{BufferFill, Buffers};

/// Smallest unit in which storage deduplicates or compresses.
const SECTOR_BYTES: usize = 512;

/// The key of the units that a clone writes. Its `n`-th new unit is `mix64(key ^ n)`; the first
/// units are its dedupe working set.
pub fn working_set_key(seeds: &Seeds) -> u64 {
    seeds.derive(Stream::Dedupe, 2)
}

/// Fills the write buffers of one clone.
#[derive(Debug, Clone)]
pub struct BufferFiller {
    fill: Fill,
    compress_percent: u8,
    compress_chunk_bytes: usize,
    dedupe: Option<Dedupe>,
    /// Smallest write in bytes. The contents of each such unit of a buffer are drawn separately.
    unit_bytes: usize,
    contents: Rng,
    scrambles: u64,
}

/// The change of a buffer before each write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fill {
    Keep,
    Scramble,
    Anew,
    RadosBench,
}

#[derive(Debug, Clone)]
struct Dedupe {
    percent: u8,
    rng: Rng,
    last_seed: u64,
    /// The units that duplicates are chosen from; `None` repeats the last unit.
    working_set: Option<DedupeWorkingSet>,
}

/// The dedupe working set: the first new units of one clone or of several clones.
#[derive(Debug, Clone)]
struct DedupeWorkingSet {
    /// Units per clone.
    units: u64,
    /// Keys of the clones whose units are repeated.
    keys: Vec<u64>,
    own_key: u64,
    /// New units written so far.
    written: u64,
}

impl Fill {
    fn choose(buffers: &Buffers) -> Fill {
        let synthetic = buffers.compress_percent > 0 || buffers.dedupe_percent > 0;
        match &buffers.fill {
            BufferFill::Zero | BufferFill::Pattern(_) if !synthetic => Fill::Keep,
            _ if synthetic => Fill::Anew,
            BufferFill::Once => Fill::Keep,
            BufferFill::Refill => Fill::Anew,
            BufferFill::RadosBench => Fill::RadosBench,
            _ => Fill::Scramble,
        }
    }
}

impl BufferFiller {
    /// A filler for `buffers`. `unit_bytes` is the smallest write. `size_bytes` is the size of the
    /// job; it determines the number of units of a dedupe working set.
    pub fn new(buffers: &Buffers, unit_bytes: u64, size_bytes: u64, seeds: &Seeds) -> Self {
        let unit_bytes = unit_bytes.clamp(1, 1 << 30) as usize;
        let dedupe = (buffers.dedupe_percent > 0).then(|| Dedupe {
            percent: buffers.dedupe_percent,
            rng: seeds.stream(Stream::Dedupe, 0),
            last_seed: seeds.derive(Stream::Dedupe, 1),
            working_set: buffers.dedupe_working_set_percent.map(|percent| {
                let units = size_bytes / unit_bytes as u64 * u64::from(percent) / 100;
                let own_key = working_set_key(seeds);
                DedupeWorkingSet {
                    units: units.max(1),
                    keys: vec![own_key],
                    own_key,
                    written: 0,
                }
            }),
        });
        BufferFiller {
            fill: Fill::choose(buffers),
            compress_percent: buffers.compress_percent.min(100),
            compress_chunk_bytes: buffers.compress_chunk_bytes.clamp(1, 1 << 30) as usize,
            dedupe,
            unit_bytes,
            contents: seeds.stream(Stream::Buffer, 0),
            scrambles: seeds.derive(Stream::Buffer, 1),
        }
    }

    /// Draws duplicates from the working sets of all these clones (`dedupe_global`).
    pub fn share_working_sets(&mut self, keys: &[u64]) {
        let set = self
            .dedupe
            .as_mut()
            .and_then(|dedupe| dedupe.working_set.as_mut());
        if let (Some(set), false) = (set, keys.is_empty()) {
            set.keys = keys.to_vec();
        }
    }

    /// Fills a buffer for the first time.
    pub fn prepare(&mut self, buffers: &Buffers, buf: &mut [u8]) {
        match &buffers.fill {
            BufferFill::Zero => buf.fill(0),
            BufferFill::RadosBench => rados_bench::prepare(buf),
            BufferFill::Pattern(pattern) if self.fill == Fill::Keep => repeat(pattern, buf),
            _ => self.fill_anew(pattern_of(buffers), buf),
        }
    }

    /// Whether [`BufferFiller::refresh`] does anything.
    pub fn refreshes(&self) -> bool {
        self.fill != Fill::Keep
    }

    /// Changes a buffer before it is written to `offset`.
    #[inline]
    pub fn refresh(&mut self, buffers: &Buffers, buf: &mut [u8], offset: u64) {
        match self.fill {
            Fill::Keep => {}
            Fill::Scramble => self.scramble(buf, offset),
            Fill::RadosBench => rados_bench::stamp(buf, offset),
            Fill::Anew => self.fill_anew(pattern_of(buffers), buf),
        }
    }

    /// Changes one word in each sector. The position of the word differs from write to write, so no
    /// two written sectors are equal.
    fn scramble(&mut self, buf: &mut [u8], offset: u64) {
        self.scrambles = self.scrambles.wrapping_add(1);
        let mark = mix64(self.scrambles);
        let at = (mark as usize % (SECTOR_BYTES / 8)) * 8;
        let mut word = mark ^ offset;
        for sector in buf.chunks_mut(SECTOR_BYTES) {
            let at = if at + 8 <= sector.len() { at } else { 0 };
            if let Some(place) = sector.get_mut(at..at + 8) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn fill_anew(&mut self, pattern: &[u8], buf: &mut [u8]) {
        for unit in buf.chunks_mut(self.unit_bytes) {
            let seed = self.dedupe.as_mut().map(Dedupe::next_seed);
            match seed {
                Some(seed) => fill_unit(
                    &mut Rng::new(seed),
                    unit,
                    self.compress_percent,
                    self.compress_chunk_bytes,
                    pattern,
                ),
                None => fill_unit(
                    &mut self.contents,
                    unit,
                    self.compress_percent,
                    self.compress_chunk_bytes,
                    pattern,
                ),
            }
        }
    }
}

impl Dedupe {
    /// The seed of the next unit's contents. It repeats an earlier seed in `percent` of 100 cases.
    fn next_seed(&mut self) -> u64 {
        let repeats = self.rng.percent(self.percent);
        let Some(set) = &mut self.working_set else {
            if !repeats {
                self.last_seed = self.rng.next_u64();
            }
            return self.last_seed;
        };
        if repeats {
            let key = set.keys[self.rng.below(set.keys.len() as u64) as usize];
            mix64(key ^ self.rng.below(set.units))
        } else {
            set.written += 1;
            mix64(set.own_key ^ (set.written - 1))
        }
    }
}

/// The contents of compressible parts: the pattern, or zeros.
fn pattern_of(buffers: &Buffers) -> &[u8] {
    match &buffers.fill {
        BufferFill::Pattern(pattern) => pattern,
        _ => &[],
    }
}

/// Fills a unit with random bytes. The last `compress_percent` of every chunk hold the pattern.
fn fill_unit(
    rng: &mut Rng,
    unit: &mut [u8],
    compress_percent: u8,
    chunk_bytes: usize,
    pattern: &[u8],
) {
    if compress_percent == 0 {
        rng.fill(unit);
        return;
    }
    for chunk in unit.chunks_mut(chunk_bytes) {
        let random_bytes = chunk.len() * (100 - usize::from(compress_percent)) / 100;
        let (random, rest) = chunk.split_at_mut(random_bytes);
        rng.fill(random);
        repeat(pattern, rest);
    }
}

/// Fills `buf` with repetitions of the pattern, or with zeros if it is empty.
pub(super) fn repeat(pattern: &[u8], buf: &mut [u8]) {
    if pattern.is_empty() {
        buf.fill(0);
        return;
    }
    for part in buf.chunks_mut(pattern.len()) {
        part.copy_from_slice(&pattern[..part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn filler(buffers: &Buffers) -> BufferFiller {
        BufferFiller::new(buffers, 4096, 1 << 30, &Seeds::from_u64(1))
    }

    fn writes(buffers: &Buffers, count: usize) -> Vec<Vec<u8>> {
        let mut filler = filler(buffers);
        let mut buf = vec![0xff; 4096];
        filler.prepare(buffers, &mut buf);
        (0..count)
            .map(|i| {
                filler.refresh(buffers, &mut buf, i as u64 * 4096);
                buf.clone()
            })
            .collect()
    }

    fn with(fill: BufferFill) -> Buffers {
        Buffers {
            fill,
            ..Buffers::default()
        }
    }

    fn sectors(writes: &[Vec<u8>]) -> HashSet<&[u8]> {
        writes.iter().flat_map(|buf| buf.chunks(512)).collect()
    }

    #[test]
    fn scrambled_sectors_are_never_alike() {
        let writes = writes(&Buffers::default(), 100);
        assert_eq!(sectors(&writes).len(), 800);
        let same = writes[0]
            .iter()
            .zip(&writes[1])
            .filter(|(a, b)| a == b)
            .count();
        assert!(same > 3900, "only one word in each sector is changed");
    }

    #[test]
    fn random_contents_use_all_bytes() {
        let seen: HashSet<u8> = writes(&Buffers::default(), 4)
            .concat()
            .into_iter()
            .collect();
        assert_eq!(seen.len(), 256);
    }

    #[test]
    fn once_keeps_buffers_and_refill_changes_them() {
        let once = writes(&with(BufferFill::Once), 2);
        assert_eq!(once[0], once[1]);
        let refill = writes(&with(BufferFill::Refill), 2);
        let same = refill[0]
            .iter()
            .zip(&refill[1])
            .filter(|(a, b)| a == b)
            .count();
        assert!(same < 60);
    }

    #[test]
    fn zeros_and_patterns() {
        assert_eq!(writes(&with(BufferFill::Zero), 2)[1], vec![0; 4096]);
        let pattern = writes(&with(BufferFill::Pattern(vec![1, 2, 3])), 2);
        assert_eq!(pattern[1][..7], [1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn compressible_share_is_zeros_or_the_pattern() {
        let mut buffers = Buffers {
            compress_percent: 25,
            ..Buffers::default()
        };
        let written = writes(&buffers, 1).remove(0);
        for chunk in written.chunks(512) {
            assert!(chunk[384..].iter().all(|b| *b == 0));
            assert!(chunk[..384].iter().filter(|b| **b == 0).count() < 20);
        }
        buffers.fill = BufferFill::Pattern(vec![7]);
        assert!(
            writes(&buffers, 1)[0]
                .chunks(512)
                .all(|c| c[384..].iter().all(|b| *b == 7))
        );
        buffers.compress_percent = 100;
        buffers.fill = BufferFill::Scramble;
        assert_eq!(writes(&buffers, 1)[0], vec![0; 4096]);
    }

    #[test]
    fn duplicates_have_their_share() {
        let mut buffers = Buffers {
            dedupe_percent: 40,
            ..Buffers::default()
        };
        let repeated = writes(&buffers, 5000);
        let distinct = repeated.iter().collect::<HashSet<_>>().len() as f64 / 5000.0;
        assert!((distinct - 0.6).abs() < 0.03, "{distinct}");
        // The size is 1 GiB in units of 4 KiB. A working set of 0 per cent still has one unit.
        buffers.dedupe_working_set_percent = Some(0);
        let from_set = writes(&buffers, 5000);
        let mut counts = std::collections::HashMap::new();
        for buf in &from_set {
            *counts.entry(buf).or_insert(0u32) += 1;
        }
        let top = f64::from(*counts.values().max().unwrap()) / 5000.0;
        assert!((top - 0.4).abs() < 0.03, "{top}");
    }

    /// The number of distinct units that two clones write, for each clone and for both together.
    fn distinct(global: bool) -> (Vec<usize>, usize) {
        let buffers = Buffers {
            dedupe_percent: 50,
            dedupe_working_set_percent: Some(50),
            dedupe_global: global,
            ..Buffers::default()
        };
        let seeds = [1, 2].map(Seeds::from_u64);
        let keys: Vec<u64> = seeds.iter().map(working_set_key).collect();
        let sets = seeds.map(|seeds| {
            let mut filler = BufferFiller::new(&buffers, 4096, 2000 * 4096, &seeds);
            if global {
                filler.share_working_sets(&keys);
            }
            let mut buf = vec![0; 4096];
            let units = (0..2000).map(|_| {
                filler.refresh(&buffers, &mut buf, 0);
                buf.clone()
            });
            units.collect::<HashSet<_>>()
        });
        let each = sets.iter().map(HashSet::len).collect();
        (each, sets[0].union(&sets[1]).count())
    }

    #[test]
    fn dedupe_working_set_holds_written_units_only() {
        // 1000 of 2000 units are new. The others repeat some of the first 1000 new units.
        let (each, both) = distinct(false);
        assert!(each.iter().all(|n| (900..1150).contains(n)), "{each:?}");
        assert_eq!(both, each[0] + each[1]);
    }

    #[test]
    fn global_dedupe_working_set_is_shared_between_jobs() {
        // Half of the duplicates come from the other job. Each job alone has more distinct units,
        // both together do not.
        let (each, both) = distinct(true);
        assert!(each.iter().all(|n| (1250..1600).contains(n)), "{each:?}");
        assert!((2000..2400).contains(&both), "{both}");
    }

    #[test]
    fn same_seed_gives_the_same_buffers() {
        for fill in [BufferFill::Scramble, BufferFill::Refill] {
            assert_eq!(writes(&with(fill.clone()), 3), writes(&with(fill), 3));
        }
    }
}
