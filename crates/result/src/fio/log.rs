//! fio's logs: `write_bw_log`, `write_iops_log`, `write_lat_log` and `write_hist_log`.

use super::bins;
use crate::histogram::Histogram;
use iosonde_job::plan::{Direction, Job, LogPrefixes, Plan};
use std::io::{self, Write};

/// Contents of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub enum LogKind {
    /// Bandwidth in KiB/s.
    Bandwidth,
    /// I/Os per second. Without averaging, 1 for each I/O.
    Iops,
    /// Submission latency in nanoseconds.
    Slat,
    /// Completion latency in nanoseconds.
    Clat,
    /// Total latency in nanoseconds.
    Lat,
    /// Histograms of completion latency.
    ClatHistogram,
}

impl LogKind {
    /// All kinds of log.
    pub const ALL: [LogKind; 6] = [
        LogKind::Bandwidth,
        LogKind::Iops,
        LogKind::Slat,
        LogKind::Clat,
        LogKind::Lat,
        LogKind::ClatHistogram,
    ];

    /// Returns the part of the file name that identifies the kind.
    pub fn name(self) -> &'static str {
        match self {
            LogKind::Bandwidth => "bw",
            LogKind::Iops => "iops",
            LogKind::Slat => "slat",
            LogKind::Clat => "clat",
            LogKind::Lat => "lat",
            LogKind::ClatHistogram => "clat_hist",
        }
    }

    /// Returns the file name's prefix if this kind is logged. An empty one means the job's name.
    fn prefix(self, logs: &LogPrefixes) -> Option<&str> {
        let prefix = match self {
            LogKind::Bandwidth => &logs.bw,
            LogKind::Iops => &logs.iops,
            LogKind::Slat | LogKind::Clat | LogKind::Lat => &logs.lat,
            LogKind::ClatHistogram => &logs.hist,
        };
        prefix.as_deref()
    }
}

/// Returns the file to which worker `clone` (from 0) of job `job` (index into the plan) logs
/// `kind`: `PREFIX_bw.3.log`. The number counts the workers of all jobs from 1. It is missing with
/// `per_job_logs=0`, and workers with one prefix share a file. `None` if not logged.
pub fn file_name(plan: &Plan, job: usize, clone: u32, kind: LogKind) -> Option<String> {
    let this: &Job = &plan.jobs[job];
    let logs = &this.measure.logs;
    let prefix = match kind.prefix(logs)? {
        "" => &this.name,
        prefix => prefix,
    };
    let name = kind.name();
    if !logs.per_job {
        return Some(format!("{prefix}_{name}.log"));
    }
    let before: u32 = plan.jobs[..job].iter().map(|job| job.numjobs).sum();
    Some(format!("{prefix}_{name}.{}.log", before + clone + 1))
}

/// One line of a log other than a histogram log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecord {
    /// Milliseconds since the start of the run, or of the Unix epoch with `log_unix_epoch`.
    pub at_ms: u64,
    /// Value in the unit of the log.
    pub value: u64,
    /// Direction of the I/O.
    pub direction: Direction,
    /// Size of the I/O in bytes. 0 in a record of a window.
    pub block_size_bytes: u64,
    /// Offset of the I/O in bytes. 0 in a record of a window.
    pub offset_bytes: u64,
    /// I/O priority in the kernel's encoding: the class is in the upper 3 of 16 bits.
    pub priority: u16,
}

impl LogRecord {
    /// Writes the line: `ms, value, direction, bs[, offset], priority`, the offset with
    /// `log_offset`. The priority is hexadecimal with `log_prio`, else 1 for the real-time class,
    /// or 0.
    pub fn write(&self, out: &mut impl Write, logs: &LogPrefixes) -> io::Result<()> {
        let (at, value, direction) = (self.at_ms, self.value, self.direction as u8);
        write!(out, "{at}, {value}, {direction}, {}", self.block_size_bytes)?;
        if logs.offset {
            write!(out, ", {}", self.offset_bytes)?;
        }
        if logs.prio {
            writeln!(out, ", 0x{:04x}", self.priority)
        } else {
            writeln!(out, ", {}", u8::from(self.priority >> 13 == 1))
        }
    }
}

/// Returns the bandwidth of one I/O (`log_avg_msec=0`): in 1000 bytes per second, as in fio.
pub fn bandwidth_of_io(bytes: u64, latency_ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000 / u128::from(latency_ns.max(1))) as u64
}

/// Returns the bandwidth of a window in KiB/s.
pub fn bandwidth_of_window(bytes: u64, window_ms: u64) -> u64 {
    (u128::from(bytes) * 1000 / u128::from(window_ms.max(1)) / 1024) as u64
}

