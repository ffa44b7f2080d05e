//! The limits file: TOML, as docs/limits.md describes it.

use super::term::Term;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) schema: Spanned<u32>,
    #[serde(default)]
    pub(super) product: Vec<Product>,
    #[serde(default)]
    pub(super) caps: Vec<Caps>,
    #[serde(default)]
    pub(super) disk_counts: Vec<DiskCounts>,
    #[serde(default)]
    pub(super) machine_types: Vec<MachineTypes>,
}

/// Where figures come from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub(super) source: String,
    pub(super) as_of: String,
    pub(super) evidence: Evidence,
    #[serde(default)]
    pub(super) verified: bool,
}

/// How a figure came into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A copy of the vendor's own page.
    VendorPage,
    /// Data or code in a repository of the vendor.
    VendorRepo,
    /// A third party's machine reading of the vendor's page.
    Scrape,
    /// A third party that copies or cites the vendor's page.
    Secondary,
    /// An article that quotes the vendor.
    Given,
    /// Worked out from other figures.
    Derived,
    /// An agreement, offer or measurement of your own.
    Own,
}

impl Evidence {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Evidence::VendorPage => "the vendor's page",
            Evidence::VendorRepo => "the vendor's repository",
            Evidence::Scrape => "a third party's reading of the vendor's page",
            Evidence::Secondary => "second hand",
            Evidence::Given => "quoted in an article",
            Evidence::Derived => "worked out",
            Evidence::Own => "your own",
        }
    }
}

/// Declares a table that has amounts among its keys, whose units are in the names of the keys.
macro_rules! with_amounts {
    ($(#[$attribute:meta])* struct $name:ident { $($(#[$field_attribute:meta])* $field:ident: $kind:ty,)* }) => {
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
            /// The amounts that are given.
            pub(super) fn amounts(&self) -> Vec<Amount<'_>> {
                use super::promise::{Metric::*, Unit};
                [
                    (Iops, Unit::Iops, &self.iops),
                    (ReadIops, Unit::Iops, &self.read_iops),
                    (WriteIops, Unit::Iops, &self.write_iops),
                    (Bandwidth, Unit::MibPerS, &self.mib_per_s),
                    (ReadBandwidth, Unit::MibPerS, &self.read_mib_per_s),
                    (WriteBandwidth, Unit::MibPerS, &self.write_mib_per_s),
                    (Bandwidth, Unit::MbPerS, &self.mb_per_s),
                    (ReadBandwidth, Unit::MbPerS, &self.read_mb_per_s),
                    (WriteBandwidth, Unit::MbPerS, &self.write_mb_per_s),
                ]
                .into_iter()
                .filter_map(|(metric, unit, term)| Some(Amount { metric, unit, term: term.as_ref()? }))
                .collect()
            }
        }
    };
}

/// One amount of a table.
pub(super) struct Amount<'a> {
    pub(super) metric: super::promise::Metric,
    pub(super) unit: super::promise::Unit,
    pub(super) term: &'a Term,
}

with_amounts! {
    /// What a volume can do.
    struct Limit {}
}

with_amounts! {
    /// What a volume can do for a while.
    struct Burst {
        /// Only smaller volumes burst.
        below_gib: Option<f64>,
        /// Operations in a full bucket; bursting spends what exceeds the sustained rate.
        io_credits: Option<f64>,
        /// The bucket holds as many bytes as the volume.
        bucket_is_volume: bool,
        /// How long a full bucket lasts.
        seconds: Option<f64>,
        /// Printed beside it.
        note: Option<String>,
    }
}

with_amounts! {
    /// What an option changes.
    struct Overlay {
        /// IOPS for a while.
        burst_iops: Option<Term>,
        /// Bandwidth for a while.
        burst_mib_per_s: Option<Term>,
        /// Bandwidth for a while.
        burst_mb_per_s: Option<Term>,
    }
}

with_amounts! {
    /// A row of a table: conditions, and the amounts where all of them hold.
    struct Row {
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
        /// Holds for machine types whose name ends like this.
        suffix: Option<String>,
        /// Holds for this processor.
        cpu: Option<String>,
        /// The machine comes with this many disks.
        has_disks: Option<u32>,
        /// Size of each of them.
        disk_gib: Option<f64>,
        /// IOPS for a while.
        burst_iops: Option<Term>,
        /// Bandwidth for a while.
        burst_mib_per_s: Option<Term>,
        /// Bandwidth for a while.
        burst_mb_per_s: Option<Term>,
        /// How long that lasts.
        burst_s: Option<f64>,
        /// What options change.
        options: BTreeMap<String, Overlay>,
        /// Printed beside it.
        note: Option<String>,
    }
}

