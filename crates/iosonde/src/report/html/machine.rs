//! What the devices and the machine did during a run, thinned out as the run itself is.

use super::document::{Series, Track, Unit};
use super::series::{MOST_POINTS, short};
use iosonde_result::interval::Intervals;
use iosonde_result::machine::{CpuShares, DeviceRates, MachineSeries, MachineSlice, Pressures};
use iosonde_result::spill_list::SpillList;
use std::collections::BTreeMap;

/// Of a stack or an array, so many devices are drawn: those that were busy the longest.
const MOST_DEVICES: usize = 2;

/// A series for each device that matters, one for the processors, one for the pressure.
pub(super) fn of(series: &MachineSeries, intervals: &Intervals) -> Vec<Series> {
    let Some(last) = series.slices.last() else {
        return Vec::new();
    };
    let ramp = intervals
        .iter()
        .take_while(|interval| interval.ramp)
        .count();
    let groups = Groups::of(&series.slices, ramp);
    let at_s = groups.starts_s();
    let one = |of: String, tracks: Vec<Track>| Series {
        of,
        at_s: at_s.clone(),
        end_s: short((last.start_ns + last.length_ns) as f64 / 1e9),
        ramp: groups.ramp.div_ceil(groups.together),
        tracks,
    };
    let devices = busiest(&series.slices).into_iter();
    devices
        .map(|name| one(name.clone(), device(&groups, &name)))
        .chain([
            one("machine".to_owned(), processors(&groups)),
            one("waiting".to_owned(), pressures(&groups)),
        ])
        .filter(|series| !series.tracks.is_empty())
        .collect()
}

/// Slices that are drawn as one point each; none has slices of the ramp and behind it.
struct Groups<'a> {
    slices: &'a SpillList<MachineSlice>,
    /// So many slices are of the ramp.
    ramp: usize,
    /// So many slices are in a group, the last of the ramp and of the run may have fewer.
    together: usize,
}

