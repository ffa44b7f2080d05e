//! Files of a suite's jobs on a target: in a scratch directory, or the target's file or device.

use crate::commands::ceph;
use crate::commands::leftovers::kept_leftover_note;
use crate::commands::leftovers::lock::{claim, is_still, take_lock_within};
use crate::commands::leftovers::name::{SUITE_LOCK, SUITE_PREFIX, made_by, new_names};
use crate::failure::CommandError;
use iosonde_ceph::{pool_file_uri, relocate_to_ceph};
use iosonde_engine::runner::HeldPaths;
use iosonde_job::TargetUri;
use iosonde_job::errno::describe;
use iosonde_job::neighbour::{fit_neighbour, move_to_end};
use iosonde_job::plan::{BytesOrPercent, Direction, Engine, Job, Plan};
use iosonde_job::relocate::{
    confine_to_region, foreign_engine, relocate_to_file, relocate_to_volume,
};
use iosonde_machine::write_obstacles::lasting_name;
use iosonde_result::doctor::MadeBy;
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, WriteRefusal};
use iosonde_study::probe::StudyTargetKind;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A target for jobs.
pub(super) struct JobTarget {
    name: String,
    /// Index of the target in a dry check.
    index: usize,
    kind: StudyTargetKind,
    scratch: Option<ScratchDirectory>,
    /// A target in a Ceph cluster, and the name prefix of this run's objects.
    ceph: Option<(TargetUri, String)>,
}

impl JobTarget {
    /// Creates the scratch directory if the target is a directory. Removes those of killed runs.
    pub(super) fn open(
        name: &str,
        kind: StudyTargetKind,
        report_note: &mut dyn FnMut(&str),
    ) -> Result<JobTarget, CommandError> {
        let ceph = ceph::target(name)?;
        let ceph = ceph
            .map(|target| Ok::<_, CommandError>((target, ceph::prefix()?)))
            .transpose()?;
        let scratch = match &kind {
            StudyTargetKind::Directory { .. } => {
                Some(scratch(name, report_note).map_err(|error| {
                    CommandError::Run(RunError::unusable_target(
                        name.to_owned(),
                        TargetProblem::NotAccessible {
                            failure: (&error).into(),
                            purpose: AccessPurpose::ScratchDirectory,
                        },
                    ))
                })?)
            }
            _ => None,
        };
        Ok(JobTarget {
            name: name.to_owned(),
            index: 0,
            kind,
            scratch,
            ceph,
        })
    }

    /// Registers the scratch directory's descriptor, by which plans access it.
    pub(super) fn note_in(&self, held: &HeldPaths) {
        if let Some(scratch) = &self.scratch {
            held.hold(&scratch.path, &scratch.directory);
        }
    }

    /// Relocates a plan to the target. Forbidden accesses are errors. Returns notes for the user.
    pub(super) fn put(&self, plan: &mut Plan) -> Result<Vec<String>, RunError> {
        if !matches!(self.kind, StudyTargetKind::Simulated { .. }) {
            self.refuse_other_places(plan)?;
        }
        fit_neighbour(plan, self.free_bytes());
        if let (Some((target, prefix)), StudyTargetKind::Pool { .. }) = (&self.ceph, &self.kind) {
            relocate_to_ceph(plan, target, prefix);
            return Ok(Vec::new());
        }
        match (&self.kind, &self.scratch) {
            (StudyTargetKind::Simulated { options }, _) => {
                for job in &mut plan.jobs {
                    // The files of a directory of this machine would set the number of files.
                    job.files.opendir.clear();
                    if job.io.engine != Engine::Null {
                        job.io.engine = Engine::Sim;
                        job.io.sim = Some(options.clone());
                    }
                }
                Ok(Vec::new())
            }
            (_, Some(scratch)) => Ok(relocate_to_volume(
                plan,
                Some(&scratch.path.to_string_lossy()),
            )),
            (
                StudyTargetKind::Existing {
                    bytes,
                    device,
                    consent,
                },
                None,
            ) => self.put_on_file(plan, (*bytes, *device), *consent),
            (StudyTargetKind::Directory { .. }, None) => {
                let notes = relocate_to_volume(plan, Some(&self.name));
                let below = format!("{SUITE_PREFIX}look-{}", self.index);
                for job in &mut plan.jobs {
                    below_scratch(job, &below);
                }
                Ok(notes)
            }
            (StudyTargetKind::Pool { .. }, None) => Ok(Vec::new()),
        }
    }

