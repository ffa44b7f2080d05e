//! What is done in a pool beside measuring: the description of what was written, and its removal.

use super::args::{AccessArgs, CleanupArgs};
use super::killed;
use super::objects::{PREFIX, Written, name, prefix};
use crate::failure::Failure;
use crate::signals::Stop;
use crate::store::random_id;
use iosonde_engine::ceph::{CephError, IoCtx, Removal, remove_objects, share};
use iosonde_engine::worker::io_failure::errno_name;
use iosonde_result::session::RunError;
use std::ops::Range;

/// Names that a run tries for its objects, of which others may be taken.
const NAMES_TRIED_MAX: u32 = 32;

/// A pool of a cluster.
pub(super) struct Pool {
    /// Its objects.
    pub(super) objects: IoCtx,
    /// As a target is written, for messages.
    target: String,
    /// What removes objects of this pool, as far as `--prefix`.
    clean_up_command: String,
}

impl Pool {
    /// Connects.
    pub(super) fn open(access: &AccessArgs) -> Result<Pool, Failure> {
        let pool = access.pool()?;
        let target = match &access.namespace {
            Some(namespace) => format!("rados://{pool}/{namespace}"),
            None => format!("rados://{pool}"),
        };
        let failed = |error: CephError| Failure::Run(error.on(&target));
        let cluster = share(&access.access()).map_err(failed)?;
        let objects = cluster
            .pool(pool, access.namespace.as_deref())
            .map_err(failed)?;
        let namespace = access.namespace.as_ref();
        let namespace = namespace.map_or_else(String::new, |name| format!(" -N {name}"));
        Ok(Pool {
            objects,
            target,
            clean_up_command: format!("iosonde rados -p {pool}{namespace} cleanup"),
        })
    }

    /// As a target is written.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// What removes the objects whose names begin with this.
    pub(super) fn clean_up(&self, prefix: &str) -> String {
        format!("{} --prefix {prefix}", self.clean_up_command)
    }

    pub(super) fn failed(&self, error: &CephError) -> Failure {
        Failure::Run(error.on(&self.target))
    }

