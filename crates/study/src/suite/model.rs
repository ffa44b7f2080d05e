//! What a suite file may say. Its JSON Schema is made from these types, and files are checked against that schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A suite of iosonde: targets x workloads x axes x repetitions, and what is expected of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuiteFile {
    /// Where the JSON Schema of this file is: for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the suite [default: that of the file].
    pub name: Option<String>,
    /// What it is for, in one sentence.
    pub about: Option<String>,
    /// Files whose workloads, targets, labels, variables and expectations are taken first, relative to this one.
    pub include: Vec<String>,
    /// Values for `${NAME}` in texts and job files; `--var NAME=VALUE` overrides them.
    pub variables: BTreeMap<String, Scalar>,
    /// Where to measure; targets of the command line take their place [default: this directory].
    pub targets: Vec<TargetEntry>,
    /// What is measured, in this order.
    pub workload: Vec<Workload>,
    /// What is expected of any workload, e.g. `randread.iops >= 50k`.
    pub expect: Vec<String>,
    /// Labels of the results.
    pub labels: BTreeMap<String, Scalar>,
    /// How often each workload is run [default: 1].
    #[schemars(range(min = 1, max = 1000))]
    pub repetitions: Option<u32>,
}

/// A target: a directory, a file, a block device, or a simulated device `sim:...`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TargetEntry {
    /// Its name alone.
    Name(String),
    /// With labels of its own.
    Labelled(LabelledTarget),
}

/// A target with labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabelledTarget {
    /// A directory, a file, a block device, or `sim:...`.
    pub path: String,
    /// Labels of the results of this target.
    pub labels: BTreeMap<String, Scalar>,
}

/// One workload: a fio job, or a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Its name. A job of `options` is called so.
    pub name: String,
    /// What it is for, in one sentence.
    pub about: Option<String>,
    /// A fio job file, as text.
    pub job: Option<String>,
    /// A fio job file, relative to this one.
    pub file: Option<String>,
    /// A fio job as a table of its options.
    pub options: Option<BTreeMap<String, Scalar>>,
    /// Options of fio and the values they take: each combination is a run. `iodepth = "1..64"`, `bs = ["4k", "64k"]`.
    pub axes: BTreeMap<String, AxisValues>,
    /// The axes are swept, as by `iosonde sweep`: each curve over `iodepth` is searched for its maximum and knee.
    pub sweep: Option<Sweep>,
    /// Latency over offered rate, as by `iosonde load`.
    pub load: Option<Load>,
    /// The headline figures, as by `iosonde probe`.
    pub probe: Option<Probe>,
    /// What is expected of this workload, e.g. `p99 <= 2ms`.
    pub expect: Vec<String>,
    /// How often it is run [default: as often as the suite says].
    #[schemars(range(min = 1, max = 1000))]
    pub repetitions: Option<u32>,
}

/// A value of an option: `"4k"`, `16`, `true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A text.
    Text(String),
    /// A number.
    Number(serde_json::Number),
    /// 1 or 0.
    Switch(bool),
}

impl Scalar {
    /// As in a job file.
    pub fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Switch(on) => u8::from(*on).to_string(),
        }
    }
}

/// The values of an axis: a list, or a text as `iosonde sweep` takes it: `1,4,16`, `1..512`, `1..32+4`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisValues {
    /// One text or number.
    One(Scalar),
    /// A list.
    Many(Vec<Scalar>),
}

impl AxisValues {
    /// As `iosonde sweep` takes it.
    pub fn text(&self) -> String {
        match self {
            AxisValues::One(scalar) => scalar.text(),
            AxisValues::Many(list) => {
                let texts: Vec<String> = list.iter().map(Scalar::text).collect();
                texts.join(",")
            }
        }
    }
}

/// How axes are swept. docs/sweep.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sweep {
    /// Measured time of a cell, e.g. `60` or `2m`; a curve that is searched takes a tenth of its cells' [default: 60].
    pub runtime: Option<Scalar>,
    /// Measure every cell.
    pub exhaustive: bool,
    /// Working set, e.g. `4g` [default: chosen by the target].
    pub size: Option<Scalar>,
}

/// A load study. docs/load.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// read, write, randread, randwrite, rw or randrw [default: randread].
    pub rw: Option<String>,
    /// Share of reads in per cent, for rw and randrw [default: 50].
    pub rwmixread: Option<u8>,
    /// Bytes of each I/O [default: 4k].
    pub bs: Option<Scalar>,
    /// Offered rates in I/Os per second [default: by the capacity, which is measured first].
    pub rates: Vec<f64>,
    /// Latency objective, e.g. `p99=2ms`: the highest rate that keeps it is looked for, and is the figure `rate`.
    pub slo: Option<String>,
    /// Measured time of each rate [default: as `iosonde load`].
    pub runtime: Option<Scalar>,
    /// Working set [default: chosen by the target].
    pub size: Option<Scalar>,
}

/// A probe. docs/probe.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// A first impression in 20 seconds.
    pub quick: bool,
    /// Most measured time of each phase, e.g. `30`.
    pub runtime: Option<Scalar>,
    /// Working set [default: chosen by the target].
    pub size: Option<Scalar>,
}

/// JSON Schema (2020-12) of suite files. `docs/schema/suite.json` is its copy.
pub fn suite_schema() -> serde_json::Value {
    schemars::schema_for!(SuiteFile).to_value()
}
