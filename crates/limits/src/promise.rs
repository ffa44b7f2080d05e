//! Promise of a vendor: figures, the limiter of each, and their sources.

use super::limits_file::{Delivery, SharedBudget, SourceKind};
use super::metric::{Metric, VendorUnit, exact};
use super::query::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Cause of a cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Limiter {
    /// Size of the volume, or of all volumes of the type together.
    Size,
    /// Minimum of the volume type.
    TypeMinimum,
    /// Maximum of the volume type.
    TypeMaximum,
    /// Fixed figure of the volume type.
    Type,
    /// Tier of the size.
    Tier(String),
    /// Number of disks.
    Disks(u32),
    /// Provisioned IOPS.
    ProvisionedIops,
    /// Provisioned bandwidth.
    ProvisionedBandwidth,
    /// A chosen option.
    Option(String),
    /// Burst of a small volume.
    Burst,
    /// Machine.
    Machine(String),
    /// Network of the machine.
    Network(String),
}

impl fmt::Display for Limiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limiter::Size => formatter.write_str("volume size"),
            Limiter::TypeMinimum => formatter.write_str("minimum of the type"),
            Limiter::TypeMaximum => formatter.write_str("maximum of the type"),
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

/// One cap. A figure is the lowest of its caps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// Cause of the cap.
    pub by: Limiter,
    /// Operations or bytes per second.
    pub per_s: f64,
    /// Upper end of a published range, in operations or bytes per second. Without a range, `per_s`.
    pub up_to_per_s: f64,
    /// Unit of the published figure.
    pub unit: VendorUnit,
}

/// One figure of a promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromisedFigure {
    /// Metric of the figure.
    pub metric: Metric,
    /// Sustained operations or bytes per second.
    pub per_s: f64,
    /// Upper end of a published range.
    pub up_to_per_s: Option<f64>,
    /// Unit of the published figure.
    pub unit: VendorUnit,
    /// Cause of the lowest cap.
    pub limited_by: Limiter,
    /// All caps, in ascending order.
    pub bounds: Vec<Bound>,
    /// Burst rate, if it is higher than the sustained rate.
    pub burst: Option<Bound>,
}

impl PromisedFigure {
    /// Returns the highest rate that is promised, including the burst rate.
    pub(super) fn highest_per_s(&self) -> f64 {
        let burst = self.burst.as_ref().map_or(0.0, |burst| burst.per_s);
        self.per_s.max(self.up_to_per_s.unwrap_or(0.0)).max(burst)
    }
}

/// Duration of a burst.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLength {
    /// Limiter that allows the burst.
    pub of: Limiter,
    /// Metric of the burst. `None`: all metrics.
    pub metric: Option<Metric>,
    /// Seconds from a full bucket to an empty one at the burst rate.
    pub seconds: f64,
    /// Seconds until an empty bucket is full again, without I/O.
    pub refill_seconds: Option<f64>,
    /// Note of the vendor.
    pub note: Option<String>,
}

/// Source of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsSource {
    /// Figures that come from the source.
    pub of: String,
    /// Address or description of the source.
    pub source: String,
    /// Date of the source.
    pub as_of: String,
    /// Kind of the source.
    pub evidence: SourceKind,
    /// Whether the figures were checked in the source itself.
    pub verified: bool,
}

/// Limits that a vendor publishes for one or more volumes on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// Name of the product.
    pub product: String,
    /// Full name of the product.
    pub title: String,
    /// The query, with assumed values filled in.
    pub query: Query,
    /// Promised figures.
    pub figures: Vec<PromisedFigure>,
    /// Whether reads and writes share one budget.
    pub shared: SharedBudget,
    /// Whether the vendor promises the figures on this machine. If not, the remarks say why.
    pub firm: bool,
    /// Largest I/O that counts as one, in bytes.
    pub max_io_bytes: Option<u64>,
    /// Share of the limits that the vendor intends to deliver, and the share of the time.
    pub delivery: Option<Delivery>,
    /// Durations of bursts.
    pub bursts: Vec<BurstLength>,
    /// Test method of the vendor.
    pub method: Option<String>,
    /// Remarks that are necessary to interpret the figures.
    pub remarks: Vec<String>,
    /// Commands that make the machine and its disks through the requested service.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Conditions of the vendor.
    pub notes: Vec<String>,
    /// Sources of the figures.
    pub sources: Vec<LimitsSource>,
}

impl Promise {
    /// Returns the figure of a metric, or that of both directions if there is none for one.
    pub fn figure(&self, metric: Metric) -> Option<&PromisedFigure> {
        let of = |metric| self.figures.iter().find(|figure| figure.metric == metric);
        of(metric).or_else(|| of(metric.together()))
    }

    /// Returns title and parameters: `Google Cloud SSD persistent disk, 375 GiB, n1-standard-8`.
    pub fn name(&self) -> String {
        let subject = self.subject();
        match subject.is_empty() {
            true => self.title.clone(),
            false => format!("{}, {subject}", self.title),
        }
    }

    /// Returns each source once, with its date.
    pub fn origin(&self) -> String {
        let mut origins: Vec<String> = Vec::new();
        for source in &self.sources {
            let text = format!("{} ({})", source.source, source.as_of);
            if !origins.contains(&text) {
                origins.push(text);
            }
        }
        origins.join("; ")
    }

    /// Returns the parameters: `2 x 375 GiB, n1 with 8 vCPUs, as of 2016`.
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

    /// Returns the machine: `n1 with 8 vCPUs`, `n1-standard-8`. `None` for any machine.
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
