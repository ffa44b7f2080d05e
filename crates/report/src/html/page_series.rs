//! Time series of runs, thinned to the resolution of a chart.

use super::curve::percentiles;
use super::document::{PageSeries, PageUnit, Track};
use iosonde_job::plan::Direction;
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, Intervals};
use std::borrow::Cow;

/// Maximum number of points of a series. Adjacent intervals are merged, which loses no I/O.
pub(super) const MOST_POINTS: usize = 240;

/// Returns the series of a run, or `None` if the run has no intervals.
pub(super) fn thin_intervals(intervals: &Intervals) -> Option<PageSeries> {
    let ramp = intervals.iter().take_while(|interval| interval.ramp);
    let ramp = ramp.count();
    let together = intervals.len().div_ceil(MOST_POINTS).max(1);
    let ramping = merged(intervals.iter().take(ramp), together);
    let measured = merged(intervals.iter().skip(ramp), together);
    let slices: Vec<&Interval> = ramping.iter().chain(&measured).collect();
    let last = slices.last()?;
    let tracks = Direction::ALL
        .into_iter()
        .flat_map(|direction| rates(&slices, direction))
        .chain(latencies(&slices))
        .collect();
    Some(PageSeries {
        of: "run".to_owned(),
        at_s: slices
            .iter()
            .map(|slice| short(slice.start_ns as f64 / 1e9))
            .collect(),
        end_s: short((last.start_ns + last.length_ns) as f64 / 1e9),
        ramp: ramping.len(),
        tracks,
    })
}

/// Merges each `together` adjacent intervals into one.
fn merged<'a>(
    intervals: impl Iterator<Item = Cow<'a, Interval>>,
    together: usize,
) -> Vec<Interval> {
    let mut merged: Vec<Interval> = Vec::new();
    for (index, interval) in intervals.enumerate() {
        match merged.last_mut() {
            Some(last) if index % together > 0 => {
                last.length_ns += interval.length_ns;
                last.add(&interval);
            }
            _ => merged.push(interval.into_owned()),
        }
    }
    merged
}

/// IOPS and bandwidth of a direction. Empty if the direction has no I/O.
fn rates(slices: &[&Interval], direction: Direction) -> Vec<Track> {
    let per_s = |slice: &Interval, count: u64| {
        (slice.length_ns > 0).then(|| short(count as f64 * 1e9 / slice.length_ns as f64))
    };
    if slices
        .iter()
        .all(|slice| slice.directions[direction].ios == 0)
    {
        return Vec::new();
    }
    let track = |group: &str, unit, count: &dyn Fn(&Interval) -> u64| Track {
        group: group.to_owned(),
        name: direction.name().to_owned(),
        unit,
        values: slices
            .iter()
            .map(|slice| per_s(slice, count(slice)))
            .collect(),
    };
    vec![
        track("IOPS", PageUnit::Iops, &|slice| {
            slice.directions[direction].ios
        }),
        track("bandwidth", PageUnit::BytesPerS, &|slice| {
            slice.directions[direction].bytes
        }),
    ]
}

/// Median, 99th percentile and maximum of each slice.
fn latencies(slices: &[&Interval]) -> Vec<Track> {
    let of = |histogram: &Histogram| percentiles(histogram, [0.5, 0.01, 0.0].into_iter());
    let found: Vec<Vec<u64>> = slices.iter().map(|slice| of(&slice.latency)).collect();
    if found.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    ["p50", "p99", "max"]
        .into_iter()
        .enumerate()
        .map(|(index, name)| Track {
            group: "latency".to_owned(),
            name: name.to_owned(),
            unit: PageUnit::Ns,
            values: found
                .iter()
                .map(|values| values.get(index).map(|ns| short(*ns as f64)))
                .collect(),
        })
        .collect()
}

/// Rounds to five significant digits, which exceeds the resolution of a chart.
pub(super) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64, ramp: bool) -> Interval {
        let mut interval = Interval {
            start_ns: number * 1_000_000_000,
            length_ns: 1_000_000_000,
            ramp,
            ..Interval::default()
        };
        interval.directions.read.ios = 100 + number;
        interval.directions.read.bytes = 4096 * (100 + number);
        interval.latency.record_n(80_000, 99 + number);
        interval.latency.record(5_000_000);
        interval
    }

    fn track<'a>(series: &'a PageSeries, group: &str, name: &str) -> &'a Track {
        let wanted = |track: &&Track| track.group == group && track.name == name;
        series.tracks.iter().find(wanted).unwrap()
    }

    #[test]
    fn short_runs_are_shown_second_by_second() {
        let intervals: Intervals = (0..10).map(|number| second(number, number < 2)).collect();
        let series = thin_intervals(&intervals).unwrap();
        assert_eq!(
            (series.at_s.len(), series.ramp, series.end_s),
            (10, 2, 10.0)
        );
        assert_eq!(track(&series, "IOPS", "read").values[3], Some(103.0));
        // 421,888 bytes in five digits.
        assert_eq!(
            track(&series, "bandwidth", "read").values[3],
            Some(421_890.0)
        );
        let p50 = track(&series, "latency", "p50").values[3].unwrap();
        assert!((p50 / 80_000.0 - 1.0).abs() < 0.005, "{p50}");
        assert!(track(&series, "latency", "max").values[3] > Some(4_900_000.0));
        assert_eq!(series.tracks.len(), 5, "nothing was written or trimmed");
        assert!(thin_intervals(&Intervals::default()).is_none());
    }

    #[test]
    fn long_runs_are_thinned_without_losing_an_io() {
        let intervals: Intervals = (0..3600).map(|number| second(number, number < 7)).collect();
        let series = thin_intervals(&intervals).unwrap();
        assert!(
            series.at_s.len() <= MOST_POINTS + 1,
            "{}",
            series.at_s.len()
        );
        assert_eq!(
            (series.at_s[1], series.at_s[2], series.end_s),
            (7.0, 22.0, 3600.0)
        );
        let shown = &track(&series, "IOPS", "read").values;
        // The ramp is one slice of 7 s.
        let ramp = shown[0].unwrap() * 7.0;
        let sum: f64 = shown[1..].iter().map(|rate| rate.unwrap() * 15.0).sum();
        let counted: u64 = intervals
            .iter()
            .map(|interval| interval.directions.read.ios)
            .sum();
        // The last slice is shorter than 15 s.
        assert!(((ramp + sum) / counted as f64 - 1.0).abs() < 0.01);
    }
}
