//! fio's JSON and logs of every cell, in the directories and names of bench-fio, for fio-plot:
//! `TARGET/BLOCK/MODE-IODEPTH-NUMJOBS.json`; mixtures: `TARGET/MODEPERCENT/BLOCK/...`; logs:
//! `MODE-iodepth-IODEPTH-numjobs-NUMJOBS_bw.1.log`. Other axes add a directory.

mod logs;

use crate::signals::StopSignal;
use iosonde_job::plan::{GivenOption, Job, ReadWriteMode};
use iosonde_job::target_scheme::is_path_name;
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::sweep::{Axis, CurvePlan, SweepGrid, SweepTarget, TARGET, size_name};
use iosonde_study::{RunHook, RunPurpose};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Writes the files as runs end.
pub(crate) struct FioExportHook {
    root: PathBuf,
    /// Targets with their directories.
    directories: Vec<(SweepTarget, String)>,
    /// Jobs of curves that file names do not distinguish, with their directories.
    apart: Vec<(Job, String)>,
    /// Measured time of written cells: of several runs of a cell the longest is kept.
    written: HashMap<PathBuf, u64>,
    /// The first error.
    problem: Option<String>,
    /// Interrupted runs are not exported.
    stop: StopSignal,
}

impl FioExportHook {
    pub(crate) fn new(
        root: &Path,
        targets: &[SweepTarget],
        grid: &SweepGrid,
        stop: StopSignal,
    ) -> FioExportHook {
        FioExportHook {
            root: root.to_owned(),
            directories: directories(targets),
            apart: grid
                .curves
                .iter()
                .filter_map(|plan| apart(&grid.axes, plan))
                .collect(),
            written: HashMap::new(),
            problem: None,
            stop,
        }
    }

    /// Writes the files of a run, unless it measured nothing.
    fn write(&mut self, result: &RunResult) {
        let Some(job) = result
            .plan
            .jobs
            .first()
            .filter(|job| job.schedule.runtime_ns > 0)
        else {
            return;
        };
        let measured_ns = result.workers.iter().map(|worker| worker.runtime_ns).max();
        let (Some(measured_ns), Some(path)) = (measured_ns, self.path(job)) else {
            return;
        };
        if measured_ns == 0
            || self
                .written
                .get(&path)
                .is_some_and(|longest| *longest > measured_ns)
        {
            return;
        }
        let mut text = Vec::new();
        let written = fio::write_json(&mut text, &fio::fio_json(&as_one(result), true))
            .and_then(|()| std::fs::create_dir_all(path.parent().unwrap_or(&self.root)))
            .and_then(|()| std::fs::write(&path, text))
            .and_then(|()| logs::write(&path, result, job));
        match written {
            Ok(()) => {
                self.written.insert(path, measured_ns);
            }
            Err(error) => {
                let error = iosonde_job::errno::describe(&error);
                let problem = format!("--export-fio: {}: {error}", path.display());
                self.problem.get_or_insert(problem);
            }
        }
    }

    fn path(&self, job: &Job) -> Option<PathBuf> {
        let file = job
            .files
            .filenames
            .first()
            .or(job.files.directories.first());
        let is_on = |target: &SweepTarget| match &target.kind {
            StudyTargetKind::Simulated { options } => job.io.sim.as_ref() == Some(options),
            _ => Some(&target.path) == file,
        };
        let named = self.directories.iter().find(|(target, _)| is_on(target));
        let target = match named {
            Some((_, directory)) => directory.clone(),
            None => plain(file?),
        };
        let rw = job.workload.rw;
        let block = job
            .workload
            .block_size
            .iter()
            .find(|(direction, _)| rw.has(*direction))?;
        let mut path = self.root.join(target);
        if rw.mode == ReadWriteMode::ReadWrite {
            path.push(format!("{}{}", rw.name(), job.workload.rwmix_read_percent));
        }
        if let Some((_, directory)) = self.apart.iter().find(|(curve, _)| is_of(job, curve)) {
            path.push(directory);
        }
        path.push(size_name(block.1.max()));
        path.push(format!(
            "{}-{}-{}.json",
            rw.name(),
            job.io.iodepth,
            job.numjobs
        ));
        Some(path)
    }

    pub(crate) fn notes(&self) -> Option<String> {
        self.problem.clone()
    }
}

impl RunHook for FioExportHook {
    fn after_run(&mut self, _purpose: RunPurpose, result: &mut RunResult) {
        if !self.stop.interrupt.is_requested() {
            self.write(result);
        }
    }
}

