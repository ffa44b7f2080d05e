//! Relocates the files of a job into a pod's volume, and confines a job to a region of its target.
//!
//! The target says where the data are, the job says what the I/O is. Directories and files of this
//! machine become files of the volume.

use crate::plan::{BytesOrPercent, Direction, Engine, Job, Plan};

/// Path of the block volume in a pod.
pub const DEVICE: &str = "/dev/iosonde";

/// Difference between the seeds of two pods. It is far from the seeds that users choose.
const POD_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Gives one of several pods its own random seed, derived from the pod's index.
///
/// Clones never share a random sequence, and pods are clones of each other. With equal sequences,
/// random arrivals would come at the same instants in all pods, and deduplicating storage would
/// keep one copy of all their data. A job that verifies keeps its seed, because it may verify the
/// data of another run.
pub fn vary_seeds(plan: &mut Plan, index: u64) {
    for job in &mut plan.jobs {
        let workload = &mut job.workload;
        let repeats = workload.randrepeat || workload.allrandrepeat || workload.randseed.is_some();
        if index > 0 && repeats && job.verify.is_none() {
            let seed = workload.randseed.unwrap_or_default();
            workload.randseed = Some(seed.wrapping_add(index.wrapping_mul(POD_SEED)));
        }
    }
}

/// Replaces all file names in a job's options by one file, device or URI.
pub fn relocate_to_file(job: &mut Job, path: &str) {
    let files = &mut job.files;
    files.filenames = vec![path.to_owned()];
    files.filename_format = None;
    files.section = None;
    files.directories.clear();
    files.opendir.clear();
    if let Some(redirect) = job.replay.as_mut().and_then(|it| it.redirect.as_mut()) {
        path.clone_into(redirect);
    }
}

/// Returns the job's engine if it does not do I/O on the target: the engine `sim`, and the Ceph
/// engines unless `is_ceph` says that the target is in a Ceph cluster. The null engine is not
/// returned: it does no I/O anywhere.
pub fn foreign_engine(job: &Job, is_ceph: bool) -> Option<Engine> {
    let is_elsewhere = match job.io.engine {
        Engine::Rados | Engine::Rbd => !is_ceph,
        Engine::Sim => true,
        _ => false,
    };
    is_elsewhere.then_some(job.io.engine)
}

/// Moves all files of a plan into a volume. Returns notes for the user about changed paths.
///
/// `scratch` is the directory for the files; `None` means that the volume is a block device.
pub fn relocate_to_volume(plan: &mut Plan, scratch: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    for job in &mut plan.jobs {
        if !job.io.engine.has_paths() {
            continue;
        }
        let Some(scratch) = scratch else {
            relocate_to_file(job, DEVICE);
            continue;
        };
        if let Some(redirect) = job.replay.as_mut().and_then(|it| it.redirect.as_mut()) {
            *redirect = format!("{scratch}/{}", downward(redirect));
        }
        let files = &mut job.files;
        for directory in &files.directories {
            if directory.starts_with('/') {
                notes.push(format!("directory={directory} is the volume"));
            }
        }
        files.directories = match files.directories.as_slice() {
            [] => vec![scratch.to_owned()],
            given => given.iter().map(|given| within(scratch, given)).collect(),
        };
        for directory in &mut files.opendir {
            *directory = within(scratch, directory);
        }
        for name in &mut files.filenames {
            if name.starts_with('/') {
                let base = name.rsplit('/').next().unwrap_or_default().to_owned();
                notes.push(format!("filename={name} is the file {base} in the volume"));
                *name = base;
            }
            *name = downward(name);
        }
        // File names made from the job's name must not lead out of the volume either.
        files.filename_format = files.filename_format.take().map(|format| downward(&format));
        let name = files.section.as_ref().unwrap_or(&job.name);
        if name.split('/').any(|step| step == "..") {
            files.section = Some(downward(name));
        }
    }
    notes.sort();
    notes.dedup();
    notes
}

