//! Leftovers of killed iosonde runs in a pool. The names of the objects identify the run.

use super::pool::Pool;
use crate::commands::ceph::{OURS, run_of};
use crate::failure::CommandError;
use crate::signals::StopSignal;
use iosonde_result::words;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Limit on the objects of a run that are checked for its age.
const LOOKS: usize = 64;

/// Whether the prefix selects objects of runs.
pub(super) fn is_meant(prefix: &str) -> bool {
    prefix.starts_with(OURS)
}

/// Removes the objects of a named run. Lists other runs with their commands: even an old one may
/// still read. Returns the number of removed objects and the list.
pub(super) fn remove(
    pool: &Pool,
    prefix: &str,
    stop: &StopSignal,
) -> Result<(u64, Vec<String>), CommandError> {
    let found = pool.objects.list(prefix);
    let found = found.map_err(|error| pool.failed(&error))?;
    let (mut removed, mut left) = (0, Vec::new());
    let is_named = run_of(prefix).is_some();
    for (run, objects) in by_run(found) {
        stop.check()?;
        if is_named {
            removed += pool.remove_objects(objects.into_iter(), &run, stop)?;
            continue;
        }
        let count = words::counted(objects.len(), "object");
        let age = words::duration(idle_time(pool, &objects)?.as_secs_f64());
        let command = pool.clean_up(&run);
        left.push(format!(
            "{count} of {run}, last written {age} ago. If this run has ended: {command}"
        ));
    }
    Ok((removed, left))
}

/// Groups the objects by run. Other objects are ignored.
fn by_run(names: Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut runs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        if let Some(run) = run_of(&name) {
            runs.entry(run.to_owned()).or_default().push(name);
        }
    }
    runs
}

/// Time since the last write to these objects. Zero if one was removed meanwhile.
fn idle_time(pool: &Pool, objects: &[String]) -> Result<Duration, CommandError> {
    let mut least = Duration::MAX;
    for object in objects.iter().step_by(objects.len().div_ceil(LOOKS).max(1)) {
        let stat = pool.objects.stat(object);
        let stat = stat.map_err(|error| pool.failed(&error))?;
        let age = stat.map(|stat| SystemTime::now().duration_since(stat.modified));
        least = least.min(age.and_then(Result::ok).unwrap_or_default());
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_other_programs_are_no_runs() {
        let names = [
            "iosonde-00000000aa-data.0",
            "iosonde-notes",
            "iosonde-00000000bb-x",
            "iosonde-00000000aa-data.1",
        ];
        let runs = by_run(names.map(str::to_owned).to_vec());
        let counts: Vec<_> = runs
            .iter()
            .map(|(run, all)| (&run[..], all.len()))
            .collect();
        assert_eq!(
            counts,
            [("iosonde-00000000aa-", 2), ("iosonde-00000000bb-", 1)]
        );
        assert!(is_meant("iosonde-00") && !is_meant("iosonde") && !is_meant("benchmark_data"));
    }
}
