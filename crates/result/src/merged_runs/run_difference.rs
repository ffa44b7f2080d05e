//! Differences between two runs that make their sum meaningless.

use crate::compare::pattern;
use crate::run::RunResult;
use iosonde_job::plan::Job;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Members of a workload that [`crate::compare::IoPattern`] names, or that only change offsets.
const SKIPPED: [&str; 6] = [
    "rw",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "random_generator",
    "number_ios",
];

/// A property in which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDifference {
    /// The job that has the property. `None`: the whole run.
    pub job: Option<String>,
    /// Name of the property.
    pub property: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the other run.
    pub other: String,
}

impl fmt::Display for RunDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunDifference {
            job,
            property,
            first,
            other,
        } = self;
        if let Some(job) = job {
            write!(f, "{job}: ")?;
        }
        write!(f, "{property} is {first} and {other}")
    }
}

/// Returns the differences between the workloads of two runs. Where the jobs ran, and how long,
/// may differ.
pub(super) fn run_differences(first: &RunResult, other: &RunResult) -> Vec<RunDifference> {
    let (jobs, others) = (&first.plan.jobs, &other.plan.jobs);
    let names = |jobs: &[Job]| -> String {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        names.join(", ")
    };
    let (first_names, other_names) = (names(jobs), names(others));
    if first_names != other_names {
        return vec![RunDifference {
            job: None,
            property: "jobs".to_owned(),
            first: first_names,
            other: other_names,
        }];
    }
    let pairs = jobs.iter().zip(others);
    pairs.flat_map(|(a, b)| job_differences(a, b)).collect()
}

fn job_differences(first: &Job, other: &Job) -> Vec<RunDifference> {
    let (a, b) = (pattern(first), pattern(other));
    let has_other_bs = a.bs != b.bs;
    let mut pairs = vec![
        ("rw", a.rw, b.rw),
        ("bs", a.bs, b.bs),
        ("iodepth", a.iodepth.to_string(), b.iodepth.to_string()),
        ("numjobs", a.numjobs.to_string(), b.numjobs.to_string()),
        (
            "ioengine",
            value_word(&first.io.engine),
            value_word(&other.io.engine),
        ),
        (
            "direct",
            value_word(&first.io.direct),
            value_word(&other.io.direct),
        ),
        (
            "sync",
            value_word(&first.io.sync),
            value_word(&other.io.sync),
        ),
    ];
    pairs.retain(|(_, first, other)| first != other);
    let mut found: Vec<(String, String, String)> = pairs
        .into_iter()
        .map(|(property, first, other)| (property.to_owned(), first, other))
        .collect();
    found.extend(member_differences(
        (&first.workload, &other.workload),
        |key| !(SKIPPED.contains(&key) || has_other_bs && key == "block_size"),
    ));
    found.extend(member_differences(
        (&first.schedule, &other.schedule),
        |key| key.starts_with("rate") || ["thinktime", "latency_target", "flow"].contains(&key),
    ));
    let differences = found.into_iter().map(|(property, a, b)| RunDifference {
        job: Some(first.name.clone()),
        property,
        first: a,
        other: b,
    });
    differences.collect()
}

/// Returns name and values of the members in which two objects differ.
fn member_differences<T: Serialize>(
    (first, other): (&T, &T),
    is_compared: impl Fn(&str) -> bool,
) -> Vec<(String, String, String)> {
    let members = |value: &T| match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (first, other) = (members(first), members(other));
    let keys = first.keys().chain(other.keys());
    let mut found: Vec<(String, String, String)> = Vec::new();
    for key in keys.filter(|key| is_compared(key)) {
        let (a, b) = (first.get(key), other.get(key));
        if a != b && found.iter().all(|(known, ..)| known != key) {
            let shown = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
            found.push((key.clone(), shown(a), shown(b)));
        }
    }
    found
}

/// Returns a value as a word: JSON without the quotes of a string.
fn value_word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}
