//! What was promised: figures, what limits each, and where they were published.

use super::file::{Delivery, Evidence, Shared};
use super::query::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a figure is of. Where a vendor publishes one figure for reads and writes together, there is no figure for
/// either alone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Reads and writes per second, together.
    Iops,
    /// Reads per second.
    ReadIops,
    /// Writes per second.
    WriteIops,
    /// Bytes read and written per second, together.
    Bandwidth,
    /// Bytes read per second.
    ReadBandwidth,
    /// Bytes written per second.
    WriteBandwidth,
}

impl Metric {
    /// All, in the order in which they are printed.
    pub const ALL: [Metric; 6] = [
        Metric::Iops,
        Metric::ReadIops,
        Metric::WriteIops,
        Metric::Bandwidth,
        Metric::ReadBandwidth,
        Metric::WriteBandwidth,
    ];

    /// Whether it counts operations; otherwise bytes.
    pub fn is_iops(self) -> bool {
        matches!(self, Metric::Iops | Metric::ReadIops | Metric::WriteIops)
    }

    /// The metric of reads and writes together.
    pub fn together(self) -> Metric {
        if self.is_iops() {
            Metric::Iops
        } else {
            Metric::Bandwidth
        }
    }

    /// Its name in JSON and CSV.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Iops => "iops",
            Metric::ReadIops => "read_iops",
            Metric::WriteIops => "write_iops",
            Metric::Bandwidth => "bandwidth",
            Metric::ReadBandwidth => "read_bandwidth",
            Metric::WriteBandwidth => "write_bandwidth",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Metric::Iops => "IOPS",
            Metric::ReadIops => "read IOPS",
            Metric::WriteIops => "write IOPS",
            Metric::Bandwidth => "bandwidth",
            Metric::ReadBandwidth => "read bandwidth",
            Metric::WriteBandwidth => "write bandwidth",
        })
    }
}

/// The unit in which the vendor publishes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Operations per second.
    #[serde(rename = "IOPS")]
    Iops,
    /// 2^20 bytes per second.
    #[serde(rename = "MiB/s")]
    MibPerS,
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    MbPerS,
}

impl Unit {
    /// Operations, or bytes, in one of it.
    pub fn factor(self) -> f64 {
        match self {
            Unit::Iops => 1.0,
            Unit::MibPerS => 1_048_576.0,
            Unit::MbPerS => 1e6,
        }
    }

    /// As the vendor writes it.
    pub fn text(self) -> &'static str {
        match self {
            Unit::Iops => "IOPS",
            Unit::MibPerS => "MiB/s",
            Unit::MbPerS => "MB/s",
        }
    }

    /// An amount per second, in this unit: `15,000`, `420 MiB/s`.
    pub fn show(self, per_s: f64) -> String {
        let number = exact(per_s / self.factor());
        match self {
            Unit::Iops => number,
            _ => format!("{number} {}", self.text()),
        }
    }
}

/// What a figure is capped by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Limiter {
    /// The size of the volume, or of all volumes of the type together.
    Size,
    /// The least that the type of volume gives.
    TypeMinimum,
    /// The most that the type of volume gives.
    TypeMaximum,
    /// A figure of the type that depends on nothing.
    Type,
    /// The tier that the size falls into.
    Tier(String),
    /// The number of disks.
    Disks(u32),
    /// The IOPS that were chosen.
    ProvisionedIops,
    /// The bandwidth that was chosen.
    ProvisionedBandwidth,
    /// An option that was taken.
    Option(String),
    /// The credits that small volumes save up.
    Burst,
    /// The machine.
    Machine(String),
    /// The network of the machine.
    Network(String),
}

impl fmt::Display for Limiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limiter::Size => formatter.write_str("volume size"),
            Limiter::TypeMinimum => formatter.write_str("least of the type"),
            Limiter::TypeMaximum => formatter.write_str("most of the type"),
            Limiter::Type => formatter.write_str("type"),
            Limiter::Tier(name) => write!(formatter, "tier {name}"),
            Limiter::Disks(1) => formatter.write_str("1 disk"),
            Limiter::Disks(count) => write!(formatter, "{count} disks"),
            Limiter::ProvisionedIops => formatter.write_str("provisioned IOPS"),
            Limiter::ProvisionedBandwidth => formatter.write_str("provisioned bandwidth"),
            Limiter::Option(name) => formatter.write_str(name),
            Limiter::Burst => formatter.write_str("burst"),
            Limiter::Machine(name) => write!(formatter, "machine {name}"),
            Limiter::Network(name) => write!(formatter, "network of {name}"),
        }
    }
}

/// One cap: the figure is the smallest of all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// What caps.
    pub by: Limiter,
    /// At how many operations or bytes per second.
    pub per_s: f64,
    /// The upper end, where the vendor publishes a range.
    pub up_to_per_s: f64,
    /// The unit in which it is published.
    pub unit: Unit,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promised {
    /// What it is of.
    pub metric: Metric,
    /// Operations or bytes per second that can be kept up.
    pub per_s: f64,
    /// The upper end, where the vendor publishes a range.
    pub up_to_per_s: Option<f64>,
    /// The unit in which it is published.
    pub unit: Unit,
    /// What caps it.
    pub limited_by: Limiter,
    /// Everything that caps it, the lowest first.
    pub bounds: Vec<Bound>,
    /// What is reached for a while.
    pub burst: Option<Bound>,
}

