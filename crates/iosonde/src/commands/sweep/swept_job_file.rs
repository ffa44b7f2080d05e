//! The job file that a sweep varies.

use crate::failure::CommandError;
use iosonde_history::absolute;
use iosonde_job::Env;
use iosonde_job::plan::Job;
use iosonde_study::sweep::Base;
use std::collections::BTreeSet;
use std::path::Path;

/// Limit on the size of a job file. Longer files are targets.
const MOST_JOB_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of options that a note on unused file names lists.
const LISTED_NAMES_MAX: usize = 3;

/// Whether the file has a `[section]` or, if it cannot be accessed, its name ends in `.fio`.
pub(super) fn is_job_file(name: &str) -> bool {
    let path = Path::new(name);
    let Ok(facts) = std::fs::metadata(path) else {
        return path.extension().is_some_and(|ending| ending == "fio");
    };
    if !facts.is_file() || facts.len() > MOST_JOB_FILE_BYTES {
        return false;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_section = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim();
        line.starts_with('[') && line.contains(']')
    };
    text.lines().any(is_section)
}

/// Reads the job file as the base of the sweep.
pub(super) fn read_job_file(name: &str, env: &dyn Env) -> Result<Base, CommandError> {
    match env.read_file(name) {
        Ok(text) => Ok(Base::File {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }),
        Err(error) => Err(CommandError::usage(
            format!("job file {name}: {}", iosonde_job::errno::describe(&error)),
            "name a readable job file",
        )),
    }
}

/// Text of the base.
pub(super) fn base_text(base: &Base) -> &str {
    match base {
        Base::Plain => "",
        Base::File { text, .. } => text,
    }
}

/// Note on file names of the jobs that the targets replace. `None`: no name is replaced.
pub(super) fn unused_file_names<'j>(
    job_file: Option<&str>,
    targets: &[String],
    jobs: impl Iterator<Item = &'j Job>,
) -> Option<String> {
    let job_file = job_file.filter(|_| !targets.is_empty())?;
    let unused: BTreeSet<String> = jobs.filter_map(|job| unused_names(job, targets)).collect();
    let listed: Vec<&str> = unused
        .iter()
        .take(LISTED_NAMES_MAX)
        .map(String::as_str)
        .collect();
    let more = match unused.len().saturating_sub(LISTED_NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = match unused.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let (listed, targets) = (listed.join(", "), targets.join(", "));
    Some(format!(
        "{job_file}: {listed}{more} {verb} not used: the jobs run on {targets}"
    ))
}

/// The option that names the files of a job, unless it names one of the targets. As in fio,
/// `filename` overrides `filename_format`.
fn unused_names(job: &Job, targets: &[String]) -> Option<String> {
    let files = &job.files;
    match files.filenames.as_slice() {
        [] => {
            let format = files.filename_format.as_ref()?;
            Some(format!("filename_format={format}"))
        }
        [name] if files.directories.is_empty() && targets.contains(&absolute(name)) => None,
        names => Some(format!("filename={}", names.join(":"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(filenames: &[&str], format: Option<&str>) -> Job {
        let mut job = Job::new("a");
        job.files.filenames = filenames.iter().map(|&name| name.to_owned()).collect();
        job.files.filename_format = format.map(str::to_owned);
        job
    }

    #[test]
    fn replaced_file_names_are_listed_once() {
        let targets = ["sim:nvme".to_owned(), "rbd://p/own".to_owned()];
        let note = |targets: &[String], jobs: &[Job]| {
            unused_file_names(Some("job.fio"), targets, jobs.iter())
        };
        let image = job(&["rbd://p/i"], Some("unused"));
        assert_eq!(
            note(&targets[..1], &[image.clone(), image.clone()]).as_deref(),
            Some("job.fio: filename=rbd://p/i is not used: the jobs run on sim:nvme")
        );
        let all = [
            image.clone(),
            job(&[], Some("f.$jobnum")),
            job(&["a", "b"], None),
        ];
        assert_eq!(
            note(&targets, &all).as_deref(),
            Some(
                "job.fio: filename=a:b, filename=rbd://p/i, filename_format=f.$jobnum are not \
                 used: the jobs run on sim:nvme, rbd://p/own"
            )
        );
        let many: Vec<Job> = ["a", "b", "c", "d", "e"]
            .map(|name| job(&[name], None))
            .into();
        let listed = note(&targets, &many).unwrap();
        assert!(
            listed.contains("filename=c and 2 more are not used"),
            "{listed}"
        );
        assert_eq!(
            note(&targets, &[job(&[], None), job(&["rbd://p/own"], None)]),
            None
        );
        assert_eq!(note(&[], &[image]), None);
    }
}