/// Confines a job to the first `bytes` bytes of the one file or device of the job.
///
/// Percentages become bytes of that length, and regions end there. The job neither extends nor
/// removes the file. With `offset_increment`, the regions of all clones are at most as long as the
/// region that the last clone can have.
///
/// # Errors
/// The start of the job's last clone, in bytes, if that start is at or after the end.
pub fn confine_to_region(job: &mut Job, bytes: u64, is_device: bool) -> Result<(), u64> {
    let align = least_block_bytes(job).max(1);
    let clones_before_last = u64::from(job.numjobs.max(1)) - 1;
    let files = &mut job.files;
    // `filesize` is the length of the whole file. For a device, it is the length after the offset.
    let end = match files.filesize {
        Some((_, most)) if !is_device => most.min(bytes),
        _ => bytes,
    };
    // The engine rounds offsets in per cent up to the alignment.
    let align_start = match files.offset_align {
        0 => align,
        given => given,
    };
    let place = |extent| match extent {
        BytesOrPercent::Bytes(bytes) => bytes,
        BytesOrPercent::Percent(percent) => {
            let start = share(percent, end);
            start.checked_next_multiple_of(align_start).unwrap_or(start)
        }
    };
    let (start, step) = (place(files.offset), place(files.offset_increment));
    let last_start = start.saturating_add(step.saturating_mul(clones_before_last));
    if last_start >= end {
        return Err(last_start);
    }
    let left = end - last_start;
    files.offset = BytesOrPercent::Bytes(start);
    files.offset_increment = BytesOrPercent::Bytes(step);
    if let Some((_, most)) = files.filesize {
        let size = if is_device { most.min(left) } else { end };
        files.filesize = Some((size, size));
    } else {
        files.size = Some(BytesOrPercent::Bytes(match files.size {
            Some(BytesOrPercent::Bytes(size)) => size.min(left),
            Some(BytesOrPercent::Percent(percent)) => {
                let size = share(percent, end).min(left);
                (size - size % align).max(align.min(left))
            }
            None => left,
        }));
    }
    files.file_append = false;
    files.fill_device = false;
    files.unlink = false;
    files.unlink_each_loop = false;
    Ok(())
}

fn share(percent: f64, bytes: u64) -> u64 {
    (bytes as f64 * percent / 100.0) as u64
}

fn least_block_bytes(job: &Job) -> u64 {
    let directions = Direction::ALL.into_iter();
    let used = directions.filter(|direction| job.workload.rw.has(*direction));
    let blocks = used.map(|direction| job.workload.block_size[direction].min());
    blocks.min().unwrap_or(512)
}

/// A relative directory is a directory of the volume. An absolute directory is the volume itself.
fn within(scratch: &str, directory: &str) -> String {
    match downward(directory).as_str() {
        "" => scratch.to_owned(),
        _ if directory.starts_with('/') => scratch.to_owned(),
        relative => format!("{scratch}/{relative}"),
    }
}

