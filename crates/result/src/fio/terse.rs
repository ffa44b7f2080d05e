//! fio's terse output: one line of values per job, in versions 2 to 5.

use super::aggregate::{FioEntry, FioReport, StatusGroup, per_second, runtime_ms, shares};
use super::disks::{self, mean_of_below};
use super::levels::LatencyLevels;
use super::{VERSION, bins};
use crate::run::{DirectionStats, DiskUtil, RunResult};
use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::Direction;
use std::io::{self, Write};

/// Number of percentiles on a line, independent of the job's `percentile_list`.
const PERCENTILES: usize = 20;

/// A version of the terse format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TerseVersion {
    /// Reads, writes and trims, without fio's version and disks. The description is on a line of
    /// its own.
    V2,
    /// Reads and writes: the only version without trims. fio's default.
    #[default]
    V3,
    /// Adds trims to V3.
    V4,
    /// Adds the samples of IOPS to V4.
    V5,
}

impl TerseVersion {
    /// Returns the version for a number of `--terse-version`. `None` if fio has no such version.
    pub fn from_number(number: u32) -> Option<TerseVersion> {
        match number {
            2 => Some(TerseVersion::V2),
            3 => Some(TerseVersion::V3),
            4 => Some(TerseVersion::V4),
            5 => Some(TerseVersion::V5),
            _ => None,
        }
    }

    /// Returns the number for `--terse-version`.
    pub fn number(self) -> u32 {
        match self {
            TerseVersion::V2 => 2,
            TerseVersion::V3 => 3,
            TerseVersion::V4 => 4,
            TerseVersion::V5 => 5,
        }
    }
}

/// Writes the output of `--output-format=terse` or `--minimal`.
pub(super) fn write_terse(
    out: &mut impl Write,
    result: &RunResult,
    version: TerseVersion,
) -> io::Result<()> {
    let report = FioReport::from_run(result);
    for entry in &report.entries {
        let mut line = TerseLine::new(entry, version);
        line.directions(entry, report.group(entry), version);
        line.cpu(entry);
        line.distributions(entry);
        if version >= TerseVersion::V3 {
            for disk in disks::in_order(&result.disks) {
                line.disk(disk);
            }
        }
        if entry.continues_on_error() {
            line.push(entry.total_errors);
            line.push(entry.first_error);
        }
        if let Some(description) = &entry.job.description {
            if version == TerseVersion::V2 {
                line.text.push('\n');
            }
            line.push(description);
        }
        writeln!(out, "{}", line.text)?;
    }
    Ok(())
}

struct TerseLine {
    text: String,
}

impl TerseLine {
    fn new(entry: &FioEntry<'_>, version: TerseVersion) -> TerseLine {
        let mut line = TerseLine {
            text: version.number().to_string(),
        };
        if version >= TerseVersion::V3 {
            line.push(VERSION);
        }
        line.push(&entry.job.name);
        line.push(entry.groupid);
        line.push(entry.errno);
        line
    }

    fn push(&mut self, value: impl std::fmt::Display) {
        self.text.push(';');
        self.text.push_str(&value.to_string());
    }

    fn directions(&mut self, entry: &FioEntry<'_>, group: &StatusGroup, version: TerseVersion) {
        let shown: &[Direction] = match (entry.is_mixed(), version) {
            (true, _) => &[Direction::Read],
            (false, TerseVersion::V3) => &[Direction::Read, Direction::Write],
            (false, _) => &Direction::ALL,
        };
        for direction in shown {
            let stats = &entry.directions[*direction];
            self.direction(entry, group, Some(*direction), stats, version);
        }
        if let Some(mixed) = &entry.mixed {
            self.direction(entry, group, None, mixed, version);
        }
    }

