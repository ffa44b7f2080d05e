//! What is measured and reported, and which errors are survived.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is measured and reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// `group_reporting`.
    pub group_reporting: bool,
    /// Submission latency is recorded (`disable_slat`, `gtod_reduce`).
    pub slat: bool,
    /// Completion latency is recorded.
    pub clat: bool,
    /// Total latency is recorded.
    pub lat: bool,
    /// Bandwidth samples are taken (`disable_bw_measurement`).
    pub bw: bool,
    /// `slat_percentiles`.
    pub slat_percentiles: bool,
    /// `clat_percentiles`.
    pub clat_percentiles: bool,
    /// `lat_percentiles`.
    pub lat_percentiles: bool,
    /// `percentile_list`; fio's twenty by default.
    pub percentiles: Vec<f64>,
    /// `significant_figures`.
    pub significant_figures: u32,
    /// `unified_rw_reporting`.
    pub unified: UnifiedReporting,
    /// `stats=0`: left out of the group's sums.
    pub stats: bool,
    /// `write_bw_log`, ...: what is logged and where.
    pub logs: Logs,
    /// `bwavgtime` in nanoseconds.
    pub bw_window_ns: u64,
    /// `iopsavgtime` in nanoseconds.
    pub iops_window_ns: u64,
    /// `disk_util`.
    pub disk_util: bool,
    /// `kb_base`, 1024 or 1000: whether sizes are printed in KiB or kB.
    pub kb_base: u32,
    /// `unit_base`: 8 prints bytes, 1 prints bits, 0 leaves the choice to the printer.
    pub unit_base: u32,
    /// Whether time in which the process is stopped counts, as in fio. Else it is left out, and I/Os in flight have no latency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_stops: bool,
}

/// `unified_rw_reporting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnifiedReporting {
    /// Each direction by itself.
    None,
    /// All directions summed.
    Mixed,
    /// Both.
    Both,
}

/// Logs, each with the prefix of its file names. "" stands for the job's name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Logs {
    /// `write_bw_log`.
    pub bw: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`: slat, clat and lat files.
    pub lat: Option<String>,
    /// `write_hist_log`.
    pub hist: Option<String>,
    /// `write_iolog`: the file that the I/Os are recorded in, as a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// `per_job_logs`.
    pub per_job: bool,
    /// `log_avg_msec`; 0 logs every I/O.
    pub avg_ms: u64,
    /// `log_hist_msec`.
    pub hist_ms: u64,
    /// `log_hist_coarseness`.
    pub hist_coarseness: u32,
    /// `log_max_value`: the window's maximum instead of its mean.
    pub max_value: bool,
    /// `log_offset`.
    pub offset: bool,
    /// `log_prio`.
    pub prio: bool,
    /// `log_unix_epoch`.
    pub unix_epoch: bool,
}

impl Logs {
    /// Whether a log of samples is written.
    pub(crate) fn is_any(&self) -> bool {
        [&self.bw, &self.iops, &self.lat, &self.hist]
            .iter()
            .any(|prefix| prefix.is_some())
    }
}

/// Which errors are survived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorPolicy {
    /// `continue_on_error`: go on after errors of reads.
    pub continue_read: bool,
    /// ... of writes.
    pub continue_write: bool,
    /// ... of verification.
    pub continue_verify: bool,
    /// `ignore_error`: errno values that are not even counted, for read, write and verify.
    pub ignore: [Vec<i32>; 3],
    /// `error_dump`.
    pub dump: bool,
}
