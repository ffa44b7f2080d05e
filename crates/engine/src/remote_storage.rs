//! Storage that a library in user space reaches without paths: pools and images of a Ceph cluster.
//!
//! The engine calls only these traits. `LocalRunner::remote`
//! holds the implementation. Without one, plans that need remote storage are refused.

use crate::interrupt::Interrupt;
use crate::io::Slab;
use crate::io::remote::RemoteIo;
use crate::worker_files::WorkerFiles;
use iosonde_job::TargetScheme;
use iosonde_job::plan::{Engine, Job, Plan};
use iosonde_machine::consent::{Agreement, Consent};
use iosonde_result::ceph::CephSide;
use iosonde_result::host::TargetInfo;
use iosonde_result::run::CephUsed;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Access to remote storage, for the sessions of this process.
pub trait RemoteStorage: fmt::Debug + Send + Sync {
    /// Returns the plan with URIs in file names replaced by engines and their options.
    ///
    /// # Errors
    /// A job that contradicts its target.
    fn resolve_uris<'p>(&self, plan: &'p Plan) -> Result<Cow<'p, Plan>, RunError>;

    /// URIs of all objects or of the image that a job names. Empty for jobs on local storage.
    fn file_uris(&self, job: &Job) -> Vec<String>;

    /// Refuses a job whose options name another cluster than that of its target.
    fn check_cluster(&self, job: &Job) -> Result<(), RunError>;

    /// Length in bytes of a job's image, which is used like a block device.
    fn image_bytes(&self, job: &Job) -> Result<u64, RunError>;

    /// Name of a job's file in messages.
    fn file_name(&self, job: &Job, path: &Path) -> String;

    /// Creates the resources of a session.
    fn open_resources(&self) -> Box<dyn RemoteResources>;

    /// Opens the files of a worker for I/O. Also returns the description of client and target.
    /// Workers open concurrently, because connecting takes long.
    fn open_io(
        &self,
        job: &Job,
        files: &WorkerFiles,
        slab: &Slab,
        interrupt: &Arc<Interrupt>,
    ) -> Result<(Box<dyn RemoteIo>, CephUsed), RunError>;

    /// Drops the caches of all OSDs of the clusters that a run uses. Returns the number of OSDs.
    ///
    /// # Errors
    /// If a cluster does not answer, or its OSDs refuse the client.
    fn drop_osd_caches(&self, plan: &Plan, targets: &[TargetInfo]) -> Result<u32, RunError>;

    /// Starts to sample the cluster of a run. `None` if the run uses no cluster.
    fn watch(&self, plan: &Plan, targets: &[TargetInfo]) -> Option<Box<dyn RemoteWatch>>;
}

/// Resources of a session in remote storage: created objects, open images, and written ranges.
/// Dropping them removes the created objects.
pub trait RemoteResources: fmt::Debug + Send {
    /// Opens the files of a run, refuses forbidden writes, and lays out the data that jobs read.
    fn prepare_files(
        &mut self,
        run: &RemoteRun<'_>,
        events: &mut dyn PrepareEvents,
    ) -> Result<(), RunError>;

    /// Lays out ranges that earlier jobs discarded and that the worker with this number, or a later
    /// one, reads. Called before that worker starts. Returns the number of bytes written.
    fn refill_discarded_ranges(
        &mut self,
        run: &RemoteRun<'_>,
        starting: u32,
    ) -> Result<u64, RunError>;

    /// Records that a worker of this job has ended: ranges that it discarded hold no data.
    fn forget_discarded(&mut self, job: &Job, files: &WorkerFiles);

    /// Removes all created objects, and closes what is open.
    ///
    /// # Errors
    /// Objects that could not be removed stay recorded.
    fn remove(&mut self) -> Result<(), RunError>;
}

/// Sampler of a cluster during a run.
pub trait RemoteWatch: Send {
    /// Stops. Takes a last sample before, unless `at_once` is set: the cluster does not answer.
    fn finish_sampling(self: Box<Self>, at_once: bool) -> CephSide;
}

/// Receives the progress of [`RemoteResources::prepare_files`].
pub trait PrepareEvents {
    /// Reports a message to the user.
    fn message(&mut self, message: String);
    /// Begins the layout of this many bytes.
    fn begin_layout(&mut self, total_bytes: u64);
    /// Reports the number of bytes that the layout has written so far.
    fn written(&mut self, bytes: u64);
}

/// The workers of a run, and the policy for the preparation of their files.
pub struct RemoteRun<'a> {
    /// All workers of the run, in order of their numbers.
    pub workers: Vec<RemoteWorker<'a>>,
    /// Policy for the preparation.
    pub policy: PreparePolicy<'a>,
}

