//! Relocates a sweep's jobs to its targets: the part that they use, and jobs that are refused.

use crate::relocation_error::RelocationError;
use crate::study_target::StudyTargetKind;
use crate::sweep_target::{JobExtent, SweepTarget};
use iosonde_job::plan::{BytesOrPercent, Engine, Job};
use iosonde_job::relocate::{confine_to_region, foreign_engine, relocate_to_file};
use iosonde_job::target_scheme::is_ceph_name;

/// Returns the part of a target that a job says it uses.
pub(super) fn reach(job: &Job) -> JobExtent {
    let files = &job.files;
    let bytes = |extent: BytesOrPercent| match extent {
        BytesOrPercent::Bytes(bytes) => Some(bytes),
        BytesOrPercent::Percent(_) => None,
    };
    let (start, step) = (bytes(files.offset), bytes(files.offset_increment));
    let size = files.size.and_then(bytes);
    let clones_before_last = u64::from(job.numjobs.max(1)) - 1;
    let steps_bytes = step.unwrap_or(0).saturating_mul(clones_before_last);
    let last_start = start.unwrap_or(0).saturating_add(steps_bytes);
    let of_size = size.map(|size| last_start.saturating_add(size));
    // `filesize`: length of the whole file, or of the part of a device behind the offset.
    let most = files.filesize.map(|(_, most)| most);
    let end = most.or(of_size);
    let device_end = most.map(|most| last_start.saturating_add(most)).or(of_size);
    JobExtent {
        bytes: end.unwrap_or(0),
        device_bytes: device_end.unwrap_or(0),
        is_open: end.is_none() || start.is_none() || step.is_none(),
    }
}

/// Places a job on a target, within the announced part.
pub(super) fn relocate_job(job: &mut Job, target: &SweepTarget) -> Result<(), RelocationError> {
    let simulated = match &target.kind {
        StudyTargetKind::Simulated { options } => Some(options),
        _ => None,
    };
    if job.replay.is_some() && simulated.is_none() {
        return Err(RelocationError::Trace {
            job: job.name.clone(),
            target: target.name.clone(),
        });
    }
    let is_ceph = is_ceph_name(&target.path);
    let elsewhere = foreign_engine(job, is_ceph).filter(|_| simulated.is_none());
    if let Some(engine) = elsewhere {
        return Err(RelocationError::Engine {
            job: job.name.clone(),
            target: target.name.clone(),
            engine: engine.name(),
        });
    }
    confine_to_region(job, target.bytes, target.is_device()).map_err(|start_bytes| {
        RelocationError::Behind {
            job: job.name.clone(),
            target: target.name.clone(),
            start_bytes,
            bytes: target.bytes,
        }
    })?;
    relocate_to_file(job, &target.path);
    job.files.allow_mounted_write |=
        matches!(target.kind, StudyTargetKind::Existing { consent: true, .. });
    // On a simulated device, the engine of the job is replaced: no I/O reaches this machine.
    if let Some(options) = simulated {
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
    }
    Ok(())
}
