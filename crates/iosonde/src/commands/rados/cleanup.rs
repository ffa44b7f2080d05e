//! `iosonde rados cleanup`: removes objects of benchmarks and of killed runs.

use super::killed;
use super::objects::{PREFIX, host_name, prefix};
use super::pool::Pool;
use crate::args::{AccessArgs, CleanupArgs};
use crate::commands::ceph::run_of;
use crate::commands::made_storage::MADE_IMAGE;
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_ceph::{list_images, remove_image, remove_made_pool};
use iosonde_result::run_error::RunError;

/// `iosonde rados cleanup`.
pub(super) fn clean_up(args: &CleanupArgs, access: &AccessArgs) -> Result<(), CommandError> {
    // Arguments are checked before the cluster is accessed.
    args.prefix.as_deref().map_or(Ok(()), refuse_others)?;
    let stop = StopSignal::listen()?;
    if args.made_pool {
        let name = access.pool()?;
        remove_made_pool(name, &access.access())?;
        return Output::Standard.write(&format!("Removed the pool {name}\n"));
    }
    let pool = Pool::open(access)?;
    let removed = match &args.prefix {
        Some(prefix) if killed::is_meant(prefix) => {
            let objects = killed::remove(&pool, prefix, &stop);
            objects.and_then(|(removed, left)| with_images(access, prefix, removed, left))
        }
        Some(prefix) => remove_by_prefix(&pool, prefix, &stop).map(|removed| (removed, Vec::new())),
        None => remove_described(&pool, &args.run_name, &stop).map(|removed| (removed, Vec::new())),
    };
    stop.check()?;
    let (removed, left) = removed?;
    let mut text = format!("Removed {removed} objects\n");
    for line in left {
        text += &format!("{line}\n");
    }
    Output::Standard.write(&text)
}

/// Adds the images of killed runs, which have no namespace. Those of a named run are removed.
fn with_images(
    access: &AccessArgs,
    prefix: &str,
    removed: u64,
    mut left: Vec<String>,
) -> Result<(u64, Vec<String>), CommandError> {
    if access.namespace.is_some() {
        return Ok((removed, left));
    }
    let (pool, how) = (access.pool()?, access.access());
    let images = match list_images(pool, prefix, &how) {
        Ok(images) => images,
        // Without librbd this machine has made no image.
        Err(RunError::NoFeature { .. }) => return Ok((removed, left)),
        Err(error) => {
            left.push(format!("images of the pool are not known: {error}"));
            return Ok((removed, left));
        }
    };
    let is_named = run_of(prefix).is_some();
    for image in images {
        let Some(run) = run_of(&image) else { continue };
        // The only name that a command gives to an image.
        if image[run.len()..] != *MADE_IMAGE {
            continue;
        }
        if is_named {
            remove_image(pool, &image, &how)?;
            left.push(format!("Removed the image {image}"));
        } else {
            let command = format!("iosonde rados -p {pool} cleanup --prefix {run}");
            left.push(format!("image {image}. If this run has ended: {command}"));
        }
    }
    Ok((removed, left))
}

fn remove_described(pool: &Pool, run_name: &str, stop: &StopSignal) -> Result<u64, CommandError> {
    let Some(written) = pool.written(run_name)? else {
        return Err(CommandError::usage(
            format!(
                "{}: the object {run_name} describes no benchmark",
                pool.target()
            ),
            "there is nothing to remove, or the benchmark had another --run-name; \
             --prefix benchmark_data removes leftovers of interrupted benchmarks, \
             --prefix iosonde- lists leftovers of other killed commands of iosonde",
        ));
    };
    let prefix = prefix(&host_name(), written.pid);
    let removed = pool.remove_numbered(&prefix, written.objects(), stop)?;
    // The description goes last, so that another attempt still finds the objects.
    let forgotten = pool.objects.remove(run_name);
    forgotten.map_err(|error| pool.failed(&error))?;
    Ok(removed)
}

/// Refuses other prefixes: iosonde does not list or remove other objects.
fn refuse_others(prefix: &str) -> Result<(), CommandError> {
    if prefix.starts_with(PREFIX) || killed::is_meant(prefix) {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("--prefix {prefix} is not a prefix of a benchmark"),
        "use benchmark_data for objects of benchmarks, or iosonde- for objects of other commands \
         of iosonde; iosonde removes no other objects",
    ))
}

/// Lists and removes objects that no description names, as `rados cleanup --prefix` does.
fn remove_by_prefix(pool: &Pool, prefix: &str, stop: &StopSignal) -> Result<u64, CommandError> {
    let found = pool.objects.list(prefix);
    let found = found.map_err(|error| pool.failed(&error))?;
    pool.remove_objects(found.into_iter(), prefix, stop)
}
