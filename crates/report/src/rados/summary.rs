//! Summary of `rados bench`, with percentiles, the bandwidth's interval and client CPU time.

use super::{MB, RadosHeader, SecondRow, Seconds, general};
use crate::facts;
use iosonde_result::ceph::CephSide;
use iosonde_result::compare::informative_interval;
use iosonde_result::run::{DirectionStats, RunResult};
use iosonde_result::series_statistics::mean_with_confidence;
use iosonde_result::stats::Moments;
use serde_json::{Map, Value, json};

/// Percentiles of the summary.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Values of the summary.
#[derive(Debug, Clone)]
pub struct RadosSummary {
    elapsed_s: f64,
    ops: u64,
    mb: f64,
    /// Bandwidth of each second, in MiB/s.
    mbs: Moments,
    /// 95 % confidence interval of the bandwidth, if there are enough seconds.
    interval: Option<(f64, f64)>,
    /// Operations per second of each second.
    iops: Moments,
    /// Latencies in nanoseconds.
    latency: Moments,
    /// Latency percentiles in seconds, in the order of [`PERCENTILES`].
    percentiles: Vec<f64>,
    /// CPU time of the whole client per operation, in microseconds.
    cpu_us: Option<f64>,
    /// Operations that read other data than was written.
    damaged: u64,
    /// State and activity of the cluster during the run.
    cluster: Option<CephSide>,
    /// Findings about the figures, for example reasons to doubt them.
    findings: Vec<String>,
}

impl RadosSummary {
    /// Creates the summary of a run. `cpu_ns` is the CPU time of the client.
    pub fn new(
        head: &RadosHeader,
        seconds: &Seconds,
        result: &RunResult,
        cpu_ns: Option<u64>,
    ) -> RadosSummary {
        let nothing = DirectionStats::default();
        let worker = result.workers.first();
        let side = worker.map_or(&nothing, |worker| match head.mode.is_write() {
            true => &worker.directions.write,
            false => &worker.directions.read,
        });
        let elapsed_s = side.runtime_ns as f64 / 1e9;
        let ops = side.lat.moments.count;
        let mb = match elapsed_s > 0.0 {
            true => side.io_bytes as f64 / elapsed_s / MB,
            false => 0.0,
        };
        let rates: Vec<f64> = seconds.measured().iter().map(SecondRow::mb).collect();
        let estimate = mean_with_confidence(&rates, 0.95);
        let histogram = side.lat.histogram.as_ref().or(side.clat.histogram.as_ref());
        let percentile = |percent| histogram?.percentile(percent).map(|ns| ns as f64 / 1e9);
        RadosSummary {
            elapsed_s,
            ops,
            mb,
            mbs: moments(rates.iter().copied()),
            interval: estimate.and_then(|estimate| {
                // The rate of the run includes the last, incomplete second.
                let half = estimate.half_width;
                informative_interval(mb, (mb - half, mb + half))
            }),
            iops: moments(seconds.measured().iter().map(|row| row.iops)),
            latency: side.lat.moments,
            percentiles: PERCENTILES.into_iter().filter_map(percentile).collect(),
            cpu_us: cpu_ns
                .filter(|_| ops > 0)
                .map(|ns| ns as f64 / ops as f64 / 1e3),
            damaged: worker.map_or(0, |worker| worker.total_errors),
            cluster: result.ceph.clone(),
            findings: result.findings(),
        }
    }

