//! Failures of steps of suites: remedies name what a suite file or `iosonde run` has.

use super::CommandError;
use iosonde_job::errno;
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;
use iosonde_result::run_error::{ClusterObstacle, RunError, TargetProblem, UnsupportedFeature};
use iosonde_study::StudyError;
use iosonde_study::probe::WorkingSetError;
use iosonde_suite::{Suite, SuiteStep};

const MIB: u64 = 1 << 20;

/// A failure of a step whose own remedy names options of other commands.
#[derive(Debug)]
pub(crate) struct SuiteStepFailure {
    /// The failure.
    pub(super) cause: CommandError,
    /// Its remedy in a suite.
    pub(super) remedy: String,
}

impl CommandError {
    /// Returns the failure as that of a step of a suite.
    pub(crate) fn in_step(self, suite: &Suite, step: &SuiteStep) -> CommandError {
        match step_remedy(&self, suite, step) {
            Some(remedy) => CommandError::Step(Box::new(SuiteStepFailure {
                cause: self,
                remedy,
            })),
            None => self,
        }
    }

    /// Returns the failure in one line, as results store it: without its remedy and the output of a
    /// command, and of several errors in a job file only the first.
    pub(crate) fn stored_problem(&self) -> String {
        match self {
            CommandError::Jobs(diagnostics) => {
                let sentences = diagnostics.sentences();
                sentences.into_iter().next().unwrap_or_default()
            }
            CommandError::Command(failure) => failure.problem(),
            _ => self.problem(),
        }
    }
}

/// The remedy in a suite. `None`: the remedy of the failure works there too.
fn step_remedy(failure: &CommandError, suite: &Suite, step: &SuiteStep) -> Option<String> {
    let name = &step.workload;
    match failure {
        CommandError::Run(error) | CommandError::Study(StudyError::Run(error)) => {
            run_remedy(error, suite, step)
        }
        CommandError::Study(StudyError::WorkingSet { source, .. }) => match source {
            WorkingSetError::NoSpace {
                available_bytes, ..
            } if *available_bytes >= WORKING_SET_BYTES_MIN => {
                let example = example(suite, step, *available_bytes)?;
                Some(format!(
                    "set the size of `{name}`, {example}, or use another target"
                ))
            }
            WorkingSetError::NoSpace { .. } => None,
            WorkingSetError::TooSmall { .. } => {
                let example = example(suite, step, WORKING_SET_BYTES_MIN)?;
                Some(format!("set a larger size for `{name}`, {example}"))
            }
        },
        _ => None,
    }
}

fn run_remedy(error: &RunError, suite: &Suite, step: &SuiteStep) -> Option<String> {
    let name = &step.workload;
    match error {
        RunError::NoSpace {
            needed_bytes,
            available_bytes,
            ..
        } => {
            let other = "use a target with more free space";
            let smaller = suite.fitting_size_advice(step, *needed_bytes, *available_bytes);
            Some(either(smaller, other))
        }
        RunError::PathAccess { failure, .. } if failure.errno() == Some(errno::ENOSPC) => {
            let smaller = suite.smaller_size_advice(step);
            let other = || "use a target with more free space".to_owned();
            let advice = smaller.unwrap_or_else(other);
            Some(format!("free some space, or {advice}"))
        }
        RunError::UnusableTarget { cause, .. } => match &**cause {
            TargetProblem::LayoutForbidden {
                file_bytes: Some(bytes),
                ..
            } if *bytes >= MIB => {
                let example = example(suite, step, *bytes)?;
                Some(format!(
                    "set the size of `{name}`, {example}, or use another target"
                ))
            }
            TargetProblem::LayoutForbidden { .. } => Some("use another target".to_owned()),
            _ => None,
        },
        RunError::NoFeature { cause } => feature_remedy(cause, suite, step),
        _ => None,
    }
}

