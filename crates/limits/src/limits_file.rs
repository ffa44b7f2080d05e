//! Types of the limits file, a TOML file. docs/limits.md describes the format.

use super::term::Term;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A limits file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsFile {
    pub(super) schema: Spanned<u32>,
    #[serde(default)]
    pub(super) product: Vec<Product>,
    #[serde(default)]
    pub(super) caps: Vec<MachineCaps>,
    #[serde(default)]
    pub(super) disk_counts: Vec<DiskCounts>,
    #[serde(default)]
    pub(super) machine_types: Vec<MachineTypes>,
}

/// Source of figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureOrigin {
    pub(super) source: String,
    pub(super) as_of: String,
    pub(super) evidence: SourceKind,
    #[serde(default)]
    pub(super) verified: bool,
}

/// Kind of a figure's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A copy of the vendor's own page.
    VendorPage,
    /// Data or code in a repository of the vendor.
    VendorRepo,
    /// A third party's automatic extract of the vendor's page.
    Scrape,
    /// A third party that copies or cites the vendor's page.
    Secondary,
    /// An article that quotes the vendor.
    Given,
    /// Calculated from other figures.
    Derived,
    /// An agreement, offer or measurement of your own.
    Own,
}

impl SourceKind {
    /// Returns the kind in words.
    pub fn text(self) -> &'static str {
        match self {
            SourceKind::VendorPage => "the vendor's page",
            SourceKind::VendorRepo => "the vendor's repository",
            SourceKind::Scrape => "a third party's copy of the vendor's page",
            SourceKind::Secondary => "a secondary source",
            SourceKind::Given => "quoted in an article",
            SourceKind::Derived => "derived",
            SourceKind::Own => "your own file",
        }
    }
}

