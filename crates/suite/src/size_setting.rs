//! How a suite sets the bytes of a step, and the advice on targets without enough space.

use super::spec::{StepKind, Suite, SuiteStep};
use iosonde_job::plan::{BytesOrPercent, Direction, Plan};
use iosonde_job::value::{Bytes, bytes};
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Size in advice on a full target, if jobs set none.
const EXAMPLE_BYTES: u64 = 512 * MIB;

impl StepKind {
    /// Returns the member that sets the bytes of the step: `load = { size = "512m" }`. `None` for a
    /// command.
    fn size_member(&self, size: &str) -> Option<String> {
        let member = match self {
            StepKind::Jobs(_) => {
                return Some(format!(
                    "options = {{ size = \"{size}\" }}, in a job file size={size}"
                ));
            }
            StepKind::Sweep(_) => "sweep",
            StepKind::Load(_) => "load",
            StepKind::Probe(_) => "probe",
            StepKind::Command(_) => return None,
        };
        Some(format!("{member} = {{ size = \"{size}\" }}"))
    }

    /// Returns the bytes that the step sets, the largest of its jobs. `None` if it sets none.
    fn size_bytes(&self) -> Option<u64> {
        match self {
            StepKind::Jobs(plan) => {
                let jobs = plan.jobs.iter().filter(|job| !job.schedule.neighbour);
                let sizes = jobs.filter_map(|job| match job.files.size {
                    Some(BytesOrPercent::Bytes(size)) => Some(size),
                    _ => None,
                });
                sizes.max()
            }
            StepKind::Sweep(wanted) => wanted.size_bytes,
            StepKind::Load(options) => options.size_bytes,
            StepKind::Probe(options) => options.size_bytes,
            StepKind::Command(_) => None,
        }
    }

    /// Returns the smallest size of the step: a block of its jobs, or the smallest working set.
    fn least_bytes(&self) -> u64 {
        match self {
            StepKind::Jobs(plan) => largest_block(plan),
            StepKind::Sweep(_) | StepKind::Load(_) | StepKind::Probe(_) | StepKind::Command(_) => {
                WORKING_SET_BYTES_MIN
            }
        }
    }

    /// Returns half of the size of the step, for a target that is full: `32m`. `None` if the step
    /// has the smallest size already, or is a study without a size.
    fn smaller_size(&self) -> Option<String> {
        let least = self.least_bytes();
        let Some(own) = self.size_bytes() else {
            // The default working set of a study fits into the free space, so no size is known to
            // be smaller.
            let is_jobs = matches!(self, StepKind::Jobs(_));
            return is_jobs.then(|| size_text(EXAMPLE_BYTES.max(least), least));
        };
        let smaller = (own / 2).max(least);
        (smaller < own).then(|| size_text(smaller, least))
    }

    /// Returns the largest size that fits into the available bytes: the jobs share the space as
    /// they do now. `None`: the smallest size does not fit, or jobs have no size or less than
    /// 1 MiB.
    fn fitting_bytes(&self, needed_bytes: u64, available_bytes: u64) -> Option<u64> {
        let least = self.least_bytes().max(MIB);
        let fitting = match (self, self.size_bytes()) {
            (StepKind::Jobs(_), None) => return None,
            (_, None) => available_bytes,
            (_, Some(size)) => {
                let shared = u128::from(size) * u128::from(available_bytes);
                u64::try_from(shared / u128::from(needed_bytes.max(1))).ok()?
            }
        };
        (fitting >= least).then_some(fitting)
    }
}

/// The largest block of all jobs.
fn largest_block(plan: &Plan) -> u64 {
    let jobs = plan.jobs.iter().filter(|job| !job.schedule.neighbour);
    let blocks = jobs.flat_map(|job| {
        let sizes = &job.workload.block_size;
        Direction::ALL.map(|direction| sizes[direction].max())
    });
    blocks.max().unwrap_or(1)
}

/// The bytes in whole MiB, else in whole KiB, if that is at least the least size.
fn size_text(bytes: u64, least: u64) -> String {
    let units = [(MIB, "m"), (KIB, "k")];
    let fitting = units
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes / unit * unit >= least);
    match fitting {
        Some((unit, letter)) => format!("{}{letter}", bytes / unit),
        None => bytes.to_string(),
    }
}

