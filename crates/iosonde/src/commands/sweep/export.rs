//! fio's JSON of every measured cell, in the directories and under the names that bench-fio gives and fio-plot reads:
//! `TARGET/BLOCK/MODE-IODEPTH-NUMJOBS.json`, and `TARGET/MODEPERCENT/BLOCK/...` for mixtures.

use iosonde_job::plan::{Job, Mode};
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::probe::TargetKind;
use iosonde_study::sweep::{SweepTarget, size_name};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Writes them as runs end.
pub(super) struct FioFiles {
    root: PathBuf,
    /// Names of targets by their files.
    names: Vec<(String, String)>,
    /// Measured time of what has been written: of several runs of a cell the longest stays.
    written: HashMap<PathBuf, u64>,
    /// The first thing that went wrong.
    problem: Option<String>,
}

impl FioFiles {
    pub(super) fn new(root: &Path, targets: &[SweepTarget]) -> FioFiles {
        FioFiles {
            root: root.to_owned(),
            names: targets.iter().map(named).collect(),
            written: HashMap::new(),
            problem: None,
        }
    }

    /// Writes a run that measured something.
    pub(super) fn write(&mut self, result: &RunResult) {
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
        let written = fio::write_json(&mut text, &fio::json(result, true))
            .and_then(|()| std::fs::create_dir_all(path.parent().unwrap_or(&self.root)))
            .and_then(|()| std::fs::write(&path, text));
        match written {
            Ok(()) => {
                self.written.insert(path, measured_ns);
            }
            Err(error) => {
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
        let named = self.names.iter().find(|(path, _)| Some(path) == file);
        let target = match named {
            Some((_, name)) => plain(name),
            None => plain(file?),
        };
        let rw = job.workload.rw;
        let block = job
            .workload
            .block_size
            .iter()
            .find(|(direction, _)| rw.has(*direction))?;
        let mut path = self.root.join(target);
        if rw.mode == Mode::ReadWrite {
            path.push(format!("{}{}", rw.name(), job.workload.rwmix_read_percent));
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

    /// What went wrong.
    pub(super) fn notes(&self) -> Option<String> {
        self.problem.clone()
    }
}

/// A target's file, and what it is called. A directory goes by its own name, which `.` is not.
fn named(target: &SweepTarget) -> (String, String) {
    let directory = Path::new(&target.path).parent();
    let name = match (&target.kind, directory) {
        (TargetKind::Directory { .. }, Some(directory)) => directory.display().to_string(),
        _ => target.name.clone(),
    };
    (target.path.clone(), name)
}

/// The last part of a path, with nothing in it that a file's name should not have.
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
    use iosonde_job::plan::{BlockSize, PerDirection, ReadWrite};

    #[test]
    fn names_are_those_of_fio_plot() {
        let target = SweepTarget {
            name: "/mnt/data/".into(),
            path: "/mnt/data/file".into(),
            kind: TargetKind::Directory { free_bytes: 1 },
            bytes: 1,
        };
        let files = FioFiles::new(Path::new("/out"), &[target]);
        let mut job = Job::new("cell");
        job.files.filenames = vec!["/mnt/data/file".into()];
        job.workload.block_size = PerDirection::all(BlockSize::Fixed(4096));
        job.workload.rw = ReadWrite {
            mode: Mode::Read,
            random: true,
        };
        (job.io.iodepth, job.numjobs) = (16, 2);
        let path = |job: &Job| files.path(job).unwrap().display().to_string();
        assert_eq!(path(&job), "/out/data/4k/randread-16-2.json");
        job.workload.rw.mode = Mode::ReadWrite;
        job.workload.rwmix_read_percent = 75;
        job.workload.block_size = PerDirection::all(BlockSize::Fixed(1 << 20));
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
