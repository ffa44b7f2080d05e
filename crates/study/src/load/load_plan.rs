//! Plans of a load study: layout, capacity in closed loop, one offered load.

use crate::figures::load_measurement::Offered;
use crate::job_template::{JobTemplate, single_job};
use iosonde_job::plan::{BlockSize, Direction, Job, PerDirection, Plan, ReadWrite, ReadWriteMode};
use iosonde_job::run_number::with_run_number;
use serde::{Deserialize, Serialize};

/// Maximum I/O depth of the capacity run.
const CAPACITY_DEPTH: u32 = 128;

/// Pattern of the offered I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPattern {
    /// Bytes per I/O.
    pub block_bytes: u64,
    /// Whether offsets are random.
    pub random: bool,
}

/// Mix of reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of reads in per cent. The other I/Os are writes.
    pub read_percent: u8,
}

impl Mix {
    /// Reads only.
    pub const READ: Mix = Mix { read_percent: 100 };
    /// Writes only.
    pub const WRITE: Mix = Mix { read_percent: 0 };

    /// Returns whether the mix has writes.
    pub fn writes(self) -> bool {
        self.read_percent < 100
    }

    /// Splits a total rate by direction.
    pub fn split(self, per_second: f64) -> Offered {
        // Each direction is computed from its own share. A difference from the total could leave a
        // fraction of a write in a mix of reads only.
        let share = |percent: u32| per_second * (f64::from(percent) / 100.0);
        let reads = u32::from(self.read_percent).min(100);
        Offered {
            reads_per_s: share(reads),
            writes_per_s: share(100 - reads),
        }
    }
}

/// Distribution of the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent arrivals, as from many users: exponential gaps.
    Poisson,
    /// Evenly spaced arrivals.
    Constant,
}

/// Jobs of one run of a study.
#[derive(Debug, Clone)]
pub(super) struct LoadJobs<'a> {
    /// Parameters that all jobs share.
    pub(super) template: JobTemplate<'a>,
    /// Number of the run. 0: before the first load.
    pub(super) run: u64,
    pub(super) pattern: LoadPattern,
    pub(super) arrivals: Arrivals,
    /// Threads per direction, which share the rate.
    pub(super) numjobs: u32,
    /// Number of pods that run each plan at the same time.
    pub(super) parties: u32,
    /// Maximum I/Os in flight per thread. At the maximum, arrivals queue in the program.
    pub(super) iodepth: u32,
}

impl LoadJobs<'_> {
    /// Returns the seed of the offsets of a run, for jobs with the seed of the study.
    pub(super) fn seed(study_seed: u64, run: u64) -> u64 {
        study_seed.wrapping_add(run << 32)
    }

    /// Measures the capacity in closed loop.
    pub(super) fn closed(&self, mix: Mix, ramp_ns: u64, runtime_ns: u64) -> Plan {
        let mut job = self.job("capacity", Direction::Read);
        job.workload.rw.mode = match mix {
            Mix::READ => ReadWriteMode::Read,
            Mix::WRITE => ReadWriteMode::Write,
            _ => ReadWriteMode::ReadWrite,
        };
        job.workload.rwmix_read_percent = mix.read_percent;
        job.io.iodepth = CAPACITY_DEPTH.min(self.iodepth);
        job.numjobs = self.numjobs;
        timed(&mut job, ramp_ns, runtime_ns);
        single_job(job)
    }

    /// Offers a load. Each direction has jobs of its own, so that neither delays the other.
    pub(super) fn open(&self, offered: Offered, ramp_ns: u64, runtime_ns: u64) -> Plan {
        let jobs = Direction::ALL.into_iter().filter_map(|direction| {
            let per_second = offered.rate_per_s(direction) / f64::from(self.parties.max(1));
            if per_second <= 0.0 {
                return None;
            }
            let name = match direction {
                Direction::Read => "read",
                _ => "write",
            };
            let mut job = self.job(name, direction);
            job.io.iodepth = self.iodepth;
            // The lowest rate of a thread is one I/O per second, so low rates use fewer threads.
            job.numjobs = (per_second as u32).clamp(1, self.numjobs);
            let each = (per_second / f64::from(job.numjobs)).round().max(1.0) as u64;
            job.schedule.rate_iops[direction] = Some(each);
            job.schedule.rate_poisson = self.arrivals == Arrivals::Poisson;
            timed(&mut job, ramp_ns, runtime_ns);
            Some(job)
        });
        Plan {
            jobs: jobs.collect(),
            global_options: Vec::new(),
        }
    }

    fn job(&self, name: &str, direction: Direction) -> Job {
        let mut job = self.template.job(name);
        job.workload.rw = ReadWrite {
            mode: match direction {
                Direction::Read => ReadWriteMode::Read,
                _ => ReadWriteMode::Write,
            },
            random: self.pattern.random,
        };
        job.workload.block_size =
            PerDirection::from_value(BlockSize::Fixed(self.pattern.block_bytes));
        job.io.sim = self
            .template
            .sim
            .map(|device| with_run_number(device, self.run));
        job
    }
}

fn timed(job: &mut Job, ramp_ns: u64, runtime_ns: u64) {
    job.schedule.time_based = true;
    job.schedule.ramp_time_ns = ramp_ns;
    job.schedule.runtime_ns = runtime_ns;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn single_direction_mix_has_no_other_direction(per_second in 0.1f64..1e8) {
            prop_assert_eq!(Mix::READ.split(per_second).writes_per_s, 0.0);
            prop_assert_eq!(Mix::WRITE.split(per_second).reads_per_s, 0.0);
        }

        #[test]
        fn mix_split_preserves_total_rate(read_percent in 0u8..=100, per_second in 0.1f64..1e8) {
            let total = Mix { read_percent }.split(per_second).total();
            prop_assert!((total / per_second - 1.0).abs() < 1e-12, "{}", total);
        }
    }

    fn jobs(parties: u32) -> LoadJobs<'static> {
        LoadJobs {
            template: JobTemplate {
                path: "file",
                bytes: 1 << 20,
                direct: true,
                seed: Some(1),
                sim: None,
                consent: false,
            },
            run: 0,
            pattern: LoadPattern {
                block_bytes: 4096,
                random: true,
            },
            arrivals: Arrivals::Poisson,
            numjobs: 2,
            parties,
            iodepth: 64,
        }
    }

    #[test]
    fn offered_rate_is_shared_between_parties_and_jobs() {
        let offered = Mix::READ.split(1200.0);
        for (parties, each) in [(1, 600), (3, 200)] {
            let plan = jobs(parties).open(offered, 0, 1_000_000_000);
            let job = &plan.jobs[0];
            assert_eq!(job.schedule.rate_iops[Direction::Read], Some(each));
            assert_eq!(job.numjobs, 2);
        }
        // Less than one I/O per second and thread is impossible.
        let plan = jobs(4).open(Mix::READ.split(2.0), 0, 1_000_000_000);
        assert_eq!(plan.jobs[0].numjobs, 1);
        assert_eq!(plan.jobs[0].schedule.rate_iops[Direction::Read], Some(1));
    }
}
