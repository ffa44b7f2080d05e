//! The space that the files of a plan need in the volume of a pod, before the volume exists.

use crate::plan::{BytesOrPercent, Engine, Job, Plan};
use std::collections::BTreeMap;

/// Returns a lower bound of the bytes that the files of the jobs need in one volume. Jobs whose
/// size is not known beforehand do not count, nor does a neighbour, whose file is fitted to the
/// volume. On a block device all files are the device.
pub fn least_volume_bytes(plan: &Plan, is_device: bool) -> u64 {
    let sized = plan
        .jobs
        .iter()
        .filter(|job| !job.schedule.neighbour)
        .filter_map(|job| Some((job, clone_bytes(job)?)));
    let is_removed = |job: &Job| job.files.unlink || job.files.unlink_each_loop;
    // Files that are removed make room for others.
    let is_reused = is_device || plan.jobs.iter().any(is_removed);
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    let mut largest_shared = 0;
    for (job, bytes) in sized {
        if is_reused || shares_files(job) {
            largest_shared = bytes.max(largest_shared);
            continue;
        }
        let all = bytes.saturating_mul(u64::from(job.numjobs));
        // Jobs of one name have the same files.
        let name = job.files.section.as_deref().unwrap_or(&job.name);
        let known = by_name.entry(name).or_default();
        *known = all.max(*known);
    }
    let own = by_name
        .values()
        .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    own.saturating_add(largest_shared)
}

/// Whether clones and jobs may use the same files.
fn shares_files(job: &Job) -> bool {
    let files = &job.files;
    !files.filenames.is_empty() || !files.opendir.is_empty() || files.filename_format.is_some()
}

/// Returns the bytes of the files of one clone. `None`: they are not known, or it has none.
fn clone_bytes(job: &Job) -> Option<u64> {
    let files = &job.files;
    let has_files = !matches!(
        job.io.engine,
        Engine::Null | Engine::Sim | Engine::Rados | Engine::Rbd
    );
    let is_fixed = files.allow_file_create
        && !files.fill_device
        && files.io_size.is_none()
        && job.replay.is_none();
    if !has_files || !is_fixed {
        return None;
    }
    let size = match files.size {
        Some(BytesOrPercent::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    let of_each = files
        .filesize
        .map(|(least, _)| least.saturating_mul(u64::from(files.nrfiles)));
    match (size, of_each) {
        (Some(size), Some(each)) => Some(size.min(each)),
        (size, each) => size.or(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeEnv;

    fn least(line: &str, is_device: bool) -> u64 {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        let parsed = crate::parse(&words, &FakeEnv::new()).unwrap();
        least_volume_bytes(&parsed.plan, is_device) >> 20
    }

    #[test]
    fn files_of_jobs_and_clones_add_up() {
        let two = "--name=a --size=100m --numjobs=3 --name=b --size=50m";
        assert_eq!(least(two, false), 350);
        assert_eq!(least(two, true), 100, "one device");
        assert_eq!(least("--name=a --nrfiles=4 --filesize=10m", false), 40);
    }

    #[test]
    fn shared_removed_and_unknown_files_are_not_added() {
        let shared = "--filename=f --size=100m --name=a --numjobs=3 --name=b";
        assert_eq!(least(shared, false), 100);
        let removed = "--unlink=1 --size=100m --name=a --name=b --stonewall";
        assert_eq!(least(removed, false), 100);
        assert_eq!(least("--name=a --size=50%", false), 0);
        assert_eq!(least("--name=a --size=100m --ioengine=null", false), 0);
        assert_eq!(least("--name=a --size=100m --io_size=1m", false), 0);
    }

    #[test]
    fn neighbour_is_fitted_and_not_added() {
        let words = ["--name=a", "--size=100m", "--name=b", "--size=50m"].map(Into::into);
        let mut plan = crate::parse(&words, &FakeEnv::new()).unwrap().plan;
        plan.jobs[1].schedule.neighbour = true;
        assert_eq!(least_volume_bytes(&plan, false), 100 << 20);
    }
}
