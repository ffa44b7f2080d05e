//! Current activity of a run: the mean rate so far with its interval, and the rate, bandwidth,
//! latency and device utilisation of the last second.

use iosonde_job::plan::Direction;
use iosonde_job::target_scheme::is_path_name;
use iosonde_machine::device_watch::{DeviceDeltas, DeviceSampler};
use iosonde_machine::proc_root::System;
use iosonde_report::figures::rate_beside_interval;
use iosonde_report::probe::row;
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::machine::DeviceRates;
use iosonde_result::observer::RunProgress;
use iosonde_result::series_statistics::rate_with_confidence;
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::words;
use std::time::{Duration, Instant};

/// Window of latency and utilisation. Shorter windows change too fast to be read.
const ACTIVITY_WINDOW: Duration = Duration::from_secs(1);
/// Confidence of the interval of the mean, as of the reported figures.
const MEAN_LEVEL: f64 = 0.95;
/// Largest number of samples for which the interval of the mean is computed.
const SAMPLES_MAX: usize = 3000;

/// Rates below this are shown as whole numbers, as they are counted.
const COUNTED_IOPS_BELOW: f64 = 100.0;

/// Current activity of a run.
#[derive(Default)]
pub(super) struct LiveActivity {
    /// Direction that counts. `None`: all directions.
    direction: Option<Direction>,
    /// Whether the latency of fdatasync counts instead of that of the writes.
    is_synced: bool,
    /// Latencies of the current window, and the time that it covers so far.
    latency: Histogram,
    latency_ns: u128,
    /// Percentiles of the last complete window, or of the first window while it is incomplete.
    percentiles: Vec<String>,
    mean: MeanSoFar,
    device: Option<Device>,
}

/// Mean rate of the current run without its ramp.
#[derive(Default)]
struct MeanSoFar {
    total: IntervalCounts,
    length_ns: u64,
    /// I/Os per second of each interval.
    rates: Vec<f64>,
    /// Half the interval of the mean as a share, if the study reports it.
    relative_error: Option<f64>,
}

/// Devices below the target, sampled as by `iosonde watch`.
struct Device {
    watching: DeviceSampler,
    next: Instant,
    busy: Option<String>,
}

impl LiveActivity {
    /// Samples the devices below the targets that are on this machine.
    pub(super) fn observe<'a>(
        targets: impl IntoIterator<Item = (&'a str, &'a str, &'a StudyTargetKind)>,
    ) -> LiveActivity {
        let is_here = |(name, _, kind): &(&str, &str, &StudyTargetKind)| {
            !matches!(kind, StudyTargetKind::Simulated { .. }) && is_path_name(name)
        };
        let here = targets.into_iter().filter(is_here);
        let paths: Vec<String> = here.map(|(_, path, _)| path.to_owned()).collect();
        let watching = match paths.is_empty() {
            true => None,
            false => DeviceSampler::begin(System::live(), &paths).ok(),
        };
        let device = watching.map(|watching| Device {
            watching,
            next: Instant::now() + ACTIVITY_WINDOW,
            busy: None,
        });
        LiveActivity {
            device,
            ..LiveActivity::default()
        }
    }

    /// Starts a run: drops the figures of the run before.
    pub(super) fn begin(&mut self) {
        self.latency = Histogram::default();
        self.latency_ns = 0;
        self.percentiles.clear();
        self.mean = MeanSoFar::default();
    }

    /// Starts a run of which one direction counts.
    pub(super) fn begin_direction(&mut self, direction: Direction, is_synced: bool) {
        self.begin();
        self.direction = Some(direction);
        self.is_synced = is_synced;
    }

    /// Adds an interval of the run. If an fdatasync follows each write, its latency counts, and an
    /// interval in which no fdatasync ended adds none: the phase's row shows the same.
    pub(super) fn interval(&mut self, interval: &Interval) {
        if !interval.ramp {
            let counts = self.sum(interval.directions.iter());
            self.mean.add(counts, interval.length_ns);
        }
        match (self.is_synced, &interval.sync_latency) {
            (true, Some(syncs)) => self.latency.merge(syncs),
            (true, None) => {}
            (false, _) => self.latency.merge(&interval.latency),
        }
        self.latency_ns += u128::from(interval.length_ns);
        if !self.percentiles.is_empty() && self.latency_ns < ACTIVITY_WINDOW.as_nanos() {
            return;
        }
        let percentile = |(name, percent): (&str, f64)| {
            let ns = self.latency.percentile(percent)?;
            Some(format!("{name} {}", words::latency(ns as f64)))
        };
        let both = [("p50", 50.0), ("p99", 99.0)];
        self.percentiles = both.into_iter().filter_map(percentile).collect();
        if self.latency_ns >= ACTIVITY_WINDOW.as_nanos() {
            self.latency = Histogram::default();
            self.latency_ns = 0;
        }
    }