fn feature_remedy(feature: &UnsupportedFeature, suite: &Suite, step: &SuiteStep) -> Option<String> {
    let name = &step.workload;
    match feature {
        UnsupportedFeature::TooSlowForLoads { .. } => Some(format!(
            "measure `{name}` with probe = {{}}, or with a smaller bs, e.g. load = {{ bs = \
             \"4k\" }}"
        )),
        UnsupportedFeature::LogsInPod { .. } => Some(format!(
            "leave the logs of `{name}` out; --format json has the intervals"
        )),
        UnsupportedFeature::Cluster(ClusterObstacle::VolumeTooSmall {
            option,
            volume_bytes,
            needed_bytes,
        }) => {
            let smaller = suite.fitting_size_advice(step, *needed_bytes, *volume_bytes);
            Some(match (option, smaller) {
                (Some(option), Some(smaller)) => format!("use {option}, or {smaller}"),
                (Some(option), None) => format!("use {option}"),
                (None, smaller) => either(smaller, "use a larger claim"),
            })
        }
        UnsupportedFeature::Cluster(ClusterObstacle::ShareFull {
            free_bytes,
            needed_bytes,
        }) => {
            let free = "free room on it (removed volumes may be there as archived-*)";
            let smaller = suite.fitting_size_advice(step, *needed_bytes, *free_bytes);
            Some(match smaller {
                Some(smaller) => format!("{free}, or {smaller}"),
                None => free.to_owned(),
            })
        }
        _ => None,
    }
}

/// A remedy with another one, which works even if there is no first.
fn either(first: Option<String>, other: &str) -> String {
    match first {
        Some(first) => format!("{first}, or {other}"),
        None => other.to_owned(),
    }
}

