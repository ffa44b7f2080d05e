//! The plans of a load study: layout, capacity in closed loop, one offered load.

use super::point::Offered;
use iosonde_job::plan::{
    BlockSize, Direction, Engine, Extent, Job, Mode, PerDirection, Plan, ReadWrite,
};
use serde::{Deserialize, Serialize};

/// Depth at which the capacity is looked for.
const CAPACITY_DEPTH: u32 = 128;

/// Which I/O is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// Random rather than sequential offsets.
    pub random: bool,
}

/// How much of the load reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of reads in per cent; the rest writes.
    pub read_percent: u8,
}

impl Mix {
    /// Reads only.
    pub const READ: Mix = Mix { read_percent: 100 };
    /// Writes only.
    pub const WRITE: Mix = Mix { read_percent: 0 };

    /// Whether anything is written.
    pub fn writes(self) -> bool {
        self.read_percent < 100
    }

    /// A total rate, by direction.
    pub fn split(self, per_second: f64) -> Offered {
        // Each from its own share, not one as what the other leaves: rounding must not leave a write where only reads were
        // asked for.
        let share = |percent: u32| per_second * (f64::from(percent) / 100.0);
        let reads = u32::from(self.read_percent).min(100);
        Offered {
            reads_per_s: share(reads),
            writes_per_s: share(100 - reads),
        }
    }
}

/// When I/Os arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independently of each other, as from many users: gaps are exponential.
    Poisson,
    /// Evenly spaced.
    Constant,
}

/// What all runs of one study have in common.
#[derive(Debug, Clone)]
pub(super) struct Ground<'a> {
    /// File or device.
    pub(super) path: &'a str,
    /// Bytes from its start that are used.
    pub(super) bytes: u64,
    pub(super) direct: bool,
    pub(super) seed: u64,
    /// Number of the run; 0 is what comes before the first load.
    pub(super) run: u64,
    /// The simulated device, if it is one.
    pub(super) sim: Option<&'a str>,
    /// Consent to write to a device in use.
    pub(super) consent: bool,
    pub(super) pattern: Pattern,
    pub(super) arrivals: Arrivals,
    /// Threads for each direction; the rate is shared between them.
    pub(super) numjobs: u32,
    /// Places that do each plan at the same time.
    pub(super) parties: u32,
    /// Most I/Os in flight for each thread: where it is reached, arrivals queue in the program.
    pub(super) iodepth: u32,
}

impl Ground<'_> {
    /// Writes the working set from its start to its end.
    pub(super) fn layout(&self) -> Plan {
        let mut job = self.job("layout", Direction::Write);
        job.workload.rw.random = false;
        job.workload.block_size = PerDirection::all(BlockSize::Fixed(1 << 20));
        job.workload.end_fsync = true;
        job.io.iodepth = 8;
        plan(vec![job])
    }

    /// As much as the target takes, in closed loop.
    pub(super) fn closed(&self, mix: Mix, ramp_ns: u64, runtime_ns: u64) -> Plan {
        let mut job = self.job("capacity", Direction::Read);
        job.workload.rw.mode = match mix {
            Mix::READ => Mode::Read,
            Mix::WRITE => Mode::Write,
            _ => Mode::ReadWrite,
        };
        job.workload.rwmix_read_percent = mix.read_percent;
        job.io.iodepth = CAPACITY_DEPTH.min(self.iodepth);
        job.numjobs = self.numjobs;
        timed(&mut job, ramp_ns, runtime_ns);
        plan(vec![job])
    }

    /// An offered load, each direction in jobs of its own: one that lags does not hold up the other.
    pub(super) fn open(&self, offered: Offered, ramp_ns: u64, runtime_ns: u64) -> Plan {
        let jobs = Direction::ALL.into_iter().filter_map(|direction| {
            let per_second = offered.of(direction) / f64::from(self.parties.max(1));
            if per_second <= 0.0 {
                return None;
            }
            let name = match direction {
                Direction::Read => "read",
                _ => "write",
            };
            let mut job = self.job(name, direction);
            job.io.iodepth = self.iodepth;
            // A rate below one I/O a second for each thread cannot be had: fewer threads then.
            job.numjobs = (per_second as u32).clamp(1, self.numjobs);
            let each = (per_second / f64::from(job.numjobs)).round().max(1.0) as u64;
            job.schedule.rate_iops[direction] = Some(each);
            job.schedule.rate_poisson = self.arrivals == Arrivals::Poisson;
            timed(&mut job, ramp_ns, runtime_ns);
            Some(job)
        });
        plan(jobs.collect())
    }

    fn job(&self, name: &str, direction: Direction) -> Job {
        let mut job = Job::new(name);
        job.files.filenames = vec![self.path.to_owned()];
        job.files.size = Some(Extent::Bytes(self.bytes));
        job.files.allow_mounted_write = self.consent;
        job.workload.rw = ReadWrite {
            mode: match direction {
                Direction::Read => Mode::Read,
                _ => Mode::Write,
            },
            random: self.pattern.random,
        };
        job.workload.block_size = PerDirection::all(BlockSize::Fixed(self.pattern.block_bytes));
        job.workload.randseed = Some(self.seed.wrapping_add(self.run << 32));
        job.io.direct = self.direct;
        job.io.engine = match self.sim {
            Some(_) => Engine::Sim,
            None => Engine::Auto,
        };
        job.io.sim = self.sim.map(|device| of_run(device, self.run));
        job
    }
}

/// A simulated device in one of the runs of a study.
fn of_run(device: &str, run: u64) -> String {
    let mut words = device.split(',');
    let is_given = words.any(|word| word.trim().starts_with("run="));
    match run > 0 && !is_given {
        true => format!("{device},run={run}"),
        false => device.to_owned(),
    }
}

fn timed(job: &mut Job, ramp_ns: u64, runtime_ns: u64) {
    job.schedule.time_based = true;
    job.schedule.ramp_time_ns = ramp_ns;
    job.schedule.runtime_ns = runtime_ns;
}

fn plan(jobs: Vec<Job>) -> Plan {
    Plan {
        jobs,
        global_options: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_reads_only_never_writes(per_second in 0.1f64..1e8) {
            prop_assert_eq!(Mix::READ.split(per_second).writes_per_s, 0.0);
            prop_assert_eq!(Mix::WRITE.split(per_second).reads_per_s, 0.0);
        }

        #[test]
        fn both_shares_are_the_whole(read_percent in 0u8..=100, per_second in 0.1f64..1e8) {
            let total = Mix { read_percent }.split(per_second).total();
            prop_assert!((total / per_second - 1.0).abs() < 1e-12, "{}", total);
        }
    }

    fn ground(parties: u32) -> Ground<'static> {
        Ground {
            path: "file",
            bytes: 1 << 20,
            direct: true,
            seed: 1,
            run: 0,
            sim: None,
            consent: false,
            pattern: Pattern {
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
    fn what_is_offered_is_shared_between_all_who_do_it() {
        let offered = Mix::READ.split(1200.0);
        for (parties, each) in [(1, 600), (3, 200)] {
            let plan = ground(parties).open(offered, 0, 1_000_000_000);
            let job = &plan.jobs[0];
            assert_eq!(job.schedule.rate_iops[Direction::Read], Some(each));
            assert_eq!(job.numjobs, 2);
        }
        // Less than one a second for each cannot be had.
        let plan = ground(4).open(Mix::READ.split(2.0), 0, 1_000_000_000);
        assert_eq!(plan.jobs[0].numjobs, 1);
        assert_eq!(plan.jobs[0].schedule.rate_iops[Direction::Read], Some(1));
    }
}
