//! [`Examination`]: state of a machine and its targets, with the findings of `iosonde doctor`.
//!
//! Its schema is `docs/schema/doctor.json`. Facts that could not be read are `None` or empty lists.

use super::finding_cause::FindingCause;
use super::io_path_settings::{DeviceIoPath, IoPathSettings};
use crate::host::{DeviceNumber, Host, TargetInfo};
use crate::known_cause::read_known_cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Version of the format. It increases when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// Examination of a machine and its targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Examination {
    /// Value of [`FORMAT`] in the program that wrote the examination.
    pub format: u32,
    /// Always `doctor`.
    pub kind: String,
    /// Name and version of the program.
    pub program: String,
    /// Time of the examination, in milliseconds since the Unix epoch.
    pub examined_at_ms: u64,
    /// Description of the machine.
    pub host: Host,
    /// Activity of the machine during the examination.
    pub conditions: MachineConditions,
    /// The targets, in the order given.
    pub targets: Vec<ExaminedTarget>,
    /// Leftovers of runs: working files and directories in the usual places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<ExaminedLeftover>,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
}

/// Examination of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ExaminedTarget {
    /// Target as the user named it.
    pub name: String,
    /// Properties of the target.
    pub info: TargetInfo,
    /// Operations that this process may perform on the target.
    pub access: TargetAccess,
}

/// A leftover: a working file or directory of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExaminedLeftover {
    /// Path of the leftover.
    pub path: PathBuf,
    /// Bytes allocated to it.
    pub bytes: u64,
    /// Whether a process uses it.
    pub holder: LeftoverUser,
    /// Boot that created it, according to its name.
    #[serde(default)]
    pub made_by: MadeBy,
    /// Seconds since the last change to it or to anything in it. `None` if unknown.
    #[serde(default)]
    pub age_s: Option<u64>,
}

/// Boot of a machine that created a working file.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Default,
)]
#[serde(rename_all = "snake_case")]
pub enum MadeBy {
    /// The current boot of this machine, on which a held lock is visible.
    ThisBoot,
    /// Another machine or boot, where a lock may be held without being visible here.
    AnotherBoot,
    /// The name does not contain the boot: iosonde 0.1.0 created the file.
    #[default]
    Unknown,
}

/// State of use of a working file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverUser {
    /// No live process uses it: a run that was killed left it behind.
    #[serde(rename = "nobody")]
    NoProcess,
    /// A running process uses it.
    Process,
    /// Unknown: the file has no lock, or its file system does not support locks.
    Unknown,
}

/// Operations that this process may perform on a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TargetAccess {
    /// Reason why the target is not readable, with the name of the errno. `None` if it is.
    pub read_error: Option<String>,
    /// errno of the failed read. `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_errno: Option<i32>,
    /// Reason why the target is not writable, with the name of the errno. `None` if it is.
    pub write_error: Option<String>,
    /// Whether it can be opened with O_DIRECT. `None` if the test would leave a file behind.
    pub direct: Option<bool>,
    /// Limits of atomic writes to the file or device, or to a new file in the directory. `None` if
    /// it has no atomic writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_writes: Option<AtomicWriteLimits>,
    /// Reasons that require consent before the target is overwritten: its users and its contents.
    pub obstacles: Vec<String>,
    /// Action needed before the target can be overwritten. `None` if nothing prevents it.
    #[serde(default)]
    pub remedy: Option<String>,
}

/// Sizes of writes that are completed or not done at all, also if the power fails (RWF_ATOMIC). A
/// write has a power of two of bytes, and its position is a multiple of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtomicWriteLimits {
    /// Smallest write in bytes.
    pub min_bytes: u64,
    /// Largest write in bytes.
    pub max_bytes: u64,
}

