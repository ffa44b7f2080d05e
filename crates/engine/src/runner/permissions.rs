//! Restricts jobs of a session to the targets that the user named and a log directory.
//!
//! Moving a job to a target replaces its file names and engine. Only this module checks the moved
//! job: every option that can name a file, a device or an image, before any is opened.

use crate::files::{WorkerFiles, target_error};
use crate::remote_storage::RemoteStorage;
use iosonde_job::outside_access::{AccessKind, OutsideAccess, outside_accesses};
use iosonde_job::plan::{Job, Plan};
use iosonde_result::run_error::{PathAction, RunError, TargetProblem, UnsupportedFeature};
use std::path::{Component, Path, PathBuf};

/// Accesses that the jobs of a session may make, whatever their options are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Files, devices, directories, images (`rbd://POOL/IMAGE`) and pool objects
    /// (`rados://POOL/FILE`, or the part of such names up to a `-`). `None` permits all targets.
    pub targets: Option<Vec<String>>,
    /// Directory for logs. `None` permits no logs.
    pub logs: Option<PathBuf>,
    /// Most bytes of all logs of a run together. `None`: no limit.
    pub log_bytes_max: Option<u64>,
    /// Whether jobs may run commands, change machine settings, and create files for buffers.
    pub commands: bool,
}

impl Permissions {
    /// Refuses jobs whose engine or options leave the targets. Files: `Permissions::check_files`.
    ///
    /// # Errors
    /// The first access that is not permitted.
    pub fn check_plan(
        &self,
        plan: &Plan,
        remote: Option<&dyn RemoteStorage>,
    ) -> Result<(), RunError> {
        for job in &plan.jobs {
            let accesses = outside_accesses(job);
            if let Some(refused) = accesses.iter().find(|access| !self.permits(access)) {
                return Err(UnsupportedFeature::OutsideAccess {
                    job: refused.job.clone(),
                    option: refused.option.to_owned(),
                    value: refused.value.clone(),
                    kind: refused.kind,
                }
                .into());
            }
            if let Some(remote) = remote.filter(|_| job.io.engine.is_ceph()) {
                self.check_remote(job, remote)?;
            }
        }
        Ok(())
    }

    fn permits(&self, access: &OutsideAccess) -> bool {
        if access.needs_trust() {
            return self.commands;
        }
        let path = Path::new(&access.value);
        let is_upward = path.components().any(|step| step == Component::ParentDir);
        let is_below = |logs: &PathBuf| path.starts_with(logs) && !is_upward;
        access.kind == AccessKind::Read || self.logs.as_ref().is_some_and(is_below)
    }

    /// Creates the directories of logs.
    pub(super) fn make_log_directories(&self, plan: &Plan) -> Result<(), RunError> {
        let accesses = plan.jobs.iter().flat_map(outside_accesses);
        for access in accesses.filter(|access| access.kind == AccessKind::Log) {
            let directory = Path::new(&access.value).parent();
            let directory = directory.unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)
                .map_err(|error| target_error(directory, PathAction::Create, &error))?;
        }
        Ok(())
    }

    /// Refuses objects and images outside of the targets, and other clusters.
    fn check_remote(&self, job: &Job, remote: &dyn RemoteStorage) -> Result<(), RunError> {
        let Some(targets) = &self.targets else {
            return Ok(());
        };
        let names = remote.file_uris(job);
        let is_permitted = |name: &String| {
            targets.iter().any(|target| {
                name == target || target.ends_with('-') && name.starts_with(target.as_str())
            })
        };
        if names.is_empty() || !names.iter().all(is_permitted) {
            let path = names.into_iter().find(|name| !is_permitted(name));
            let path = path.as_deref().unwrap_or("no object");
            return Err(outside(job, path, targets));
        }
        remote.check_cluster(job)
    }

    /// Refuses files outside of the targets, whether they exist or not.
    pub(super) fn check_files<'a>(
        &self,
        workers: impl Iterator<Item = (&'a Job, &'a WorkerFiles)>,
    ) -> Result<(), RunError> {
        let Some(targets) = &self.targets else {
            return Ok(());
        };
        let bounds = targets.iter().map(|path| resolved_path(Path::new(path)));
        let bounds: Vec<PathBuf> = bounds.collect();
        for (job, files) in workers.filter(|(job, _)| job.io.engine.has_paths()) {
            let is_outside = |path: &Path| {
                let is_dangling = path.is_symlink() && !path.exists();
                let path = resolved_path(path);
                let is_upward = path.components().any(|step| step == Component::ParentDir);
                is_dangling || is_upward || !bounds.iter().any(|bounds| path.starts_with(bounds))
            };
            if let Some(file) = files.files.iter().find(|file| is_outside(&file.path)) {
                return Err(outside(job, &file.path.to_string_lossy(), targets));
            }
        }
        Ok(())
    }
}

