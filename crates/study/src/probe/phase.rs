//! The plans of a probe's phases.

use super::slow::SlowTarget;
use crate::job_template::{JobTemplate, single_job};
use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use iosonde_job::plan::{
    BlockSize, BytesOrPercent, Direction, Engine, GivenOption, Job, PerDirection, Plan, ReadWrite,
    ReadWriteMode,
};

/// The options that all jobs of one probe share.
#[derive(Debug, Clone)]
pub(super) struct ProbeJobs<'a> {
    /// The options of a job on the target.
    pub(super) template: JobTemplate<'a>,
    /// The measured speed, if the target is slow.
    pub(super) slow: Option<SlowTarget>,
}

/// The plan of one phase.
pub(super) fn phase_plan(phase: ProbePhase, jobs: &ProbeJobs<'_>, budget: &ProbeBudget) -> Plan {
    single_job(phase_job(phase, phase.key(), jobs, budget))
}

/// The job of one phase, with a name.
pub(super) fn phase_job(
    phase: ProbePhase,
    name: &str,
    jobs: &ProbeJobs<'_>,
    budget: &ProbeBudget,
) -> Job {
    let mut job = jobs.template.job(name);
    job.workload.rw = ReadWrite {
        mode: match phase.direction() {
            Direction::Read => ReadWriteMode::Read,
            _ => ReadWriteMode::Write,
        },
        random: phase.is_random(),
    };
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(phase.block_bytes()));
    job.io.iodepth = phase.iodepth();
    job.io.direct = jobs.template.direct && phase.may_be_direct();
    job.io.engine = match (jobs.template.sim, phase.iodepth()) {
        (Some(_), _) => Engine::Sim,
        // A program that waits for each I/O uses synchronous calls.
        (None, 1) => Engine::Psync,
        (None, _) => Engine::Auto,
    };
    if let Some(slow) = jobs.slow {
        if phase == ProbePhase::Layout {
            job.workload.block_size =
                PerDirection::from_value(BlockSize::Fixed(slow.layout_block()));
        }
        job.io.iodepth = slow.depth(job.workload.block_size.write.max(), phase.iodepth());
    }
    if phase == ProbePhase::SyncedWrite {
        job.workload.fdatasync_every = 1;
    }
    if phase == ProbePhase::Layout {
        job.workload.end_fsync = true;
        job.schedule.runtime_ns = budget.layout_ns;
    } else {
        job.schedule.time_based = true;
        job.schedule.runtime_ns = budget.runtime_ns;
        job.schedule.ramp_time_ns = budget.ramp_ns;
    }
    job.given = given(&job);
    job
}

/// The job as fio options, for fio's output formats and for repeating it with fio.
fn given(job: &Job) -> Vec<GivenOption> {
    let milliseconds = |ns: u64| format!("{}ms", ns / 1_000_000);
    let mut given = Vec::new();
    let mut add_option = |name: &str, value: String| {
        given.push(GivenOption {
            name: name.to_owned(),
            value,
        });
    };
    add_option("name", job.name.clone());
    add_option("filename", job.files.filenames.join(":"));
    if let Some(BytesOrPercent::Bytes(bytes)) = job.files.size {
        add_option("size", bytes.to_string());
    }
    add_option("rw", job.workload.rw.name().to_owned());
    add_option("bs", job.workload.block_size.read.min().to_string());
    add_option("ioengine", job.io.engine.name().to_owned());
    if let Some(device) = &job.io.sim {
        add_option("sim", device.clone());
    }
    add_option("iodepth", job.io.iodepth.to_string());
    add_option("numjobs", job.numjobs.to_string());
    add_option("direct", u8::from(job.io.direct).to_string());
    add_option("runtime", milliseconds(job.schedule.runtime_ns));
    if job.schedule.time_based {
        add_option("time_based", String::new());
        add_option("ramp_time", milliseconds(job.schedule.ramp_time_ns));
    }
    if job.workload.fdatasync_every > 0 {
        add_option("fdatasync", job.workload.fdatasync_every.to_string());
    }
    if job.workload.end_fsync {
        add_option("end_fsync", "1".to_owned());
    }
    if let Some(seed) = job.workload.randseed {
        add_option("randseed", seed.to_string());
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(sim: Option<&str>) -> ProbeJobs<'_> {
        ProbeJobs {
            template: JobTemplate {
                path: "f",
                bytes: 1 << 30,
                direct: true,
                seed: Some(1),
                sim,
                consent: false,
            },
            slow: None,
        }
    }

    #[test]
    fn given_options_name_the_simulated_device() {
        let device = |sim| {
            let jobs = jobs(sim);
            let plan = phase_plan(ProbePhase::RandomRead, &jobs, &ProbeBudget::NORMAL);
            let given = plan.jobs[0].given.iter();
            let mut values = given.filter(|option| option.name == "sim");
            values.next().map(|option| option.value.clone())
        };
        assert_eq!(device(Some("nvme,seed=7")).as_deref(), Some("nvme,seed=7"));
        assert_eq!(device(None), None);
    }

    #[test]
    fn synced_write_is_buffered_and_sequential() {
        let jobs = jobs(None);
        let plan = phase_plan(ProbePhase::SyncedWrite, &jobs, &ProbeBudget::NORMAL);
        let job = &plan.jobs[0];
        assert_eq!(job.workload.fdatasync_every, 1);
        assert!(!job.io.direct && !job.workload.rw.random);
        assert_eq!(job.io.engine, Engine::Psync);
    }
}
