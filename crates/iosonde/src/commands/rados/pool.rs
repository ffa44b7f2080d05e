//! What is done in a pool beside measuring: the description of what was written, and its removal.

use super::args::{AccessArgs, CleanupArgs};
use super::objects::{Written, name, prefix};
use crate::failure::Failure;
use iosonde_engine::ceph::{CephError, IoCtx, connect};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Removals at a time.
const REMOVERS: usize = 16;

/// A pool of a cluster.
pub(super) struct Pool {
    /// Its objects.
    pub(super) objects: IoCtx,
    /// As a target is written, for messages.
    target: String,
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
        let cluster = connect(&access.access()).map_err(failed)?;
        let objects = cluster
            .pool(pool, access.namespace.as_deref())
            .map_err(failed)?;
        Ok(Pool { objects, target })
    }

    /// As a target is written.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    fn failed(&self, error: &CephError) -> Failure {
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

    /// Removes what was written, and its description. How many objects there were.
    pub(super) fn remove(&self, run_name: &str, prefix: &str, count: u64) -> Result<u64, Failure> {
        let (next, removed) = (AtomicU64::new(0), AtomicU64::new(0));
        let failed = Mutex::new(None);
        let work = || {
            loop {
                let object = next.fetch_add(1, Relaxed);
                if object >= count {
                    return;
                }
                match self.objects.remove(&name(prefix, object)) {
                    Ok(was_there) => removed.fetch_add(u64::from(was_there), Relaxed),
                    Err(error) => {
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(error);
                        }
                        return;
                    }
                };
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..REMOVERS.min(usize::try_from(count).unwrap_or(REMOVERS)) {
                scope.spawn(work);
            }
        });
        if let Ok(Some(error)) = failed.into_inner() {
            return Err(self.failed(&error));
        }
        // Last: until then another attempt knows what there is.
        let described = self.objects.remove(run_name);
        described.map_err(|error| self.failed(&error))?;
        Ok(removed.into_inner())
    }
}

/// `iosonde rados cleanup`.
pub(super) fn clean_up(args: &CleanupArgs, access: &AccessArgs) -> Result<(), Failure> {
    let pool = Pool::open(access)?;
    let Some(written) = pool.written(&args.run_name)? else {
        return Err(Failure::usage(
            format!(
                "{}: nothing is described in {}",
                pool.target(),
                args.run_name
            ),
            "there is nothing to remove, or it was written with another --run-name",
        ));
    };
    let prefix = prefix(&super::bench::host(), written.pid);
    let removed = pool.remove(&args.run_name, &prefix, written.objects())?;
    crate::output::Output::Standard.write(format!("Removed {removed} objects\n").as_bytes())
}