    fn direction(
        &mut self,
        entry: &FioEntry<'_>,
        group: &StatusGroup,
        which: Option<Direction>,
        stats: &DirectionStats,
        version: TerseVersion,
    ) {
        let runtime = runtime_ms(stats.runtime_ns);
        self.push(stats.io_bytes / 1024);
        self.push(per_second(stats.io_bytes, runtime) / 1024);
        self.push(per_second(stats.total_ios, runtime));
        self.push(runtime);
        self.latency(&stats.slat.moments);
        self.latency(&stats.clat.moments);
        self.percentiles(entry, stats);
        self.latency(&stats.lat.moments);
        let share = match stats.bw.count {
            0 => 0.0,
            _ => group.share_percent(which, stats.bw.mean),
        };
        self.push(stats.bw.min as u64);
        self.push(stats.bw.max as u64);
        self.push(format_args!("{share:.6}%"));
        self.push(format_args!("{:.6}", stats.bw.mean));
        self.push(format_args!("{:.6}", stats.bw.stddev()));
        if version == TerseVersion::V5 {
            self.push(stats.bw.count);
            self.push(stats.iops.min as u64);
            self.push(stats.iops.max as u64);
            self.push(format_args!("{:.6}", stats.iops.mean));
            self.push(format_args!("{:.6}", stats.iops.stddev()));
            self.push(stats.iops.count);
        }
    }

    /// Writes minimum, maximum, mean and standard deviation in microseconds.
    fn latency(&mut self, moments: &Moments) {
        self.push(moments.min as u64 / 1000);
        self.push(moments.max as u64 / 1000);
        self.push(format_args!("{:.6}", moments.mean / 1000.0));
        self.push(format_args!("{:.6}", moments.stddev() / 1000.0));
    }

    /// Writes percentiles in microseconds, of total latency if the job demands it.
    fn percentiles(&mut self, entry: &FioEntry<'_>, stats: &DirectionStats) {
        let measure = &entry.job.measure;
        let none = LatencyStats::default();
        let latency = if measure.lat_percentiles && measure.lat {
            Some(&stats.lat)
        } else if measure.clat_percentiles && measure.clat {
            Some(&stats.clat)
        } else {
            None
        };
        let percents = match latency {
            Some(_) => bins::ascending(&measure.percentiles),
            None => Vec::new(),
        };
        let empty = Default::default();
        let histogram = latency.unwrap_or(&none).histogram.as_ref();
        let values = bins::percentiles(histogram.unwrap_or(&empty), &percents);
        for (percent, value) in percents.iter().zip(&values) {
            self.push(format_args!("{percent:.6}%={}", value / 1000));
        }
        for _ in percents.len()..PERCENTILES {
            self.push("0%=0");
        }
    }

    fn cpu(&mut self, entry: &FioEntry<'_>) {
        let (user, system) = entry.cpu_percent();
        self.push(format_args!("{user:.6}%"));
        self.push(format_args!("{system:.6}%"));
        self.push(entry.cpu.context_switches);
        self.push(entry.cpu.major_faults);
        self.push(entry.cpu.minor_faults);
    }

    fn distributions(&mut self, entry: &FioEntry<'_>) {
        for share in shares(&entry.iodepth_level, entry.total_ios(), 0.1) {
            self.push(format_args!("{share:3.1}%"));
        }
        let mut levels = LatencyLevels::from_entry(entry);
        levels.us[0] += levels.below_1us;
        for share in levels.us.iter().chain(&levels.ms) {
            self.push(format_args!("{share:3.2}%"));
        }
    }

    fn disk(&mut self, disk: &DiskUtil) {
        self.disk_counts(&disk.name, disk);
        if let Some(below) = mean_of_below(disk) {
            self.disk_counts("slaves", &below);
        }
    }

    fn disk_counts(&mut self, name: &str, disk: &DiskUtil) {
        self.push(name);
        for pair in [disk.ios, disk.merges, disk.ticks_ms] {
            pair.iter().for_each(|count| self.push(count));
        }
        self.push(disk.in_queue_ms);
        self.push(format_args!("{:3.2}%", disk.util_percent.min(100.0)));
    }
}