fn outside(job: &Job, path: &str, targets: &[String]) -> RunError {
    RunError::unusable_target(
        path.to_owned(),
        TargetProblem::OutsideTargets {
            job: job.name.clone(),
            targets: targets.to_owned(),
        },
    )
}

/// Returns a path without symbolic links, as far as it exists.
fn resolved_path(path: &Path) -> PathBuf {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_there = |path: &&Path| path.exists();
    let nearest = path.ancestors().find(is_there).unwrap_or(Path::new("/"));
    let found = nearest.canonicalize();
    match (found, path.strip_prefix(nearest)) {
        (Ok(found), Ok(rest)) if rest.as_os_str().is_empty() => found,
        (Ok(found), Ok(rest)) => found.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Engine, Memory};

    #[test]
    fn files_outside_the_target_are_refused_by_any_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("target")).unwrap();
        std::fs::write(path("victim"), "mine").unwrap();
        std::os::unix::fs::symlink(path("victim"), path("target/link")).unwrap();
        std::os::unix::fs::symlink(path("missing"), path("target/dangling")).unwrap();
        let permissions = Permissions {
            targets: Some(vec![path("target").to_string_lossy().into_owned()]),
            ..Permissions::default()
        };
        for (name, is_permitted) in [
            ("target/new", true),
            ("target/new/deeper", true),
            ("victim", false),
            ("target/../victim", false),
            ("target/new/../../victim", false),
            ("target/link", false),
            ("target/dangling", false),
            ("target2", false),
        ] {
            let mut job = Job::new("a");
            job.io.engine = Engine::Psync;
            job.files.filenames = vec![path(name).to_string_lossy().into_owned()];
            let files = WorkerFiles::by_name(&job, 0).unwrap();
            let checked = permissions.check_files([(&job, &files)].into_iter());
            assert_eq!(checked.is_ok(), is_permitted, "{name}: {checked:?}");
        }
    }

    #[test]
    fn commands_and_outside_logs_are_refused_unless_permitted() {
        let default = Permissions::default();
        let with_logs = Permissions {
            logs: Some("/logs".into()),
            ..Permissions::default()
        };
        let trusting = Permissions {
            commands: true,
            ..with_logs.clone()
        };
        let checked = |permissions: &Permissions, set: &dyn Fn(&mut Job)| {
            let mut job = Job::new("a");
            set(&mut job);
            let plan = Plan {
                jobs: vec![job],
                ..Plan::default()
            };
            permissions.check_plan(&plan, None).is_ok()
        };
        let trusted: [&dyn Fn(&mut Job); 4] = [
            &|job| job.schedule.exec_prerun = Some("true".to_owned()),
            &|job| job.schedule.exec_postrun = Some("true".to_owned()),
            &|job| job.io.scheduler = Some("none".to_owned()),
            &|job| job.io.mem = Memory::Mmap(Some("/m".to_owned())),
        ];
        for set in trusted {
            assert!(!checked(&default, set) && !checked(&with_logs, set));
            assert!(checked(&trusting, set));
        }
        for (name, is_permitted) in [
            ("/logs/x", true),
            ("/logs/deep/x", true),
            ("/logs/../x", false),
            ("/logs2/x", false),
            ("x", false),
        ] {
            let set = |job: &mut Job| job.measure.logs.trace = Some(name.to_owned());
            assert_eq!(checked(&with_logs, &set), is_permitted, "{name}");
            assert!(!checked(&default, &set), "{name}");
        }
    }
}
