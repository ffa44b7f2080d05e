//! Jobs of a suite, and notes on their file names that targets replace.

use crate::commands::unused_file_names::{UnusedNames, unused_file_names};
use iosonde_job::plan::Job;
use iosonde_suite::{StepKind, Suite, SuiteStep};

/// All jobs of a suite, with those of its sweeps.
pub(super) fn suite_jobs(suite: &Suite) -> impl Iterator<Item = &Job> {
    suite.steps.iter().flat_map(step_jobs)
}

fn step_jobs(step: &SuiteStep) -> Vec<&Job> {
    match &step.what {
        StepKind::Jobs(plan) => plan.jobs.iter().collect(),
        StepKind::Sweep(wanted) => wanted.grid.curves.iter().map(|curve| &curve.job).collect(),
        StepKind::Load(_) | StepKind::Probe(_) | StepKind::Command(_) => Vec::new(),
    }
}

/// Prints the notes on file names that the targets replace. Each target comes with the names that
/// it replaces.
pub(super) fn note_unused_file_names(suite: &Suite, targets: &[(&str, Option<UnusedNames>)]) {
    for note in list_unused_file_names(suite, targets) {
        eprintln!("note: {note}");
    }
}

/// One note for each workload and kind of targets, as a workload has one job file. All its axis
/// values and repetitions have the same names.
fn list_unused_file_names(suite: &Suite, targets: &[(&str, Option<UnusedNames>)]) -> Vec<String> {
    let mut notes = Vec::new();
    let workloads = suite
        .steps
        .chunk_by(|one, next| one.workload == next.workload);
    for steps in workloads {
        // A sweep has one working file on any target.
        let is_sweep = matches!(steps[0].what, StepKind::Sweep(_));
        let source = format!("`{}`", steps[0].workload);
        for unused in [UnusedNames::All, UnusedNames::Paths] {
            let replaces = |of_target: Option<UnusedNames>| match is_sweep {
                true => unused == UnusedNames::All,
                false => of_target == Some(unused),
            };
            let replacing = targets.iter().filter(|target| replaces(target.1));
            let names: Vec<String> = replacing.map(|target| target.0.to_owned()).collect();
            let jobs = steps.iter().flat_map(step_jobs);
            notes.extend(unused_file_names(Some(&source), (&names, unused), jobs));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_limits::Limits;
    use iosonde_suite::{MOST_RUNS, suite};
    use std::collections::BTreeMap;

    fn listed(workloads: &str, targets: &[(&str, Option<UnusedNames>)]) -> Vec<String> {
        let (none, limits) = (BTreeMap::new(), Limits::published());
        let read = suite(
            "s.toml",
            workloads,
            &none,
            limits,
            MOST_RUNS,
            &FakeEnv::new(),
        );
        let suite = read.map_err(|all| all.render(false)).unwrap();
        list_unused_file_names(&suite, targets)
    }

    const DIRECTORY: (&str, Option<UnusedNames>) = ("/dir", None);
    const DEVICE: (&str, Option<UnusedNames>) = ("/dev/x", Some(UnusedNames::All));
    const POOL: (&str, Option<UnusedNames>) = ("rados://p", Some(UnusedNames::Paths));

    #[test]
    fn file_names_of_a_workload_are_noted_once() {
        let text = "repetitions = 3\n[[workload]]\nname = \"w\"\naxes = { bs = [\"4k\", \
                    \"8k\"] }\noptions = { size = \"1m\", filename = \"/data/x\" }\n";
        assert_eq!(listed(text, &[DIRECTORY]), Vec::<String>::new());
        let on_device = "`w`: filename=/data/x is not used: the jobs run on /dev/x";
        assert_eq!(listed(text, &[DIRECTORY, DEVICE]), [on_device]);
        let in_pool = "`w`: filename=/data/x is not used: the jobs run on rados://p";
        assert_eq!(listed(text, &[DEVICE, POOL]), [on_device, in_pool]);
        let plain = text.replace("/data/x", "x");
        assert_eq!(listed(&plain, &[DIRECTORY, POOL]), Vec::<String>::new());
    }

    #[test]
    fn names_that_a_suite_makes_are_not_noted() {
        let text = "[[workload]]\nname = \"w\"\naxes = { bs = [\"4k\", \"8k\"] }\noptions = { \
                    size = \"1m\" }\n";
        assert_eq!(listed(text, &[DEVICE]), Vec::<String>::new());
    }

    #[test]
    fn sweep_replaces_file_names_on_all_targets() {
        let text = "[[workload]]\nname = \"s\"\nsweep = {}\naxes = { iodepth = \"1..4\" }\noptions \
                    = { size = \"1m\", ioengine = \"libaio\", filename = \"x\" }\n";
        assert_eq!(
            listed(text, &[DIRECTORY, POOL]),
            ["`s`: filename=x is not used: the jobs run on /dir, rados://p"]
        );
    }
}
