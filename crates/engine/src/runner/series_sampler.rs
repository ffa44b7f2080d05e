//! Records the machine's time series over a run's intervals: disks, processors, memory and pressure
//! (PSI). The coordinator's thread samples, never a worker's.

use iosonde_machine::diskstats::Snapshot;
use iosonde_machine::machine_snapshot::{MachineSnapshot, SnapshotSources};
use iosonde_machine::net_counters::{LinkSpeeds, NetworkDeltas};
use iosonde_machine::proc_root::System;
use iosonde_machine::processors::CpuTimes;
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::bottleneck::verdict;
use iosonde_result::host::DeviceNumber;
use iosonde_result::interval::Interval;
use iosonde_result::machine::{CpuShares, MachineSeries, MachineSlice};
use iosonde_result::network::NetworkLoad;
use iosonde_result::run::Verdict;
use iosonde_result::spill_list::SpillList;
use iosonde_result::verdict_cause::VerdictCause;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Samples the machine.
pub(super) struct MachineWatch {
    sources: SnapshotSources,
    /// The devices under the run's files.
    devices: Vec<DeviceNumber>,
    first: MachineSnapshot,
    last: MachineSnapshot,
    series: MachineSeries,
    measured: MachineTotals,
    ramp: MachineTotals,
    groups: u32,
    /// CPU times of the processors at the start of the first group.
    processors: BTreeMap<u32, CpuTimes>,
}

/// Counts over several slices.
#[derive(Debug, Clone, Default)]
pub(super) struct MachineTotals {
    /// Total length of the slices.
    pub(super) elapsed: Duration,
    /// Device counters.
    pub(super) disks: Snapshot,
    /// Time for which control groups throttled this process; `None` without a limit.
    pub(super) cpu_throttled_ns: Option<u64>,
    /// CPU use by kind.
    pub(super) cpu: Option<CpuShares>,
    /// Counters of the network.
    network: Option<NetworkDeltas>,
    /// Speeds of the interfaces' links.
    link_speeds: Arc<LinkSpeeds>,
}

impl MachineWatch {
    /// Creates a sampler of these devices.
    pub(super) fn new(system: System, devices: Vec<DeviceNumber>) -> MachineWatch {
        let sources = SnapshotSources::find(system);
        let first = sources.read();
        MachineWatch {
            sources,
            devices,
            series: MachineSeries {
                slices: SpillList::spilling_to(Arc::new(SpillFile::default())),
                missing: first.missing(),
                idle_percent: BTreeMap::new(),
            },
            last: first.clone(),
            first,
            measured: MachineTotals::default(),
            ramp: MachineTotals::default(),
            groups: 0,
            processors: BTreeMap::new(),
        }
    }

    /// Starts a group of workers: the time before belongs to no slice.
    pub(super) fn begin_group(&mut self) {
        self.last = self.sources.read();
        if self.groups == 0 {
            self.processors = self.sources.processors();
        }
        self.groups += 1;
    }

    /// Whether some workers started later than others.
    pub(super) fn in_groups(&self) -> bool {
        self.groups > 1
    }

    /// Samples the machine at the end of an interval.
    pub(super) fn sample(&mut self, interval: &Interval) {
        let reading = self.sources.read();
        self.take(reading, interval);
    }

    fn take(&mut self, reading: MachineSnapshot, interval: &Interval) {
        // The time of a process stop is no part of the run. The CPU use in a stop cannot be
        // separated from the rest.
        self.last.at += Duration::from_nanos(interval.stopped_ns);
        let was_stopped = interval.stopped_ns > 0;
        let slice = reading.slice_since(&self.last, &self.devices);
        let cpu = slice.cpu.filter(|_| !was_stopped);
        self.series.slices.push(MachineSlice {
            start_ns: interval.start_ns,
            length_ns: interval.length_ns,
            ..slice
        });
        let counted = match interval.ramp {
            true => &mut self.ramp,
            false => &mut self.measured,
        };
        counted.add(&reading, &self.last, cpu);
        self.last = reading;
    }

    /// Returns the device counters so far.
    pub(super) fn disks_so_far(&self) -> Snapshot {
        self.sources.read().disks.since(&self.first.disks)
    }

    /// Ends sampling. Returns the counts of the measured time (or of the ramp, if there is no
    /// other), the total device counters, the series, and verdicts on the machine itself.
    pub(super) fn finish_series(
        mut self,
    ) -> (MachineTotals, Snapshot, MachineSeries, Vec<Verdict>) {
        let last = self.sources.read();
        self.series.idle_percent = idleness(&self.processors, &self.sources.processors());
        let mut verdicts = last.clocks.disturbances_since(&self.first.clocks);
        let counted = if self.measured.elapsed.is_zero() {
            self.ramp
        } else {
            self.measured
        };
        verdicts.extend(counted.cpu.and_then(steal));
        let whole = last.disks.since(&self.first.disks);
        (counted, whole, self.series, verdicts)
    }
}