    /// Sets half the interval of the mean, as a share.
    pub(super) fn confidence(&mut self, relative_error: f64) {
        self.mean.relative_error = Some(relative_error);
    }

    fn sum<'a>(
        &self,
        directions: impl Iterator<Item = (Direction, &'a IntervalCounts)>,
    ) -> IntervalCounts {
        let counted =
            directions.filter(|(each, _)| self.direction.is_none_or(|only| only == *each));
        counted.fold(IntervalCounts::default(), |sum, (_, counts)| {
            IntervalCounts {
                ios: sum.ios + counts.ios,
                bytes: sum.bytes + counts.bytes,
            }
        })
    }

    /// Current rate per second.
    pub(super) fn rate_now(&self, progress: &RunProgress<'_>) -> IntervalCounts {
        self.sum(progress.rate.iter())
    }

    /// The mean rate so far and half its interval as text, after the sign `plus_minus`. Before the
    /// first complete interval the current rate, without an interval. `None` if no I/O completes.
    pub(super) fn settling(
        &self,
        progress: &RunProgress<'_>,
        is_bandwidth: bool,
        plus_minus: &str,
    ) -> Option<(String, String)> {
        let (rate, error) = match self.mean.per_second() {
            Some(mean) => (mean, self.mean.relative_error()),
            None => (self.rate_now(progress), None),
        };
        let is_moving = rate.ios > 0 || rate.bytes > 0;
        let within = error.map_or(String::new(), |error| row::within(error, plus_minus));
        is_moving.then(|| {
            let value = match is_bandwidth {
                true => rate.bytes as f64,
                false => rate.ios as f64,
            };
            // The rate of the last second is no estimate. The counts are whole numbers.
            let error = error.filter(|_| is_bandwidth || value >= COUNTED_IOPS_BELOW);
            let text = match (error, is_bandwidth) {
                (Some(error), _) => rate_beside_interval(value, error * value, is_bandwidth),
                (None, true) => words::bandwidth(value),
                (None, false) => format!("{} IOPS", words::iops_text(value)),
            };
            (text, within)
        })
    }

    /// Describes the last second, the most important part first.
    pub(super) fn words(&mut self, progress: &RunProgress<'_>) -> Vec<String> {
        let rate = self.rate_now(progress);
        let mut words = vec![
            format!("{} IOPS", words::iops_text(rate.ios as f64)),
            words::bandwidth(rate.bytes as f64),
        ];
        words.extend(self.percentiles.iter().cloned());
        if let Some(device) = &mut self.device {
            device.sample();
            words.extend(device.busy.clone());
        }
        words
    }
}

impl MeanSoFar {
    fn add(&mut self, counts: IntervalCounts, length_ns: u64) {
        if length_ns == 0 {
            return;
        }
        self.total.ios += counts.ios;
        self.total.bytes += counts.bytes;
        self.length_ns += length_ns;
        if self.rates.len() < SAMPLES_MAX {
            self.rates.push(counts.ios as f64 * 1e9 / length_ns as f64);
        }
    }

    fn per_second(&self) -> Option<IntervalCounts> {
        let seconds = self.length_ns as f64 / 1e9;
        (self.length_ns > 0).then(|| IntervalCounts {
            ios: (self.total.ios as f64 / seconds).round() as u64,
            bytes: (self.total.bytes as f64 / seconds).round() as u64,
        })
    }

    /// Half the interval of the mean, as a share. `None` if it is not known.
    fn relative_error(&self) -> Option<f64> {
        let is_whole = self.rates.len() < SAMPLES_MAX;
        self.relative_error.or_else(|| {
            let ios = self.total.ios;
            let estimate =
                is_whole.then(|| rate_with_confidence(&self.rates, ios, MEAN_LEVEL))??;
            (estimate.mean > 0.0).then(|| estimate.half_width / estimate.mean)
        })
    }
}

impl Device {
    fn sample(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + ACTIVITY_WINDOW;
            self.busy = busiest(&self.watching.sample());
        }
    }
}