/// One product as it was from some day on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Product {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    /// The figures are known to hold from this day, month or year on.
    pub(super) from: Spanned<String>,
    pub(super) origin: Origin,
    #[serde(default)]
    pub(super) size: Size,
    /// All volumes of one machine together count as one.
    #[serde(default)]
    pub(super) pooled: bool,
    /// Whether reads and writes draw on one budget.
    #[serde(default)]
    pub(super) shared: Shared,
    #[serde(default)]
    pub(super) io: IoRule,
    pub(super) delivery: Option<Delivery>,
    #[serde(default)]
    pub(super) provision: Provision,
    #[serde(default)]
    pub(super) limit: Limit,
    #[serde(default)]
    pub(super) tiers: Vec<Row>,
    pub(super) burst: Option<Burst>,
    #[serde(default)]
    pub(super) machine: MachineRule,
    /// How the vendor measures.
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

/// Sizes that are sold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Size {
    pub(super) min_gib: Option<f64>,
    pub(super) max_gib: Option<f64>,
    /// Disks of this size only; the size of several tells their number.
    pub(super) disk_gib: Option<f64>,
    /// The disks come with the machine.
    pub(super) from_machine: bool,
    /// Only these sizes, up to the last of them.
    pub(super) steps_gib: Vec<f64>,
    /// Above the last of the steps, multiples of this.
    pub(super) then_every_gib: Option<f64>,
}

/// Whether reads and writes draw on one budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shared {
    /// Of operations.
    pub iops: bool,
    /// Of bytes.
    pub bandwidth: bool,
}

/// How I/Os are counted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IoRule {
    /// A larger I/O counts as several of this.
    pub(super) max_kib: Option<u32>,
    /// The IOPS are stated for this size.
    pub(super) rated_kib: Option<u32>,
    /// In words.
    pub(super) note: Option<String>,
}

/// The vendor's word on how much of it is delivered, and how often.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Share of the limit, 0 to 1.
    #[serde(default = "whole")]
    pub share: f64,
    /// Share of the time, 0 to 1.
    pub time: f64,
}

fn whole() -> f64 {
    1.0
}

/// What the buyer chooses.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Provision {
    pub(super) iops: Option<Choice>,
    pub(super) mib_per_s: Option<Choice>,
    pub(super) mb_per_s: Option<Choice>,
}

/// The range of a choice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    pub(super) min: Term,
    pub(super) max: Term,
    /// What one gets without choosing.
    pub(super) included: Option<f64>,
}

/// What the machine has to do with it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MachineRule {
    /// The limits cannot be told without it.
    pub(super) required: bool,
    /// The number of vCPUs that is taken where none is given.
    pub(super) assumed_vcpus: Option<u32>,
    /// Groups of caps that hold.
    pub(super) caps: Vec<Spanned<String>>,
    /// Rows of this product alone; a machine that is in none of them cannot have it.
    pub(super) rows: Vec<Row>,
    /// Least vCPUs by family; other families cannot have it.
    pub(super) min_vcpus: BTreeMap<String, u32>,
    /// Below this number of vCPUs the figures are not promised.
    pub(super) full_speed_vcpus: BTreeMap<String, u32>,
}

/// What machines of one family cap.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Caps {
    pub(super) group: Spanned<String>,
    /// Family of all rows; absent where the rows name machine types.
    pub(super) family: Option<String>,
    /// Another limit than the machine's disk limit: `network`.
    #[serde(default)]
    pub(super) of: CapOf,
    pub(super) origin: Origin,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// What a cap is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CapOf {
    /// The machine's limit for its disks; a machine without one is unknown.
    #[default]
    Machine,
    /// The machine's network; not known of every machine.
    Network,
}

/// How many disks a machine may have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskCounts {
    pub(super) products: Vec<Spanned<String>>,
    pub(super) family: Option<String>,
    /// Holds only within this service, e.g. `gke`.
    pub(super) service: Option<String>,
    pub(super) origin: Origin,
    /// How the service is told to make such a machine, with `{disks}` and `{machine}` to be filled in, and what it needs.
    pub(super) command: Option<Spanned<String>>,
    pub(super) rows: Vec<CountRow>,
}

/// A row of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountRow {
    pub(super) machine: Option<String>,
    pub(super) vcpu_min: Option<u32>,
    pub(super) vcpu_max: Option<u32>,
    /// The numbers that can be chosen.
    pub(super) counts: Vec<u32>,
    /// The disks come with the machine.
    #[serde(default)]
    pub(super) fixed: bool,
    /// Why there are no figures for them.
    pub(super) unpublished: Option<String>,
}

/// The machine types of a family, so that a name which is none of them is an error where rows are about families.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineTypes {
    pub(super) family: Spanned<String>,
    pub(super) origin: Origin,
    /// The vCPUs that there are of each type (`standard`, `highmem`); empty for any number.
    #[serde(default)]
    pub(super) types: BTreeMap<String, Vec<u32>>,
    /// What may follow the number of vCPUs (`lssd`).
    #[serde(default)]
    pub(super) endings: Vec<String>,
    /// Machine types whose name tells no number of vCPUs.
    #[serde(default)]
    pub(super) names: Vec<String>,
    /// Whether numbers of vCPUs and memory can be chosen: `n2-custom-12-16384`.
    #[serde(default)]
    pub(super) custom: bool,
}