/// Declares a table with amounts. The names of their keys contain the units.
macro_rules! with_amounts {
    (
        $(#[$attribute:meta])*
        struct $name:ident { $($(#[$field_attribute:meta])* $field:ident: $kind:ty,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $($(#[$field_attribute])* pub(super) $field: $kind,)*
            pub(super) iops: Option<Term>,
            pub(super) read_iops: Option<Term>,
            pub(super) write_iops: Option<Term>,
            pub(super) mib_per_s: Option<Term>,
            pub(super) read_mib_per_s: Option<Term>,
            pub(super) write_mib_per_s: Option<Term>,
            pub(super) mb_per_s: Option<Term>,
            pub(super) read_mb_per_s: Option<Term>,
            pub(super) write_mb_per_s: Option<Term>,
        }

        impl $name {
            /// Returns the amounts that the table has.
            pub(super) fn amounts(&self) -> Vec<Amount<'_>> {
                use super::metric::{Metric::*, VendorUnit};
                [
                    (Iops, VendorUnit::Iops, &self.iops),
                    (ReadIops, VendorUnit::Iops, &self.read_iops),
                    (WriteIops, VendorUnit::Iops, &self.write_iops),
                    (Bandwidth, VendorUnit::MibPerS, &self.mib_per_s),
                    (ReadBandwidth, VendorUnit::MibPerS, &self.read_mib_per_s),
                    (WriteBandwidth, VendorUnit::MibPerS, &self.write_mib_per_s),
                    (Bandwidth, VendorUnit::MbPerS, &self.mb_per_s),
                    (ReadBandwidth, VendorUnit::MbPerS, &self.read_mb_per_s),
                    (WriteBandwidth, VendorUnit::MbPerS, &self.write_mb_per_s),
                ]
                .into_iter()
                .filter_map(|(metric, unit, term)| {
                    let term = term.as_ref()?;
                    Some(Amount { metric, unit, term })
                })
                .collect()
            }
        }
    };
}

/// One amount of a table.
pub(super) struct Amount<'a> {
    pub(super) metric: super::metric::Metric,
    pub(super) unit: super::metric::VendorUnit,
    pub(super) term: &'a Term,
}

with_amounts! {
    /// Sustained limits of a volume.
    struct SustainedLimits {}
}

with_amounts! {
    /// Burst of a volume.
    struct Burst {
        /// Only volumes below this size burst.
        below_gib: Option<f64>,
        /// I/Os in a full bucket. A burst consumes the part of the rate above the sustained rate.
        io_credits: Option<f64>,
        /// The bucket holds as many bytes as the volume.
        bucket_is_volume: bool,
        /// Duration of a burst that begins with a full bucket.
        seconds: Option<f64>,
        /// Note that is printed with the burst.
        note: Option<String>,
    }
}

with_amounts! {
    /// Amounts that an option replaces.
    struct Overlay {
        /// Burst IOPS.
        burst_iops: Option<Term>,
        /// Burst bandwidth in MiB/s.
        burst_mib_per_s: Option<Term>,
        /// Burst bandwidth in MB/s.
        burst_mb_per_s: Option<Term>,
    }
}

with_amounts! {
    /// A row of a table: amounts, and the conditions under which they hold.
    struct LimitRow {
        /// Name of the tier.
        tier: Option<String>,
        /// Holds for volumes up to this size.
        up_to_gib: Option<f64>,
        /// Holds for volumes below this size.
        below_gib: Option<f64>,
        /// Holds for this number of disks.
        disks: Option<u32>,
        /// Holds for this machine type.
        machine: Option<String>,
        /// Holds for machine types of this family.
        family: Option<String>,
        /// Holds for these numbers of vCPUs.
        vcpus: Vec<u32>,
        /// Holds from this number of vCPUs.
        vcpu_min: Option<u32>,
        /// Holds up to this number of vCPUs.
        vcpu_max: Option<u32>,
        /// Holds for machine types whose name ends with this.
        suffix: Option<String>,
        /// Holds for this processor.
        cpu: Option<String>,
        /// Number of disks that come with the machine.
        has_disks: Option<u32>,
        /// Size of each of these disks.
        disk_gib: Option<f64>,
        /// Burst IOPS.
        burst_iops: Option<Term>,
        /// Burst bandwidth in MiB/s.
        burst_mib_per_s: Option<Term>,
        /// Burst bandwidth in MB/s.
        burst_mb_per_s: Option<Term>,
        /// Duration of the burst in seconds.
        burst_s: Option<f64>,
        /// Amounts that options replace, by the name of the option.
        options: BTreeMap<String, Overlay>,
        /// Note that is printed with the amounts.
        note: Option<String>,
    }
}

/// One edition of a product.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Product {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    /// Day, month or year from which the figures are known to hold.
    pub(super) from: Spanned<String>,
    pub(super) origin: FigureOrigin,
    #[serde(default)]
    pub(super) size: OfferedSizes,
    /// Whether all volumes of a machine count as one.
    #[serde(default)]
    pub(super) pooled: bool,
    /// Whether reads and writes share one budget.
    #[serde(default)]
    pub(super) shared: SharedBudget,
    #[serde(default)]
    pub(super) io: IoRule,
    pub(super) delivery: Option<Delivery>,
    #[serde(default)]
    pub(super) provision: Provision,
    #[serde(default)]
    pub(super) limit: SustainedLimits,
    #[serde(default)]
    pub(super) tiers: Vec<LimitRow>,
    pub(super) burst: Option<Burst>,
    #[serde(default)]
    pub(super) machine: MachineRule,
    /// Test method of the vendor.
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

/// Sizes that are sold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OfferedSizes {
    pub(super) min_gib: Option<f64>,
    pub(super) max_gib: Option<f64>,
    /// Size of each disk, if there is only one size. A larger size means several disks.
    pub(super) disk_gib: Option<f64>,
    /// Whether the disks come with the machine.
    pub(super) from_machine: bool,
    /// The only sizes that are sold, up to the last of them.
    pub(super) steps_gib: Vec<f64>,
    /// Step of the sizes above the last of `steps_gib`.
    pub(super) then_every_gib: Option<f64>,
}

/// Whether reads and writes share one budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SharedBudget {
    /// Budget of operations.
    pub iops: bool,
    /// Budget of bytes.
    pub bandwidth: bool,
}