impl Suite {
    /// Returns the setting of the bytes of a step: `--var size=512m` if a single variable has this
    /// value and a name with `size`, else the member of the file. `None` for a command.
    #[must_use]
    pub fn size_setting(&self, step: &SuiteStep, size: &str) -> Option<String> {
        let own = step.what.size_bytes();
        let holds_it = |text: &str| own.is_some() && bytes(text, Bytes::Binary).ok() == own;
        let mut holding = self.variables.iter().filter(|(_, text)| holds_it(text));
        match (holding.next(), holding.next()) {
            (Some((name, _)), None) if name.to_lowercase().contains("size") => {
                Some(format!("--var {name}={size}"))
            }
            _ => step.what.size_member(size),
        }
    }

    /// Returns advice for a step whose target became full: a smaller size, with its setting.
    /// `None`: the step has the smallest size already, or is a command.
    #[must_use]
    pub fn smaller_size_advice(&self, step: &SuiteStep) -> Option<String> {
        let setting = self.size_setting(step, &step.what.smaller_size()?)?;
        Some(size_advice(step, &setting))
    }

    /// Returns advice for a step that needs more bytes than are available, with the largest size
    /// that fits. `None`: no size of a study fits, or the step is a command.
    #[must_use]
    pub fn fitting_size_advice(
        &self,
        step: &SuiteStep,
        needed_bytes: u64,
        available_bytes: u64,
    ) -> Option<String> {
        let fitting = step.what.fitting_bytes(needed_bytes, available_bytes);
        let size = fitting.map(|bytes| size_text(bytes, step.what.least_bytes()));
        match size.and_then(|size| self.size_setting(step, &size)) {
            Some(setting) => Some(size_advice(step, &setting)),
            None => matches!(step.what, StepKind::Jobs(_))
                .then(|| format!("use fewer or smaller files in `{}`", step.workload)),
        }
    }
}

fn size_advice(step: &SuiteStep, setting: &str) -> String {
    let name = &step.workload;
    format!("set a smaller size for `{name}`, e.g. {setting}")
}

#[cfg(test)]
mod tests {
    use super::super::{MOST_RUNS, StepKind, StepOutcome, Suite, suite};
    use iosonde_job::env::FakeEnv;
    use iosonde_job::errno;
    use iosonde_limits::Limits;
    use iosonde_result::run::IoFailure;
    use iosonde_study::load::LoadResult;
    use iosonde_study::probe::StudyTargetKind;
    use std::collections::BTreeMap;

    fn read_suite(text: &str) -> Suite {
        let limits = Limits::published();
        let read = suite(
            "s.toml",
            text,
            &BTreeMap::new(),
            limits,
            MOST_RUNS,
            &FakeEnv::new(),
        );
        read.map_err(|all| all.render(false)).unwrap()
    }

    fn settings(text: &str) -> Vec<String> {
        let suite = read_suite(text);
        let steps = suite.steps.iter();
        steps
            .filter_map(|step| suite.size_setting(step, "8m"))
            .collect()
    }

    #[test]
    fn size_setting_names_the_member_of_each_kind_of_step() {
        let text = r#"
            [[workload]]
            name = "a"
            options = { size = "64m" }
            [[workload]]
            name = "b"
            load = { size = "64m" }
            [[workload]]
            name = "c"
            probe = {}
            [[workload]]
            name = "d"
            options = { rw = "randread" }
            axes = { iodepth = "1,2" }
            sweep = {}
        "#;
        assert_eq!(
            settings(text),
            [
                "options = { size = \"8m\" }, in a job file size=8m",
                "load = { size = \"8m\" }",
                "probe = { size = \"8m\" }",
                "sweep = { size = \"8m\" }",
            ]
        );
    }

    #[test]
    fn size_setting_names_the_variable_that_holds_the_size() {
        let text = r#"
            [variables]
            limit = "10ms"
            file_size = "64m"
            [[workload]]
            name = "a"
            options = { size = "${file_size}" }
            [[workload]]
            name = "b"
            load = { size = "32m" }
        "#;
        let expected = ["--var file_size=8m", "load = { size = \"8m\" }"];
        assert_eq!(settings(text), expected);
    }

