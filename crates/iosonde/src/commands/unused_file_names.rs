//! Notes on file names of jobs that a target replaces.

use iosonde_history::absolute;
use iosonde_job::plan::{Engine, Job};
use std::collections::BTreeSet;

/// Maximum number of options that a note lists.
const LISTED_NAMES_MAX: usize = 3;

/// The file names of jobs that a target replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnusedNames {
    /// All names: the target is the only file of the jobs.
    All,
    /// Names with a slash, which are paths of this machine. A plain name is one in the target.
    Paths,
}

/// Returns a note on the options of the jobs whose file names the targets replace. `None`: no name
/// is replaced. `source` names the job file, or is `None` for jobs of the command line.
pub(super) fn unused_file_names<'j>(
    source: Option<&str>,
    (targets, unused): (&[String], UnusedNames),
    jobs: impl Iterator<Item = &'j Job>,
) -> Option<String> {
    if targets.is_empty() {
        return None;
    }
    let options = jobs.flat_map(|job| unused_options(job, targets, unused));
    let options: BTreeSet<String> = options.collect();
    let listed = options.iter().take(LISTED_NAMES_MAX);
    let listed: Vec<&str> = listed.map(String::as_str).collect();
    let more = match options.len().saturating_sub(LISTED_NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = match options.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let source = source.map(|source| format!("{source}: "));
    Some(format!(
        "{}{}{more} {verb} not used: the jobs run on {}",
        source.unwrap_or_default(),
        listed.join(", "),
        targets.join(", ")
    ))
}

/// The options that name the files of a job, unless they name one of the targets.
fn unused_options(job: &Job, targets: &[String], unused: UnusedNames) -> Vec<String> {
    // These engines have no files.
    if matches!(job.io.engine, Engine::Null | Engine::Sim) {
        return Vec::new();
    }
    let files = &job.files;
    let directories = files.opendir.iter();
    let mut options: Vec<String> = directories.map(|name| format!("opendir={name}")).collect();
    let names: Vec<&str> = files.names().map(String::as_str).collect();
    // A URI with an unescaped colon is two names.
    let is_scheme = |index: usize| {
        let next = names.get(index + 1);
        next.is_some_and(|next| next.starts_with("//"))
    };
    let is_unused = |&index: &usize| {
        unused == UnusedNames::All || names[index].contains('/') || is_scheme(index)
    };
    let indices = (0..names.len()).filter(is_unused);
    let listed: Vec<&str> = indices.map(|index| names[index]).collect();
    if !listed.is_empty() {
        let names = listed.join(":");
        let option = match files.filenames.is_empty() {
            true => "filename_format",
            false => "filename",
        };
        let is_target = files.directories.is_empty() && targets.contains(&absolute(&names));
        options.extend((!is_target).then(|| format!("{option}={names}")));
    }
    options
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

    fn note(targets: &[&str], unused: UnusedNames, jobs: &[Job]) -> Option<String> {
        let targets: Vec<String> = targets.iter().map(|&name| name.to_owned()).collect();
        unused_file_names(Some("job.fio"), (&targets, unused), jobs.iter())
    }

    #[test]
    fn replaced_file_names_are_listed_once() {
        let targets = ["sim:nvme", "rbd://p/own"];
        let note = |targets: &[&str], jobs: &[Job]| note(targets, UnusedNames::All, jobs);
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
        assert_eq!(note(&[], &[image]), None);
    }

    #[test]
    fn names_of_the_target_and_of_engines_without_files_are_not_listed() {
        let mut null = job(&["/data/x"], None);
        null.io.engine = Engine::Null;
        let own = ["rbd://p/own"];
        let unnamed = job(&[], None);
        // fio splits the second URI at its colon.
        for job in [
            unnamed,
            null,
            job(&own, None),
            job(&["rbd", "//p/own"], None),
        ] {
            let listed = note(&own, UnusedNames::All, std::slice::from_ref(&job));
            assert_eq!(listed, None, "{:?}", job.files.filenames);
        }
    }

    #[test]
    fn opened_directory_is_listed_instead_of_the_format() {
        let mut opened = job(&[], Some("f.$jobnum"));
        opened.files.opendir = vec!["/data".to_owned()];
        assert_eq!(
            note(&["rbd://p/i"], UnusedNames::All, &[opened]).as_deref(),
            Some("job.fio: opendir=/data is not used: the jobs run on rbd://p/i")
        );
    }

    #[test]
    fn plain_names_within_a_target_are_not_listed() {
        let jobs = [
            job(&["x", "y"], None),
            job(&[], Some("f.$jobnum")),
            job(&["/data/x"], None),
        ];
        let within = note(&["rados://p"], UnusedNames::Paths, &jobs);
        assert_eq!(
            within.as_deref(),
            Some("job.fio: filename=/data/x is not used: the jobs run on rados://p")
        );
        assert_eq!(note(&["rados://p"], UnusedNames::Paths, &jobs[..2]), None);
        let mixed = [
            job(&["x", "/data/y"], None),
            job(&["x", "rbd", "//p/i"], None),
        ];
        assert_eq!(
            note(&["rados://p"], UnusedNames::Paths, &mixed).as_deref(),
            Some(
                "job.fio: filename=/data/y, filename=rbd://p/i are not used: the jobs run on \
                 rados://p"
            )
        );
        let of_line = unused_file_names(
            None,
            (&["rados://p".to_owned()], UnusedNames::Paths),
            jobs.iter(),
        );
        assert_eq!(
            of_line.as_deref(),
            Some("filename=/data/x is not used: the jobs run on rados://p")
        );
    }
}
