//! Result of one run: counts, latencies, time series and verdicts.
//!
//! [`RunResult`] is the source of every report and format. [`FORMAT`] increases when a field
//! changes its meaning. Durations are in nanoseconds, points in time in milliseconds since the
//! epoch.

use crate::cache_state::LayerCache;
use crate::ceph::CephSide;
use crate::host::{Host, TargetInfo};
use crate::interval::Intervals;
use crate::machine::MachineSeries;
use crate::nfs::NfsSide;
use crate::node_result::NodeResult;
use crate::pod_result::PodResult;
use crate::shared_file::SharedFileResult;
use iosonde_job::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::disk_util::DiskUtil;
pub use crate::verdict::{Verdict, VerdictKind};
pub use crate::worker_result::{
    BackendUsed, CephUsed, CpuUse, DirectionStats, IoFailure, PriorityLatency, RampResult,
    SteadyStateResult, SyncStats, WorkerResult,
};

/// Version of the result format, stored in [`RunResult::format`].
pub const FORMAT: u32 = 1;

/// Result of running one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Value of [`FORMAT`] in the program that wrote the result.
    pub format: u32,
    /// Name and version of the program.
    pub program: String,
    /// Start of the run, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Duration of the run, layout included.
    pub elapsed_ns: u64,
    /// The plan that was run.
    pub plan: Plan,
    /// The machine on which the plan ran.
    pub host: Host,
    /// Properties of the files and devices that the run used.
    pub targets: Vec<TargetInfo>,
    /// Labels, both detected and given by the user.
    pub labels: BTreeMap<String, String>,
    /// Results of the workers: one per clone of each job that ran, in plan order.
    pub workers: Vec<WorkerResult>,
    /// Results of the workers of neighbours, in plan order. All other figures are without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<WorkerResult>,
    /// Activity of each block device during the run.
    pub disks: Vec<DiskUtil>,
    /// Time series of I/Os, bytes and latencies, summed over all workers.
    pub intervals: Intervals,
    /// Time series of the devices and the machine. Empty in simulations.
    #[serde(default)]
    pub series: MachineSeries,
    /// Results per pod, if several pods ran the plan. The other fields then hold their sum.
    #[serde(default)]
    pub pods: Vec<PodResult>,
    /// Check of a file that the pods shared, before their jobs started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_file: Option<SharedFileResult>,
    /// Disk activity of other machines that serve the volume, or that the user named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeResult>,
    /// The Ceph cluster that the run used, and its activity during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSide>,
    /// Requests to NFS servers during the run, per mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nfs: Vec<NfsSide>,
    /// State of the caches at the start of the jobs, per layer. Empty in simulations and in results
    /// of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<LayerCache>,
    /// Events of the run.
    pub events: Vec<RunEvent>,
    /// Verdicts: the bottleneck, and reasons not to trust the figures.
    pub verdicts: Vec<Verdict>,
    /// Advice that does not concern the figures, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// Time since the start of the run.
    pub at_ns: u64,
    /// Description in one sentence.
    pub message: String,
}

impl RunResult {
    /// Returns the result of a plan that measured nothing, without program, machine and targets.
    pub fn unmeasured(plan: Plan) -> RunResult {
        RunResult {
            format: FORMAT,
            program: String::new(),
            started_at_ms: 0,
            elapsed_ns: 0,
            plan,
            host: Host::default(),
            targets: Vec::new(),
            labels: BTreeMap::new(),
            workers: Vec::new(),
            neighbours: Vec::new(),
            disks: Vec::new(),
            intervals: Intervals::default(),
            series: MachineSeries::default(),
            pods: Vec::new(),
            shared_file: None,
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            caches: Vec::new(),
            events: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a note, once.
    pub(crate) fn add_note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Returns the first verdict whose kind names a limit. Later ones are additional findings.
    pub fn bottleneck(&self) -> Option<&Verdict> {
        self.verdicts
            .iter()
            .find(|verdict| verdict.kind.limit().is_some())
    }

    /// Returns all verdicts as sentences. That of the bottleneck names the limit first.
    pub fn findings(&self) -> Vec<String> {
        let bottleneck = self.bottleneck();
        let sentence = |verdict: &Verdict| match verdict.kind.limit() {
            Some(_) if verdict.kind == VerdictKind::Unclear => {
                format!("no bottleneck found: {}", verdict.evidence)
            }
            // The evidence of a cache names the cache already.
            Some(limit)
                if bottleneck == Some(verdict) && verdict.kind != VerdictKind::ServedFromCache =>
            {
                format!("limited by {limit}: {}", verdict.evidence)
            }
            _ => verdict.evidence.clone(),
        };
        self.verdicts.iter().map(sentence).collect()
    }
}
