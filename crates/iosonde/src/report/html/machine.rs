//! What the devices and the machine did during a run, thinned out as the run itself is.

use super::document::{Series, Track, Unit};
use super::series::{MOST_POINTS, short};
use iosonde_result::interval::Intervals;
use iosonde_result::machine::{CpuShares, DeviceRates, MachineSeries, MachineSlice, Pressures};
use std::collections::BTreeMap;

/// Of a stack or an array, so many devices are drawn: those that were busy the longest.
const MOST_DEVICES: usize = 2;

/// A series for each device that matters, one for the processors, one for the pressure.
pub(super) fn of(series: &MachineSeries, intervals: &Intervals) -> Vec<Series> {
    let slices = &series.slices;
    let Some(last) = slices.last() else {
        return Vec::new();
    };
    let ramp = intervals
        .iter()
        .take_while(|interval| interval.ramp)
        .count();
    let (ramping, measured) = slices.split_at(ramp.min(slices.len()));
    let together = slices.len().div_ceil(MOST_POINTS).max(1);
    let groups: Vec<&[MachineSlice]> = ramping
        .chunks(together)
        .chain(measured.chunks(together))
        .collect();
    let one = |of: String, tracks: Vec<Track>| Series {
        of,
        at_s: groups
            .iter()
            .map(|group| short(group[0].start_ns as f64 / 1e9))
            .collect(),
        end_s: short((last.start_ns + last.length_ns) as f64 / 1e9),
        ramp: ramping.len().div_ceil(together),
        tracks,
    };
    let devices = busiest(slices).into_iter();
    devices
        .map(|name| one(name.clone(), device(&groups, &name)))
        .chain([
            one("machine".to_owned(), processors(&groups)),
            one("waiting".to_owned(), pressures(&groups)),
        ])
        .filter(|series| !series.tracks.is_empty())
        .collect()
}

/// Names of the devices to draw.
fn busiest(slices: &[MachineSlice]) -> Vec<String> {
    let mut busy: BTreeMap<&String, f64> = BTreeMap::new();
    for slice in slices {
        for (name, rates) in &slice.devices {
            *busy.entry(name).or_default() += rates.util_percent * slice.length_ns as f64;
        }
    }
    let mut names: Vec<(&String, f64)> = busy.into_iter().collect();
    names.sort_by(|one, other| other.1.total_cmp(&one.1));
    names.truncate(MOST_DEVICES);
    names.into_iter().map(|(name, _)| name.clone()).collect()
}

type Value<'a> = &'a dyn Fn(&MachineSlice) -> Option<f64>;

/// The mean over each group, weighted by time; nothing where no slice knows it.
fn track(
    groups: &[&[MachineSlice]],
    (group, name): (&str, &str),
    unit: Unit,
    value: Value,
) -> Option<Track> {
    let mean = |slices: &&[MachineSlice]| {
        let known = slices
            .iter()
            .filter_map(|slice| Some((value(slice)?, slice.length_ns as f64)));
        let (sum, length) = known.fold((0.0, 0.0), |(sum, length), (value, ns)| {
            (sum + value * ns, length + ns)
        });
        (length > 0.0).then(|| short(sum / length))
    };
    let values: Vec<Option<f64>> = groups.iter().map(mean).collect();
    values.iter().any(Option::is_some).then(|| Track {
        group: group.to_owned(),
        name: name.to_owned(),
        unit,
        values,
    })
}

fn device(groups: &[&[MachineSlice]], device: &str) -> Vec<Track> {
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

fn processors(groups: &[&[MachineSlice]]) -> Vec<Track> {
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

fn pressures(groups: &[&[MachineSlice]]) -> Vec<Track> {
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