    /// What the last benchmark of this name has written; `None` when there was none.
    pub(super) fn written(&self, run_name: &str) -> Result<Option<Written>, Failure> {
        let mut bytes = [0; 24];
        match self.objects.read(run_name, &mut bytes, 0) {
            Ok(0) => Ok(None),
            Ok(length) => {
                let found = Written::decode(&bytes[..length]);
                let unknown = || {
                    Failure::usage(
                        format!(
                            "{}: the object {run_name} is none of rados bench's",
                            self.target
                        ),
                        "name another with --run-name",
                    )
                };
                found.map(Some).ok_or_else(unknown)
            }
            Err(error) if error.errno() == Some(2) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Describes what was written, for those who read it.
    pub(super) fn describe(&self, run_name: &str, written: &Written) -> Result<(), Failure> {
        let wrote = self.objects.write(run_name, &written.encode(), 0);
        wrote.map_err(|error| self.failed(&error))
    }

    /// Reserves the names of a run's objects by creating the first of them: those of this host and process where no other run has
    /// them, which a container's namespaces of processes make likely, else those of another number. Returns the number.
    pub(super) fn reserve_names(&self, host: &str, process: u32) -> Result<u32, Failure> {
        for tried in 0..NAMES_TRIED_MAX {
            let number = match tried {
                0 => process,
                _ => random_number()?,
            };
            let first = name(&prefix(host, number), 0);
            let created = self.objects.create_new(&first);
            if created.map_err(|error| self.failed(&error))? {
                return Ok(number);
            }
        }
        Err(Failure::Run(RunError::Target {
            path: self.target.clone(),
            problem: format!(
                "there are objects of {NAMES_TRIED_MAX} benchmarks of this host already"
            ),
            remedy: format!(
                "remove those of benchmarks that are over: {}",
                self.clean_up(PREFIX)
            ),
        }))
    }

    /// Removes the first `count` objects of a run. The first one goes last: until then no other run takes their names. How many
    /// there were.
    pub(super) fn remove_numbered(
        &self,
        prefix: &str,
        count: u64,
        stop: &Stop,
    ) -> Result<u64, Failure> {
        let names = |numbers: Range<u64>| numbers.map(|object| name(prefix, object));
        let mut removal = remove_objects(&self.objects, names(1..count), &stop.interrupt);
        let first = names(0..count.min(1));
        match removal.left.first() {
            Some(&(_, errno)) => removal.left.extend(first.map(|name| (name, errno))),
            None => {
                let last = remove_objects(&self.objects, first, &stop.interrupt);
                removal.removed += last.removed;
                removal.left = last.left;
            }
        }
        self.removed(&removal, prefix)
    }

    /// Removes objects; those that are left are named, with the command that removes them.
    pub(super) fn remove_objects(
        &self,
        objects: impl Iterator<Item = String>,
        prefix: &str,
        stop: &Stop,
    ) -> Result<u64, Failure> {
        let removal = remove_objects(&self.objects, objects, &stop.interrupt);
        self.removed(&removal, prefix)
    }

    fn removed(&self, removal: &Removal, prefix: &str) -> Result<u64, Failure> {
        let Some((first, errno)) = removal.left.first() else {
            return Ok(removal.removed);
        };
        let others = match removal.left.len() - 1 {
            0 => String::new(),
            1 => " and one more".to_owned(),
            more => format!(" and {more} more"),
        };
        let name = errno_name(*errno);
        Err(Failure::Run(RunError::Target {
            path: self.target.clone(),
            problem: format!("{first}{others} could not be removed ({name})"),
            remedy: format!("when the cluster answers again: {}", self.clean_up(prefix)),
        }))
    }
}

/// A number for the names of a run's objects. `rados bench` reads it as a process id, which is a positive int.
fn random_number() -> Result<u32, Failure> {
    let id = random_id().map_err(anyhow::Error::from)?;
    let number = id
        .get(..7)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    Ok(number.unwrap_or_default())
}

/// `iosonde rados cleanup`.
pub(super) fn clean_up(args: &CleanupArgs, access: &AccessArgs) -> Result<(), Failure> {
    // What is wrong with the words is told before a cluster is asked.
    args.prefix.as_deref().map_or(Ok(()), refuse_others)?;
    let stop = Stop::listen()?;
    let pool = Pool::open(access)?;
    let removed = match &args.prefix {
        Some(prefix) if killed::is_meant(prefix) => killed::remove(&pool, prefix, &stop),
        Some(prefix) => remove_by_prefix(&pool, prefix, &stop).map(|removed| (removed, Vec::new())),
        None => remove_described(&pool, &args.run_name, &stop).map(|removed| (removed, Vec::new())),
    };
    stop.check()?;
    let (removed, left) = removed?;
    let mut text = format!("Removed {removed} objects\n");
    for line in left {
        text += &format!("{line}\n");
    }
    crate::output::Output::Standard.write(&text)
}

fn remove_described(pool: &Pool, run_name: &str, stop: &Stop) -> Result<u64, Failure> {
    let Some(written) = pool.written(run_name)? else {
        return Err(Failure::usage(
            format!("{}: nothing is described in {run_name}", pool.target()),
            "there is nothing to remove, or it was written with another --run-name; what an interrupted run has left can be \
             removed with --prefix benchmark_data, and what other commands of iosonde have left that were killed, with --prefix iosonde-",
        ));
    };
    let prefix = prefix(&super::bench::host(), written.pid);
    let removed = pool.remove_numbered(&prefix, written.objects(), stop)?;
    // Last: until then another attempt knows what there is.
    let forgotten = pool.objects.remove(run_name);
    forgotten.map_err(|error| pool.failed(&error))?;
    Ok(removed)
}

/// Objects whose names begin otherwise are not ours to list or remove.
fn refuse_others(prefix: &str) -> Result<(), Failure> {
    if prefix.starts_with(PREFIX) || killed::is_meant(prefix) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("--prefix {prefix} is not of a benchmark"),
        "benchmarks' objects begin with benchmark_data, those of other commands of iosonde with iosonde-; others are never removed",
    ))
}

/// As `rados cleanup --prefix`: what is described nowhere, found by listing the pool.
fn remove_by_prefix(pool: &Pool, prefix: &str, stop: &Stop) -> Result<u64, Failure> {
    let found = pool.objects.list(prefix);
    let found = found.map_err(|error| pool.failed(&error))?;
    pool.remove_objects(found.into_iter(), prefix, stop)
}
