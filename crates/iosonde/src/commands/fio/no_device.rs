//! Mistyped device names: a job that writes to `/dev/nosuch0` creates a regular file, as with fio.

use iosonde_job::plan::{Direction, Plan};
use std::path::{Path, PathBuf};

/// Files directly in the directory of devices that jobs write to and that do not exist.
pub(super) fn missing_in(devices: &Path, plan: &Plan) -> Vec<PathBuf> {
    let writing = plan
        .jobs
        .iter()
        .filter(|job| job.workload.rw.has(Direction::Write));
    let names = writing
        .flat_map(|job| &job.files.filenames)
        .map(PathBuf::from);
    // Files of shared memory are in a subdirectory.
    let mut missing: Vec<PathBuf> = names
        .filter(|path| path.parent() == Some(devices) && !path.exists())
        .collect();
    missing.dedup();
    missing
}

/// A note for each of them that is a regular file now.
pub(super) fn regular_file_notes(missing: &[PathBuf]) -> Vec<String> {
    let made = missing.iter().filter(|path| path.is_file());
    made.map(|path| {
        format!(
            "{} did not exist: the job created a regular file there and measured no device",
            path.display()
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Job, ReadWrite, ReadWriteMode};

    #[test]
    fn regular_file_created_in_dev_is_noted() {
        let devices = std::env::temp_dir().join(format!("iosonde-dev-{}", std::process::id()));
        std::fs::create_dir_all(&devices).unwrap();
        std::fs::write(devices.join("there"), "").unwrap();
        let job = |name: &str, mode| {
            let mut job = Job::new("job");
            job.files.filenames = vec![devices.join(name).to_str().unwrap().to_owned()];
            job.workload.rw = ReadWrite { mode, random: true };
            job
        };
        let jobs = vec![
            job("nosuch0", ReadWriteMode::Write),
            job("there", ReadWriteMode::Write),
            job("read", ReadWriteMode::Read),
            job("shm/file", ReadWriteMode::Write),
        ];
        let plan = Plan {
            jobs,
            global_options: Vec::new(),
        };
        let missing = missing_in(&devices, &plan);
        assert_eq!(missing, [devices.join("nosuch0")]);
        assert!(
            regular_file_notes(&missing).is_empty(),
            "the run was refused"
        );
        std::fs::write(devices.join("nosuch0"), "").unwrap();
        let notes = regular_file_notes(&missing);
        assert!(
            notes.len() == 1 && notes[0].contains("nosuch0 did not exist"),
            "{notes:?}"
        );
        std::fs::remove_dir_all(&devices).unwrap();
    }
}