    /// Bytes that a neighbour may use a share of.
    fn free_bytes(&self) -> u64 {
        match &self.kind {
            StudyTargetKind::Directory { free_bytes } | StudyTargetKind::Pool { free_bytes } => {
                *free_bytes
            }
            StudyTargetKind::Existing { bytes, .. } => *bytes,
            StudyTargetKind::Simulated { .. } => u64::MAX,
        }
    }

    /// Refuses jobs whose engine determines another target.
    fn refuse_other_places(&self, plan: &Plan) -> Result<(), RunError> {
        let mut engines = plan.jobs.iter().filter_map(|job| {
            let engine = foreign_engine(job, self.ceph.is_some())?;
            Some((job, engine))
        });
        match engines.next() {
            Some((job, engine)) => Err(RunError::unusable_target(
                &self.name,
                TargetProblem::EngineOfOtherTarget {
                    job: job.name.clone(),
                    engine,
                },
            )),
            None => Ok(()),
        }
    }

    /// Paths that relocated jobs may access.
    pub(super) fn permitted(&self) -> Vec<String> {
        match (&self.kind, &self.ceph) {
            (StudyTargetKind::Simulated { .. }, _) => Vec::new(),
            (StudyTargetKind::Pool { .. }, Some((target, prefix))) => {
                pool_file_uri(target, prefix).into_iter().collect()
            }
            _ => match &self.scratch {
                Some(scratch) => vec![scratch.path.to_string_lossy().into_owned()],
                None => vec![self.name.clone()],
            },
        }
    }

    /// The target of a dry check, which creates nothing: a directory stands for its scratch
    /// directory.
    pub(super) fn without_scratch(name: &str, index: usize, kind: StudyTargetKind) -> JobTarget {
        JobTarget {
            name: name.to_owned(),
            index,
            kind,
            scratch: None,
            ceph: None,
        }
    }

    /// The target, if it has no consent to overwrite.
    pub(super) fn only_read(&self) -> Option<PathBuf> {
        (!self.kind.is_writable()).then(|| PathBuf::from(&self.name))
    }

    fn put_on_file(
        &self,
        plan: &mut Plan,
        (bytes, is_device): (u64, bool),
        consent: bool,
    ) -> Result<Vec<String>, RunError> {
        let mut notes = Vec::new();
        for job in &mut plan.jobs {
            let rw = &job.workload.rw;
            let writes = rw.has(Direction::Write) || rw.has(Direction::Trim);
            if writes && !consent {
                let consent_name = lasting_name(Path::new(&self.name));
                return Err(RunError::write_refused(
                    &self.name,
                    WriteRefusal::NoConsent {
                        rw: rw.name().to_owned(),
                        consent_name: consent_name.display().to_string(),
                    },
                ));
            }
            relocate_to_file(job, &self.name);
            if job.schedule.neighbour {
                move_to_end(job, bytes);
            }
            let files = &mut job.files;
            // A trace names its own devices, which have no consent.
            files.allow_mounted_write |= consent && job.replay.is_none();
            if matches!(files.size, Some(BytesOrPercent::Bytes(size)) if size > bytes) {
                notes.push(format!(
                    "{}: {} is smaller than the size of the job, so the job uses all of the target",
                    job.name, self.name
                ));
            }
            files.unlink = false;
            files.unlink_each_loop = false;
            // Without a size, each clone ends with the file. A trace sets its own range.
            let sized =
                matches!(files.size, Some(BytesOrPercent::Bytes(_))) || files.filesize.is_some();
            let grows = files.file_append || files.fill_device;
            if (sized || grows) && job.replay.is_none() {
                confine_to_region(job, bytes, is_device)
                    .map_err(|start_bytes| self.behind(job, start_bytes, bytes))?;
            }
        }
        Ok(notes)
    }

