//! Table of `rados bench`: a line per second.

use super::{MB, RadosHeader, RadosMode, general};
use iosonde_result::histogram::{Histogram, middle};
use iosonde_result::interval::Interval;
use serde_json::{Value, json};

/// Number of lines between two headings.
const LINES: u64 = 20;

/// A second of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondRow {
    /// Number of the second, from 1. 0 is the start.
    sec: u64,
    /// Operations in flight at the end of the second. `None` if they were not counted.
    in_flight: Option<u64>,
    /// Operations completed since the start.
    finished: u64,
    /// Bandwidth since the start, in MiB/s.
    mean_mb: f64,
    /// Bandwidth of this second, in MiB/s.
    mb: f64,
    /// Operations per second in this second.
    pub(super) iops: f64,
    /// Median latency of the operations of this second. `None` if none completed.
    median_s: Option<f64>,
    /// Mean latency since the start.
    mean_s: f64,
}

impl SecondRow {
    /// Bandwidth of this second, in MiB/s.
    pub(super) fn mb(&self) -> f64 {
        self.mb
    }

    fn text(&self) -> String {
        let (mb, last) = match self.median_s {
            Some(median) => (general(self.mb), general(median)),
            None => ("0".to_owned(), "-".to_owned()),
        };
        let in_flight = self.in_flight;
        format!(
            "{:>5} {:>7} {:>9} {:>9} {:>9} {mb:>9} {last:>11} {:>11}\n",
            self.sec,
            in_flight.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            self.started(),
            self.finished,
            general(self.mean_mb),
            general(self.mean_s),
        )
    }

    /// Operations started since the start.
    fn started(&self) -> u64 {
        self.finished + self.in_flight.unwrap_or(0)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "sec": self.sec,
            "cur_ops": self.in_flight,
            "started": self.started(),
            "finished": self.finished,
            "avg_bw": self.mean_mb,
            "cur_bw": self.mb,
            "last_lat": self.median_s,
            "avg_lat": self.mean_s,
        })
    }
}

/// Rows of a run, collected during the run.
#[derive(Debug, Clone)]
pub struct Seconds {
    concurrent: u64,
    op_bytes: f64,
    /// Total number of operations, if limited.
    ops: Option<u64>,
    rows: Vec<SecondRow>,
    elapsed_ns: u64,
    finished: u64,
    latency: Histogram,
}

impl Seconds {
    /// Creates the first row. `ops` is the total number of operations, if known. Random reads have
    /// none: they read the `ops` written blocks again and again.
    pub fn new(head: &RadosHeader, ops: Option<u64>) -> Seconds {
        let start = SecondRow {
            sec: 0,
            in_flight: Some(0),
            finished: 0,
            mean_mb: 0.0,
            mb: 0.0,
            iops: 0.0,
            median_s: None,
            mean_s: 0.0,
        };
        Seconds {
            concurrent: u64::from(head.concurrent),
            op_bytes: head.op_bytes as f64,
            ops: ops.filter(|_| !matches!(head.mode, RadosMode::Rand)),
            rows: vec![start],
            elapsed_ns: 0,
            finished: 0,
            latency: Histogram::default(),
        }
    }

    /// All rows, including the start.
    pub fn rows(&self) -> &[SecondRow] {
        &self.rows
    }

    /// The rows of measured seconds, without the start.
    pub(super) fn measured(&self) -> &[SecondRow] {
        &self.rows[1..]
    }

    /// Upper bound of the number of started operations.
    pub fn started(&self) -> u64 {
        let possible = self.finished + 2 * self.concurrent;
        self.ops.map_or(possible, |ops| possible.min(ops))
    }

    /// Adds an interval. Returns false for one of less than half a second, which gets no row.
    pub fn push(&mut self, interval: &Interval) -> bool {
        let counts = &interval.directions;
        let ios = counts.read.ios + counts.write.ios;
        self.finished += ios;
        self.elapsed_ns += interval.length_ns;
        self.latency.merge(&interval.latency);
        let length_s = interval.length_ns as f64 / 1e9;
        if length_s < 0.5 {
            return false;
        }
        let elapsed_s = self.elapsed_ns as f64 / 1e9;
        let iops = ios as f64 / length_s;
        let median = interval.latency.percentile(50.0);
        self.rows.push(SecondRow {
            sec: self.rows.len() as u64,
            in_flight: interval.in_flight,
            finished: self.finished,
            mean_mb: self.finished as f64 * self.op_bytes / elapsed_s / MB,
            mb: iops * self.op_bytes / MB,
            iops,
            median_s: median.map(|ns| ns as f64 / 1e9),
            mean_s: mean_s(&self.latency),
        });
        true
    }

    /// Returns the last row as text, every 20 rows with a heading. `now` is printed before the
    /// heading, and before every row with `--show-time`.
    pub fn line(&self, now: &str, show_time: bool) -> String {
        let Some(row) = self.rows.last() else {
            return String::new();
        };
        let prefix = if show_time {
            format!("{now} ")
        } else {
            String::new()
        };
        let mut text = String::new();
        if row.sec.is_multiple_of(LINES) {
            if row.sec > 0 {
                text += &self.so_far(now);
            }
            text += &format!("{prefix}{}", heading());
        }
        text + &prefix + &row.text()
    }

    fn so_far(&self, now: &str) -> String {
        let seconds = |ns: Option<u64>| general(ns.unwrap_or(0) as f64 / 1e9);
        format!(
            "{now} min lat: {} max lat: {} avg lat: {}\n",
            seconds(self.latency.percentile(0.0)),
            seconds(self.latency.percentile(100.0)),
            general(mean_s(&self.latency)),
        )
    }
}

fn heading() -> String {
    format!(
        "{:>5}{:>8}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}\n",
        "sec",
        "Cur ops",
        "started",
        "finished",
        "avg MB/s",
        "cur MB/s",
        "last lat(s)",
        "avg lat(s)"
    )
}

fn mean_s(latency: &Histogram) -> f64 {
    let sum: f64 = latency
        .buckets()
        .map(|(index, count)| middle(index) as f64 * count as f64)
        .sum();
    sum / latency.total().max(1) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_the_counted_operations_in_flight() {
        let head = RadosHeader {
            mode: RadosMode::Seq,
            concurrent: 16,
            op_bytes: 4096,
            object_bytes: 4096,
            seconds: 2,
            max_objects: 0,
            prefix: String::new(),
        };
        let mut seconds = Seconds::new(&head, Some(1000));
        let mut push = |in_flight: Option<u64>| {
            let mut interval = Interval {
                length_ns: 1_000_000_000,
                in_flight,
                ..Interval::default()
            };
            interval.directions.read.ios = 100;
            seconds.push(&interval);
            let json = seconds.rows.last().map(SecondRow::json).unwrap();
            (json["cur_ops"].as_u64(), json["started"].as_u64())
        };
        assert_eq!(push(Some(15)), (Some(15), Some(115)));
        assert_eq!(push(Some(3)), (Some(3), Some(203)));
        assert_eq!(push(None), (None, Some(300)));
    }
}
