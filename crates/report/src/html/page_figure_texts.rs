//! Printed figures of a row of the page.

use serde::Serialize;

/// Rates and percentiles of a figure, as all screens print them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct PageFigureTexts {
    /// Rate without its interval: `93.4k`.
    pub(crate) iops: String,
    /// Half the interval of the rate: `±1.2k`. `None`: the interval is not known.
    pub(crate) iops_half: Option<String>,
    /// Bandwidth, with the digits that it has beside its interval.
    pub(crate) bandwidth: String,
    /// Half the interval of the bandwidth.
    pub(crate) bandwidth_half: Option<String>,
    /// Reason why the rate has no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<&'static str>,
    /// Mean latency. `None`: it was not measured.
    pub(crate) mean: Option<String>,
    /// Percentiles 50, 99 and 99.9. `None`: too few I/Os were measured.
    pub(crate) percentiles: [Option<String>; 3],
}