/// A worker of a run.
pub struct RemoteWorker<'a> {
    /// Index among all workers of the plan.
    pub number: u32,
    /// Its job.
    pub job: &'a Job,
    /// Its files.
    pub files: &'a WorkerFiles,
}

/// Policy for the preparation of files.
#[derive(Clone, Copy)]
pub struct PreparePolicy<'a> {
    /// Consent to overwrite images and objects, by URI.
    pub consent: &'a Consent,
    /// Whether layout is forbidden (`--readonly`).
    pub readonly: bool,
    /// Whether an image that was ever written is kept without consent, whatever its contents. Set
    /// in studies and suites. As with fio, a user's own jobs write an image without a signature.
    pub keeps_data: bool,
    /// Stop requests of the user.
    pub interrupt: &'a Arc<Interrupt>,
}

impl PreparePolicy<'_> {
    /// Consent to overwrite the target of this URI. A study sets `allow_mounted_write` in its jobs
    /// if it may overwrite what it found. In a user's own jobs it also allows targets in use.
    pub fn agreement(&self, uri: &str, job: &Job) -> Agreement {
        let of_job = match (job.files.allow_mounted_write, self.consent.by_jobs) {
            (true, true) => Agreement::Mounted,
            (true, false) => Agreement::Overwrite,
            (false, _) => Agreement::None,
        };
        of_job.max(self.consent.agreement_on_uri(uri))
    }
}

/// Resolves the URIs of a plan, or refuses a plan that needs remote storage where there is none.
pub(crate) fn resolve_uris<'p>(
    remote: Option<&dyn RemoteStorage>,
    plan: &'p Plan,
) -> Result<Cow<'p, Plan>, RunError> {
    if let Some(remote) = remote {
        return remote.resolve_uris(plan);
    }
    let mut needed = plan
        .jobs
        .iter()
        .filter_map(|job| Some((job, remote_engine(job)?)));
    match needed.next() {
        Some((job, engine)) => Err(absent(job, engine)),
        None => Ok(Cow::Borrowed(plan)),
    }
}

/// Returns the length of a job's image.
pub(crate) fn image_bytes(remote: Option<&dyn RemoteStorage>, job: &Job) -> Result<u64, RunError> {
    match remote {
        Some(remote) => remote.image_bytes(job),
        None => Err(absent(job, job.io.engine)),
    }
}

/// Returns the names of a worker's files in messages.
pub(crate) fn file_names(
    remote: Option<&dyn RemoteStorage>,
    job: &Job,
    files: &WorkerFiles,
) -> Vec<String> {
    let name = |path: &Path| match remote.filter(|_| job.io.engine.is_ceph()) {
        Some(remote) => remote.file_name(job, path),
        None => path.display().to_string(),
    };
    files.files.iter().map(|file| name(&file.path)).collect()
}

/// Engine of a job on remote storage: that of its options, or that of a URI among its file names.
fn remote_engine(job: &Job) -> Option<Engine> {
    if job.io.engine.is_ceph() {
        return Some(job.io.engine);
    }
    if matches!(job.io.engine, Engine::Null | Engine::Sim) {
        return None;
    }
    let names = job.files.names();
    let mut engines = names.filter_map(|name| match TargetScheme::of_name(name) {
        Some(TargetScheme::Rados) => Some(Engine::Rados),
        Some(TargetScheme::Rbd) => Some(Engine::Rbd),
        _ => None,
    });
    engines.next()
}

/// Error: this program has no access to remote storage.
fn absent(job: &Job, engine: Engine) -> RunError {
    UnsupportedFeature::EngineNotBuilt {
        job: job.name.clone(),
        engine,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::LocalRunner;

    fn refused(job: Job) -> Option<String> {
        let plan = Plan {
            jobs: vec![job],
            ..Plan::default()
        };
        let checked = LocalRunner::default().check(&plan, &mut Default::default());
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn remote_engine_without_remote_storage_is_refused() {
        let mut job = Job::new("a");
        job.io.engine = Engine::Rbd;
        let refused = refused(job).unwrap();
        assert_eq!(refused, "job a: this build has no ioengine=rbd");
    }

    #[test]
    fn uri_without_remote_storage_is_refused_and_creates_no_file() {
        let mut job = Job::new("a");
        job.files.filenames = vec!["rados://pool/file".to_owned()];
        let refused = refused(job).unwrap();
        assert_eq!(refused, "job a: this build has no ioengine=rados");
        let mut job = Job::new("a");
        job.files.filename_format = Some("rbd://pool/image".to_owned());
        assert_eq!(remote_engine(&job), Some(Engine::Rbd));
        job.io.engine = Engine::Null;
        assert_eq!(remote_engine(&job), None);
        job.io.engine = Engine::IoUring;
        job.files.opendir = vec!["/data".to_owned()];
        assert_eq!(remote_engine(&job), None, "opendir overrides the format");
    }
}
