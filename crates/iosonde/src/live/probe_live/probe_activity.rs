//! Current activity of a probe: rate, bandwidth, latency of the last second, device utilisation.

use iosonde_machine::device_watch::{DeviceDeltas, DeviceSampler};
use iosonde_machine::proc_root::System;
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::machine::DeviceRates;
use iosonde_study::probe::{ProbePhase, StudyTarget, StudyTargetKind};
use iosonde_study::words;
use std::time::{Duration, Instant};

/// Window of latency and utilisation. Shorter windows change too fast to be read.
const ACTIVITY_WINDOW: Duration = Duration::from_secs(1);

/// Current activity of a probe.
#[derive(Default)]
pub(super) struct ProbeActivity {
    /// Latencies of the current window, and the time that it covers so far.
    latency: Histogram,
    latency_ns: u128,
    /// Percentiles of the last complete window, or of the first window while it is incomplete.
    percentiles: Vec<String>,
    device: Option<Device>,
}

/// Devices below the target, sampled as by `iosonde watch`.
struct Device {
    watching: DeviceSampler,
    next: Instant,
    busy: Option<String>,
}

impl ProbeActivity {
    /// Samples the devices below the target, if the target is on this machine.
    pub(super) fn observe_target(target: &StudyTarget) -> ProbeActivity {
        let elsewhere =
            matches!(target.kind, StudyTargetKind::Simulated { .. }) || target.name.contains("://");
        let watching = match elsewhere {
            true => None,
            false => DeviceSampler::begin(System::live(), std::slice::from_ref(&target.path)).ok(),
        };
        let device = watching.map(|watching| Device {
            watching,
            next: Instant::now() + ACTIVITY_WINDOW,
            busy: None,
        });
        ProbeActivity {
            device,
            ..ProbeActivity::default()
        }
    }

    /// Starts a step: drops the latencies of the step before.
    pub(super) fn begin(&mut self) {
        self.latency = Histogram::default();
        self.latency_ns = 0;
        self.percentiles.clear();
    }

    /// Adds an interval of the run. If an fdatasync follows each write, its latency counts, and an
    /// interval in which no fdatasync ended adds none: the phase's row shows the same.
    pub(super) fn interval(&mut self, phase: ProbePhase, interval: &Interval) {
        match (phase, &interval.sync_latency) {
            (ProbePhase::SyncedWrite, Some(syncs)) => self.latency.merge(syncs),
            (ProbePhase::SyncedWrite, None) => {}
            _ => self.latency.merge(&interval.latency),
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

    /// Describes the activity, the most important part first. `rate` is per second.
    pub(super) fn words(&mut self, rate: &IntervalCounts) -> Vec<String> {
        let mut words = vec![
            format!("{} IOPS", words::iops(rate.ios as f64)),
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
    fn moment_latency_is_of_last_second() {
        let mut activity = ProbeActivity::default();
        activity.interval(ProbePhase::ReadLatency, &tenth(1_000_000));
        let first = activity.words(&RATE);
        assert_eq!(
            first,
            ["1.00k IOPS", "4.00 MiB/s", "p50 1.00 ms", "p99 1.00 ms"]
        );
        for _ in 0..9 {
            activity.interval(ProbePhase::ReadLatency, &tenth(1_000_000));
        }
        for _ in 0..9 {
            activity.interval(ProbePhase::ReadLatency, &tenth(5_000_000));
        }
        assert_eq!(activity.words(&RATE), first, "the second is not over");
        activity.interval(ProbePhase::ReadLatency, &tenth(5_000_000));
        assert!(
            activity.words(&RATE)[2].starts_with("p50 5.0"),
            "{:?}",
            activity.words(&RATE)
        );
        activity.begin();
        assert_eq!(activity.words(&RATE).len(), 2);
    }

    #[test]
    fn moment_of_synced_writes_shows_latency_of_fdatasync() {
        let mut activity = ProbeActivity::default();
        let mut synced = tenth(5_000);
        let mut flushes = Histogram::default();
        flushes.record_n(300_000, 1000);
        synced.sync_latency = Some(flushes);
        activity.interval(ProbePhase::SyncedWrite, &synced);
        let words = activity.words(&RATE);
        assert!(
            words[2].starts_with("p50 30") && words[2].ends_with("us"),
            "{words:?}"
        );
    }

    /// A slow fdatasync outlasts an interval of the run, in which only its write ended.
    #[test]
    fn moment_of_synced_writes_shows_no_latency_of_write() {
        let mut activity = ProbeActivity::default();
        activity.interval(ProbePhase::SyncedWrite, &tenth(5_000));
        let rate_only = ["1.00k IOPS", "4.00 MiB/s"];
        assert_eq!(activity.words(&RATE), rate_only);
        let mut synced = tenth(5_000);
        let mut flushes = Histogram::default();
        flushes.record_n(300_000_000, 1);
        synced.sync_latency = Some(flushes);
        activity.interval(ProbePhase::SyncedWrite, &synced);
        let words = activity.words(&RATE);
        assert!(
            words[2].starts_with("p50 30") && words[2].ends_with("ms"),
            "{words:?}"
        );
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