/// How to set the size, in whole MiB: `e.g. --var size=10m`.
fn example(suite: &Suite, step: &SuiteStep, bytes: u64) -> Option<String> {
    let size = format!("{}m", (bytes / MIB).max(1));
    let setting = suite.size_setting(step, &size)?;
    Some(format!("e.g. {setting}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_limits::Limits;
    use iosonde_result::run_error::{PathAction, SystemFailure};
    use iosonde_suite::{CommandFailure, MOST_RUNS, suite};
    use std::collections::BTreeMap;

    /// The remedy of a failure of the first step of a suite.
    fn remedy(text: &str, failure: CommandError) -> String {
        let (none, limits) = (BTreeMap::new(), Limits::published());
        let read = suite("s.toml", text, &none, limits, MOST_RUNS, &FakeEnv::new());
        let suite = read.map_err(|all| all.render(false)).unwrap();
        let status = failure.status();
        let failure = failure.in_step(&suite, &suite.steps[0]);
        assert_eq!(failure.status(), status);
        failure.remedy().unwrap()
    }

    fn no_space() -> RunError {
        RunError::NoSpace {
            path: "/data".to_owned(),
            needed_bytes: 256 << 20,
            available_bytes: 100 << 20,
        }
    }

    #[test]
    fn stored_problem_of_a_failure_lacks_its_help() {
        let failure = CommandError::usage("no such suite", "name another");
        assert_eq!(failure.stored_problem(), "no such suite");
        let failure = CommandError::Command(CommandFailure::Failed {
            ending: "status 3".to_owned(),
            last_lines: vec!["lost the server".to_owned()],
        });
        assert_eq!(failure.stored_problem(), "the command ended with status 3");
    }

    const JOB: &str = "[[workload]]\nname = \"a\"\noptions = { size = \"64m\", numjobs = 4 }\n";
    const LOAD: &str = "[[workload]]\nname = \"a\"\nload = { size = \"1g\" }\n";

    #[test]
    fn full_target_of_a_job_names_the_size_that_fits() {
        assert_eq!(
            remedy(JOB, CommandError::Run(no_space())),
            "set a smaller size for `a`, e.g. options = { size = \"25m\" }, in a job file \
             size=25m, or use a target with more free space"
        );
        let variable = "[variables]\nsize = \"64m\"\n[[workload]]\nname = \"a\"\noptions = { \
                        size = \"${size}\" }\n";
        assert_eq!(
            remedy(variable, CommandError::Run(no_space())),
            "set a smaller size for `a`, e.g. --var size=25m, or use a target with more free space"
        );
    }

    #[test]
    fn full_target_of_a_study_without_size_names_one_that_fits() {
        let full = |available_bytes| {
            CommandError::Run(RunError::NoSpace {
                path: "/data".to_owned(),
                needed_bytes: 256 << 20,
                available_bytes,
            })
        };
        for member in ["load", "probe"] {
            let text = format!("[[workload]]\nname = \"a\"\n{member} = {{}}\n");
            assert_eq!(
                remedy(&text, full(100 << 20)),
                format!(
                    "set a smaller size for `a`, e.g. {member} = {{ size = \"100m\" }}, or use a \
                     target with more free space"
                )
            );
            // No study works with less than 16 MiB.
            assert_eq!(
                remedy(&text, full(10 << 20)),
                "use a target with more free space"
            );
        }
        let files = "use fewer or smaller files in `a`, or use a target with more free space";
        assert_eq!(remedy(JOB, full(1 << 20)), files);
    }

    #[test]
    fn working_set_of_a_step_names_the_member_of_its_study() {
        let failure = |source| {
            let target = "/data".to_owned();
            CommandError::Study(StudyError::WorkingSet { target, source })
        };
        let no_space = failure(WorkingSetError::NoSpace {
            asked_bytes: 1 << 30,
            available_bytes: 100 << 20,
        });
        assert_eq!(
            remedy(LOAD, no_space),
            "set the size of `a`, e.g. load = { size = \"100m\" }, or use another target"
        );
        let small = failure(WorkingSetError::TooSmall { asked_bytes: 1 });
        assert_eq!(
            remedy(LOAD, small),
            "set a larger size for `a`, e.g. load = { size = \"16m\" }"
        );
    }

    #[test]
    fn target_that_became_full_names_a_size_that_works() {
        let full = || {
            CommandError::Run(RunError::PathAccess {
                path: "/data/file".to_owned(),
                action: PathAction::Write,
                failure: SystemFailure::Errno(errno::ENOSPC),
                is_root: false,
            })
        };
        let load =
            |size: &str| format!("[[workload]]\nname = \"a\"\nload = {{ size = \"{size}\" }}\n");
        assert_eq!(
            remedy(&load("22m"), full()),
            "free some space, or set a smaller size for `a`, e.g. load = { size = \"16m\" }"
        );
        // No study works with less than 16 MiB.
        assert_eq!(
            remedy(&load("16m"), full()),
            "free some space, or use a target with more free space"
        );
        let variable = "[variables]\nsize = \"64m\"\n[[workload]]\nname = \"a\"\noptions = { \
                        size = \"${size}\" }\n";
        assert_eq!(
            remedy(variable, full()),
            "free some space, or set a smaller size for `a`, e.g. --var size=32m"
        );
    }

    #[test]
    fn remedy_without_options_of_other_commands_stays() {
        let failure = || CommandError::Run(RunError::NoCompletions);
        assert_eq!(remedy(JOB, failure()), failure().remedy().unwrap());
    }

    #[test]
    fn file_that_is_only_read_bounds_the_size_of_the_job() {
        let forbidden = |file_bytes| {
            let cause = TargetProblem::LayoutForbidden {
                job: "a".to_owned(),
                file_bytes,
                needed_bytes: 64 << 20,
            };
            CommandError::Run(RunError::unusable_target("/data/file", cause))
        };
        assert_eq!(
            remedy(JOB, forbidden(Some(10 << 20))),
            "set the size of `a`, e.g. options = { size = \"10m\" }, in a job file size=10m, or \
             use another target"
        );
        assert_eq!(remedy(JOB, forbidden(None)), "use another target");
    }

    #[test]
    fn slow_target_of_a_load_names_its_block_size() {
        let slow = UnsupportedFeature::TooSlowForLoads {
            target: "/data".to_owned(),
            iops_hundredths: 20,
        };
        assert_eq!(
            remedy(LOAD, CommandError::Run(slow.into())),
            "measure `a` with probe = {}, or with a smaller bs, e.g. load = { bs = \"4k\" }"
        );
    }
}
