//! Metrics of figures, and the units in which vendors publish them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Metric of a figure. If a vendor publishes one figure for reads and writes together, neither
/// direction has a figure of its own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
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
    /// All metrics, in the order of output.
    pub const ALL: [Metric; 6] = [
        Metric::Iops,
        Metric::ReadIops,
        Metric::WriteIops,
        Metric::Bandwidth,
        Metric::ReadBandwidth,
        Metric::WriteBandwidth,
    ];

    /// Returns whether the metric counts operations. Otherwise it counts bytes.
    pub fn is_iops(self) -> bool {
        matches!(self, Metric::Iops | Metric::ReadIops | Metric::WriteIops)
    }

    /// Returns the metric of reads and writes together.
    pub fn together(self) -> Metric {
        if self.is_iops() {
            Metric::Iops
        } else {
            Metric::Bandwidth
        }
    }

    /// Returns the name in JSON and CSV.
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

/// Unit in which the vendor publishes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VendorUnit {
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

impl VendorUnit {
    /// Returns the operations or bytes of one unit.
    pub fn factor(self) -> f64 {
        match self {
            VendorUnit::Iops => 1.0,
            VendorUnit::MibPerS => 1_048_576.0,
            VendorUnit::MbPerS => 1e6,
        }
    }

    /// Returns the unit as the vendor writes it.
    pub fn text(self) -> &'static str {
        match self {
            VendorUnit::Iops => "IOPS",
            VendorUnit::MibPerS => "MiB/s",
            VendorUnit::MbPerS => "MB/s",
        }
    }

    /// Formats an amount per second in this unit: `15,000`, `420 MiB/s`.
    pub fn show(self, per_s: f64) -> String {
        let number = exact(per_s / self.factor());
        match self {
            VendorUnit::Iops => number,
            _ => format!("{number} {}", self.text()),
        }
    }
}

/// Formats a number as commands take it, with at most two decimals: `15000`, `281.25`.
pub(super) fn command_number(value: f64) -> String {
    let rounded = format!("{value:.2}");
    rounded
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Formats a number with thousands separators and at most two decimals: `15,000`, `281.25`.
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
    use strum::VariantArray;

    #[test]
    fn amounts_are_formatted_without_loss() {
        assert_eq!(exact(281.25), "281.25");
        assert_eq!(exact(15_000.0), "15,000");
        assert_eq!(exact(1_200_000.0), "1,200,000");
        assert_eq!(exact(1.5), "1.5");
        assert_eq!(exact(0.0), "0");
        assert_eq!(VendorUnit::MibPerS.show(420.0 * 1_048_576.0), "420 MiB/s");
        assert_eq!(VendorUnit::MbPerS.show(1.5e6), "1.5 MB/s");
    }

    #[test]
    fn numbers_of_commands_have_no_separators() {
        for (value, number) in [
            (0.0, "0"),
            (281.25, "281.25"),
            (2999.7, "2999.7"),
            (15_000.0, "15000"),
        ] {
            assert_eq!(command_number(value), number);
        }
    }

    #[test]
    fn metrics_are_all_listed() {
        assert_eq!(Metric::ALL, Metric::VARIANTS);
    }
}
