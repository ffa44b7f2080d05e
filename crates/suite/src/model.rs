//! The members of a suite file. Its JSON Schema is generated from these types and validates files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A suite of iosonde: targets x workloads x axes x repetitions, with expectations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteFile {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<String>,
    /// Name of the suite [default: name of the file].
    pub(crate) name: Option<String>,
    /// The purpose of the suite in one sentence.
    pub(crate) about: Option<String>,
    /// Files to include, relative to this one: workloads, targets, labels, variables, expectations.
    pub(crate) include: Vec<String>,
    /// Values for `${NAME}` in texts and job files. `--var NAME=VALUE` overrides them.
    pub(crate) variables: BTreeMap<String, Scalar>,
    /// Targets to measure; those of the command line replace them [default: this directory].
    pub(crate) targets: Vec<TargetEntry>,
    /// The workloads, in the order they run.
    pub(crate) workload: Vec<SuiteWorkload>,
    /// Expectations of all workloads, e.g. `randread.iops >= 50k`.
    pub(crate) expect: Vec<String>,
    /// Labels of the results.
    pub(crate) labels: BTreeMap<String, Scalar>,
    /// Runs of each workload [default: 1].
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) repetitions: Option<u32>,
    /// Pods that run each workload at the same time, on targets in a Kubernetes cluster.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) pods: Option<u32>,
    /// Runs each workload in one pod on each schedulable node at the same time.
    pub(crate) per_node: Option<bool>,
}

/// A target: a directory, a file, a block device, or a simulated device `sim:...`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum TargetEntry {
    /// The target alone.
    Name(String),
    /// A target with its own labels.
    Labelled(LabelledTarget),
}

/// A target with labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LabelledTarget {
    /// A directory, a file, a block device, or `sim:...`.
    pub(crate) path: String,
    /// Labels of the results of this target.
    pub(crate) labels: BTreeMap<String, Scalar>,
}

/// A workload: a fio job, a study or a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteWorkload {
    /// Name of the workload, and of the job made from `options`.
    pub(crate) name: String,
    /// The purpose of the workload in one sentence.
    pub(crate) about: Option<String>,
    /// A fio job file, as text.
    pub(crate) job: Option<String>,
    /// Path of a fio job file, relative to this file.
    pub(crate) file: Option<String>,
    /// A fio job as a table of its options.
    pub(crate) options: Option<BTreeMap<String, Scalar>>,
    /// Values of fio options; each combination is a run. `iodepth = "1..64"`, `bs = ["4k", "64k"]`.
    pub(crate) axes: BTreeMap<String, AxisValues>,
    /// Sweeps the axes like `iosonde sweep`, which searches each curve over `iodepth` for its knee.
    pub(crate) sweep: Option<SuiteSweep>,
    /// Measures latency over offered rate, like `iosonde load`.
    pub(crate) load: Option<SuiteLoad>,
    /// Measures the headline figures, like `iosonde probe`.
    pub(crate) probe: Option<SuiteProbe>,
    /// Runs a command and reads a figure from its output; only with `--allow-commands`.
    pub(crate) command: Option<SuiteCommand>,
    /// Expectations of this workload, e.g. `p99 <= 2ms`.
    pub(crate) expect: Vec<String>,
    /// Measures the workload a second time, beside a neighbour with these options of fio, e.g.
    /// `rw=write bs=64k rate=50m`. `none` is no neighbour.
    pub(crate) beside: Option<String>,
    /// Runs of this workload [default: `repetitions` of the suite].
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) repetitions: Option<u32>,
}

/// A value of an option: `"4k"`, `16`, `true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Scalar {
    /// A text.
    Text(String),
    /// A number.
    Number(serde_json::Number),
    /// A switch: 1 or 0.
    Switch(bool),
}

impl Scalar {
    /// The value as a job file has it.
    pub(crate) fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Switch(on) => u8::from(*on).to_string(),
        }
    }
}

/// Values of an axis: a list, or text as for `iosonde sweep`: `1,4,16`, `1..512`, `1..32+4`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AxisValues {
    /// One text or number.
    One(Scalar),
    /// A list.
    Many(Vec<Scalar>),
}

impl AxisValues {
    /// The values as `iosonde sweep` takes them.
    pub(crate) fn text(&self) -> String {
        match self {
            AxisValues::One(scalar) => scalar.text(),
            AxisValues::Many(list) => {
                let texts: Vec<String> = list.iter().map(Scalar::text).collect();
                texts.join(",")
            }
        }
    }
}

/// A sweep of the axes. docs/sweep.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteSweep {
    /// Time of a cell, e.g. `60`, `2m`; searched curves take a tenth of their cells' [default: 60].
    pub(crate) runtime: Option<Scalar>,
    /// Measures every cell.
    pub(crate) exhaustive: bool,
    /// Working set, e.g. `4g` [default: chosen by the target].
    pub(crate) size: Option<Scalar>,
}

/// A load study. docs/load.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteLoad {
    /// read, write, randread, randwrite, rw or randrw [default: randread].
    pub(crate) rw: Option<String>,
    /// Share of reads in per cent, for rw and randrw [default: 50].
    pub(crate) rwmixread: Option<u8>,
    /// Block size in bytes [default: 4k].
    pub(crate) bs: Option<Scalar>,
    /// Offered rates in I/Os per second [default: derived from the capacity, measured first].
    pub(crate) rates: Vec<f64>,
    /// Latency objective, e.g. `p99=2ms`: the figure `rate` is the highest rate that keeps it.
    pub(crate) slo: Option<String>,
    /// Measured time of each rate [default: that of `iosonde load`].
    pub(crate) runtime: Option<Scalar>,
    /// Working set [default: chosen by the target].
    pub(crate) size: Option<Scalar>,
}

/// A probe. docs/probe.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteProbe {
    /// A quick probe of about 20 seconds.
    pub(crate) quick: bool,
    /// Longest measured time of each phase, e.g. `30`.
    pub(crate) runtime: Option<Scalar>,
    /// Working set [default: chosen by the target].
    pub(crate) size: Option<Scalar>,
}

/// A command such as `pgbench`, which prints a figure. docs/suites.md has more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteCommand {
    /// Command line for `/bin/sh -c`. `$IOSONDE_TARGET` is the target.
    pub(crate) run: String,
    /// Regular expression; the first group of the last line that matches is the figure.
    pub(crate) figure: String,
    /// Regular expression; the first group of each line that matches is the figure over time.
    pub(crate) series: Option<String>,
    /// Unit of the figure, for displays, e.g. `tps`.
    pub(crate) unit: Option<String>,
    /// Time after which the command is stopped, e.g. `10m` [default: 1h].
    pub(crate) timeout: Option<Scalar>,
}

/// JSON Schema (2020-12) of suite files. `docs/schema/suite.json` is its copy.
pub fn suite_schema() -> serde_json::Value {
    schemars::schema_for!(SuiteFile).to_value()
}