/// Activity and settings of a machine during an examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineConditions {
    /// Length of the observation in nanoseconds, from which rates and shares are computed.
    pub watched_ns: u64,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// CPU utilisation over all processors, steal time included, in per cent.
    pub cpu_busy_percent: Option<f64>,
    /// Steal time over all processors, in per cent.
    pub cpu_steal_percent: Option<f64>,
    /// Bytes in dirty pages and pages under writeback.
    pub dirty_bytes: Option<u64>,
    /// Whether the machine runs on battery. `None` if it has none.
    pub on_battery: Option<bool>,
    /// Clock sources available to the kernel.
    pub clock_sources: Vec<String>,
    /// Reason why io_uring is not usable, with the name of the errno. `None` if it is.
    pub io_uring_error: Option<String>,
    /// errno of the refusal of io_uring. `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_uring_errno: Option<i32>,
    /// `kernel.io_uring_disabled`: 1 forbids io_uring to unprivileged processes, 2 to all.
    pub io_uring_disabled: Option<u32>,
    /// Native AIO requests reserved by all processes (`aio-nr`).
    pub aio_in_use: Option<u64>,
    /// Native AIO requests that may be reserved (`aio-max-nr`).
    pub aio_max: Option<u64>,
    /// Bytes that this process may lock in memory. `None` if unlimited.
    pub locked_memory_bytes: Option<u64>,
    /// Devices under the targets.
    pub devices: Vec<DeviceConditions>,
    /// Processes with the most I/O to any device, without root only those of this user.
    pub busiest: Vec<ProcessTraffic>,
    /// Temporary work on file systems or devices.
    pub maintenance: Vec<Maintenance>,
    /// Settings that cost time per I/O of a fast device.
    #[serde(default, skip_serializing_if = "IoPathSettings::is_unknown")]
    pub io_path: IoPathSettings,
}

/// Activity and state of a device under a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceConditions {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// I/O of other processes during the observation. `None` if the kernel does not count it.
    pub traffic: Option<DeviceTraffic>,
    /// State of the array, for a software RAID array.
    pub array: Option<ArrayState>,
    /// State of a SCSI disk: `running`, `offline`, `blocked`, ...
    pub state: Option<String>,
    /// Temperature in degrees Celsius.
    pub celsius: Option<f64>,
    /// Temperature in degrees Celsius at which the device starts to throttle itself.
    pub celsius_limit: Option<f64>,
    /// Settings of the device that cost time per I/O.
    #[serde(default, skip_serializing_if = "DeviceIoPath::is_unknown")]
    pub io_path: DeviceIoPath,
}

/// I/O rates of a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceTraffic {
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Share of the time in which I/O was in flight, in per cent.
    pub busy_percent: f64,
}

/// State of a software RAID array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ArrayState {
    /// Current sync action: `resync`, `recover`, `check`, `repair`, `reshape`, or `idle`.
    pub action: String,
    /// Progress of the action in per cent.
    pub progress_percent: Option<f64>,
    /// Number of missing members.
    pub missing_members: u32,
}

/// I/O rates of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ProcessTraffic {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// Bytes per second that the process caused to be read from storage.
    pub read_bytes_per_s: f64,
    /// Bytes per second that the process caused to be written to storage.
    pub write_bytes_per_s: f64,
}

/// A running maintenance process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Maintenance {
    /// Process id.
    pub pid: u32,
    /// Description of its work.
    pub what: String,
}

/// A condition that distorts a measurement, or must be known to interpret it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable identifier, listed in `docs/doctor.md`.
    pub id: String,
    /// Severity of the finding.
    pub severity: Severity,
    /// Object of the finding: `machine`, or the name of a device or target.
    pub subject: String,
    /// Observed facts.
    pub evidence: String,
    /// Effect on a measurement.
    pub effect: String,
    /// Remedy in words. Empty if there is none.
    pub remedy: String,
    /// Command that is the remedy.
    pub command: Option<String>,
    /// Cause with its quantities, from which the words are made. `None` if only the words are
    /// known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_known_cause"
    )]
    pub cause: Option<FindingCause>,
}

/// Severities of findings, the most severe first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A measurement fails, or measures something else.
    Problem,
    /// The figures are wrong or noisy.
    Warning,
    /// Must be known to interpret the figures.
    Note,
}

impl Severity {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Returns the JSON Schema (2020-12) of examinations. `docs/schema/doctor.json` is a copy of it.
pub fn schema() -> Value {
    schemars::schema_for!(Examination).to_value()
}
