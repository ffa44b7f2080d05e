//! Where the files of a suite's jobs are on a target: below a scratch directory of ours, or the file or device itself.

use crate::commands::ceph;
use crate::commands::leftovers::kept;
use crate::commands::leftovers::lock::{claim, is_still, take_lock_within};
use crate::commands::leftovers::name::{made_by, new_names};
use crate::failure::Failure;
use iosonde_engine::placed::{file_in, put};
use iosonde_engine::runner::HeldPaths;
use iosonde_job::Target;
use iosonde_job::place::{confine, engine_of_elsewhere, into_volume, relocate_to_file};
use iosonde_job::plan::{Direction, Engine, Extent, Job, Plan};
use iosonde_machine::write_obstacles::lasting_name;
use iosonde_result::doctor::MadeBy;
use iosonde_result::session::RunError;
use iosonde_study::probe::TargetKind;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How names of scratch directories begin.
pub(in crate::commands) const PREFIX: &str = ".iosonde-suite-";
/// Marks a scratch directory as in use.
pub(in crate::commands) const LOCK: &str = "in-use";

/// A target on which jobs can be put.
pub(super) struct Ground {
    name: String,
    /// Among those that are only looked at.
    index: usize,
    kind: TargetKind,
    scratch: Option<Scratch>,
    /// A target in a Ceph cluster, and how the names of our objects begin.
    ceph: Option<(Target, String)>,
}

