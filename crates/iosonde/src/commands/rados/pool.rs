//! Descriptions, names and removal of benchmark objects in a pool.

use super::objects::{PREFIX, WrittenObjects, object_name, prefix};
use crate::args::AccessArgs;
use crate::failure::CommandError;
use crate::signals::StopSignal;
use iosonde_ceph::{CephError, IoCtx, Removal, remove_objects, share_client};
use iosonde_history::random_id;
use iosonde_job::quote_shell_word;
use iosonde_result::run_error::{RunError, TargetProblem};
use std::ops::Range;

/// Attempts at a free name for a run's objects.
const NAMES_TRIED_MAX: u32 = 32;

/// A pool of a cluster.
pub(super) struct Pool {
    /// Its objects.
    pub(super) objects: IoCtx,
    /// The pool as a target URI, for messages.
    target: String,
    /// Command that removes objects of this pool, without `--prefix`.
    clean_up_command: String,
}

impl Pool {
    /// Connects to the cluster.
    pub(super) fn open(access: &AccessArgs) -> Result<Pool, CommandError> {
        let pool = access.pool()?;
        let target = match &access.namespace {
            Some(namespace) => format!("rados://{pool}/{namespace}"),
            None => format!("rados://{pool}"),
        };
        let failed = |error: CephError| CommandError::Run(error.on(&target));
        let cluster = share_client(&access.access()).map_err(failed)?;
        let objects = cluster
            .pool(pool, access.namespace.as_deref())
            .map_err(failed)?;
        let namespace = access.namespace.as_ref();
        let namespace = namespace.map(|name| format!(" -N {}", quote_shell_word(name)));
        let (pool, namespace) = (quote_shell_word(pool), namespace.unwrap_or_default());
        Ok(Pool {
            objects,
            target,
            clean_up_command: format!("iosonde rados -p {pool}{namespace} cleanup"),
        })
    }

    /// The pool as a target URI.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Command that removes the objects with this name prefix.
    pub(super) fn clean_up(&self, prefix: &str) -> String {
        format!("{} --prefix {prefix}", self.clean_up_command)
    }

    pub(super) fn failed(&self, error: &CephError) -> CommandError {
        CommandError::Run(error.on(&self.target))
    }

    /// Reads the description of the last benchmark of this name. `None` if there is none.
    pub(super) fn written(&self, run_name: &str) -> Result<Option<WrittenObjects>, CommandError> {
        let mut bytes = [0; 24];
        match self.objects.read(run_name, &mut bytes, 0) {
            Ok(0) => Ok(None),
            Ok(length) => {
                let found = WrittenObjects::decode(&bytes[..length]);
                let unknown = || {
                    CommandError::usage(
                        format!(
                            "{}: rados bench did not write the object {run_name}",
                            self.target
                        ),
                        "name another object with --run-name",
                    )
                };
                found.map(Some).ok_or_else(unknown)
            }
            Err(error) if error.errno() == Some(2) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Writes the description, for later readers.
    pub(super) fn describe(
        &self,
        run_name: &str,
        written: &WrittenObjects,
    ) -> Result<(), CommandError> {
        let wrote = self.objects.write(run_name, &written.encode(), 0);
        wrote.map_err(|error| self.failed(&error))
    }

    /// Reserves names for a run's objects by creating the first one. Returns their number: the
    /// process id, or a random number if taken, as process ids repeat in containers.
    pub(super) fn reserve_names(&self, host: &str, process: u32) -> Result<u32, CommandError> {
        for tried in 0..NAMES_TRIED_MAX {
            let number = match tried {
                0 => process,
                _ => random_number()?,
            };
            let first = object_name(&prefix(host, number), 0);
            let created = self.objects.create_new(&first);
            if created.map_err(|error| self.failed(&error))? {
                return Ok(number);
            }
        }
        Err(CommandError::Run(RunError::unusable_target(
            &self.target,
            TargetProblem::NoObjectNames {
                names: NAMES_TRIED_MAX,
                clean_up: self.clean_up(PREFIX),
            },
        )))
    }

    /// Removes the first `count` objects of a run, the first one last: it reserves the names.
    /// Returns the number of removed objects.
    pub(super) fn remove_numbered(
        &self,
        prefix: &str,
        count: u64,
        stop: &StopSignal,
    ) -> Result<u64, CommandError> {
        let names = |numbers: Range<u64>| numbers.map(|object| object_name(prefix, object));
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

    /// Removes objects. The error names the remaining ones and the command that removes them.
    pub(super) fn remove_objects(
        &self,
        objects: impl Iterator<Item = String>,
        prefix: &str,
        stop: &StopSignal,
    ) -> Result<u64, CommandError> {
        let removal = remove_objects(&self.objects, objects, &stop.interrupt);
        self.removed(&removal, prefix)
    }

    fn removed(&self, removal: &Removal, prefix: &str) -> Result<u64, CommandError> {
        let Some((first, errno)) = removal.left.first() else {
            return Ok(removal.removed);
        };
        Err(CommandError::Run(RunError::unusable_target(
            &self.target,
            TargetProblem::ObjectsNotRemoved {
                first: first.clone(),
                others: removal.left.len() as u64 - 1,
                errno: *errno,
                clean_up: self.clean_up(prefix),
            },
        )))
    }
}

/// A number for object names. `rados bench` reads it as a process id, which is a positive int.
fn random_number() -> Result<u32, CommandError> {
    let id = random_id().map_err(anyhow::Error::from)?;
    let number = id
        .get(..7)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    Ok(number.unwrap_or_default())
}