/// Describes the device with the highest utilisation.
fn busiest(sample: &DeviceDeltas) -> Option<String> {
    let util = |row: &&(String, DeviceRates)| row.1.util_percent;
    let most = sample
        .rows
        .iter()
        .max_by(|a, b| util(a).total_cmp(&util(b)))?;
    Some(format!(
        "{} {:.0} % busy",
        most.0,
        most.1.util_percent.min(100.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::PerDirection;

    fn tenth(latency_ns: u64) -> Interval {
        let mut interval = Interval {
            length_ns: 100_000_000,
            ..Interval::default()
        };
        interval.latency.record_n(latency_ns, 1000);
        interval
    }

    /// Progress at a rate of 1000 reads/s.
    fn progress() -> RunProgress<'static> {
        let read = IntervalCounts {
            ios: 1000,
            bytes: 4 << 20,
        };
        RunProgress {
            at_ns: 1_000_000_000,
            workers: &[],
            rate: PerDirection {
                read,
                ..PerDirection::default()
            },
            left_ns: None,
            done: None,
            pods: &[],
        }
    }

    #[test]
    fn moment_latency_is_of_last_second() {
        let mut activity = LiveActivity::default();
        activity.interval(&tenth(1_000_000));
        let first = activity.words(&progress());
        assert_eq!(
            first,
            ["1.00k IOPS", "4.00 MiB/s", "p50 1.00 ms", "p99 1.00 ms"]
        );
        for latency_ns in [1_000_000, 5_000_000] {
            for _ in 0..9 {
                activity.interval(&tenth(latency_ns));
            }
        }
        assert_eq!(activity.words(&progress()), first, "the second is not over");
        activity.interval(&tenth(5_000_000));
        let words = activity.words(&progress());
        assert!(words[2].starts_with("p50 5.0"), "{words:?}");
        activity.begin();
        assert_eq!(activity.words(&progress()).len(), 2);
    }

    #[test]
    fn mean_is_shown_with_its_own_interval() {
        let mut activity = LiveActivity::default();
        let rate_only = |text: &str| Some((text.to_owned(), String::new()));
        assert_eq!(
            activity.settling(&progress(), false, "+-"),
            rate_only("1.00k IOPS"),
            "the current rate has no interval"
        );
        let mut interval = tenth(1_000_000);
        interval.directions.read = IntervalCounts {
            ios: 50,
            bytes: 50 << 12,
        };
        activity.interval(&interval);
        activity.confidence(0.034);
        let mean = activity.settling(&progress(), false, "+-").unwrap();
        assert_eq!(mean, ("500 IOPS".to_owned(), "+-3.4 %".to_owned()));
        let (_, signed) = activity.settling(&progress(), false, "±").unwrap();
        assert_eq!(signed, "±3.4 %");
        interval.ramp = true;
        interval.directions.read.ios = 9000;
        activity.interval(&interval);
        let later = activity.settling(&progress(), false, "+-");
        assert_eq!(later.unwrap(), mean);
        activity.begin_direction(Direction::Write, false);
        assert_eq!(activity.settling(&progress(), true, "+-"), None);
    }

    #[test]
    fn interval_of_the_mean_shrinks_with_time() {
        let mut mean = MeanSoFar::default();
        let mut errors = Vec::new();
        for sample in 0..400u64 {
            let ios = 900 + sample * 7919 % 200;
            mean.add(IntervalCounts { ios, bytes: 0 }, 100_000_000);
            if sample % 200 == 99 {
                errors.push(mean.relative_error().unwrap());
            }
        }
        assert!(errors[1] < errors[0], "{errors:?}");
    }

    #[test]
    fn moment_of_synced_writes_shows_latency_of_fdatasync() {
        let mut activity = LiveActivity::default();
        activity.begin_direction(Direction::Read, true);
        activity.interval(&tenth(5_000));
        let rate_only = ["1.00k IOPS", "4.00 MiB/s"];
        // A slow fdatasync outlasts an interval of the run, in which only its write ended.
        assert_eq!(activity.words(&progress()), rate_only);
        let mut synced = tenth(5_000);
        let mut flushes = Histogram::default();
        flushes.record_n(300_000, 1000);
        synced.sync_latency = Some(flushes);
        activity.interval(&synced);
        let words = activity.words(&progress());
        let is_of_sync = words[2].starts_with("p50 30") && words[2].ends_with("us");
        assert!(is_of_sync, "{words:?}");
    }

    #[test]
    fn moment_of_several_devices_shows_the_busiest() {
        let row = |name: &str, util_percent| {
            let rates = DeviceRates {
                util_percent,
                ..DeviceRates::default()
            };
            (name.to_owned(), rates)
        };
        let sample = DeviceDeltas {
            elapsed: ACTIVITY_WINDOW,
            rows: vec![row("md0", 0.0), row("sda", 93.6), row("sdb", 40.0)],
        };
        assert_eq!(busiest(&sample).unwrap(), "sda 94 % busy");
    }
}
