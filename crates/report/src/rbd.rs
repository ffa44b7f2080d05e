//! Output of `iosonde rbd bench`: that of `rbd bench`, followed by further findings.

use crate::facts;
use crate::rados::general;
use iosonde_result::ceph::CephSide;
use iosonde_result::compare::informative_interval;
use iosonde_result::interval::Interval;
use iosonde_result::run::{DirectionStats, RunResult};
use iosonde_result::series_statistics::mean_with_confidence;
use iosonde_result::stats::LatencyStats;
use serde_json::{Map, Value, json};

/// Percentiles of the summary.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];
/// Width of the names in the lines that `rbd bench` lacks.
const NAME_WIDTH: usize = 22;

/// Operations on the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImageIoType {
    /// Read
    Read,
    /// Write
    Write,
    /// Read and write, mixed by --rw-mix-read
    #[value(name = "readwrite", alias = "rw")]
    ReadWrite,
}

impl ImageIoType {
    /// Whether the image is written.
    pub fn writes(self) -> bool {
        self != ImageIoType::Read
    }

    fn name(self) -> &'static str {
        match self {
            ImageIoType::Read => "read",
            ImageIoType::Write => "write",
            ImageIoType::ReadWrite => "readwrite",
        }
    }
}

/// Order of the offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImageIoPattern {
    /// Random offsets
    Rand,
    /// Sequential offsets of each of --io-threads, in its own part of the image
    Seq,
    /// Sequential offsets of all threads together
    #[value(name = "full-seq")]
    FullSeq,
}

impl ImageIoPattern {
    fn name(self) -> &'static str {
        match self {
            ImageIoPattern::Rand => "random",
            ImageIoPattern::Seq => "sequential",
            ImageIoPattern::FullSeq => "full sequential",
        }
    }
}

/// Parameters of a benchmark of an image.
#[derive(Debug, Clone)]
pub struct ImageBenchHeader {
    /// Operations on the image.
    pub io_type: ImageIoType,
    /// Bytes per operation.
    pub io_bytes: u64,
    /// Number of operations in flight.
    pub io_threads: u32,
    /// Bytes of all operations.
    pub total_bytes: u64,
    /// Order of the offsets.
    pub pattern: ImageIoPattern,
    /// Share of reads in a mix, in percent.
    pub read_percent: u32,
}

impl ImageBenchHeader {
    /// Returns the line of the parameters and the heading of the table.
    pub fn text(&self) -> String {
        let mix = match self.io_type {
            ImageIoType::ReadWrite => format!(
                " read:write={}:{}",
                self.read_percent,
                100 - self.read_percent.min(100)
            ),
            _ => String::new(),
        };
        format!(
            "bench  type {}{mix} io_size {} io_threads {} bytes {} pattern {}\n{}\n",
            self.io_type.name(),
            self.io_bytes,
            self.io_threads,
            self.total_bytes,
            self.pattern.name(),
            "  SEC       OPS   OPS/SEC   BYTES/SEC"
        )
    }

    fn json(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("io_type", json!(self.io_type.name()));
        field("io_size", json!(self.io_bytes));
        field("io_threads", json!(self.io_threads));
        field("io_total", json!(self.total_bytes));
        field("io_pattern", json!(self.pattern.name()));
        if self.io_type == ImageIoType::ReadWrite {
            field("rw_mix_read", json!(self.read_percent));
        }
        fields
    }
}

/// A second of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ImageSecond {
    sec: u64,
    /// Operations since the start.
    ops: u64,
    /// Operations per second in this second.
    ops_rate: f64,
    /// Bytes per second in this second.
    bytes_rate: f64,
}

/// Rows of the table, collected during the run.
#[derive(Debug, Clone, Default)]
pub struct ImageSeconds {
    rows: Vec<ImageSecond>,
    ops: u64,
}

impl ImageSeconds {
    /// Adds an interval and returns its line. Less than half a second gets none.
    pub fn push(&mut self, interval: &Interval) -> Option<String> {
        let counts = &interval.directions;
        let ops = counts.read.ios + counts.write.ios;
        let bytes = counts.read.bytes + counts.write.bytes;
        self.ops += ops;
        let length_s = interval.length_ns as f64 / 1e9;
        if length_s < 0.5 {
            return None;
        }
        let row = ImageSecond {
            sec: self.rows.len() as u64 + 1,
            ops: self.ops,
            ops_rate: ops as f64 / length_s,
            bytes_rate: bytes as f64 / length_s,
        };
        self.rows.push(row);
        Some(format!(
            "{:>5}{:>10}{:>10}{:>10}/s\n",
            row.sec,
            row.ops,
            general(row.ops_rate),
            byte_text(row.bytes_rate)
        ))
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "sec": row.sec,
                "ops": row.ops,
                "ops_per_sec": row.ops_rate,
                "bytes_per_sec": row.bytes_rate,
            })
        });
        rows.collect()
    }
}

