//! Verdicts on a run: statements about its figures.

use crate::known_cause::read_known_cause;
use crate::verdict_cause::VerdictCause;
use iosonde_job::plan::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A statement about a result, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Kind of the verdict.
    pub kind: VerdictKind,
    /// Finding and evidence, in one sentence.
    pub evidence: String,
    /// Cause with its quantities, from which the evidence is made. `None` if only the evidence is
    /// known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_known_cause"
    )]
    pub cause: Option<VerdictCause>,
}

impl Verdict {
    /// Direction of the I/O that a page cache served. `None` for other verdicts, and if only the
    /// evidence is known.
    #[must_use]
    pub fn cached_direction(&self) -> Option<Direction> {
        match self.cause {
            Some(VerdictCause::ServedFromCache { direction, .. }) => Some(direction),
            _ => None,
        }
    }
}

/// Kinds of verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The device moved fewer bytes than the job: a cache served the I/O.
    ServedFromCache,
    /// Holes or unwritten extents were read.
    UnwrittenData,
    /// The generator used all its processor time.
    Generator,
    /// A limit on this machine throttled the I/O: of a control group, or above the device.
    Throttled,
    /// The rate is as constant as under a provider's throttle. This is an inference.
    Allowance,
    /// Another process or machine used the device.
    Interference,
    /// The device was saturated.
    Device,
    /// Too few I/Os were in flight to keep the device busy.
    QueueDepth,
    /// I/Os waited for another machine, or for the process that serves a FUSE file system.
    Network,
    /// I/Os waited for locks of the file system, above the device.
    LockContention,
    /// A Ceph cluster was recovering or scrubbing.
    ClusterBusy,
    /// OSDs of a Ceph cluster were down.
    ClusterDegraded,
    /// One OSD of a Ceph cluster is much slower than the others.
    SlowOsd,
    /// I/Os waited for the OSDs of a Ceph cluster.
    Osds,
    /// The job limits itself, with a rate or think time.
    JobLimit,
    /// No bottleneck was found.
    Unclear,
    /// The hypervisor withheld CPU time (steal).
    Steal,
    /// The machine was suspended, or its clock was set, during the run.
    ClockDisturbed,
    /// The process was stopped for a while: by a signal, a frozen control group or a debugger.
    Stopped,
    /// Another engine or feature than requested was used.
    Fallback,
    /// The rate did not reach a steady state.
    Unsteady,
}

impl VerdictKind {
    /// Returns whether the kind means a throttle: a rule limits the rate, not the device.
    pub fn is_throttle(self) -> bool {
        matches!(self, VerdictKind::Throttled | VerdictKind::Allowance)
    }

    /// Returns the limit that the kind names, to follow "limited by", or `None`.
    pub fn limit(self) -> Option<&'static str> {
        Some(match self {
            VerdictKind::ServedFromCache => "a page cache",
            VerdictKind::Generator => "the CPUs of the client",
            VerdictKind::Throttled => "a throttle",
            VerdictKind::Allowance => "a provider's throttle (inferred)",
            VerdictKind::Interference => "other users of the device",
            VerdictKind::Device => "the device",
            VerdictKind::QueueDepth => "the queue depth",
            VerdictKind::Network => "the network or the server",
            VerdictKind::LockContention => "locks in the file system",
            VerdictKind::ClusterBusy => "other work of the Ceph cluster",
            VerdictKind::SlowOsd => "one slow OSD",
            VerdictKind::Osds => "the OSDs of the Ceph cluster",
            VerdictKind::JobLimit => "the job's own rate or think time",
            VerdictKind::Unclear => "none found",
            VerdictKind::UnwrittenData
            | VerdictKind::ClusterDegraded
            | VerdictKind::Steal
            | VerdictKind::ClockDisturbed
            | VerdictKind::Stopped
            | VerdictKind::Fallback
            | VerdictKind::Unsteady => return None,
        })
    }
}
