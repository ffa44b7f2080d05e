//! A device whose name is mistyped: a job that writes to `/dev/nosuch0` makes a regular file there, as with fio.

use iosonde_job::plan::{Direction, Plan};
use std::path::{Path, PathBuf};

/// Files in the directory of devices that jobs write to and that are not there.
pub(super) fn missing_in(devices: &Path, plan: &Plan) -> Vec<PathBuf> {
    let writing = plan
        .jobs
        .iter()
        .filter(|job| job.workload.rw.has(Direction::Write));
    let names = writing
        .flat_map(|job| &job.files.filenames)
        .map(PathBuf::from);
    // Files of shared memory are in a directory of their own.
    let mut missing: Vec<PathBuf> = names
        .filter(|path| path.parent() == Some(devices) && !path.exists())
        .collect();
    missing.dedup();
    missing
}

/// A note for each of them that is a regular file now.
pub(super) fn made(missing: &[PathBuf]) -> Vec<String> {
    let made = missing.iter().filter(|path| path.is_file());
    made.map(|path| {
        format!(
            "{} did not exist: a regular file was made there, no device was measured",
            path.display()
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Job, Mode, ReadWrite};

    #[test]
    fn regular_file_made_among_devices_is_noted() {
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
            job("nosuch0", Mode::Write),
            job("there", Mode::Write),
            job("read", Mode::Read),
            job("shm/file", Mode::Write),
        ];
        let plan = Plan {
            jobs,
            global_options: Vec::new(),
        };
        let missing = missing_in(&devices, &plan);
        assert_eq!(missing, [devices.join("nosuch0")]);
        assert!(made(&missing).is_empty(), "the run was refused");
        std::fs::write(devices.join("nosuch0"), "").unwrap();
        let notes = made(&missing);
        assert!(
            notes.len() == 1 && notes[0].contains("nosuch0 did not exist"),
            "{notes:?}"
        );
        std::fs::remove_dir_all(&devices).unwrap();
    }
}