/// Figures of one direction, or of both together.
#[derive(Debug, Clone, Default)]
struct ImageTotal {
    ops: u64,
    bytes: u64,
}

impl ImageTotal {
    fn add(&mut self, side: &DirectionStats) {
        self.ops += side.lat.moments.count;
        self.bytes += side.io_bytes;
    }
}

/// Figures of the whole benchmark.
#[derive(Debug, Clone)]
pub struct ImageBenchSummary {
    elapsed_s: f64,
    reads: ImageTotal,
    writes: ImageTotal,
    latency: LatencyStats,
    /// 95 % confidence interval of the operations per second, if there are enough seconds.
    interval: Option<(f64, f64)>,
    /// CPU time of the client per operation, in microseconds.
    cpu_us: Option<f64>,
    cluster: Option<CephSide>,
    findings: Vec<String>,
}

impl ImageBenchSummary {
    /// Creates the summary of a run. `cpu_ns` is the CPU time of the client.
    pub fn new(
        seconds: &ImageSeconds,
        result: &RunResult,
        cpu_ns: Option<u64>,
    ) -> ImageBenchSummary {
        let (mut reads, mut writes) = (ImageTotal::default(), ImageTotal::default());
        let mut latency = LatencyStats::default();
        let mut elapsed_ns = 0;
        for worker in &result.workers {
            let sides = &worker.directions;
            reads.add(&sides.read);
            writes.add(&sides.write);
            for side in [&sides.read, &sides.write] {
                latency.merge(&side.lat);
                elapsed_ns = elapsed_ns.max(side.runtime_ns);
            }
        }
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let ops = reads.ops + writes.ops;
        let rates: Vec<f64> = seconds.rows.iter().map(|row| row.ops_rate).collect();
        let rate = per_second(ops, elapsed_s);
        let estimate = mean_with_confidence(&rates, 0.95);
        ImageBenchSummary {
            elapsed_s,
            reads,
            writes,
            latency,
            interval: estimate.and_then(|estimate| {
                let half = estimate.half_width;
                informative_interval(rate, (rate - half, rate + half))
            }),
            cpu_us: cpu_ns
                .filter(|_| ops > 0)
                .map(|ns| ns as f64 / ops as f64 / 1e3),
            cluster: result.ceph.clone(),
            findings: result.findings(),
        }
    }

    /// Returns the lines of `rbd bench`, followed by those of iosonde.
    pub fn text(&self, head: &ImageBenchHeader) -> String {
        let both = ImageTotal {
            ops: self.reads.ops + self.writes.ops,
            bytes: self.reads.bytes + self.writes.bytes,
        };
        let mut text = format!(
            "elapsed: {}   {}",
            self.elapsed_s as u64,
            self.total_line(&both, "")
        );
        if head.io_type == ImageIoType::ReadWrite {
            text += &self.total_line(&self.reads, "read_");
            text += &self.total_line(&self.writes, "write_");
        }
        let mut line = |name: &str, value: String| {
            text += &format!("{name:<NAME_WIDTH$}{value}\n");
        };
        for (percent, seconds) in self.percentiles() {
            line(&format!("p{percent} latency(s):"), general(seconds));
        }
        if let Some(us) = self.cpu_us {
            line("Client CPU (us/op):", general(us));
        }
        match self.interval {
            Some((low, high)) => line(
                "Rate is:",
                format!(
                    "{} to {} ops/sec with 95 % confidence",
                    general(low),
                    general(high)
                ),
            ),
            None => line(
                "Confidence:",
                "not known: too few seconds, or too uneven".to_owned(),
            ),
        }
        for (name, value) in self.cluster.iter().flat_map(facts::ceph_facts) {
            let name = format!("{}{}:", name[..1].to_uppercase(), &name[1..]);
            line(&name, value);
        }
        for finding in &self.findings {
            text += &crate::text_table::wrapped(finding);
        }
        text
    }

    fn total_line(&self, total: &ImageTotal, prefix: &str) -> String {
        format!(
            "{prefix}ops: {}   {prefix}ops/sec: {}   {prefix}bytes/sec: {}/s\n",
            total.ops,
            general(per_second(total.ops, self.elapsed_s)),
            byte_text(per_second(total.bytes, self.elapsed_s))
        )
    }