    fn behind(&self, job: &Job, start_bytes: u64, bytes: u64) -> RunError {
        RunError::unusable_target(
            &self.name,
            TargetProblem::JobAfterTarget {
                job: job.name.clone(),
                start_bytes,
                target_bytes: bytes,
            },
        )
    }
}

/// Renames a job's files to names in a scratch directory that does not exist.
fn below_scratch(job: &mut Job, scratch: &str) {
    let files = &mut job.files;
    let below = |name: &str| format!("{scratch}/{name}");
    files
        .filenames
        .iter_mut()
        .for_each(|name| *name = below(name));
    let format = files.filename_format.as_deref();
    files.filename_format = Some(below(format.unwrap_or("$jobname.$jobnum.$filenum")));
}

/// A scratch directory. Removed with its contents when dropped.
struct ScratchDirectory {
    path: PathBuf,
    /// Descriptor that identifies the directory.
    directory: Arc<File>,
    _lock: File,
}

fn scratch(name: &str, report_note: &mut dyn FnMut(&str)) -> io::Result<ScratchDirectory> {
    let directory = Path::new(name).canonicalize()?;
    for entry in fs::read_dir(&directory)?.flatten() {
        let is_ours = entry
            .file_name()
            .to_string_lossy()
            .starts_with(SUITE_PREFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_leftover(&entry.path(), report_note);
        }
    }
    for name in new_names(SUITE_PREFIX)? {
        let path = directory.join(name);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        match File::create_new(path.join(SUITE_LOCK)) {
            Ok(lock) if claim(&lock)? => {
                let directory = Arc::new(File::open(&path)?);
                return Ok(ScratchDirectory {
                    path,
                    directory,
                    _lock: lock,
                });
            }
            // Another process removes it as a leftover.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("names do not end")
}

fn remove_leftover(path: &Path, report_note: &mut dyn FnMut(&str)) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let shown = path.display();
    match take_lock_within(path, SUITE_LOCK) {
        Ok(None) => report_note(&format!(
            "{shown}: another suite is running here, so both get lower figures"
        )),
        Err(error) => report_note(&format!(
            "{shown} may be a leftover of a killed suite ({}); if it is, remove it",
            describe(&error)
        )),
        Ok(Some(_lock)) if made_by(&name, SUITE_PREFIX) == MadeBy::ThisBoot => {
            match fs::remove_dir_all(path) {
                Ok(()) => report_note(&format!("removed {shown}, a leftover of a killed suite")),
                Err(error) => report_note(&format!(
                    "cannot remove {shown}, a leftover of a killed suite: {}",
                    describe(&error)
                )),
            }
        }
        Ok(Some(_lock)) => report_note(&kept_leftover_note(path)),
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let shown = self.path.display();
        match is_still(&self.path, &self.directory) {
            Ok(false) => eprintln!(
                "warning: another program removed or replaced {shown} during the run, so its lock \
                 was \
                 lost"
            ),
            _ => {
                if let Err(error) = fs::remove_dir_all(&self.path) {
                    eprintln!("warning: cannot remove {shown}: {}", describe(&error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;

    fn plan(words: &str) -> Plan {
        let words: Vec<_> = words.split(' ').map(Into::into).collect();
        iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan
    }

    #[test]
    fn scratch_directory_holds_files_and_is_removed() {
        let base = std::env::temp_dir().join(format!("iosonde-job_target-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let old = base.join(format!("{SUITE_PREFIX}1-0"));
        let left = base.join(new_names(SUITE_PREFIX).unwrap().nth(9).unwrap());
        for directory in [&old, &left] {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join(SUITE_LOCK), "").unwrap();
        }
        let name = base.to_str().unwrap();
        let mut notes = Vec::new();
        let kind = StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        };
        let job_target =
            JobTarget::open(name, kind, &mut |note| notes.push(note.to_owned())).unwrap();
        notes.sort();
        assert!(notes[0].contains("iosonde doctor --clean"), "{notes:?}");
        assert!(
            notes[1].starts_with("removed ") && notes.len() == 2,
            "{notes:?}"
        );
        fs::remove_dir_all(&old).unwrap();
        let mut plan = plan("--name=a --size=1m --filename=/etc/passwd");
        job_target.put(&mut plan).unwrap();
        let files = &plan.jobs[0].files;
        assert_eq!(files.filenames, ["passwd"]);
        assert!(files.directories[0].contains(SUITE_PREFIX));
        drop(job_target);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn simulated_target_reads_no_directory() {
        let job_target = JobTarget {
            name: "sim:nvme".into(),
            index: 0,
            kind: StudyTargetKind::Simulated {
                options: "nvme".into(),
            },
            scratch: None,
            ceph: None,
        };
        let mut plan = plan("--name=a --size=1m --opendir=/data");
        job_target.put(&mut plan).unwrap();
        assert_eq!(plan.jobs[0].io.engine, Engine::Sim);
        assert!(plan.jobs[0].files.opendir.is_empty());
    }

    #[test]
    fn existing_target_is_not_written_without_consent() {
        let job_target = |consent| JobTarget {
            name: "/dev/x".into(),
            index: 0,
            kind: StudyTargetKind::Existing {
                bytes: 4096,
                device: true,
                consent,
            },
            scratch: None,
            ceph: None,
        };
        let grown = |options: &str| {
            let mut plan = plan(&format!("--name=a --rw=write {options}"));
            job_target(true).put(&mut plan).unwrap();
            plan.jobs.swap_remove(0).files
        };
        let filled = grown("--fill_device=1");
        assert!(!filled.fill_device, "it would grow until its disk is full");
        assert_eq!(filled.size, Some(BytesOrPercent::Bytes(4096)));
        let mut image = plan("--name=a --size=1m --ioengine=rbd --pool=p --rbdname=precious");
        let refused = job_target(true).put(&mut image).unwrap_err();
        let other_engine = TargetProblem::EngineOfOtherTarget {
            job: "a".to_owned(),
            engine: Engine::Rbd,
        };
        assert_eq!(refused, RunError::unusable_target("/dev/x", other_engine));
        for rw in ["write", "randrw", "rw", "randwrite"] {
            let mut plan = plan(&format!("--name=a --size=1m --rw={rw}"));
            assert!(job_target(false).put(&mut plan).is_err(), "{rw}");
            assert_eq!(job_target(true).put(&mut plan).unwrap().len(), 1);
            assert_eq!(plan.jobs[0].files.filenames, ["/dev/x"]);
            assert_eq!(plan.jobs[0].files.size, Some(BytesOrPercent::Bytes(4096)));
        }
        let mut reads = plan("--name=a --size=4k --rw=randread");
        assert!(job_target(false).put(&mut reads).unwrap().is_empty());
        // The target is not extended either.
        let mut behind = plan("--name=a --size=4k --offset=2k --rw=randread");
        assert!(job_target(false).put(&mut behind).unwrap().is_empty());
        assert_eq!(behind.jobs[0].files.size, Some(BytesOrPercent::Bytes(2048)));
        let mut beyond = plan("--name=a --size=4k --offset=4k --rw=randread");
        assert!(job_target(false).put(&mut beyond).is_err());
    }
}
