//! Result of one pod of a run.

use crate::disk_util::DiskUtil;
use crate::machine::MachineSeries;
use crate::verdict::Verdict;
use crate::worker_result::WorkerResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of one pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodResult {
    /// Name of the pod.
    pub name: String,
    /// Node on which the pod ran.
    pub node: String,
    /// Delay between the agreed instant and the start of the pod's first job.
    pub started_ns: u64,
    /// Error of the pod's clock: half of the fastest exchange with it. 0 if the pods started by
    /// themselves. The agreed instant is then the start of the first pod.
    pub clock_error_ns: u64,
    /// Workers of the pod, in plan order.
    pub workers: Vec<WorkerResult>,
    /// Activity of the pod's block devices during the run.
    pub disks: Vec<DiskUtil>,
    /// Time series of the pod's devices and node.
    pub series: MachineSeries,
    /// Verdicts on the pod's figures.
    pub verdicts: Vec<Verdict>,
}
