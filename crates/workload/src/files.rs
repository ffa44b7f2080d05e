//! The choice of the file for the next I/O, and the region of each file.

use super::distribution::{BlockDistribution, DistributionError};
use super::rng::{Rng, Seeds, Stream};
use iosonde_job::plan::{
    BytesOrPercent, Direction, Distribution, FileService, FileServiceKind, JobFiles,
};

/// The part of one file that a clone works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRegion {
    /// Start of the region, in bytes from the start of the file.
    pub start_bytes: u64,
    /// Length of the region in bytes.
    pub size_bytes: u64,
    /// Length of the whole file or device in bytes. As in fio, a sequential block that crosses the
    /// end of the region is issued if it ends within the file.
    pub file_bytes: u64,
}

/// The files of one clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLayout {
    /// One region per file, in the order of the file indexes.
    pub files: Vec<FileRegion>,
    /// Bytes to move in each loop without `io_size`: the job's `size`, or the sum of the regions.
    pub size_bytes: u64,
    /// The job's `io_size` in bytes, if it has one.
    pub io_bytes: Option<u64>,
}

impl FileLayout {
    /// A layout whose `size` is the sum of the regions.
    pub fn new(files: Vec<FileRegion>) -> Self {
        let sizes = files.iter().map(|file| file.size_bytes);
        let size_bytes = sizes.fold(0, u64::saturating_add);
        FileLayout {
            files,
            size_bytes,
            io_bytes: None,
        }
    }

    /// A layout of one file that is used as a whole.
    pub fn whole_file(bytes: u64) -> Self {
        FileLayout::new(vec![FileRegion {
            start_bytes: 0,
            size_bytes: bytes,
            file_bytes: bytes,
        }])
    }
}

/// Start of the region of clone `clone_index` in bytes: `offset` + `offset_increment` x clone.
///
/// As in fio, the start is aligned only if one of the two options is a percentage. It is rounded up
/// to `offset_align`, or without that option to the smallest block.
pub fn start_offset_bytes(
    files: &JobFiles,
    clone_index: u32,
    file_bytes: u64,
    min_block_bytes: u64,
) -> u64 {
    let bytes = |extent: BytesOrPercent| match extent {
        BytesOrPercent::Bytes(bytes) => bytes,
        BytesOrPercent::Percent(percent) => (file_bytes as f64 * percent / 100.0) as u64,
    };
    let ahead = bytes(files.offset_increment).saturating_mul(u64::from(clone_index));
    let offset = bytes(files.offset).saturating_add(ahead);
    match (files.offset, files.offset_increment) {
        (BytesOrPercent::Bytes(_), BytesOrPercent::Bytes(_)) => offset,
        _ => match (files.offset_align, min_block_bytes) {
            (0, 0) => offset,
            (0, align) | (align, _) => offset.checked_next_multiple_of(align).unwrap_or(u64::MAX),
        },
    }
}

/// As in fio, zipf, pareto and gauss draw one of 2^10 ranks per file: the hottest has 1024 ranks.
const NONUNIFORM_SHIFT: u32 = 10;

/// Picks files in the order of `file_service_type`, with at most `openfiles` files open at once.
#[derive(Debug, Clone)]
pub(crate) struct FilePicker {
    kind: FileServiceKind,
    draw: Option<BlockDistribution>,
    /// Right shift that turns a drawn value into a file index.
    shift: u32,
    every: u32,
    left: u32,
    current: Option<u32>,
    next: u32,
    open: Box<[bool]>,
    open_count: u32,
    open_max: u32,
    done: Box<[bool]>,
    done_count: u32,
    rng: Rng,
}

impl FilePicker {
    /// A picker over `count` files. `openfiles` of 0 means all files.
    ///
    /// # Errors
    /// Fails if a parameter of zipf, pareto or gauss is out of range.
    pub(crate) fn new(
        service: FileService,
        count: u32,
        openfiles: u32,
        seeds: &Seeds,
    ) -> Result<Self, DistributionError> {
        let mut rng = seeds.stream(Stream::File, 0);
        let shift = match Self::is_nonuniform(service.kind) {
            true => NONUNIFORM_SHIFT,
            false => 0,
        };
        let distribution = match service.kind {
            FileServiceKind::RoundRobin | FileServiceKind::Sequential => None,
            FileServiceKind::Random => Some(Distribution::Random),
            FileServiceKind::Zipf(theta) => Some(Distribution::Zipf {
                theta,
                center: None,
            }),
            FileServiceKind::Pareto(h) => Some(Distribution::Pareto { h, center: None }),
            FileServiceKind::Gauss(deviation_percent) => Some(Distribution::Normal {
                deviation_percent,
                center: None,
            }),
        };
        let draw = distribution
            .map(|d| {
                BlockDistribution::new(&d, Direction::Read, u64::from(count) << shift, 1, &mut rng)
            })
            .transpose()?
            .map(BlockDistribution::in_order);
        Ok(FilePicker {
            kind: service.kind,
            draw,
            shift,
            every: service.every.max(1),
            left: 0,
            current: None,
            next: 0,
            open: vec![false; count as usize].into(),
            open_count: 0,
            open_max: if openfiles == 0 {
                count
            } else {
                openfiles.min(count)
            },
            done: vec![false; count as usize].into(),
            done_count: 0,
            rng,
        })
    }

    /// Whether the distribution over files is skewed. Such files start over and are never done.
    pub(crate) fn is_nonuniform(kind: FileServiceKind) -> bool {
        matches!(
            kind,
            FileServiceKind::Zipf(_) | FileServiceKind::Pareto(_) | FileServiceKind::Gauss(_)
        )
    }

