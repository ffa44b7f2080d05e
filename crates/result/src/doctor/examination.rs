//! What `iosonde doctor` looks at and finds: a machine and targets at one moment, and what would spoil a measurement.
//!
//! [`Examination`] is the source of every format of it; `docs/schema/doctor.json` is its schema. What could not be read is
//! `None` or an empty list, never a guess.

use crate::host::{DeviceNumber, Host, TargetInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Version of the format; counts up when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// A machine and its targets, examined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Examination {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Always `doctor`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// When: milliseconds of the Unix epoch.
    pub examined_at_ms: u64,
    /// The machine.
    pub host: Host,
    /// What was going on.
    pub conditions: Conditions,
    /// The targets, in the order given.
    pub targets: Vec<ExaminedTarget>,
    /// Working files and directories of runs, in places where runs put them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    /// What would spoil a measurement, the worst first.
    pub findings: Vec<Finding>,
}

/// A target, examined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ExaminedTarget {
    /// As it was named.
    pub name: String,
    /// What it is.
    pub info: TargetInfo,
    /// What this process may do with it.
    pub access: Access,
}

/// A working file or directory of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Who uses it.
    pub holder: Holder,
    /// Who made it, as its name says.
    #[serde(default)]
    pub made_by: MadeBy,
    /// Seconds since it, or anything in it, was changed last; `None`: it cannot be told.
    #[serde(default)]
    pub age_s: Option<u64>,
}

/// Which boot of which machine made a working file.
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
    /// This machine since it was booted: a lock that is held is seen.
    ThisBoot,
    /// Another machine, or this one before it was booted: a lock may be held there and not be seen here.
    AnotherBoot,
    /// The name does not say it: it is one of iosonde 0.1.0.
    #[default]
    Unknown,
}

/// Who uses a working file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// No live process: a run that was killed has left it.
    Nobody,
    /// A run that goes on.
    Process,
    /// It cannot be told: it has no lock, or its file system has none.
    Unknown,
}

/// What this process may do with a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Access {
    /// Why it cannot be read, with the errno's name; `None`: it can.
    pub read_error: Option<String>,
    /// Why it cannot be written, with the errno's name; `None`: it can.
    pub write_error: Option<String>,
    /// Whether it can be opened with O_DIRECT; `None` where that cannot be tried without leaving something behind.
    pub direct: Option<bool>,
    /// Why it would not be overwritten without consent: who uses it, what it carries.
    pub obstacles: Vec<String>,
    /// What to do before it can be overwritten; `None`: nothing is in the way.
    #[serde(default)]
    pub remedy: Option<String>,
}

/// What was going on at a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Conditions {
    /// How long it was watched, in nanoseconds: the time that rates and shares are of.
    pub watched_ns: u64,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Share of all processors' time in which they did something, stolen time included, in per cent.
    pub cpu_busy_percent: Option<f64>,
    /// Share of all processors' time that the hypervisor gave to others, in per cent.
    pub cpu_steal_percent: Option<f64>,
    /// Pages that wait to be written, or are being written, in bytes.
    pub dirty_bytes: Option<u64>,
    /// Whether the machine runs on its battery; `None`: it has none.
    pub on_battery: Option<bool>,
    /// Clock sources that the kernel could use.
    pub clock_sources: Vec<String>,
    /// Why io_uring cannot be used, with the errno's name; `None`: it can.
    pub io_uring_error: Option<String>,
    /// `kernel.io_uring_disabled`: 1 bars unprivileged processes, 2 all.
    pub io_uring_disabled: Option<u32>,
    /// Requests of native AIO that all processes together have reserved.
    pub aio_in_use: Option<u64>,
    /// Requests of native AIO that may be reserved.
    pub aio_max: Option<u64>,
    /// Memory in bytes that this process may lock; `None`: any amount.
    pub locked_memory_bytes: Option<u64>,
    /// The devices under the targets.
    pub devices: Vec<DeviceConditions>,
    /// Programs that did most I/O, to whatever device; without root, those of other users are not seen.
    pub busiest: Vec<ProcessTraffic>,
    /// Work on file systems or devices that runs for a while and then ends.
    pub maintenance: Vec<Maintenance>,
}

/// What was going on at a device under a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceConditions {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// I/O that others did meanwhile; `None` where the kernel does not count it.
    pub traffic: Option<Traffic>,
    /// State of an array.
    pub array: Option<ArrayState>,
    /// State of a SCSI disk: `running`, `offline`, `blocked`, ...
    pub state: Option<String>,
    /// Temperature in degrees Celsius.
    pub celsius: Option<f64>,
    /// The temperature at which the device begins to protect itself.
    pub celsius_limit: Option<f64>,
}

/// I/O of a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Traffic {
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Share of the time with I/O in flight, in per cent.
    pub busy_percent: f64,
}

/// State of a software RAID array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ArrayState {
    /// What the array does besides serving: `resync`, `recover`, `check`, `repair`, `reshape`; `idle` when nothing.
    pub action: String,
    /// How far it is, in per cent.
    pub progress_percent: Option<f64>,
    /// Members that are missing.
    pub missing_members: u32,
}

/// I/O of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ProcessTraffic {
    /// Process id.
    pub pid: u32,
    /// Name.
    pub name: String,
    /// Bytes that it made storage fetch, per second.
    pub read_bytes_per_s: f64,
    /// Bytes that it gave to be written, per second.
    pub write_bytes_per_s: f64,
}

/// A maintenance program that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Maintenance {
    /// Process id.
    pub pid: u32,
    /// What it does.
    pub what: String,
}

/// Something that would spoil a measurement, or must be known to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which: one of those in `docs/doctor.md`.
    pub id: String,
    /// How bad.
    pub severity: Severity,
    /// What it is about: `machine`, a device's name, or a target's.
    pub subject: String,
    /// What was seen.
    pub evidence: String,
    /// What that does to a measurement.
    pub effect: String,
    /// How to put it right, in words; empty where nothing can be done.
    pub remedy: String,
    /// A command that puts it right.
    pub command: Option<String>,
}

/// How bad a finding is, the worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A measurement will fail, or measure something else.
    Problem,
    /// The figures will be off, or noisy.
    Warning,
    /// To be known when the figures are read.
    Note,
}

impl Severity {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// The JSON Schema (2020-12) of examinations. `docs/schema/doctor.json` is its copy.
pub fn schema() -> Value {
    schemars::schema_for!(Examination).to_value()
}
