//! Detects axes without effect on any cell.

use crate::figures::curve_plan::CurvePlan;
use crate::sweep_axis::Axis;
use iosonde_job::diagnostic::Diagnostic;
use iosonde_job::plan::{Direction, Job};

/// Property of a workload that an option needs to have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    RandomOrder,
    Writes,
    ReadsAndWrites,
}

impl Needs {
    /// Returns what the option needs. `None`: it affects any workload.
    fn from_option(option: &str) -> Option<Needs> {
        match option {
            "rwmixread" | "rwmixwrite" => Some(Needs::ReadsAndWrites),
            "random_distribution"
            | "random_generator"
            | "percentage_random"
            | "norandommap"
            | "softrandommap" => Some(Needs::RandomOrder),
            "fsync"
            | "fdatasync"
            | "sync_file_range"
            | "end_fsync"
            | "zero_buffers"
            | "refill_buffers"
            | "scramble_buffers"
            | "buffer_pattern"
            | "buffer_compress_percentage"
            | "buffer_compress_chunk"
            | "dedupe_percentage" => Some(Needs::Writes),
            _ => None,
        }
    }

    fn is_met_by(self, job: &Job) -> bool {
        let rw = job.workload.rw;
        match self {
            Needs::RandomOrder => rw.random,
            Needs::Writes => rw.has(Direction::Write),
            Needs::ReadsAndWrites => rw.has(Direction::Read) && rw.has(Direction::Write),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Needs::RandomOrder => "measure randread, randwrite or randrw, or omit it",
            Needs::Writes => "measure a pattern that writes, or omit it",
            Needs::ReadsAndWrites => "measure rw or randrw, or omit it",
        }
    }
}

/// Returns errors for axes without effect on any curve, and for two axes with the same meaning.
pub(super) fn without_effect(axes: &[Axis], curves: &[CurvePlan]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for axis in axes.iter().filter(|axis| axis.values.len() > 1) {
        let Some(needs) = Needs::from_option(&axis.name) else {
            continue;
        };
        if !curves.iter().any(|plan| needs.is_met_by(&plan.job)) {
            let problem = format!("`{}` has no effect in any cell", axis.name);
            found.push(Diagnostic::error(problem).help(needs.remedy()));
        }
    }
    let has = |name: &str| axes.iter().any(|axis| axis.name == name);
    if has("rwmixread") && has("rwmixwrite") {
        let both =
            Diagnostic::error("`rwmixread` and `rwmixwrite` are redundant: their sum is 100");
        found.push(both.help("use one of them"));
    }
    found
}
