//! Axes that no cell would notice.

use super::axis::Axis;
use super::grid::CurvePlan;
use iosonde_job::diagnostic::Diagnostic;
use iosonde_job::plan::{Direction, Job};

/// What a workload must do for an option to change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    RandomOrder,
    Writes,
    ReadsAndWrites,
}

impl Needs {
    /// `None`: whatever it does.
    fn of(option: &str) -> Option<Needs> {
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
            Needs::RandomOrder => "measure randread, randwrite or randrw, or leave it out",
            Needs::Writes => "measure a pattern that writes, or leave it out",
            Needs::ReadsAndWrites => "measure rw or randrw, or leave it out",
        }
    }
}

/// What is wrong with axes whose values are all the same to every curve, and with two that say the same.
pub(super) fn without_effect(axes: &[Axis], curves: &[CurvePlan]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for axis in axes.iter().filter(|axis| axis.values.len() > 1) {
        let Some(needs) = Needs::of(&axis.name) else {
            continue;
        };
        if !curves.iter().any(|plan| needs.is_met_by(&plan.job)) {
            let problem = format!("`{}` changes nothing in any cell", axis.name);
            found.push(Diagnostic::error(problem).help(needs.remedy()));
        }
    }
    let has = |name: &str| axes.iter().any(|axis| axis.name == name);
    if has("rwmixread") && has("rwmixwrite") {
        let both = Diagnostic::error(
            "`rwmixread` and `rwmixwrite` say the same: each is 100 less the other",
        );
        found.push(both.help("give one of them"));
    }
    found
}