impl MachineTotals {
    /// Returns the busiest network interface that can carry a run of this bandwidth.
    pub(super) fn network_load(&self, run_bytes_per_s: f64) -> Option<NetworkLoad> {
        let moved = self.network.as_ref()?;
        let rates = moved.rates(self.elapsed, &self.link_speeds)?;
        rates.carrying(run_bytes_per_s)
    }

    fn add(&mut self, now: &MachineSnapshot, before: &MachineSnapshot, cpu: Option<CpuShares>) {
        let elapsed = now.elapsed_since(before);
        let weight = elapsed.as_secs_f64() / (self.elapsed + elapsed).as_secs_f64().max(1e-9);
        self.cpu = match (self.cpu, cpu) {
            (Some(known), Some(new)) => Some(mixed(known, new, weight)),
            (known, new) => new.or(known),
        };
        self.elapsed += elapsed;
        self.disks = self.disks.plus(&now.disks.since(&before.disks));
        if let Some(moved) = now.network_since(before) {
            self.network.get_or_insert_default().add(&moved);
            self.link_speeds = now.link_speeds.clone();
        }
        if let (Some(now), Some(before)) = (now.cpu_throttled_ns, before.cpu_throttled_ns) {
            *self.cpu_throttled_ns.get_or_insert(0) += now.saturating_sub(before);
        }
    }
}

/// Returns the idle percentage of each processor between two readings.
fn idleness(before: &BTreeMap<u32, CpuTimes>, now: &BTreeMap<u32, CpuTimes>) -> BTreeMap<u32, f64> {
    now.iter()
        .filter_map(|(number, now)| {
            let idle = now.since(before.get(number)?).idle_percent()?;
            Some((*number, idle))
        })
        .collect()
}

/// Returns the weighted mean of two readings. `part` is the second one's share of the total time.
fn mixed(one: CpuShares, other: CpuShares, part: f64) -> CpuShares {
    let mix = |one: f64, other: f64| one + (other - one) * part;
    CpuShares {
        user: mix(one.user, other.user),
        system: mix(one.system, other.system),
        iowait: mix(one.iowait, other.iowait),
        steal: mix(one.steal, other.steal),
    }
}

/// Minimum percentage of CPU time taken by the hypervisor that is reported.
const LEAST_STEAL_PERCENT: f64 = 5.0;

fn steal(cpu: CpuShares) -> Option<Verdict> {
    (cpu.steal >= LEAST_STEAL_PERCENT).then(|| {
        verdict(VerdictCause::HypervisorSteal {
            steal_percent: cpu.steal,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run::VerdictKind;

    const SECOND: Duration = Duration::from_secs(1);

    fn later(before: &MachineSnapshot, cpu: &str) -> MachineSnapshot {
        let mut after = before.clone();
        after.at += SECOND;
        after.clocks.monotonic_ns += SECOND.as_nanos() as i128;
        after.clocks.boottime_ns += SECOND.as_nanos() as i128;
        after.clocks.realtime_ns += SECOND.as_nanos() as i128;
        after.cpu = CpuTimes::parse(cpu);
        after
    }

    #[test]
    fn cpu_steal_gives_a_steal_verdict() {
        let mut watch = MachineWatch::new(System::captured("/nonexistent"), Vec::new());
        watch.last.cpu = CpuTimes::parse("cpu 0 0 0 0 0 0 0 0");
        let ramp = Interval {
            ramp: true,
            ..Interval::default()
        };
        let reading = later(&watch.last, "cpu 100 0 0 0 0 0 0 100");
        watch.take(reading, &ramp);
        let reading = later(&watch.last, "cpu 180 0 0 0 0 0 0 120");
        watch.take(reading, &Interval::default());
        let (counted, _, series, verdicts) = watch.finish_series();
        assert_eq!(series.slices.len(), 2);
        assert_eq!(series.missing.len(), 3);
        assert_eq!(counted.elapsed, SECOND, "the ramp does not count");
        let steal: Vec<&Verdict> = verdicts
            .iter()
            .filter(|verdict| verdict.kind == VerdictKind::Steal)
            .collect();
        let Some(VerdictCause::HypervisorSteal { steal_percent }) = steal[0].cause else {
            panic!("{steal:?}");
        };
        assert!((steal_percent - 20.0).abs() < 0.5, "{steal_percent}");
    }

    #[test]
    fn machine_suspend_gives_a_clock_disturbed_verdict() {
        let mut watch = MachineWatch::new(System::captured("/nonexistent"), Vec::new());
        // Simulates one hour of sleep since the first reading.
        watch.first.clocks.boottime_ns -= 3600 * SECOND.as_nanos() as i128;
        watch.first.clocks.realtime_ns -= 3600 * SECOND.as_nanos() as i128;
        let (_, _, _, verdicts) = watch.finish_series();
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].kind, VerdictKind::ClockDisturbed);
    }
}