/// The run as bench-fio would request it: group reporting, and all options that fio-plot reads.
fn as_one(result: &RunResult) -> RunResult {
    let mut shown = result.clone();
    for job in &mut shown.plan.jobs {
        job.measure.group_reporting = true;
        let bytes = job
            .workload
            .block_size
            .iter()
            .find(|(direction, _)| job.workload.rw.has(*direction));
        let needed = [
            ("rw", Some(job.workload.rw.name().to_owned())),
            ("bs", bytes.map(|(_, block)| size_name(block.max()))),
            ("iodepth", Some(job.io.iodepth.to_string())),
            ("numjobs", Some(job.numjobs.to_string())),
            ("filename", job.files.filenames.first().cloned()),
        ];
        for (name, value) in needed {
            let is_given = job.given.iter().any(|given| given.name == name);
            job.given
                .extend(value.filter(|_| !is_given).map(|value| GivenOption {
                    name: name.to_owned(),
                    value,
                }));
        }
    }
    shown
}

/// Axes whose values are in the names of directories and files.
const NAMED: [&str; 5] = [TARGET, "rw", "bs", "iodepth", "numjobs"];

/// The directory of a curve that other axes distinguish.
fn apart(axes: &[Axis], plan: &CurvePlan) -> Option<(Job, String)> {
    let others = axes.iter().zip(&plan.values);
    let words: Vec<String> = others
        .filter(|(axis, _)| axis.values.len() > 1 && !NAMED.contains(&axis.name.as_str()))
        .map(|(axis, value)| format!("{}={value}", axis.name).replace('/', "-"))
        .collect();
    (!words.is_empty()).then(|| (plan.job.clone(), plain(&words.join("_"))))
}

/// Whether a cell's job belongs to a curve: both have the same options, except those of the cell.
fn is_of(job: &Job, curve: &Job) -> bool {
    job.name == curve.name && asked(job) == asked(curve)
}

/// The options of a job, except those of the cell. The last value of an option counts.
fn asked(job: &Job) -> BTreeMap<&str, &str> {
    const CHOSEN: [&str; 7] = [
        "iodepth",
        "numjobs",
        "runtime",
        "ramp_time",
        "time_based",
        "norandommap",
        "filename",
    ];
    let given = job.given.iter();
    let pairs = given.map(|given| (given.name.as_str(), given.value.as_str()));
    pairs.filter(|(name, _)| !CHOSEN.contains(name)).collect()
}

/// The directory of each target. Targets with the same last name use their whole names.
fn directories(targets: &[SweepTarget]) -> Vec<(SweepTarget, String)> {
    let names: Vec<String> = targets.iter().map(named).collect();
    let is_only = |name: &str| {
        let same = names.iter().filter(|other| plain(other) == plain(name));
        same.count() == 1
    };
    let directory = |name: &String| match is_only(name) {
        true => plain(name),
        false => plain(&name.trim_matches('/').replace('/', "-")),
    };
    let directories = names.iter().map(directory);
    targets.iter().cloned().zip(directories).collect()
}

/// The name of a target: the path of a local directory, also for `.`; otherwise the given name, as
/// paths in pods do not last.
fn named(target: &SweepTarget) -> String {
    let directory = Path::new(&target.path).parent();
    match (&target.kind, directory) {
        (StudyTargetKind::Directory { .. }, Some(directory)) if is_path_name(&target.name) => {
            directory.display().to_string()
        }
        _ => target.name.clone(),
    }
}

