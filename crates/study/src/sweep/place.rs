//! A sweep's jobs on its targets: how much of one they use, and which cannot be put on it.

use super::target::{Reach, SweepTarget};
use crate::probe::TargetKind;
use crate::words;
use iosonde_job::place::{confine, engine_of_elsewhere, relocate_to_file};
use iosonde_job::plan::{Engine, Extent, Job};

/// How much of a target a job says that it uses.
pub(super) fn reach(job: &Job) -> Reach {
    let files = &job.files;
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => Some(bytes),
        Extent::Percent(_) => None,
    };
    let (start, step) = (bytes(files.offset), bytes(files.offset_increment));
    let size = files.size.and_then(bytes);
    let clones_before_last = u64::from(job.numjobs.max(1)) - 1;
    let steps_bytes = step.unwrap_or(0).saturating_mul(clones_before_last);
    let last_start = start.unwrap_or(0).saturating_add(steps_bytes);
    let of_size = size.map(|size| last_start.saturating_add(size));
    // The length of the whole file, or of a device's part behind the offset.
    let most = files.filesize.map(|(_, most)| most);
    let end = most.or(of_size);
    let device_end = most.map(|most| last_start.saturating_add(most)).or(of_size);
    Reach {
        bytes: end.unwrap_or(0),
        device_bytes: device_end.unwrap_or(0),
        is_open: end.is_none() || start.is_none() || step.is_none(),
    }
}

/// Why a job cannot be put on a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// Nothing is left behind its offset.
    #[error(
        "the job `{job}` begins at {}, but {} of {target} are used",
        words::bytes(*start_bytes), words::bytes(*bytes)
    )]
    Behind {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
        /// Where it begins, or the last of its clones.
        start_bytes: u64,
        /// Bytes of the target that are used.
        bytes: u64,
    },
    /// Its engine says itself where it goes.
    #[error("the job `{job}` has ioengine={engine}, which cannot be put on {target}")]
    Engine {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
        /// The engine's name.
        engine: &'static str,
    },
    /// A trace says itself which files it goes to.
    #[error("the job `{job}` replays a trace, which cannot be put on {target}")]
    Trace {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
    },
}

impl Misplaced {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Misplaced::Behind { .. } => "use a smaller offset=, or give size= to use more of it",
            Misplaced::Engine { .. } => {
                "leave ioengine= out, or sweep rados://POOL, rbd://POOL/IMAGE or sim:MODEL"
            }
            Misplaced::Trace { .. } => "replay it with `iosonde fio`, or leave read_iolog out",
        }
    }
}

/// Puts a job on a target, of which it uses no more than what is announced.
pub(super) fn place(job: &mut Job, target: &SweepTarget) -> Result<(), Misplaced> {
    let simulated = match &target.kind {
        TargetKind::Simulated { options } => Some(options),
        _ => None,
    };
    if job.replay.is_some() && simulated.is_none() {
        return Err(Misplaced::Trace {
            job: job.name.clone(),
            target: target.name.clone(),
        });
    }
    let is_ceph = ["rados://", "rbd://"]
        .iter()
        .any(|scheme| target.path.starts_with(scheme));
    let elsewhere = engine_of_elsewhere(job, is_ceph).filter(|_| simulated.is_none());
    if let Some(engine) = elsewhere {
        return Err(Misplaced::Engine {
            job: job.name.clone(),
            target: target.name.clone(),
            engine: engine.name(),
        });
    }
    confine(job, target.bytes, target.is_device()).map_err(|start_bytes| Misplaced::Behind {
        job: job.name.clone(),
        target: target.name.clone(),
        start_bytes,
        bytes: target.bytes,
    })?;
    relocate_to_file(job, &target.path);
    job.files.allow_mounted_write |=
        matches!(target.kind, TargetKind::Existing { consent: true, .. });
    // Whatever engine the job names: on a simulated device nothing of this machine is touched.
    if let Some(options) = simulated {
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
    }
    Ok(())
}