impl Promised {
    /// The most that is promised, be it for a while.
    pub fn highest_per_s(&self) -> f64 {
        let burst = self.burst.as_ref().map_or(0.0, |burst| burst.per_s);
        self.per_s.max(self.up_to_per_s.unwrap_or(0.0)).max(burst)
    }
}

/// How long a burst lasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLength {
    /// What bursts.
    pub of: Limiter,
    /// What is used up.
    pub metric: Option<Metric>,
    /// Seconds that a full bucket lasts at full speed.
    pub seconds: f64,
    /// Seconds until an empty bucket is full again, when it is left alone.
    pub refill_seconds: Option<f64>,
    /// The vendor's words.
    pub note: Option<String>,
}

/// Where figures were published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// What came from there.
    pub of: String,
    /// Address or description.
    pub source: String,
    /// When it said so.
    pub as_of: String,
    /// How it came into the limits file.
    pub evidence: Evidence,
    /// Whether the numbers were read in the source itself.
    pub verified: bool,
}

/// What a vendor publishes about a volume, or several, on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// Name of the product.
    pub product: String,
    /// Its full name.
    pub title: String,
    /// What was asked for, with what was assumed filled in.
    pub query: Query,
    /// The figures.
    pub figures: Vec<Promised>,
    /// Whether reads and writes draw on one budget.
    pub shared: Shared,
    /// Whether the figures are promised on this machine at all; the remarks say why not.
    pub firm: bool,
    /// An I/O of more bytes counts as several.
    pub max_io_bytes: Option<u64>,
    /// How much of it the vendor delivers how often.
    pub delivery: Option<Delivery>,
    /// How long bursts last.
    pub bursts: Vec<BurstLength>,
    /// How the vendor measures.
    pub method: Option<String>,
    /// What must be known to read the figures.
    pub remarks: Vec<String>,
    /// How the service that was named is told to make it.
    #[serde(default)]
    pub commands: Vec<String>,
    /// The vendor's own fine print.
    pub notes: Vec<String>,
    /// Where all that was published.
    pub sources: Vec<Source>,
}

impl Promise {
    /// The figure of a metric; that of reads and writes together where there is none for one direction.
    pub fn figure(&self, metric: Metric) -> Option<&Promised> {
        let of = |metric| self.figures.iter().find(|figure| figure.metric == metric);
        of(metric).or_else(|| of(metric.together()))
    }

    /// The product and what was asked about: `Google Cloud SSD persistent disk, 375 GiB, n1 with 8 vCPUs`.
    pub fn name(&self) -> String {
        let subject = self.subject();
        match subject.is_empty() {
            true => self.title.clone(),
            false => format!("{}, {subject}", self.title),
        }
    }

    /// Where it was published and as of when, each once.
    pub fn origin(&self) -> String {
        let mut told: Vec<String> = Vec::new();
        for source in &self.sources {
            let text = format!("{} ({})", source.source, source.as_of);
            if !told.contains(&text) {
                told.push(text);
            }
        }
        told.join("; ")
    }

    /// What was asked about: `2 x 375 GiB, n1 with 8 vCPUs, as of 2016`.
    pub fn subject(&self) -> String {
        let query = &self.query;
        let mut parts = Vec::new();
        match (query.disks, query.size_gib) {
            (None | Some(1), Some(size)) => parts.push(format!("{} GiB", exact(size))),
            (Some(disks), Some(size)) => parts.push(format!("{disks} x {} GiB", exact(size))),
            (Some(disks), None) => parts.push(format!("{disks} disks")),
            (None, None) => {}
        }
        parts.extend(self.machine());
        parts.extend(query.cpu.clone());
        parts.extend(query.with.iter().map(|option| format!("with {option}")));
        parts.extend(query.as_of.as_ref().map(|as_of| format!("as of {as_of}")));
        parts.join(", ")
    }

    /// The machine that it is for: `n1 with 8 vCPUs`, `n1-standard-8`; `None` if it is for any.
    pub fn machine(&self) -> Option<String> {
        let query = &self.query;
        let machine = query.machine.as_deref();
        let machine = machine.filter(|machine| *machine != "any")?;
        Some(match query.vcpus {
            Some(vcpus) if !machine.contains(['-', '.']) => format!("{machine} with {vcpus} vCPUs"),
            _ => machine.to_owned(),
        })
    }
}

/// A number with its thousands apart and at most two decimals: `15,000`, `281.25`, `1.5`.
pub fn exact(value: f64) -> String {
    let rounded = format!("{value:.2}");
    let (whole, decimals) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() {
        grouped
    } else {
        format!("{grouped}.{decimals}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_exact() {
        assert_eq!(exact(281.25), "281.25");
        assert_eq!(exact(15_000.0), "15,000");
        assert_eq!(exact(1_200_000.0), "1,200,000");
        assert_eq!(exact(1.5), "1.5");
        assert_eq!(exact(0.0), "0");
        assert_eq!(Unit::MibPerS.show(420.0 * 1_048_576.0), "420 MiB/s");
        assert_eq!(Unit::MbPerS.show(1.5e6), "1.5 MB/s");
    }
}