impl Ground {
    /// Makes the scratch directory, if the target is a directory, and removes those that killed runs have left.
    pub(super) fn open(
        name: &str,
        kind: TargetKind,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Ground, Failure> {
        let ceph = ceph::target(name)?;
        let ceph = ceph
            .map(|target| Ok::<_, Failure>((target, ceph::prefix()?)))
            .transpose()?;
        let scratch = match &kind {
            TargetKind::Directory { .. } => Some(scratch(name, tell).map_err(|error| {
                Failure::Run(RunError::Target {
                    path: name.to_owned(),
                    problem: error.to_string(),
                    remedy: "name a directory that can be written".to_owned(),
                })
            })?),
            _ => None,
        };
        Ok(Ground {
            name: name.to_owned(),
            index: 0,
            kind,
            scratch,
            ceph,
        })
    }

    /// Has plans reach what is in the scratch directory by its descriptor.
    pub(super) fn note_in(&self, held: &HeldPaths) {
        if let Some(scratch) = &self.scratch {
            held.hold(&scratch.path, &scratch.directory);
        }
    }

    /// Puts a plan on the target; what it must not do there is an error. Returns what the user should know.
    pub(super) fn put(&self, plan: &mut Plan) -> Result<Vec<String>, RunError> {
        if !matches!(self.kind, TargetKind::Simulated { .. }) {
            self.refuse_other_places(plan)?;
        }
        if let (Some((target, prefix)), TargetKind::Pool { .. }) = (&self.ceph, &self.kind) {
            put(plan, target, prefix);
            return Ok(Vec::new());
        }
        match (&self.kind, &self.scratch) {
            (TargetKind::Simulated { options }, _) => {
                for job in &mut plan.jobs {
                    if job.io.engine != Engine::Null {
                        job.io.engine = Engine::Sim;
                        job.io.sim = Some(options.clone());
                    }
                }
                Ok(Vec::new())
            }
            (_, Some(scratch)) => Ok(into_volume(plan, Some(&scratch.path.to_string_lossy()))),
            (
                TargetKind::Existing {
                    bytes,
                    device,
                    consent,
                },
                None,
            ) => self.put_on_file(plan, (*bytes, *device), *consent),
            (TargetKind::Directory { .. }, None) => {
                let notes = into_volume(plan, Some(&self.name));
                let below = format!("{PREFIX}look-{}", self.index);
                for job in &mut plan.jobs {
                    below_scratch(job, &below);
                }
                Ok(notes)
            }
            (TargetKind::Pool { .. }, None) => Ok(Vec::new()),
        }
    }

    /// Jobs whose engine says itself where they go.
    fn refuse_other_places(&self, plan: &Plan) -> Result<(), RunError> {
        let mut engines = plan.jobs.iter().filter_map(|job| {
            let engine = engine_of_elsewhere(job, self.ceph.is_some())?;
            Some((job, engine))
        });
        match engines.next() {
            Some((job, engine)) => Err(RunError::Target {
                path: self.name.clone(),
                problem: format!(
                    "the job {} has ioengine={}, which does not go there",
                    job.name,
                    engine.name()
                ),
                remedy: "leave ioengine= out, or name rados://POOL, rbd://POOL/IMAGE or sim:MODEL"
                    .to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// What the jobs that are put on it may touch.
    pub(super) fn permitted(&self) -> Vec<String> {
        match (&self.kind, &self.ceph) {
            (TargetKind::Simulated { .. }, _) => Vec::new(),
            (TargetKind::Pool { .. }, Some((target, prefix))) => {
                file_in(target, prefix).into_iter().collect()
            }
            _ => match &self.scratch {
                Some(scratch) => vec![scratch.path.to_string_lossy().into_owned()],
                None => vec![self.name.clone()],
            },
        }
    }

    /// A look at where a plan would be put on one of several targets, for which nothing is made: a directory stands for the scratch
    /// directory in it.
    pub(super) fn without_scratch(name: &str, index: usize, kind: TargetKind) -> Ground {
        Ground {
            name: name.to_owned(),
            index,
            kind,
            scratch: None,
            ceph: None,
        }
    }

    /// What nobody has agreed to lose.
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
                return Err(RunError::Refused {
                    device: self.name.clone(),
                    found: format!("what it holds would be overwritten by {}", rw.name()),
                    remedy: format!(
                        "name a directory, or consent to lose its contents with --allow-overwrite {}",
                        lasting_name(Path::new(&self.name)).display()
                    ),
                });
            }
            relocate_to_file(job, &self.name);
            let files = &mut job.files;
            // A trace names the devices that it goes to itself, which nobody has agreed to lose.
            files.allow_mounted_write |= consent && job.replay.is_none();
            if matches!(files.size, Some(Extent::Bytes(size)) if size > bytes) {
                notes.push(format!(
                    "{}: {} is smaller than the job's size, so all of it is used",
                    job.name, self.name
                ));
            }
            files.unlink = false;
            files.unlink_each_loop = false;
            // Who says no size ends with the file anyhow, each clone for itself; a trace says itself where it goes.
            let sized = matches!(files.size, Some(Extent::Bytes(_))) || files.filesize.is_some();
            let grows = files.file_append || files.fill_device;
            if (sized || grows) && job.replay.is_none() {
                confine(job, bytes, is_device)
                    .map_err(|start_bytes| self.behind(job, start_bytes, bytes))?;
            }
        }
        Ok(notes)
    }

    fn behind(&self, job: &Job, start_bytes: u64, bytes: u64) -> RunError {
        RunError::Target {
            path: self.name.clone(),
            problem: format!(
                "the job {} begins at byte {start_bytes}, it has {bytes}",
                job.name
            ),
            remedy: "use a smaller offset=".to_owned(),
        }
    }
}

/// Gives a job's files names as in a scratch directory that is not there: none of them exists.
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

/// A directory of ours; removed with all that is in it when it is dropped.
struct Scratch {
    path: PathBuf,
    /// Itself, by which it is known.
    directory: Arc<File>,
    _lock: File,
}

fn scratch(name: &str, tell: &mut dyn FnMut(&str)) -> io::Result<Scratch> {
    let directory = Path::new(name).canonicalize()?;
    for entry in fs::read_dir(&directory)?.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_leftover(&entry.path(), tell);
        }
    }
    for name in new_names(PREFIX)? {
        let path = directory.join(name);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        match File::create_new(path.join(LOCK)) {
            Ok(lock) if claim(&lock)? => {
                let directory = Arc::new(File::open(&path)?);
                return Ok(Scratch {
                    path,
                    directory,
                    _lock: lock,
                });
            }
            // Another process takes it for a leftover, and removes it.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("names do not end")
}

fn remove_leftover(path: &Path, tell: &mut dyn FnMut(&str)) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let shown = path.display();
    match take_lock_within(path, LOCK) {
        Ok(None) => tell(&format!(
            "{shown}: another suite is running here, so both will see less than the target can do"
        )),
        Err(error) => tell(&format!(
            "{shown} may be a leftover of a killed suite ({error}); remove it if it is"
        )),
        Ok(Some(_lock)) if made_by(&name, PREFIX) == MadeBy::ThisBoot => {
            match fs::remove_dir_all(path) {
                Ok(()) => tell(&format!("removed {shown}, which a killed suite had left")),
                Err(error) => tell(&format!(
                    "{shown} was left by a killed suite and cannot be removed: {error}"
                )),
            }
        }
        Ok(Some(_lock)) => tell(&kept(path)),
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let shown = self.path.display();
        match is_still(&self.path, &self.directory) {
            Ok(false) => eprintln!(
                "warning: {shown} was removed or replaced by another program during the run: its lock was lost"
            ),
            _ => {
                if let Err(error) = fs::remove_dir_all(&self.path) {
                    eprintln!("warning: {shown} could not be removed: {error}");
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
    fn files_are_within_the_scratch_directory_which_goes() {
        let base = std::env::temp_dir().join(format!("iosonde-ground-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let old = base.join(format!("{PREFIX}1-0"));
        let left = base.join(new_names(PREFIX).unwrap().nth(9).unwrap());
        for directory in [&old, &left] {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join(LOCK), "").unwrap();
        }
        let name = base.to_str().unwrap();
        let mut told = Vec::new();
        let kind = TargetKind::Directory {
            free_bytes: 1 << 40,
        };
        let ground = Ground::open(name, kind, &mut |note| told.push(note.to_owned())).unwrap();
        told.sort();
        assert!(told[0].contains("iosonde doctor --clean"), "{told:?}");
        assert!(
            told[1].starts_with("removed ") && told.len() == 2,
            "{told:?}"
        );
        fs::remove_dir_all(&old).unwrap();
        let mut plan = plan("--name=a --size=1m --filename=/etc/passwd");
        ground.put(&mut plan).unwrap();
        let files = &plan.jobs[0].files;
        assert_eq!(files.filenames, ["passwd"]);
        assert!(files.directories[0].contains(PREFIX));
        drop(ground);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_exists_is_not_written_without_consent() {
        let ground = |consent| Ground {
            name: "/dev/x".into(),
            index: 0,
            kind: TargetKind::Existing {
                bytes: 4096,
                device: true,
                consent,
            },
            scratch: None,
            ceph: None,
        };
        let grown = |options: &str| {
            let mut plan = plan(&format!("--name=a --rw=write {options}"));
            ground(true).put(&mut plan).unwrap();
            plan.jobs.swap_remove(0).files
        };
        let filled = grown("--fill_device=1");
        assert!(!filled.fill_device, "it would grow until its disk is full");
        assert_eq!(filled.size, Some(Extent::Bytes(4096)));
        let mut image = plan("--name=a --size=1m --ioengine=rbd --pool=p --rbdname=precious");
        let refused = ground(true).put(&mut image).unwrap_err();
        assert!(refused.to_string().contains("ioengine=rbd"), "{refused}");
        for rw in ["write", "randrw", "rw", "randwrite"] {
            let mut plan = plan(&format!("--name=a --size=1m --rw={rw}"));
            assert!(ground(false).put(&mut plan).is_err(), "{rw}");
            assert_eq!(ground(true).put(&mut plan).unwrap().len(), 1);
            assert_eq!(plan.jobs[0].files.filenames, ["/dev/x"]);
            assert_eq!(plan.jobs[0].files.size, Some(Extent::Bytes(4096)));
        }
        let mut reads = plan("--name=a --size=4k --rw=randread");
        assert!(ground(false).put(&mut reads).unwrap().is_empty());
        // Nor is it made longer.
        let mut behind = plan("--name=a --size=4k --offset=2k --rw=randread");
        assert!(ground(false).put(&mut behind).unwrap().is_empty());
        assert_eq!(behind.jobs[0].files.size, Some(Extent::Bytes(2048)));
        let mut beyond = plan("--name=a --size=4k --offset=4k --rw=randread");
        assert!(ground(false).put(&mut beyond).is_err());
    }
}
