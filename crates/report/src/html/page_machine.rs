//! Time series of devices and machine for the page, thinned like those of the run.

use super::document::{PageSeries, PageUnit, Track};
use super::page_network::network_tracks;
use super::page_series::short;
use super::slice_groups::{Groups, track};
use iosonde_result::interval::Intervals;
use iosonde_result::machine::{CpuShares, DeviceRates, MachineSeries, MachineSlice, Pressures};
use iosonde_result::spill_list::SpillList;
use std::collections::BTreeMap;

/// Maximum number of devices drawn of a stack or an array: the busiest ones.
const MOST_DEVICES: usize = 2;

/// Returns a series per device drawn, one of the processors, one of PSI, and those of the network
/// if it carried the run.
pub(super) fn thin_machine_series(
    series: &MachineSeries,
    intervals: &Intervals,
) -> Vec<PageSeries> {
    let Some(last) = series.slices.last() else {
        return Vec::new();
    };
    let ramp = intervals
        .iter()
        .take_while(|interval| interval.ramp)
        .count();
    let groups = Groups::new(&series.slices, ramp);
    let at_s = groups.starts_s();
    let one = |of: String, tracks: Vec<Track>| PageSeries {
        of,
        at_s: at_s.clone(),
        end_s: short((last.start_ns + last.length_ns) as f64 / 1e9),
        ramp: groups.ramp.div_ceil(groups.together),
        tracks,
    };
    let devices = busiest(&series.slices).into_iter();
    let mut machine = processors(&groups);
    machine.extend(pressures(&groups));
    let network = network_tracks(&groups, &series.slices, intervals).into_iter();
    devices
        .map(|name| one(name.clone(), device(&groups, &name)))
        .chain([one("machine".to_owned(), machine)])
        .chain(network.map(|(of, tracks)| one(of, tracks)))
        .filter(|series| !series.tracks.is_empty())
        .collect()
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

fn device(groups: &Groups<'_>, device: &str) -> Vec<Track> {
    const KIB: f64 = 1024.0;
    type DeviceRate = fn(&DeviceRates) -> f64;
    let columns: [(&str, &str, PageUnit, DeviceRate); 5] = [
        ("bandwidth", "read", PageUnit::BytesPerS, |rates| {
            rates.read_kib_s * KIB
        }),
        ("bandwidth", "write", PageUnit::BytesPerS, |rates| {
            rates.write_kib_s * KIB
        }),
        ("await", "mean", PageUnit::Ns, |rates| rates.await_ms * 1e6),
        ("in flight", "aqu-sz", PageUnit::Count, |rates| rates.queue),
        ("busy", "%util", PageUnit::Percent, |rates| {
            rates.util_percent
        }),
    ];
    let track = |(group, name, unit, rate): (&str, &str, PageUnit, DeviceRate)| {
        track(groups, (group, name), unit, &|slice| {
            slice.devices.get(device).map(rate)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

fn processors(groups: &Groups<'_>) -> Vec<Track> {
    type CpuShare = fn(&CpuShares) -> f64;
    let columns: [(&str, CpuShare); 4] = [
        ("user", |cpu| cpu.user),
        ("system", |cpu| cpu.system),
        ("iowait", |cpu| cpu.iowait),
        ("steal", |cpu| cpu.steal),
    ];
    let track = |(name, share): (&str, CpuShare)| {
        track(groups, ("CPUs", name), PageUnit::Percent, &|slice| {
            slice.cpu.as_ref().map(share)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

fn pressures(groups: &Groups<'_>) -> Vec<Track> {
    type PressureShare = fn(&Pressures) -> Option<f64>;
    let columns: [(&str, PressureShare); 3] = [
        ("for I/O", |all| Some(all.io?.some)),
        ("for a CPU", |all| Some(all.cpu?.some)),
        ("for memory", |all| Some(all.memory?.some)),
    ];
    let track = |(name, share): (&str, PressureShare)| {
        track(groups, ("pressure", name), PageUnit::Percent, &|slice| {
            slice.pressure.as_ref().and_then(share)
        })
    };
    columns.into_iter().filter_map(track).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page_series::MOST_POINTS;
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
    fn machine_series_hold_busiest_devices_and_psi() {
        let ramp = Interval {
            ramp: true,
            ..Interval::default()
        };
        let all = thin_machine_series(&series(5), &vec![ramp, Interval::default()].into());
        let names: Vec<&str> = all.iter().map(|series| series.of.as_str()).collect();
        assert_eq!(names, ["sdb", "sda", "machine"]);
        assert_eq!((all[0].ramp, all[0].end_s), (1, 5.0));
        let busy = all[0].tracks.last().unwrap();
        assert_eq!(
            (busy.unit, busy.values.clone()),
            (PageUnit::Percent, vec![Some(90.0); 5])
        );
        let read = &all[0].tracks[0];
        assert_eq!(
            (read.unit, read.values[0]),
            (PageUnit::BytesPerS, Some(102_400.0))
        );
        assert_eq!(all[0].tracks[2].values[0], Some(500_000.0), "nanoseconds");
        let [pressure] = all[2].tracks.as_slice() else {
            panic!("CPUs and other pressures were not recorded")
        };
        assert_eq!(
            (pressure.group.as_str(), pressure.name.as_str()),
            ("pressure", "for I/O")
        );
        assert!(thin_machine_series(&MachineSeries::default(), &Intervals::default()).is_empty());
    }

    #[test]
    fn machine_series_of_long_run_are_thinned_like_the_run() {
        let all = thin_machine_series(&series(3600), &Intervals::default());
        assert_eq!(all[0].at_s.len(), MOST_POINTS);
        let waiting = &all[2].tracks[0].values;
        assert_eq!(waiting[0], Some(7.0), "the mean of 0 to 14");
    }
}
