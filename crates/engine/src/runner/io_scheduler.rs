//! `ioscheduler`: sets the I/O scheduler of a job's devices, and restores it after the run.

use super::JobClone;
use crate::files::FileKind;
use iosonde_job::plan::Job;
use iosonde_machine::identify::identify;
use iosonde_result::host::{DeviceInfo, DeviceKind, TargetInfo};
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Schedulers of the devices before the run. Dropping this restores them.
#[derive(Debug, Default)]
pub(super) struct Schedulers(Mutex<BTreeMap<PathBuf, String>>);

impl Schedulers {
    /// Sets the scheduler of the devices below a worker's files, if its job asks for it.
    pub(super) fn switch(&self, job: &Job, clone: &JobClone) -> Result<(), RunError> {
        let Some(wanted) = &job.io.scheduler else {
            return Ok(());
        };
        if !job.io.engine.has_paths() {
            return Ok(());
        }
        for path in queues(clone) {
            self.switch_one(&path, wanted).map_err(|error| {
                RunError::from(UnsupportedFeature::SchedulerRefused {
                    job: job.name.clone(),
                    scheduler: wanted.clone(),
                    path: path.display().to_string(),
                    failure: (&error).into(),
                    offered: fs::read_to_string(&path)
                        .unwrap_or_default()
                        .trim()
                        .to_owned(),
                })
            })?;
        }
        Ok(())
    }

    fn switch_one(&self, path: &Path, wanted: &str) -> io::Result<()> {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = active(&fs::read_to_string(path)?);
        if now == wanted {
            return Ok(());
        }
        fs::write(path, wanted)?;
        before.entry(path.to_owned()).or_insert(now);
        Ok(())
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        let before = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (path, scheduler) in before {
            // A device that was removed has no scheduler to restore.
            let _ = fs::write(path, scheduler);
        }
    }
}

/// Returns the scheduler in brackets, or the only one.
fn active(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(name, _)| name).trim().to_owned()
}

/// Returns the sysfs files that set the schedulers of the disks below a worker's files.
fn queues(clone: &JobClone) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::new();
    for file in &clone.files().files {
        if file.kind == FileKind::Stream {
            continue;
        }
        let Ok(TargetInfo { devices, .. }) = identify(&file.path) else {
            continue;
        };
        devices.iter().for_each(|device| disks(device, &mut names));
    }
    let path = |name: String| PathBuf::from(format!("/sys/block/{name}/queue/scheduler"));
    names
        .into_iter()
        .map(path)
        .filter(|path| path.exists())
        .collect()
}

/// Adds the device, or the disk of a partition, as a partition has no queue of its own.
fn disks(device: &DeviceInfo, names: &mut BTreeSet<String>) {
    if device.kind == DeviceKind::Partition {
        device.below.iter().for_each(|below| disks(below, names));
    } else {
        names.insert(device.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_scheduler_is_restored_on_drop() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scheduler");
        fs::write(&path, "none [mq-deadline] bfq\n").unwrap();
        let schedulers = Schedulers::default();
        schedulers.switch_one(&path, "bfq").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "bfq");
        schedulers.switch_one(&path, "none").unwrap();
        drop(schedulers);
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!(after, "mq-deadline", "the first that was met");
    }
}
