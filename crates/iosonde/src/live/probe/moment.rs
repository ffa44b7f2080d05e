//! What a probe does at this moment: rate and bandwidth, latency of the last second, how busy the device is.

use iosonde_machine::device_watch::{Watched, Watching};
use iosonde_machine::proc_root::System;
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::machine::DeviceRates;
use iosonde_study::probe::{Phase, ProbeTarget, TargetKind};
use iosonde_study::words;
use std::time::{Duration, Instant};

/// Over so much time latency and utilisation are taken: less is too restless to be read.
const MOMENT: Duration = Duration::from_secs(1);

/// What is seen of this moment.
#[derive(Default)]
pub(super) struct Moment {
    /// Latencies since a second began, and how much of it is over.
    latency: Histogram,
    latency_ns: u128,
    /// Those of the second before.
    percentiles: Vec<String>,
    device: Option<Device>,
}

/// The devices under the target, as `iosonde watch` sees them.
struct Device {
    watching: Watching,
    next: Instant,
    busy: Option<String>,
}

impl Moment {
    /// Watches what is under this target, if that is on this machine.
    pub(super) fn of(target: &ProbeTarget) -> Moment {
        let elsewhere =
            matches!(target.kind, TargetKind::Simulated { .. }) || target.name.contains("://");
        let watching = match elsewhere {
            true => None,
            false => Watching::begin(System::live(), std::slice::from_ref(&target.path)).ok(),
        };
        let device = watching.map(|watching| Device {
            watching,
            next: Instant::now() + MOMENT,
            busy: None,
        });
        Moment {
            device,
            ..Moment::default()
        }
    }

    /// A step begins: what the one before did is no news.
    pub(super) fn begin(&mut self) {
        self.latency = Histogram::default();
        self.latency_ns = 0;
        self.percentiles.clear();
    }

    /// A slice of the run is complete. The latency is that of the operation in the row of the phase: of fdatasync where each
    /// write is followed by one, also in a slice in which none ended.
    pub(super) fn interval(&mut self, phase: Phase, interval: &Interval) {
        match (phase, &interval.sync_latency) {
            (Phase::SyncedWrite, Some(syncs)) => self.latency.merge(syncs),
            (Phase::SyncedWrite, None) => {}
            _ => self.latency.merge(&interval.latency),
        }
        self.latency_ns += u128::from(interval.length_ns);
        if !self.percentiles.is_empty() && self.latency_ns < MOMENT.as_nanos() {
            return;
        }
        let percentile = |(name, percent): (&str, f64)| {
            let ns = self.latency.percentile(percent)?;
            Some(format!("{name} {}", words::latency(ns as f64)))
        };
        let both = [("p50", 50.0), ("p99", 99.0)];
        self.percentiles = both.into_iter().filter_map(percentile).collect();
        if self.latency_ns >= MOMENT.as_nanos() {
            self.latency = Histogram::default();
            self.latency_ns = 0;
        }
    }

    /// All that is known, the most important first. `rate` is per second.
    pub(super) fn words(&mut self, rate: &IntervalCounts) -> Vec<String> {
        let mut words = vec![
            format!("{} IOPS", words::iops(rate.ios as f64)),
            words::bandwidth(rate.bytes as f64),
        ];
        words.extend(self.percentiles.iter().cloned());
        if let Some(device) = &mut self.device {
            device.look();
            words.extend(device.busy.clone());
        }
        words
    }
}

impl Device {
    fn look(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + MOMENT;
            self.busy = busiest(&self.watching.sample());
        }
    }
}

/// The device that was busy the longest.
fn busiest(sample: &Watched) -> Option<String> {
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

    fn tenth(latency_ns: u64) -> Interval {
        let mut interval = Interval {
            length_ns: 100_000_000,
            ..Interval::default()
        };
        interval.latency.record_n(latency_ns, 1000);
        interval
    }

    const RATE: IntervalCounts = IntervalCounts {
        ios: 1000,
        bytes: 4 << 20,
    };

    #[test]
    fn latency_is_that_of_the_last_second() {
        let mut moment = Moment::default();
        moment.interval(Phase::ReadLatency, &tenth(1_000_000));
        let first = moment.words(&RATE);
        assert_eq!(
            first,
            ["1.00k IOPS", "4.00 MiB/s", "p50 1.00 ms", "p99 1.00 ms"]
        );
        for _ in 0..9 {
            moment.interval(Phase::ReadLatency, &tenth(1_000_000));
        }
        for _ in 0..9 {
            moment.interval(Phase::ReadLatency, &tenth(5_000_000));
        }
        assert_eq!(moment.words(&RATE), first, "the second is not over");
        moment.interval(Phase::ReadLatency, &tenth(5_000_000));
        assert!(
            moment.words(&RATE)[2].starts_with("p50 5.0"),
            "{:?}",
            moment.words(&RATE)
        );
        moment.begin();
        assert_eq!(moment.words(&RATE).len(), 2);
    }

    #[test]
    fn moment_of_synced_writes_shows_latency_of_fdatasync() {
        let mut moment = Moment::default();
        let mut synced = tenth(5_000);
        let mut flushes = Histogram::default();
        flushes.record_n(300_000, 1000);
        synced.sync_latency = Some(flushes);
        moment.interval(Phase::SyncedWrite, &synced);
        let words = moment.words(&RATE);
        assert!(
            words[2].starts_with("p50 30") && words[2].ends_with("us"),
            "{words:?}"
        );
    }

    /// A slow fdatasync takes longer than a slice of the run, in which only its write ended.
    #[test]
    fn moment_of_synced_writes_shows_no_latency_of_write() {
        let mut moment = Moment::default();
        moment.interval(Phase::SyncedWrite, &tenth(5_000));
        let rate_only = ["1.00k IOPS", "4.00 MiB/s"];
        assert_eq!(moment.words(&RATE), rate_only);
        let mut synced = tenth(5_000);
        let mut flushes = Histogram::default();
        flushes.record_n(300_000_000, 1);
        synced.sync_latency = Some(flushes);
        moment.interval(Phase::SyncedWrite, &synced);
        let words = moment.words(&RATE);
        assert!(
            words[2].starts_with("p50 30") && words[2].ends_with("ms"),
            "{words:?}"
        );
    }

    #[test]
    fn of_several_devices_the_busiest_is_shown() {
        let row = |name: &str, util_percent| {
            let rates = DeviceRates {
                util_percent,
                ..DeviceRates::default()
            };
            (name.to_owned(), rates)
        };
        let sample = Watched {
            elapsed: MOMENT,
            rows: vec![row("md0", 0.0), row("sda", 93.6), row("sdb", 40.0)],
        };
        assert_eq!(busiest(&sample).unwrap(), "sda 94 % busy");
    }
}