/// How the vendor counts I/Os.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IoRule {
    /// Largest I/O that counts as one.
    pub(super) max_kib: Option<u32>,
    /// I/O size of the published IOPS.
    pub(super) rated_kib: Option<u32>,
    /// Explanation in words.
    pub(super) note: Option<String>,
}

/// Share of the limit that the vendor intends to deliver, and the share of the time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Share of the limit, from 0 to 1.
    #[serde(default = "whole")]
    pub share: f64,
    /// Share of the time, from 0 to 1.
    pub time: f64,
}

fn whole() -> f64 {
    1.0
}

/// Amounts that the buyer provisions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Provision {
    pub(super) iops: Option<ProvisionRange>,
    pub(super) mib_per_s: Option<ProvisionRange>,
    pub(super) mb_per_s: Option<ProvisionRange>,
}

/// Range of a provisioned amount.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProvisionRange {
    pub(super) min: Term,
    pub(super) max: Term,
    /// Amount without a choice of the buyer. `None`: the choice is required.
    pub(super) included: Option<f64>,
}

/// Dependence of a product's limits on the machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MachineRule {
    /// Whether a query needs a machine.
    pub(super) required: bool,
    /// Number of vCPUs that is assumed if a query has none.
    pub(super) assumed_vcpus: Option<u32>,
    /// Groups of caps that apply.
    pub(super) caps: Vec<Spanned<String>>,
    /// Caps of this product only. The product is not available for machines without a row.
    pub(super) rows: Vec<LimitRow>,
    /// Minimum number of vCPUs by family. The product is not available for other families.
    pub(super) min_vcpus: BTreeMap<String, u32>,
    /// Number of vCPUs by family below which the vendor does not promise the figures.
    pub(super) full_speed_vcpus: BTreeMap<String, u32>,
}

/// Caps of the machines of a family.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineCaps {
    pub(super) group: Spanned<String>,
    /// Family of all rows. `None`: the rows name machine types.
    pub(super) family: Option<String>,
    /// Kind of the cap: the machine's disk limit, or `network`.
    #[serde(default)]
    pub(super) of: CapOf,
    pub(super) origin: FigureOrigin,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) rows: Vec<LimitRow>,
}

/// Kind of a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CapOf {
    /// The machine's limit for its disks. A family without caps is an unknown machine.
    #[default]
    Machine,
    /// The limit of the machine's network. Families without it are allowed.
    Network,
}

/// Numbers of disks that machines can have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskCounts {
    pub(super) products: Vec<Spanned<String>>,
    pub(super) family: Option<String>,
    /// Service to which the table is restricted, such as `gke`.
    pub(super) service: Option<String>,
    pub(super) origin: FigureOrigin,
    /// Command that makes the machine. `{disks}`, `{all_gib}` and `{machine}` in it are
    /// replaced.
    pub(super) command: Option<Spanned<String>>,
    pub(super) rows: Vec<CountRow>,
}

/// Numbers of disks for machines of some numbers of vCPUs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountRow {
    pub(super) machine: Option<String>,
    pub(super) vcpu_min: Option<u32>,
    pub(super) vcpu_max: Option<u32>,
    /// Numbers of disks to choose from.
    pub(super) counts: Vec<u32>,
    /// Whether the disks come with the machine.
    #[serde(default)]
    pub(super) fixed: bool,
    /// Reason why the vendor publishes no figures for these disks.
    pub(super) unpublished: Option<String>,
}

/// Machine types of a family. Another type is an error, even if rows are about the whole family.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineTypes {
    pub(super) family: Spanned<String>,
    pub(super) origin: FigureOrigin,
    /// Numbers of vCPUs of each type (`standard`, `highmem`). An empty list allows any number.
    #[serde(default)]
    pub(super) types: BTreeMap<String, Vec<u32>>,
    /// Suffixes that may follow the number of vCPUs (`lssd`).
    #[serde(default)]
    pub(super) endings: Vec<String>,
    /// Machine types whose names contain no number of vCPUs.
    #[serde(default)]
    pub(super) names: Vec<String>,
    /// Whether custom numbers of vCPUs and memory are sold: `n2-custom-12-16384`.
    #[serde(default)]
    pub(super) custom: bool,
}