    /// The file of the next I/O; `None` if all files are done.
    #[inline]
    pub(crate) fn pick(&mut self) -> Option<u32> {
        if let Some(file) = self.current {
            if self.kind == FileServiceKind::Sequential {
                return Some(file);
            }
            if self.left > 0 {
                self.left -= 1;
                return Some(file);
            }
        }
        self.pick_other()
    }

    fn pick_other(&mut self) -> Option<u32> {
        if self.done_count as usize == self.done.len() {
            return None;
        }
        let file = match &self.draw {
            None => self.first_usable(self.next),
            Some(draw) => {
                let drawn = (draw.draw(&mut self.rng) >> self.shift) as u32;
                self.first_usable(drawn)
            }
        };
        self.next = (file + 1) % self.done.len() as u32;
        if !std::mem::replace(&mut self.open[file as usize], true) {
            self.open_count += 1;
        }
        assert!(
            !self.done[file as usize] && self.open_count <= self.open_max,
            "file {file} is usable, and at most {} are open",
            self.open_max
        );
        self.current = Some(file);
        self.left = self.every - 1;
        Some(file)
    }

    /// The first file at or after `start`, with wrap-around, that is not done and is open or may be
    /// opened. Such a file exists: an open file is never done, and if no file is open one may be
    /// opened.
    fn first_usable(&self, start: u32) -> u32 {
        let count = self.done.len() as u32;
        let may_open = self.open_count < self.open_max;
        (0..count)
            .map(|step| (start + step) % count)
            .find(|&file| !self.done[file as usize] && (may_open || self.open[file as usize]))
            .unwrap_or(start)
    }

    /// Closes a file that has no block left in this pass. It is not picked again in the pass.
    pub(crate) fn finish(&mut self, file: u32) {
        let file = file as usize;
        if !std::mem::replace(&mut self.done[file], true) {
            self.done_count += 1;
        }
        if std::mem::replace(&mut self.open[file], false) {
            self.open_count -= 1;
        }
        self.current = None;
    }

    /// Makes all files available again. With `rng` the draws restart too.
    pub(crate) fn restart(&mut self, rng: Option<Rng>) {
        self.done.fill(false);
        self.open.fill(false);
        (self.done_count, self.open_count, self.next, self.left) = (0, 0, 0, 0);
        self.current = None;
        if let Some(rng) = rng {
            self.rng = rng;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(kind: FileServiceKind, every: u32, count: u32, openfiles: u32) -> FilePicker {
        FilePicker::new(
            FileService { kind, every },
            count,
            openfiles,
            &Seeds::from_u64(1),
        )
        .unwrap()
    }

    /// Picks files until each has issued `blocks` I/Os.
    fn order(mut picker: FilePicker, count: usize, blocks: u32) -> Vec<u32> {
        let mut left = vec![blocks; count];
        let mut order = Vec::new();
        while let Some(file) = picker.pick() {
            match left[file as usize].checked_sub(1) {
                None => picker.finish(file),
                Some(n) => {
                    left[file as usize] = n;
                    order.push(file);
                }
            }
        }
        order
    }

    #[test]
    fn round_robin_takes_turns() {
        let order = order(picker(FileServiceKind::RoundRobin, 1, 3, 0), 3, 2);
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn round_robin_of_three_as_fio_does() {
        // From fio 3.33 with four files of four blocks and roundrobin:3.
        let order = order(picker(FileServiceKind::RoundRobin, 3, 4, 0), 4, 4);
        assert_eq!(order, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn sequential_service_finishes_each_file() {
        let order = order(picker(FileServiceKind::Sequential, 1, 3, 0), 3, 2);
        assert_eq!(order, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn openfiles_limits_how_many_take_turns() {
        // From fio 3.33 with --nrfiles=4 --openfiles=2.
        let order = order(picker(FileServiceKind::RoundRobin, 1, 4, 2), 4, 2);
        assert_eq!(order, [0, 1, 0, 1, 2, 3, 2, 3]);
    }

    #[test]
    fn random_gives_each_file_its_share() {
        let mut picker = picker(FileServiceKind::Random, 1, 4, 0);
        let mut seen = [0; 4];
        for _ in 0..40_000 {
            seen[picker.pick().unwrap() as usize] += 1;
        }
        assert!(
            seen.iter().all(|n: &i32| (n - 10_000).abs() < 500),
            "{seen:?}"
        );
    }

    /// fio 3.33 issues 30, 562, 3584, 8674, 8570, 3667, 494 and 19 of 25,600 I/Os from the second
    /// file on.
    #[test]
    fn gauss_prefers_the_files_in_the_middle() {
        let mut picker = picker(FileServiceKind::Gauss(20.0), 1, 10, 0);
        let mut seen = [0; 10];
        for _ in 0..25_600 {
            seen[picker.pick().unwrap() as usize] += 1;
        }
        for (ours, fio) in seen
            .iter()
            .zip([0, 30, 562, 3584, 8674, 8570, 3667, 494, 19, 0])
        {
            let ours: i32 = *ours;
            assert!((ours - fio).abs() < 60 + fio / 10, "{seen:?}");
        }
    }

    #[test]
    fn zipf_service_prefers_one_file() {
        let mut picker = picker(FileServiceKind::Zipf(1.2), 1, 10, 0);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[picker.pick().unwrap() as usize] += 1;
        }
        let top = f64::from(*seen.iter().max().unwrap()) / 10_000.0;
        // fio 3.33: 23,019 of 25,600. The share depends on how many of the hottest ranks belong to
        // one file.
        assert!((0.8..0.95).contains(&top), "{top}");
    }
}
