//! Groups of slices of the machine's time series, each drawn as one point of the page.

use super::document::{PageUnit, Track};
use super::page_series::{MOST_POINTS, short};
use iosonde_result::machine::MachineSlice;
use iosonde_result::spill_list::SpillList;

/// Groups of slices, each drawn as one point. No group mixes slices of the ramp with later ones.
pub(super) struct Groups<'a> {
    slices: &'a SpillList<MachineSlice>,
    /// Number of slices of the ramp.
    pub(super) ramp: usize,
    /// Slices per group. The last group of the ramp and of the run may have fewer.
    pub(super) together: usize,
}

impl Groups<'_> {
    pub(super) fn new(slices: &SpillList<MachineSlice>, ramp: usize) -> Groups<'_> {
        Groups {
            slices,
            ramp: ramp.min(slices.len()),
            together: slices.len().div_ceil(MOST_POINTS).max(1),
        }
    }

    fn count(&self) -> usize {
        self.slices
            .len()
            .checked_sub(1)
            .map_or(0, |last| self.index_of(last) + 1)
    }

    /// Index of the group of a slice.
    fn index_of(&self, slice: usize) -> usize {
        match slice.checked_sub(self.ramp) {
            Some(measured) => self.ramp.div_ceil(self.together) + measured / self.together,
            None => slice / self.together,
        }
    }

    pub(super) fn starts_s(&self) -> Vec<f64> {
        let mut starts = Vec::with_capacity(self.count());
        for (index, slice) in self.slices.iter().enumerate() {
            if self.index_of(index) == starts.len() {
                starts.push(short(slice.start_ns as f64 / 1e9));
            }
        }
        starts
    }

    /// Mean of each group, weighted by time. `None` if no slice has the value.
    fn means(&self, value: SliceValue) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0.0); self.count()];
        for (index, slice) in self.slices.iter().enumerate() {
            if let Some(value) = value(&slice) {
                let (sum, length) = &mut sums[self.index_of(index)];
                *sum += value * slice.length_ns as f64;
                *length += slice.length_ns as f64;
            }
        }
        let mean = |(sum, length): (f64, f64)| (length > 0.0).then(|| short(sum / length));
        sums.into_iter().map(mean).collect()
    }
}

/// A quantity of a slice. `None`: the slice does not have it.
type SliceValue<'a> = &'a dyn Fn(&MachineSlice) -> Option<f64>;

/// Track of a quantity. `None` if no slice has the value.
pub(super) fn track(
    groups: &Groups<'_>,
    (group, name): (&str, &str),
    unit: PageUnit,
    value: SliceValue,
) -> Option<Track> {
    let values = groups.means(value);
    values.iter().any(Option::is_some).then(|| Track {
        group: group.to_owned(),
        name: name.to_owned(),
        unit,
        values,
    })
}
