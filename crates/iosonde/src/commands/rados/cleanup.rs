//! `iosonde rados cleanup`: removes objects of benchmarks and of killed runs.

use super::killed;
use super::objects::{PREFIX, host_name, prefix};
use super::pool::Pool;
use crate::args::{AccessArgs, CleanupArgs, LAST_RUN};
use crate::commands::ceph::run_of;
use crate::commands::made_storage::MADE_IMAGE;
use crate::commands::mapped_storage::killed_notes;
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_ceph::{
    ImageName, LeftoverPools, list_images, remove_image, remove_leftover_pools, remove_made_pool,
};
use iosonde_result::run_error::RunError;

/// `iosonde rados cleanup`.
pub(super) fn clean_up(args: &CleanupArgs, access: &AccessArgs) -> Result<(), CommandError> {
    // Arguments are checked before the cluster is accessed.
    args.prefix.as_deref().map_or(Ok(()), refuse_others)?;
    let stop = StopSignal::listen()?;
    if args.made_pool {
        let text = match access.pool_name() {
            Some(name) => {
                let lacks_owner = remove_made_pool(name, &access.access())?;
                removed_pool_text(name, lacks_owner)
            }
            None => pools_text(&remove_leftover_pools(&access.access())?),
        };
        return Output::Standard.write(&text);
    }
    let pool = Pool::open(access)?;
    let removed = match &args.prefix {
        Some(prefix) if killed::is_meant(prefix) => {
            let objects = killed::remove(&pool, prefix, &stop);
            objects.and_then(|ended| with_images((&pool, access), prefix, ended))
        }
        Some(prefix) => remove_by_prefix(&pool, prefix, &stop).map(|removed| (removed, Vec::new())),
        None => remove_described(&pool, &args.run_name, &stop),
    };
    stop.check()?;
    let (removed, left) = removed?;
    let mut text = format!("Removed {removed} objects\n");
    for line in left {
        text += &format!("{line}\n");
    }
    Output::Standard.write(&text)
}

/// The line about a pool that was named and removed.
fn removed_pool_text(pool: &str, lacks_owner: bool) -> String {
    let cause = match lacks_owner {
        true => "; it named no process, so its run ended before the pool was complete",
        false => "",
    };
    format!("Removed the pool {pool}{cause}\n")
}

/// Lines about the pools that `--make-pool` made.
fn pools_text(pools: &LeftoverPools) -> String {
    let removed = pools.removed.iter();
    let removed = removed.map(|pool| format!("Removed the pool {pool}\n"));
    let in_use = pools.in_use.iter();
    let in_use = in_use.map(|pool| format!("pool {pool} is in use and stays\n"));
    let unknown = pools.unknown.iter().map(|pool| {
        format!(
            "pool {pool} names no process. If its run has ended: iosonde rados -p {pool} cleanup \
             --made-pool\n"
        )
    });
    let lines: String = removed.chain(in_use).chain(unknown).collect();
    match lines.is_empty() {
        true => "Removed 0 pools\n".to_owned(),
        false => lines,
    }
}

/// Adds the images of killed runs in the pool or its namespace. Those of a named run are removed.
fn with_images(
    (pool, access): (&Pool, &AccessArgs),
    prefix: &str,
    (removed, mut left): (u64, Vec<String>),
) -> Result<(u64, Vec<String>), CommandError> {
    let (pool_name, how) = (access.pool()?, access.access());
    let images = match list_images((pool_name, access.namespace.as_deref()), prefix, &how) {
        Ok(images) => images,
        // Without librbd this machine has made no image.
        Err(RunError::NoFeature { .. }) => return Ok((removed, left)),
        Err(error) => {
            left.push(format!("images of the pool are not known: {error}"));
            return Ok((removed, left));
        }
    };
    // A mapped image cannot be removed.
    left.extend(killed_notes(Some(pool_name)));
    let is_named = run_of(prefix).is_some();
    for image in images {
        let Some(run) = run_of(&image) else { continue };
        // The only name that a command gives to an image.
        if image[run.len()..] != *MADE_IMAGE {
            continue;
        }
        if is_named {
            let name = ImageName {
                pool: pool_name.to_owned(),
                namespace: access.namespace.clone(),
                image: image.clone(),
            };
            remove_image(&name, &how)?;
            left.push(format!("Removed the image {image}"));
        } else {
            let command = pool.clean_up(run);
            left.push(format!("image {image}. If this run has ended: {command}"));
        }
    }
    Ok((removed, left))
}

/// Removes the objects of the benchmark that this object describes, and the object. Returns their
/// number, and lines for the user.
fn remove_described(
    pool: &Pool,
    run_name: &str,
    stop: &StopSignal,
) -> Result<(u64, Vec<String>), CommandError> {
    let Some(written) = pool.written(run_name)? else {
        return explain_missing_description(pool.target(), run_name).map(|line| (0, vec![line]));
    };
    let prefix = prefix(&host_name(), written.pid);
    let removed = pool.remove_numbered(&prefix, written.objects(), stop)?;
    // The description goes last, so that another attempt still finds the objects.
    let forgotten = pool.objects.remove(run_name);
    forgotten.map_err(|error| pool.failed(&error))?;
    Ok((removed, Vec::new()))
}

/// The line about a pool without a description of a benchmark. As with `rados cleanup`, that is
/// an error only if the user named the description.
fn explain_missing_description(target: &str, run_name: &str) -> Result<String, CommandError> {
    let problem = format!("{target}: the object {run_name} describes no benchmark");
    let other_leftovers = "--prefix benchmark_data removes leftovers of interrupted benchmarks, \
                           --prefix iosonde- lists leftovers of other killed commands of iosonde";
    match run_name {
        LAST_RUN => Ok(format!(
            "{problem}: there is nothing to remove, or the benchmark had a --run-name; \
             {other_leftovers}"
        )),
        _ => Err(CommandError::usage(
            problem,
            format!("name that of the benchmark with --run-name; {other_leftovers}"),
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_pool_without_owner_is_explained() {
        assert_eq!(removed_pool_text("a", false), "Removed the pool a\n");
        assert_eq!(
            removed_pool_text("a", true),
            "Removed the pool a; it named no process, so its run ended before the pool was \
             complete\n"
        );
    }

    #[test]
    fn cleanup_without_description_fails_only_for_a_named_run() {
        let line = explain_missing_description("rados://p", LAST_RUN).unwrap();
        assert!(
            line.starts_with(
                "rados://p: the object benchmark_last_metadata describes no benchmark: there is \
                 nothing to remove"
            ),
            "{line}"
        );
        let failure = explain_missing_description("rados://p", "mine").unwrap_err();
        assert_eq!(failure.status(), 2);
    }

    #[test]
    fn made_pools_are_listed_by_what_became_of_them() {
        let names = |name: &str| vec![name.to_owned()];
        let pools = LeftoverPools {
            removed: names("a"),
            in_use: names("b"),
            unknown: names("c"),
        };
        assert_eq!(
            pools_text(&pools),
            "Removed the pool a\npool b is in use and stays\npool c names no process. If its run \
             has ended: iosonde rados -p c cleanup --made-pool\n"
        );
        assert_eq!(pools_text(&LeftoverPools::default()), "Removed 0 pools\n");
    }
}