    /// Returns the lines of `rados bench`, followed by those of iosonde.
    pub fn text(&self, head: &RadosHeader) -> String {
        let (width, what) = match head.mode.is_write() {
            true => (24, "writes"),
            false => (22, "reads"),
        };
        let mut lines: Vec<(String, String)> = vec![
            ("Total time run:".to_owned(), general(self.elapsed_s)),
            (format!("Total {what} made:"), self.ops.to_string()),
            (
                if head.mode.is_write() {
                    "Write size:"
                } else {
                    "Read size:"
                }
                .to_owned(),
                head.op_bytes.to_string(),
            ),
            ("Object size:".to_owned(), head.object_bytes.to_string()),
        ];
        let mut line = |name: &str, value: f64| lines.push((name.to_owned(), general(value)));
        line("Bandwidth (MB/sec):", self.mb);
        if head.mode.is_write() {
            line("Stddev Bandwidth:", self.mbs.stddev());
            line("Max bandwidth (MB/sec):", self.mbs.max);
            line("Min bandwidth (MB/sec):", self.mbs.min);
        }
        line("Average IOPS:", self.average_iops());
        line("Stddev IOPS:", self.iops.stddev());
        line("Max IOPS:", self.iops.max);
        line("Min IOPS:", self.iops.min);
        line("Average Latency(s):", self.latency.mean / 1e9);
        if head.mode.is_write() {
            line("Stddev Latency(s):", self.latency.stddev() / 1e9);
        }
        line("Max latency(s):", self.latency.max / 1e9);
        line("Min latency(s):", self.latency.min / 1e9);
        for (percent, seconds) in PERCENTILES.iter().zip(&self.percentiles) {
            line(&format!("p{percent} latency(s):"), *seconds);
        }
        if let Some(us) = self.cpu_us {
            line("Client CPU (us/op):", us);
        }
        let mut text = String::new();
        for (name, value) in &lines {
            // "Max bandwidth (MB/sec):" is as wide as its column.
            text += &format!("{name:<width$}{value}\n");
        }
        text + &self.beyond(width)
    }

    /// Lines that have no counterpart in `rados bench`.
    fn beyond(&self, width: usize) -> String {
        let mut text = match self.interval {
            Some((low, high)) => format!(
                "{:<width$}{} to {} MB/sec with 95 % confidence\n",
                "Bandwidth is:",
                general(low),
                general(high)
            ),
            None => format!(
                "{:<width$}not known: too few seconds, or too uneven\n",
                "Confidence:"
            ),
        };
        if let Some(side) = &self.cluster {
            for (name, value) in facts::ceph_facts(side) {
                let name = format!("{}{}:", name[..1].to_uppercase(), &name[1..]);
                text += &format!("{name:<width$}{value}\n");
            }
        }
        if self.damaged > 0 {
            text += &format!("{:<width$}{}\n", "Damaged reads:", self.damaged);
        }
        for finding in &self.findings {
            text += &crate::text_table::wrapped(finding);
        }
        text
    }

    fn average_iops(&self) -> f64 {
        match self.elapsed_s > 0.0 {
            true => self.ops as f64 / self.elapsed_s,
            false => 0.0,
        }
    }

    pub(super) fn json(&self, head: &RadosHeader) -> Value {
        let (made, size) = match head.mode.is_write() {
            true => ("total_writes_made", "write_size"),
            false => ("total_reads_made", "read_size"),
        };
        let percentiles: Map<String, Value> = PERCENTILES
            .iter()
            .zip(&self.percentiles)
            .map(|(percent, seconds)| (percent.to_string(), json!(seconds)))
            .collect();
        json!({
            "total_time_run": self.elapsed_s,
            made: self.ops,
            size: head.op_bytes,
            "bandwidth": self.mb,
            "stddev_bandwidth": self.mbs.stddev(),
            "max_bandwidth": self.mbs.max,
            "min_bandwidth": self.mbs.min,
            "average_iops": self.average_iops(),
            "stddev_iops": self.iops.stddev(),
            "max_iops": self.iops.max,
            "min_iops": self.iops.min,
            "average_latency": self.latency.mean / 1e9,
            "stddev_latency": self.latency.stddev() / 1e9,
            "max_latency": self.latency.max / 1e9,
            "min_latency": self.latency.min / 1e9,
            "latency_percentiles": percentiles,
            "bandwidth_confidence_95": self.interval.map(|(low, high)| [low, high]),
            "client_cpu_us_per_op": self.cpu_us,
            "damaged_reads": self.damaged,
            "cluster": self.cluster,
            "verdicts": self.findings,
        })
    }
}

fn moments(values: impl Iterator<Item = f64>) -> Moments {
    let mut moments = Moments::default();
    values.for_each(|value| moments.record(value));
    moments
}