/// The last part of a path, restricted to portable characters.
fn plain(name: &str) -> String {
    let last = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name);
    let kept = |c: char| {
        if c.is_alphanumeric() || "._-=".contains(c) {
            c
        } else {
            '-'
        }
    };
    let plain: String = last.chars().map(kept).collect();
    match plain.trim_matches('.') {
        "" => "target".to_owned(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_job::plan::{BlockSize, PerDirection, ReadWrite};
    use iosonde_study::sweep::Base;
    use std::collections::HashSet;

    fn grid(targets: &[SweepTarget], axes: &[(&str, &[&str])]) -> SweepGrid {
        let axis = |(name, values): &(&str, &[&str])| Axis {
            name: (*name).to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes: Vec<Axis> = axes.iter().map(axis).collect();
        SweepGrid::new(&Base::Plain, targets, &axes, &FakeEnv::new()).unwrap()
    }

    #[test]
    fn cell_files_have_distinct_paths() {
        let target = |directory: &str| SweepTarget {
            name: directory.into(),
            path: format!("{directory}/file"),
            kind: StudyTargetKind::Directory {
                free_bytes: 1 << 40,
            },
            bytes: 1 << 30,
        };
        let targets = [target("/mnt/a/data"), target("/mnt/b/data")];
        let grid = grid(
            &targets,
            &[("rw", &["randread", "write"]), ("direct", &["0", "1"])],
        );
        let files = FioExportHook::new(Path::new("/out"), &targets, &grid, StopSignal::default());
        let paths: Vec<String> = grid
            .curves
            .iter()
            .map(|curve| files.path(&curve.job).unwrap().display().to_string())
            .collect();
        assert_eq!(paths.len(), 8);
        let distinct: HashSet<&String> = paths.iter().collect();
        assert_eq!(distinct.len(), 8, "{paths:#?}");
        assert!(
            paths.contains(&"/out/mnt-a-data/direct=0/4k/randread-1-1.json".to_owned()),
            "{paths:#?}"
        );
    }

    /// The file of each curve's own job, from which its cells are derived.
    fn paths(base: &Base, targets: &[SweepTarget], axes: &[Axis]) -> Vec<String> {
        let grid = SweepGrid::new(base, targets, axes, &FakeEnv::new()).unwrap();
        let files = FioExportHook::new(Path::new("/out"), targets, &grid, StopSignal::default());
        let path = |curve: &CurvePlan| files.path(&curve.job).unwrap().display().to_string();
        grid.curves.iter().map(path).collect()
    }

    /// The section sets the option of the axis too.
    #[test]
    fn section_options_and_axis_values_give_distinct_paths() {
        let base = Base::File {
            name: "job.fio".into(),
            text:
                "[a]\nrw=randread\ndirect=1\n[b]\nstonewall\nrw=randread\ndirect=1\nnorandommap\n"
                    .into(),
        };
        let target = SweepTarget {
            name: "/mnt/data".into(),
            path: "/mnt/data/file".into(),
            kind: StudyTargetKind::Directory {
                free_bytes: 1 << 40,
            },
            bytes: 1 << 30,
        };
        let axis = |name: &str, values: [&str; 2]| Axis {
            name: name.into(),
            values: values.map(str::to_owned).into(),
        };
        let axes = [axis("direct", ["1", "0"]), axis("size", ["16m", "32m"])];
        for axes in [&axes[..1], &axes] {
            let paths = paths(&base, std::slice::from_ref(&target), axes);
            let distinct: HashSet<&String> = paths.iter().collect();
            assert_eq!(distinct.len(), paths.len(), "{paths:#?}");
            assert!(paths[0].contains("direct=1"), "{paths:#?}");
        }
    }

    #[test]
    fn simulated_and_pod_targets_have_directories() {
        let simulated = |options: &str| SweepTarget {
            name: format!("sim:{options}"),
            path: "sim".into(),
            kind: StudyTargetKind::Simulated {
                options: options.into(),
            },
            bytes: 1 << 30,
        };
        let axes = [Axis {
            name: "rw".into(),
            values: vec!["randread".into()],
        }];
        let targets = [simulated("hdd"), simulated("nvme")];
        assert_eq!(
            paths(&Base::Plain, &targets, &axes),
            [
                "/out/sim-hdd/4k/randread-1-1.json",
                "/out/sim-nvme/4k/randread-1-1.json"
            ]
        );
        let in_pod = SweepTarget {
            name: "sc://fast".into(),
            path: "/data/.iosonde-3f2a9c/probe".into(),
            kind: StudyTargetKind::Directory {
                free_bytes: 1 << 40,
            },
            bytes: 1 << 30,
        };
        let path = paths(&Base::Plain, &[in_pod], &axes);
        assert_eq!(path, ["/out/fast/4k/randread-1-1.json"]);
    }

    #[test]
    fn file_names_match_fio_plot() {
        let target = SweepTarget {
            name: "/mnt/data/".into(),
            path: "/mnt/data/file".into(),
            kind: StudyTargetKind::Directory { free_bytes: 1 },
            bytes: 1 << 30,
        };
        let grid = grid(std::slice::from_ref(&target), &[("bs", &["4k", "8k"])]);
        let files = FioExportHook::new(Path::new("/out"), &[target], &grid, StopSignal::default());
        let mut job = Job::new("cell");
        job.files.filenames = vec!["/mnt/data/file".into()];
        job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(4096));
        job.workload.rw = ReadWrite {
            mode: ReadWriteMode::Read,
            random: true,
        };
        (job.io.iodepth, job.numjobs) = (16, 2);
        let path = |job: &Job| files.path(job).unwrap().display().to_string();
        assert_eq!(path(&job), "/out/data/4k/randread-16-2.json");
        job.workload.rw.mode = ReadWriteMode::ReadWrite;
        job.workload.rwmix_read_percent = 75;
        job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(1 << 20));
        assert_eq!(path(&job), "/out/data/randrw75/1m/randrw-16-2.json");
        job.files.filenames = vec!["/dev/nvme0n1".into()];
        assert_eq!(path(&job), "/out/nvme0n1/randrw75/1m/randrw-16-2.json");
        assert_eq!(plain("sim:nvme,seed=1"), "sim-nvme-seed=1");
        assert_eq!(
            (plain("."), plain("..")),
            ("target".into(), "target".into())
        );
    }
}