impl Groups<'_> {
    fn of(slices: &SpillList<MachineSlice>, ramp: usize) -> Groups<'_> {
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

    /// The group of a slice.
    fn index_of(&self, slice: usize) -> usize {
        match slice.checked_sub(self.ramp) {
            Some(measured) => self.ramp.div_ceil(self.together) + measured / self.together,
            None => slice / self.together,
        }
    }

    fn starts_s(&self) -> Vec<f64> {
        let mut starts = Vec::with_capacity(self.count());
        for (index, slice) in self.slices.iter().enumerate() {
            if self.index_of(index) == starts.len() {
                starts.push(short(slice.start_ns as f64 / 1e9));
            }
        }
        starts
    }

    /// The mean over each group, weighted by time; nothing where no slice knows it.
    fn means(&self, value: Value) -> Vec<Option<f64>> {
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

/// Names of the devices to draw.
fn busiest(slices: &SpillList<MachineSlice>) -> Vec<String> {
    let mut busy: BTreeMap<String, f64> = BTreeMap::new();
    for slice in slices {
        for (name, rates) in &slice.devices {
            let time = rates.util_percent * slice.length_ns as f64;
            match busy.get_mut(name) {
                Some(busy) => *busy += time,
                None => drop(busy.insert(name.clone(), time)),
            }
        }
    }
    let mut names: Vec<(String, f64)> = busy.into_iter().collect();
    names.sort_by(|one, other| other.1.total_cmp(&one.1));
    names.truncate(MOST_DEVICES);
    names.into_iter().map(|(name, _)| name).collect()
}

type Value<'a> = &'a dyn Fn(&MachineSlice) -> Option<f64>;

/// What is drawn of one quantity; nothing where no slice knows it.
fn track(
    groups: &Groups<'_>,
    (group, name): (&str, &str),
    unit: Unit,
    value: Value,
) -> Option<Track> {
    let values = groups.means(value);
    values.iter().any(Option::is_some).then(|| Track {
        group: group.to_owned(),
        name: name.to_owned(),
        unit,
        values,
    })
}

fn device(groups: &Groups<'_>, device: &str) -> Vec<Track> {
    const KIB: f64 = 1024.0;
    type Rate = fn(&DeviceRates) -> f64;
    let columns: [(&str, &str, Unit, Rate); 5] = [
        ("bandwidth", "read", Unit::BytesPerS, |rates| {
            rates.read_kib_s * KIB
        }),
        ("bandwidth", "write", Unit::BytesPerS, |rates| {
            rates.write_kib_s * KIB
        }),
        ("await", "mean", Unit::Ns, |rates| rates.await_ms * 1e6),
        ("in flight", "aqu-sz", Unit::Count, |rates| rates.queue),
        ("busy", "%util", Unit::Percent, |rates| rates.util_percent),
    ];
    let track = |(group, name, unit, rate): (&str, &str, Unit, Rate)| {
        track(groups, (group, name), unit, &|slice| {
            slice.devices.get(device).map(rate)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

fn processors(groups: &Groups<'_>) -> Vec<Track> {
    type Share = fn(&CpuShares) -> f64;
    let columns: [(&str, Share); 4] = [
        ("user", |cpu| cpu.user),
        ("system", |cpu| cpu.system),
        ("iowait", |cpu| cpu.iowait),
        ("steal", |cpu| cpu.steal),
    ];
    let track = |(name, share): (&str, Share)| {
        track(groups, ("processors", name), Unit::Percent, &|slice| {
            slice.cpu.as_ref().map(share)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

fn pressures(groups: &Groups<'_>) -> Vec<Track> {
    type Share = fn(&Pressures) -> Option<f64>;
    let columns: [(&str, Share); 3] = [
        ("for I/O", |all| Some(all.io?.some)),
        ("for a processor", |all| Some(all.cpu?.some)),
        ("for memory", |all| Some(all.memory?.some)),
    ];
    let track = |(name, share): (&str, Share)| {
        track(groups, ("pressure", name), Unit::Percent, &|slice| {
            slice.pressure.as_ref().and_then(share)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::interval::Interval;
    use iosonde_result::machine::Pressure;

    fn slice(number: u64) -> MachineSlice {
        let rates = |util_percent: f64| DeviceRates {
            util_percent,
            await_ms: 0.5,
            read_kib_s: 100.0,
            ..DeviceRates::default()
        };
        let devices = [("idle", 1.0), ("sda", 50.0), ("sdb", 90.0)];
        let devices = devices.map(|(name, util)| (name.to_owned(), rates(util)));
        MachineSlice {
            start_ns: number * 1_000_000_000,
            length_ns: 1_000_000_000,
            devices: devices.into(),
            pressure: Some(Pressures {
                io: Some(Pressure {
                    some: number as f64,
                    full: 0.0,
                }),
                ..Pressures::default()
            }),
            ..MachineSlice::default()
        }
    }

    fn series(count: u64) -> MachineSeries {
        MachineSeries {
            slices: (0..count).map(slice).collect(),
            ..MachineSeries::default()
        }
    }

    #[test]
    fn the_busiest_devices_and_what_the_machine_tells() {
        let ramp = Interval {
            ramp: true,
            ..Interval::default()
        };
        let all = of(&series(5), &vec![ramp, Interval::default()].into());
        let names: Vec<&str> = all.iter().map(|series| series.of.as_str()).collect();
        assert_eq!(
            names,
            ["sdb", "sda", "waiting"],
            "of its processors nothing is known"
        );
        assert_eq!((all[0].ramp, all[0].end_s), (1, 5.0));
        let busy = all[0].tracks.last().unwrap();
        assert_eq!(
            (busy.unit, busy.values.clone()),
            (Unit::Percent, vec![Some(90.0); 5])
        );
        let read = &all[0].tracks[0];
        assert_eq!(
            (read.unit, read.values[0]),
            (Unit::BytesPerS, Some(102_400.0))
        );
        assert_eq!(all[0].tracks[2].values[0], Some(500_000.0), "nanoseconds");
        assert_eq!(all[2].tracks.len(), 1, "only the pressure on I/O is known");
        assert!(of(&MachineSeries::default(), &Intervals::default()).is_empty());
    }

    #[test]
    fn long_runs_are_thinned_as_the_run_itself() {
        let all = of(&series(3600), &Intervals::default());
        assert_eq!(all[0].at_s.len(), MOST_POINTS);
        let waiting = &all[2].tracks[0].values;
        assert_eq!(waiting[0], Some(7.0), "the mean of 0 to 14");
    }
}
