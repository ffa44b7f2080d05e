//! Statistics and logs of a job, and the errors after which it continues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of a job, and the way they are reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureOptions {
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
    /// `percentile_list`; by default fio's twenty.
    pub percentiles: Vec<f64>,
    /// `significant_figures`.
    pub significant_figures: u32,
    /// `unified_rw_reporting`.
    pub unified: UnifiedReporting,
    /// `stats`: 0 leaves the job out of the group's sums.
    pub stats: bool,
    /// Logs of the job: `write_bw_log`, `write_iops_log`, `write_lat_log` and the others.
    pub logs: LogPrefixes,
    /// `bwavgtime` in nanoseconds.
    pub bw_window_ns: u64,
    /// `iopsavgtime` in nanoseconds.
    pub iops_window_ns: u64,
    /// `disk_util`.
    pub disk_util: bool,
    /// `kb_base`, 1024 or 1000: whether sizes are printed in KiB or kB.
    pub kb_base: u32,
    /// `unit_base`: 8 prints bytes, 1 prints bits, 0 lets the printer choose.
    pub unit_base: u32,
    /// Whether time in which the process is stopped counts, as in fio. If false, this time is left
    /// out, and the I/Os in flight at the stop record no latency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_stops: bool,
}

/// `unified_rw_reporting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnifiedReporting {
    /// Each direction separately.
    None,
    /// All directions summed.
    Mixed,
    /// Both the sum and each direction.
    Both,
}

/// Logs, each with the prefix of its file names. "" stands for the job's name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogPrefixes {
    /// `write_bw_log`.
    pub bw: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`: slat, clat and lat files.
    pub lat: Option<String>,
    /// `write_hist_log`.
    pub hist: Option<String>,
    /// `write_iolog`: the file in which the I/Os are recorded as a trace.
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

impl LogPrefixes {
    /// Whether a log of samples is written.
    pub(crate) fn is_any(&self) -> bool {
        [&self.bw, &self.iops, &self.lat, &self.hist]
            .iter()
            .any(|prefix| prefix.is_some())
    }
}

/// Errors after which the job continues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorPolicy {
    /// `continue_on_error`: continue after a failed read.
    pub continue_read: bool,
    /// `continue_on_error`: continue after a failed write, trim or sync.
    pub continue_write: bool,
    /// `continue_on_error`: continue after a failed verification.
    pub continue_verify: bool,
    /// `ignore_error`: errno values after which the job continues, for read, write and verify. A
    /// list with values replaces `continue_on_error`. The errors are counted.
    pub ignore: [Vec<i32>; 3],
    /// `error_dump`.
    pub dump: bool,
}
