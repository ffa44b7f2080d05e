//! The rules by which positions are chosen. All files of a job share them.

use super::block_size::BlockSizes;
use iosonde_job::plan::{
    Direction, Distribution, PerDirection, RandomGenerator, RandomMap, Sequencer, StridedZones,
    Workload,
};

/// The way in which random blocks are used only once per pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MapKind {
    /// No map: `norandommap`, and all distributions but the uniform one.
    None,
    /// All random I/Os have one size: each block is used once.
    OneSize,
    /// Sizes differ: one bit per smallest block. With `is_soft`, offsets are drawn without a map if
    /// the map would be too large.
    MixedSizes { is_soft: bool },
    /// Sizes differ under `random_generator=lfsr`: each block is the first block of one I/O, and
    /// I/Os overlap, as in fio.
    FirstBlocks,
}

/// The rules that all files of a job share.
#[derive(Debug, Clone)]
pub(super) struct PositionRules {
    pub(super) random: bool,
    pub(super) random_sizes: PerDirection<BlockSizes>,
    pub(super) sequential_sizes: PerDirection<BlockSizes>,
    pub(super) align_bytes: PerDirection<u64>,
    /// The smallest block of each direction: one bit of a [`BlockMap`](super::block_map::BlockMap).
    pub(super) unit_bytes: PerDirection<u64>,
    pub(super) percentage_random: PerDirection<u8>,
    pub(super) sequencer: Sequencer,
    pub(super) zones: Option<StridedZones>,
    pub(super) map: MapKind,
    /// A sequential file continues at its start on its own.
    pub(super) rewinds: bool,
    /// An exhausted random map restarts on its own.
    pub(super) remaps: bool,
}

impl PositionRules {
    pub(super) fn new(workload: &Workload, rewinds: bool, remaps: bool) -> Self {
        let sizes = PerDirection::from_fn(|d| {
            BlockSizes::new(&workload.block_size[d], workload.bs_unaligned)
        });
        let (random_sizes, sequential_sizes) = if workload.bs_is_seq_rand {
            (
                PerDirection::from_value(sizes.write.clone()),
                PerDirection::from_value(sizes.read.clone()),
            )
        } else {
            (sizes.clone(), sizes)
        };
        let unit_bytes = PerDirection::from_fn(|d| workload.block_size[d].min().max(1));
        let align_bytes = PerDirection::from_fn(|d| match workload.block_align[d] {
            0 => unit_bytes[d],
            bytes => bytes,
        });
        let map = map_kind(workload, &random_sizes, &align_bytes);
        PositionRules {
            random: workload.rw.random,
            random_sizes,
            sequential_sizes,
            align_bytes,
            unit_bytes,
            percentage_random: workload.percentage_random,
            sequencer: workload.sequencer,
            zones: workload.zones,
            map,
            rewinds,
            remaps,
        }
    }
}

/// Chooses the map. All directions of a job share it, so that reads and writes do not overlap.
fn map_kind(
    workload: &Workload,
    sizes: &PerDirection<BlockSizes>,
    align_bytes: &PerDirection<u64>,
) -> MapKind {
    let is_lfsr = workload.random_generator == RandomGenerator::Lfsr;
    let is_mapped = workload.random_map != RandomMap::None || is_lfsr;
    if workload.distribution != Distribution::Random || !is_mapped {
        return MapKind::None;
    }
    let mut used = Direction::ALL.into_iter().filter(|d| workload.rw.has(*d));
    let Some(first) = used.next() else {
        return MapKind::None;
    };
    let own_size = |d: Direction| sizes[d].fixed() == Some(workload.block_size[d].min());
    let same = |d: Direction| sizes[d] == sizes[first] && align_bytes[d] == align_bytes[first];
    if own_size(first) && used.all(|d| own_size(d) && same(d)) {
        MapKind::OneSize
    } else if is_lfsr {
        MapKind::FirstBlocks
    } else {
        MapKind::MixedSizes {
            is_soft: workload.random_map == RandomMap::Soft,
        }
    }
}
