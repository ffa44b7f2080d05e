//! Where the files of a job are, once a volume of a pod is the target.
//!
//! The target says where, the job says what: directories and files of this machine become files of the volume.

use crate::plan::Plan;

/// Where a pod has its block volume.
pub const DEVICE: &str = "/dev/iosonde";

/// Moves all files of a plan into a volume. Returns what the user should know about it.
///
/// `scratch` is the directory for files; `None` means that the volume is a block device.
pub fn into_volume(plan: &mut Plan, scratch: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    for job in &mut plan.jobs {
        if !job.io.engine.has_paths() {
            continue;
        }
        let files = &mut job.files;
        let Some(scratch) = scratch else {
            files.directories.clear();
            files.opendir = None;
            files.filenames = vec![DEVICE.to_owned()];
            continue;
        };
        for directory in &files.directories {
            if directory.starts_with('/') {
                notes.push(format!("directory={directory} is the volume"));
            }
        }
        files.directories = match files.directories.as_slice() {
            [] => vec![scratch.to_owned()],
            given => given.iter().map(|given| within(scratch, given)).collect(),
        };
        files.opendir = files.opendir.take().map(|given| within(scratch, &given));
        for name in &mut files.filenames {
            if name.starts_with('/') {
                let base = name.rsplit('/').next().unwrap_or_default().to_owned();
                notes.push(format!("filename={name} is the file {base} in the volume"));
                *name = base;
            }
            *name = downward(name);
        }
        // Names that are made from the job's must not lead out of the volume either.
        let format = files.filename_format.take();
        files.filename_format = match format {
            Some(format) => Some(downward(&format)),
            None if job.name.contains("..") => Some("job.$jobnum.$filenum".to_owned()),
            None => None,
        };
    }
    notes.sort();
    notes.dedup();
    notes
}

/// A relative directory is one of the volume, an absolute one is the volume.
fn within(scratch: &str, directory: &str) -> String {
    match downward(directory).as_str() {
        "" => scratch.to_owned(),
        _ if directory.starts_with('/') => scratch.to_owned(),
        relative => format!("{scratch}/{relative}"),
    }
}

/// A path without the steps that lead nowhere or up: what else is in the volume is not ours.
fn downward(path: &str) -> String {
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
        let notes = into_volume(&mut plan, Some("/data/s"));
        let files = &plan.jobs[0].files;
        (
            files.directories.clone(),
            files.filenames.clone(),
            notes.len(),
        )
    }

    #[test]
    fn every_file_is_in_the_volume() {
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
    fn nothing_leads_out_of_the_scratch_directory() {
        let mut plan = plan(
            "--name=../a --size=1m --directory=../../x/.. --name=b --size=1m --filename=../y/../z",
        );
        into_volume(&mut plan, Some("/data/s"));
        assert_eq!(plan.jobs[0].files.directories, ["/data/s/x"]);
        let format = plan.jobs[0].files.filename_format.as_deref();
        assert_eq!(format, Some("job.$jobnum.$filenum"));
        assert_eq!(plan.jobs[1].files.filenames, ["y/z"]);
    }

    #[test]
    fn a_block_volume_is_the_file() {
        let mut plan =
            plan("--name=a --size=1m --directory=/mnt --name=b --ioengine=null --size=1m");
        assert!(into_volume(&mut plan, None).is_empty());
        assert_eq!(plan.jobs[0].files.filenames, [DEVICE]);
        assert!(plan.jobs[0].files.directories.is_empty());
        assert!(plan.jobs[1].files.filenames.is_empty(), "null has no file");
    }
}