/// Writes a histogram line: `ms, direction, bs`, then the counts of fio's bins, `2^coarseness`
/// adjacent bins summed. A `coarseness` above 6 is treated as 6.
pub fn write_histogram(
    out: &mut impl Write,
    at_ms: u64,
    direction: Direction,
    block_size_bytes: u64,
    histogram: &Histogram,
    coarseness: u32,
) -> io::Result<()> {
    let coarseness = coarseness.min(6);
    let mut columns = vec![0u64; bins::COLUMNS >> coarseness];
    for (bin, count) in bins::histogram_bins(histogram) {
        columns[bin.min(bins::COLUMNS - 1) >> coarseness] += count;
    }
    debug_assert_eq!(columns.iter().sum::<u64>(), histogram.total());
    write!(out, "{at_ms}, {}, {block_size_bytes}", direction as u8)?;
    for count in columns {
        write!(out, ", {count}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    fn plan() -> Plan {
        let mut first = Job::new("first");
        first.numjobs = 2;
        first.measure.logs.bw = Some(String::new());
        let mut second = Job::new("second");
        second.measure.logs.lat = Some("out/p".into());
        second.measure.logs.hist = Some("h".into());
        Plan {
            jobs: vec![first, second],
            ..Plan::default()
        }
    }

    #[test]
    fn files_are_numbered_over_all_workers() {
        let mut plan = plan();
        let name =
            |plan: &Plan, job, clone, kind| file_name(plan, job, clone, kind).unwrap_or_default();
        assert_eq!(name(&plan, 0, 1, LogKind::Bandwidth), "first_bw.2.log");
        assert_eq!(name(&plan, 0, 1, LogKind::Iops), "");
        assert_eq!(name(&plan, 1, 0, LogKind::Slat), "out/p_slat.3.log");
        assert_eq!(name(&plan, 1, 0, LogKind::Lat), "out/p_lat.3.log");
        assert_eq!(
            name(&plan, 1, 0, LogKind::ClatHistogram),
            "h_clat_hist.3.log"
        );
        plan.jobs[0].measure.logs.per_job = false;
        assert_eq!(name(&plan, 0, 1, LogKind::Bandwidth), "first_bw.log");
    }

    #[test]
    fn log_lines_hold_the_selected_columns() {
        let line = |priority, offset, prio| {
            let record = LogRecord {
                at_ms: 12,
                value: 490_069,
                direction: Direction::Write,
                block_size_bytes: 4096,
                offset_bytes: 45_056,
                priority,
            };
            let logs = LogPrefixes {
                offset,
                prio,
                ..LogPrefixes::default()
            };
            let mut line = Vec::new();
            record
                .write(&mut line, &logs)
                .map(|()| String::from_utf8(line))
                .unwrap()
                .unwrap()
        };
        assert_eq!(line(0, false, false), "12, 490069, 1, 4096, 0\n");
        assert_eq!(line(0x2004, true, false), "12, 490069, 1, 4096, 45056, 1\n");
        assert_eq!(line(0x4004, false, false), "12, 490069, 1, 4096, 0\n");
        assert_eq!(line(0x4004, false, true), "12, 490069, 1, 4096, 0x4004\n");
    }

    #[test]
    fn bandwidths_have_the_units_of_fio_logs() {
        assert_eq!(bandwidth_of_io(4096, 8358), 490_069);
        assert_eq!(bandwidth_of_io(4096, 0), 4_096_000_000);
        assert_eq!(bandwidth_of_window(2_052_096, 500), 4008);
    }

    #[test]
    fn histogram_lines_have_as_many_columns_as_fio() {
        let mut histogram = Histogram::default();
        histogram.record_n(10, 3);
        histogram.record(64);
        histogram.record(u64::MAX);
        for (coarseness, columns) in [(0, 1856), (3, 232), (6, 29)] {
            let mut line = Vec::new();
            write_histogram(
                &mut line,
                501,
                Direction::Read,
                4096,
                &histogram,
                coarseness,
            )
            .unwrap();
            let line = String::from_utf8(line).unwrap();
            let fields: Vec<&str> = line.trim_end().split(", ").collect();
            assert_eq!(&fields[..3], ["501", "0", "4096"]);
            assert_eq!(fields.len(), 3 + columns);
            assert_eq!(fields[3 + (10 >> coarseness)], "3");
            assert_eq!(fields[3 + (64 >> coarseness)], "1");
            assert_eq!(fields.last(), Some(&"1"));
        }
    }

    #[test]
    fn kinds_of_logs_are_all_listed() {
        assert_eq!(LogKind::ALL, LogKind::VARIANTS);
    }
}