/// Removes the steps of a path that are empty or lead up (`.`, `..`), so that the path cannot leave
/// the scratch directory: other files of the volume belong to the user.
pub(crate) fn downward(path: &str) -> String {
    let steps = path
        .split('/')
        .filter(|step| !matches!(*step, "" | "." | ".."));
    steps.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeEnv;

    fn plan(words: &str) -> Plan {
        let words: Vec<_> = words.split(' ').map(Into::into).collect();
        crate::parse(&words, &FakeEnv::new()).unwrap().plan
    }

    fn files(words: &str) -> (Vec<String>, Vec<String>, usize) {
        let mut plan = plan(words);
        let notes = relocate_to_volume(&mut plan, Some("/data/s"));
        let files = &plan.jobs[0].files;
        (
            files.directories.clone(),
            files.filenames.clone(),
            notes.len(),
        )
    }

    #[test]
    fn relocation_moves_every_file_into_the_volume() {
        let job = "--name=a --size=1m";
        let one = |text: &str| vec![text.to_owned()];
        assert_eq!(files(job), (one("/data/s"), vec![], 0));
        let named = files(&format!("{job} --filename=x"));
        assert_eq!(named, (one("/data/s"), one("x"), 0));
        let elsewhere = files(&format!("{job} --directory=/mnt --filename=/dev/sdb"));
        assert_eq!(elsewhere, (one("/data/s"), one("sdb"), 2));
        let within = files(&format!("{job} --directory=./sub"));
        assert_eq!(within, (one("/data/s/sub"), vec![], 0));
    }

    #[test]
    fn relocated_paths_stay_inside_the_scratch_directory() {
        let mut plan = plan(
            "--name=../a --size=1m --directory=../../x/.. --name=b --size=1m --filename=../y/../z",
        );
        relocate_to_volume(&mut plan, Some("/data/s"));
        assert_eq!(plan.jobs[0].files.directories, ["/data/s/x"]);
        assert_eq!(plan.jobs[0].files.section.as_deref(), Some("a"));
        assert_eq!(plan.jobs[1].files.filenames, ["y/z"]);
        // File names contain the job's name, or the section's name if `name=` renames the job.
        let text = "[../a]\nname=b\nsize=1m\nfilename_format=$jobname/../$jobname\n";
        let env = FakeEnv::new().file("job.fio", text);
        let mut plan = crate::parse(&["job.fio".into()], &env).unwrap().plan;
        relocate_to_volume(&mut plan, Some("/data/s"));
        let files = &plan.jobs[0].files;
        assert_eq!(files.section.as_deref(), Some("a"));
        assert_eq!(files.filename_format.as_deref(), Some("$jobname/$jobname"));
    }

    #[test]
    fn block_volume_becomes_the_only_file() {
        let mut plan =
            plan("--name=a --size=1m --directory=/mnt --name=b --ioengine=null --size=1m");
        assert!(relocate_to_volume(&mut plan, None).is_empty());
        assert_eq!(plan.jobs[0].files.filenames, [DEVICE]);
        assert!(plan.jobs[0].files.directories.is_empty());
        assert!(plan.jobs[1].files.filenames.is_empty(), "null has no file");
    }

    #[test]
    fn relocate_to_file_replaces_every_path_of_the_job() {
        let mut plan = plan(
            "--name=a --size=1m --filename=x --directory=/mnt --opendir=/mnt \
             --filename_format=rbd://p/i --read_iolog=t --replay_redirect=/dev/sdb",
        );
        let job = &mut plan.jobs[0];
        relocate_to_file(job, "/dev/sda");
        let files = &job.files;
        assert_eq!(files.filenames, ["/dev/sda"]);
        assert!(files.directories.is_empty() && files.opendir.is_empty());
        assert_eq!((&files.filename_format, &files.section), (&None, &None));
        let redirect = |job: &Job| job.replay.clone().and_then(|replay| replay.redirect);
        assert_eq!(redirect(job).as_deref(), Some("/dev/sda"));
        relocate_to_volume(&mut plan, Some("/data/s"));
        let redirect = redirect(&plan.jobs[0]);
        assert_eq!(redirect.as_deref(), Some("/data/s/dev/sda"));
    }

    #[test]
    fn engine_with_its_own_target_is_elsewhere() {
        let mut job = Job::new("a");
        for (engine, here, on_ceph) in [
            (Engine::IoUring, None, None),
            (Engine::Null, None, None),
            (Engine::Rbd, Some(Engine::Rbd), None),
            (Engine::Rados, Some(Engine::Rados), None),
            (Engine::Sim, Some(Engine::Sim), Some(Engine::Sim)),
        ] {
            job.io.engine = engine;
            assert_eq!(foreign_engine(&job, false), here);
            assert_eq!(foreign_engine(&job, true), on_ceph);
        }
    }

    /// Start, step and size in bytes.
    fn confined(options: &str, bytes: u64) -> Result<(u64, u64, u64), u64> {
        let mut plan = plan(&format!("--name=a --bs=4k --rw=randread {options}"));
        let job = &mut plan.jobs[0];
        confine_to_region(job, bytes, false)?;
        let files = &job.files;
        let bytes = |extent| match extent {
            BytesOrPercent::Bytes(bytes) => bytes,
            BytesOrPercent::Percent(_) => panic!("a share is left: {options}"),
        };
        let size = match files.filesize {
            Some((_, most)) => most - bytes(files.offset),
            None => bytes(files.size.unwrap()),
        };
        Ok((bytes(files.offset), bytes(files.offset_increment), size))
    }

    #[test]
    fn confine_limits_offset_and_size_to_the_region() {
        let m = 1 << 20;
        for (options, expected) in [
            ("--size=64m", (0, 0, 64 * m)),
            ("--size=1g", (0, 0, 100 * m)),
            ("--size=1g --offset=1m", (m, 0, 99 * m)),
            ("--size=25%", (0, 0, 25 * m)),
            ("--offset=50% --size=25%", (50 * m, 0, 25 * m)),
            ("--offset=50% --size=75%", (50 * m, 0, 50 * m)),
            ("--offset=1m --size=100%", (m, 0, 99 * m)),
            (
                "--offset_increment=25% --numjobs=4 --size=25%",
                (0, 25 * m, 25 * m),
            ),
            (
                "--offset_increment=25% --numjobs=4 --size=50%",
                (0, 25 * m, 25 * m),
            ),
            (
                "--offset_increment=10m --numjobs=4 --size=80m",
                (0, 10 * m, 70 * m),
            ),
            ("--filesize=80m --offset=50%", (40 * m, 0, 40 * m)),
            ("--filesize=1g --offset=50%", (50 * m, 0, 50 * m)),
        ] {
            assert_eq!(confined(options, 100 * m), Ok(expected), "{options}");
        }
        assert_eq!(confined("--offset=100m --size=1m", 100 * m), Err(100 * m));
        assert_eq!(confined("--offset=100%", 100 * m), Err(100 * m));
        assert_eq!(
            confined("--offset_increment=50% --numjobs=3 --size=1m", 100 * m),
            Err(100 * m)
        );
        assert!(confined("--offset_increment=4096p --numjobs=64 --size=1m", 100 * m).is_err());
    }

    #[test]
    fn offset_and_size_in_percent_are_aligned_within_the_file() {
        for bytes in [100_000_000, 3 << 20, (1 << 30) + 7] {
            let (start, _, size) = confined("--offset=33% --size=67%", bytes).unwrap();
            assert!(
                start.is_multiple_of(4096) && start + size <= bytes,
                "{bytes}"
            );
        }
    }

    #[test]
    fn confined_job_neither_extends_nor_removes_its_target() {
        let mut appends =
            plan("--name=a --size=1m --rw=write --file_append=1 --unlink=1 --unlink_each_loop=1");
        confine_to_region(&mut appends.jobs[0], 1 << 20, false).unwrap();
        let files = &appends.jobs[0].files;
        assert!(!files.file_append && !files.unlink && !files.unlink_each_loop);
        // For a device, the engine counts `filesize` from the offset.
        let mut device = plan("--name=a --filesize=3m --offset=1m");
        confine_to_region(&mut device.jobs[0], 4 << 20, true).unwrap();
        assert_eq!(device.jobs[0].files.filesize, Some((3 << 20, 3 << 20)));
        let mut behind = plan("--name=a --filesize=1m --offset=3m");
        confine_to_region(&mut behind.jobs[0], 4 << 20, true).unwrap();
        assert_eq!(behind.jobs[0].files.filesize, Some((1 << 20, 1 << 20)));
        let mut large = plan("--name=a --filesize=3m --offset=2m");
        confine_to_region(&mut large.jobs[0], 4 << 20, true).unwrap();
        assert_eq!(large.jobs[0].files.filesize, Some((2 << 20, 2 << 20)));
    }

    #[test]
    fn pods_get_separate_seeds_unless_they_verify() {
        let words = "--name=a --size=1m --name=b --size=1m --randseed=7 --name=c --size=1m \
                     --randrepeat=0 --name=d --size=1m --randseed=7 --verify=md5";
        let seeds = |index: u64| -> Vec<Option<u64>> {
            let mut plan = plan(words);
            vary_seeds(&mut plan, index);
            let jobs = plan.jobs.iter();
            jobs.map(|job| job.workload.randseed).collect()
        };
        // The first pod has the seeds of a single pod.
        assert_eq!(seeds(0), [None, Some(7), None, Some(7)]);
        let (one, two) = (seeds(1), seeds(2));
        assert_eq!(
            one[2..],
            [None, Some(7)],
            "drawn anew, and to be known again"
        );
        for job in 0..2 {
            assert!(one[job].is_some() && one[job] != Some(7), "{one:?}");
            assert_ne!(one[job], two[job]);
        }
        assert_eq!(seeds(1), one, "the same each time");
    }
}