    fn percentiles(&self) -> Vec<(f64, f64)> {
        let histogram = self.latency.histogram.as_ref();
        let value = |percent: f64| Some((percent, histogram?.percentile(percent)? as f64 / 1e9));
        PERCENTILES.into_iter().filter_map(value).collect()
    }

    fn json(&self) -> Value {
        let total = |total: &ImageTotal| {
            json!({
                "ops": total.ops,
                "ops_per_sec": per_second(total.ops, self.elapsed_s),
                "bytes_per_sec": per_second(total.bytes, self.elapsed_s),
            })
        };
        let percentiles: Map<String, Value> = self
            .percentiles()
            .into_iter()
            .map(|(percent, seconds)| (percent.to_string(), json!(seconds)))
            .collect();
        json!({
            "elapsed": self.elapsed_s,
            "read": total(&self.reads),
            "write": total(&self.writes),
            "latency_percentiles": percentiles,
            "ops_per_sec_confidence_95": self.interval.map(|(low, high)| [low, high]),
            "client_cpu_us_per_op": self.cpu_us,
            "cluster": self.cluster,
            "verdicts": self.findings,
        })
    }
}

/// Returns the benchmark as JSON.
pub fn image_bench_json(
    head: &ImageBenchHeader,
    seconds: &ImageSeconds,
    summary: &ImageBenchSummary,
    pretty: bool,
) -> String {
    let mut fields = head.json();
    fields.insert("seconds".to_owned(), seconds.json());
    if let Value::Object(more) = summary.json() {
        fields.extend(more);
    }
    // Serialization of plain data cannot fail.
    let text = match pretty {
        true => serde_json::to_string_pretty(&fields),
        false => serde_json::to_string(&fields),
    };
    text.unwrap_or_default() + "\n"
}

fn per_second(count: u64, elapsed_s: f64) -> f64 {
    match elapsed_s > 0.0 {
        true => count as f64 / elapsed_s,
        false => 0.0,
    }
}

/// Bytes as Ceph prints them: at most seven characters if they fit, e.g. `9.6 MiB`.
fn byte_text(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let whole = bytes as u64;
    if whole < 1024 {
        return format!("{whole} B");
    }
    let (mut value, mut unit) = (whole as f64 / 1024.0, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        return format!("{value:.0} {}", UNITS[unit]);
    }
    let texts = [2, 1, 0].map(|places: usize| format!("{value:.places$} {}", UNITS[unit]));
    let [.., shortest] = &texts;
    let fits = texts.iter().find(|text| text.len() <= 7);
    fits.unwrap_or(shortest).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_as_ceph_prints_them() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (1023.9, "1023 B"),
            (1024.0, "1 KiB"),
            (96.0 * 1024.0 * 1024.0, "96 MiB"),
            (9.61 * 1024.0 * 1024.0, "9.6 MiB"),
            (123.4 * 1024.0, "123 KiB"),
            (1.5 * 1024.0 * 1024.0 * 1024.0, "1.5 GiB"),
        ] {
            assert_eq!(byte_text(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn header_has_words_of_rbd_bench() {
        let mut head = ImageBenchHeader {
            io_type: ImageIoType::Write,
            io_bytes: 4096,
            io_threads: 16,
            total_bytes: 1 << 30,
            pattern: ImageIoPattern::Seq,
            read_percent: 50,
        };
        assert_eq!(
            head.text(),
            "bench  type write io_size 4096 io_threads 16 bytes 1073741824 pattern sequential\n  \
             SEC       OPS   OPS/SEC   BYTES/SEC\n"
        );
        head.io_type = ImageIoType::ReadWrite;
        head.read_percent = 70;
        head.pattern = ImageIoPattern::FullSeq;
        assert!(head.text().starts_with(
            "bench  type readwrite read:write=70:30 io_size 4096 io_threads 16 bytes 1073741824 \
             pattern full sequential\n"
        ));
    }

    #[test]
    fn short_intervals_get_no_row() {
        let mut interval = Interval {
            length_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.directions.write.ios = 100;
        interval.directions.write.bytes = 409_600;
        let mut seconds = ImageSeconds::default();
        assert_eq!(
            seconds.push(&interval).as_deref(),
            Some("    1       100       100   400 KiB/s\n")
        );
        interval.length_ns = 400_000_000;
        assert_eq!(seconds.push(&interval), None);
        assert_eq!(seconds.ops, 200);
    }
}