    #[test]
    fn size_setting_names_no_variable_that_may_hold_something_else() {
        for variables in ["limit = \"64m\"", "size = \"64m\"\nlimit = \"64m\""] {
            let load = "[[workload]]\nname = \"a\"\nload = { size = \"64m\" }";
            let text = format!("[variables]\n{variables}\n{load}\n");
            assert_eq!(settings(&text), ["load = { size = \"8m\" }"], "{variables}");
        }
    }

    /// The advised size of the first step of a suite.
    fn smaller_size(step: &str) -> Option<String> {
        let suite = read_suite(&format!("[[workload]]\nname = \"a\"\n{step}\n"));
        suite.steps[0].what.smaller_size()
    }

    #[test]
    fn smaller_size_is_half_of_the_size_and_at_least_a_block() {
        for (step, expected) in [
            (r#"options = { size = "22m" }"#, Some("11m")),
            (r#"options = { size = "21m" }"#, Some("10m")),
            (r#"options = { size = "1m" }"#, Some("512k")),
            (r#"options = { size = "3m", bs = "2m" }"#, Some("2m")),
            (r#"options = { size = "6k", bs = "512" }"#, Some("3k")),
            (r#"options = { size = "1m", bs = "1m" }"#, None),
            (r#"options = { size = "100%" }"#, Some("512m")),
            (r#"load = { size = "1g" }"#, Some("512m")),
            (r#"load = { size = "22m" }"#, Some("16m")),
            (r#"load = { size = "16m" }"#, None),
            ("probe = {}", None),
        ] {
            assert_eq!(smaller_size(step).as_deref(), expected, "{step}");
        }
    }

    /// Advice on the first step of a suite for a full target, and for one with 100 of 256 MiB.
    fn advice(text: &str) -> [Option<String>; 2] {
        let suite = read_suite(text);
        let step = &suite.steps[0];
        [
            suite.smaller_size_advice(step),
            suite.fitting_size_advice(step, 256 << 20, 100 << 20),
        ]
    }

    #[test]
    fn advice_on_space_names_the_variable_of_the_size() {
        let text = "[variables]\nsize = \"64m\"\n[[workload]]\nname = \"a\"\noptions = { \
                    size = \"${size}\" }\n";
        let expected = ["32m", "25m"].map(|size| {
            Some(format!(
                "set a smaller size for `a`, e.g. --var size={size}"
            ))
        });
        assert_eq!(advice(text), expected);
    }

    #[test]
    fn advice_on_space_keeps_the_smallest_working_set() {
        let load = |size: &str| {
            advice(&format!(
                "[[workload]]\nname = \"a\"\nload = {{ size = \"{size}\" }}\n"
            ))
        };
        let named = |size: &str| {
            Some(format!(
                "set a smaller size for `a`, e.g. load = {{ size = \"{size}\" }}"
            ))
        };
        assert_eq!(load("256m"), [named("128m"), named("100m")]);
        // A share of 100 of 256 MiB is 8 MiB.
        assert_eq!(load("22m"), [named("16m"), None]);
        assert_eq!(load("16m"), [None, None]);
    }

    #[test]
    fn full_target_of_a_small_step_names_a_smaller_size() {
        let text = "[variables]\nload_size = \"22m\"\n[[workload]]\nname = \"a\"\nload = { \
                    size = \"${load_size}\" }\n";
        let suite = read_suite(text);
        let step = &suite.steps[0];
        let StepKind::Load(options) = &step.what else {
            panic!("{step:?}");
        };
        let full = IoFailure {
            errno: errno::ENOSPC,
            operation: "write".to_owned(),
            file: None,
            offset: None,
            message: "write failed".to_owned(),
        };
        let result = LoadResult {
            format: 1,
            target: "/data".to_owned(),
            kind: StudyTargetKind::Directory { free_bytes: 0 },
            options: options.clone(),
            bytes: 22 << 20,
            direct: true,
            capacity_iops: None,
            points: Vec::new(),
            objectives: Vec::new(),
            matrix: None,
            interrupted: false,
            error: None,
            capacity_failure: Some(full),
            ceph: None,
            in_memory: None,
            notes: Vec::new(),
        };
        let outcome = StepOutcome::Load(Box::new(result));
        let failure = outcome.result_of(&suite, step, 1).failure;
        let expected = "write failed; set a smaller size for `a`, e.g. --var load_size=16m";
        assert_eq!(failure.as_deref(), Some(expected));
    }
}
