//! fio's logs of a run from its time series, as `log_avg_msec` of that length would give them.

use iosonde_job::plan::{Direction, Job};
use iosonde_result::fio::log::{LogKind, LogRecord, bandwidth_of_window};
use iosonde_result::histogram::{Histogram, middle};
use iosonde_result::interval::Interval;
use iosonde_result::run::RunResult;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const MS: u64 = 1_000_000;

/// Writes the logs of all clones together. Mixtures have no latency log: intervals do not split it.
pub(super) fn write(json: &Path, result: &RunResult, job: &Job) -> io::Result<()> {
    let measured = || result.intervals.iter().filter(|interval| !interval.ramp);
    let Some(first) = measured().next() else {
        return Ok(());
    };
    let directions: Vec<Direction> = (Direction::ALL.into_iter())
        .filter(|direction| job.workload.rw.has(*direction))
        .collect();
    for kind in [LogKind::Bandwidth, LogKind::Iops, LogKind::Lat] {
        if kind == LogKind::Lat && (directions.len() > 1 || !has_latency(result)) {
            continue;
        }
        let mut file = BufWriter::new(File::create(log_path(json, job, kind))?);
        for interval in measured() {
            for direction in &directions {
                let Some(value) = value(kind, &interval, *direction) else {
                    continue;
                };
                let end_ns = interval.start_ns + interval.length_ns - first.start_ns;
                let record = LogRecord {
                    at_ms: end_ns / MS,
                    value,
                    direction: *direction,
                    block_size_bytes: 0,
                    offset_bytes: 0,
                    priority: 0,
                };
                record.write(&mut file, &job.measure.logs)?;
            }
        }
        file.flush()?;
    }
    Ok(())
}

fn has_latency(result: &RunResult) -> bool {
    let mut intervals = result.intervals.iter();
    intervals.any(|interval| interval.latency.total() > 0)
}

/// The mean, within the resolution of the histogram.
fn mean_latency(latency: &Histogram) -> Option<u64> {
    let sum: u128 = (latency.buckets())
        .map(|(bucket, count)| u128::from(middle(bucket)) * u128::from(count))
        .sum();
    let mean = sum.checked_div(u128::from(latency.total()))?;
    u64::try_from(mean).ok()
}

/// The file of a log. bench-fio's logs of one process have the number 1.
fn log_path(json: &Path, job: &Job, kind: LogKind) -> PathBuf {
    json.with_file_name(format!(
        "{}-iodepth-{}-numjobs-{}_{}.1.log",
        job.workload.rw.name(),
        job.io.iodepth,
        job.numjobs,
        kind.name()
    ))
}

/// The value of a log line. `None`: no I/O.
fn value(kind: LogKind, interval: &Interval, direction: Direction) -> Option<u64> {
    let counts = &interval.directions[direction];
    let length_ms = (interval.length_ns / MS).max(1);
    match kind {
        LogKind::Bandwidth => Some(bandwidth_of_window(counts.bytes, length_ms)),
        LogKind::Iops => Some(counts.ios * 1000 / length_ms),
        _ => mean_latency(&interval.latency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_result::interval::IntervalCounts;

    #[test]
    fn log_line_has_rates_of_window() {
        let mut interval = Interval {
            length_ns: 500 * MS,
            ..Interval::default()
        };
        interval.directions[Direction::Write] = IntervalCounts {
            ios: 200,
            bytes: 200 * 4096,
        };
        interval.latency.record_n(1_000_000, 100);
        interval.latency.record_n(3_000_000, 100);
        let write = |kind| value(kind, &interval, Direction::Write);
        assert_eq!(write(LogKind::Iops), Some(400));
        assert_eq!(write(LogKind::Bandwidth), Some(1600));
        let latency = write(LogKind::Lat).unwrap();
        assert!((1_990_000..2_010_000).contains(&latency), "{latency}");
        assert_eq!(
            value(LogKind::Lat, &Interval::default(), Direction::Read),
            None
        );
    }

    #[test]
    fn log_names_match_bench_fio() {
        let words = [
            "--name=a",
            "--size=1m",
            "--rw=randwrite",
            "--iodepth=8",
            "--numjobs=4",
        ];
        let words: Vec<_> = words.map(Into::into).to_vec();
        let plan = iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan;
        let name = log_path(
            Path::new("/out/data/4k/randwrite-8-4.json"),
            &plan.jobs[0],
            LogKind::Iops,
        );
        let expected = "/out/data/4k/randwrite-iodepth-8-numjobs-4_iops.1.log";
        assert_eq!(name, Path::new(expected));
    }
}
