//! The phases of a probe, the time they get, and their plans.

use super::slow::Slow;
use super::sure::LEAST_SAMPLES;
use crate::TimeRange;
use iosonde_job::plan::{
    BlockSize, Direction, Engine, Extent, GivenOption, Job, Mode, PerDirection, Plan, ReadWrite,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;
/// A search for a knee takes this share of its time at least.
pub(super) const SEARCH_LEAST: f64 = 0.2;

/// One step of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The working set is written, from its start to its end.
    Layout,
    /// Random reads of 4 KiB, one at a time.
    ReadLatency,
    /// Random reads of 4 KiB, many at a time.
    RandomRead,
    /// Sequential reads of 1 MiB.
    SequentialRead,
    /// Random writes of 4 KiB, one at a time.
    WriteLatency,
    /// Sequential writes of 4 KiB through the page cache, each followed by fdatasync(2), as a database writes its log.
    SyncedWrite,
    /// Random writes of 4 KiB, many at a time.
    RandomWrite,
    /// Sequential writes of 1 MiB.
    SequentialWrite,
}

impl Phase {
    /// The phases that measure, in the order they run: those that could disturb others come last.
    pub const MEASURED: [Phase; 7] = [
        Phase::ReadLatency,
        Phase::RandomRead,
        Phase::SequentialRead,
        Phase::WriteLatency,
        Phase::SyncedWrite,
        Phase::RandomWrite,
        Phase::SequentialWrite,
    ];

    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Phase::Layout => "layout, sequential write",
            Phase::ReadLatency => "random read, depth 1",
            Phase::RandomRead => "random read",
            Phase::SequentialRead => "sequential read",
            Phase::WriteLatency => "random write, depth 1",
            Phase::SyncedWrite => "write + fdatasync",
            Phase::RandomWrite => "random write",
            Phase::SequentialWrite => "sequential write",
        }
    }

    /// Its name in files and job names, as in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Phase::Layout => "layout",
            Phase::ReadLatency => "read_latency",
            Phase::RandomRead => "random_read",
            Phase::SequentialRead => "sequential_read",
            Phase::WriteLatency => "write_latency",
            Phase::SyncedWrite => "synced_write",
            Phase::RandomWrite => "random_write",
            Phase::SequentialWrite => "sequential_write",
        }
    }

    /// From [`Phase::key`].
    pub fn of_key(key: &str) -> Option<Phase> {
        let mut all = [Phase::Layout].into_iter().chain(Phase::MEASURED);
        all.find(|phase| phase.key() == key)
    }

    /// Which way it moves data.
    pub fn direction(self) -> Direction {
        match self {
            Phase::ReadLatency | Phase::RandomRead | Phase::SequentialRead => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// Whether offsets are drawn at random.
    pub fn is_random(self) -> bool {
        matches!(
            self,
            Phase::ReadLatency | Phase::RandomRead | Phase::WriteLatency | Phase::RandomWrite
        )
    }

    /// Bytes of each I/O.
    pub fn block_bytes(self) -> u64 {
        match self {
            Phase::Layout | Phase::SequentialRead | Phase::SequentialWrite => 1 << 20,
            _ => 4 << 10,
        }
    }

    /// I/Os in flight.
    pub fn iodepth(self) -> u32 {
        match self {
            Phase::Layout | Phase::SequentialRead | Phase::SequentialWrite => 8,
            Phase::RandomRead | Phase::RandomWrite => 64,
            Phase::ReadLatency | Phase::WriteLatency | Phase::SyncedWrite => 1,
        }
    }

    /// Whether the knee of its pattern is looked for: of those that keep many I/Os in flight.
    pub fn has_knee(self) -> bool {
        self != Phase::Layout && self.iodepth() > 1
    }

    /// Whether the phase asks for O_DIRECT when the probe does: a database's log goes through the page cache.
    fn may_be_direct(self) -> bool {
        self != Phase::SyncedWrite
    }
}

/// How long the phases run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Layout ends after this time, with whatever has been written.
    pub layout_ns: u64,
    /// Measured time of each phase at most.
    pub runtime_ns: u64,
    /// Run before it and not measured.
    pub ramp_ns: u64,
    /// The search for the knee of a random pattern ends after this time, that of a sequential one, where few depths
    /// are worth trying, after [a part of it](Budget::search_ns); 0 searches none.
    #[serde(default)]
    pub knee_ns: u64,
    /// Largest working set, unless a size is asked for.
    pub size_bytes: u64,
    /// A phase ends before its time when half the confidence interval of its rate is at most this share of the mean, and
    /// the rate holds still. 0 runs every phase to its end.
    #[serde(default)]
    pub width: f64,
}

impl Budget {
    /// 90 seconds in all at most, less where rates are sure before.
    pub const NORMAL: Budget = Budget {
        layout_ns: 12 * SECOND_NS,
        runtime_ns: 6 * SECOND_NS,
        ramp_ns: SECOND_NS,
        knee_ns: 10 * SECOND_NS,
        size_bytes: 4 << 30,
        width: 0.01,
    };

    /// 20 seconds in all: a first impression.
    pub const QUICK: Budget = Budget {
        layout_ns: 4 * SECOND_NS,
        runtime_ns: 3 * SECOND_NS / 2,
        ramp_ns: SECOND_NS / 2,
        knee_ns: 0,
        size_bytes: 1 << 30,
        width: 0.05,
    };

    /// Length of the intervals that are looked at: a tenth of a second, or longer where a phase has more than 200.
    pub fn interval_ns(&self) -> u64 {
        const SHORTEST_NS: u64 = SECOND_NS / 10;
        let tenths = (self.runtime_ns / 200).div_ceil(SHORTEST_NS);
        tenths.clamp(1, 10) * SHORTEST_NS
    }

    /// The same with another measured time of each phase, and searches that are longer or shorter by as much.
    pub fn with_runtime(self, runtime_ns: u64) -> Budget {
        let share = runtime_ns as f64 / self.runtime_ns as f64;
        let knee_ns = (self.knee_ns as f64 * share) as u64;
        Budget {
            runtime_ns,
            // A search of less says nothing.
            knee_ns: knee_ns.max(self.knee_ns.min(3 * SECOND_NS)),
            ..self
        }
    }

    /// Time that one phase takes at most, without the search for its knee.
    pub fn phase_ns(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Layout => self.layout_ns,
            _ => self.ramp_ns + self.runtime_ns,
        }
    }

    /// Time that the search for the knee of a phase's pattern takes at most; 0 where there is none.
    pub fn search_ns(&self, phase: Phase) -> u64 {
        match phase.is_random() {
            _ if !phase.has_knee() => 0,
            true => self.knee_ns,
            false => self.knee_ns / 4,
        }
    }

    /// The same for a step that begins late, because devices took long to end what they had in flight: the time is made up
    /// for, but at least half of it is measured.
    pub(super) fn made_up(self, late_ns: u64) -> Budget {
        let shorter = |ns: u64| ns.saturating_sub(late_ns).max(ns / 2);
        Budget {
            runtime_ns: shorter(self.runtime_ns),
            knee_ns: shorter(self.knee_ns),
            ..self
        }
    }

    /// Whether the knee of a phase's pattern is looked for after it.
    pub fn searches(&self, phase: Phase) -> bool {
        self.search_ns(phase) > 0
    }

    /// Time that one phase takes: layout ends with its data, and the others no earlier than their rate can be sure.
    pub fn phase_time(&self, phase: Phase) -> TimeRange {
        let samples_ns = LEAST_SAMPLES as u64 * self.interval_ns();
        let is_early = self.width > 0.0;
        TimeRange {
            least_ns: match phase {
                Phase::Layout => 0,
                _ if is_early => self.ramp_ns + samples_ns.min(self.runtime_ns),
                _ => self.ramp_ns + self.runtime_ns,
            },
            most_ns: self.phase_ns(phase),
        }
    }

    /// Time that the search for the knee of a phase's pattern takes.
    pub fn search_time(&self, phase: Phase) -> TimeRange {
        let most_ns = self.search_ns(phase);
        TimeRange {
            least_ns: (SEARCH_LEAST * most_ns as f64) as u64,
            most_ns,
        }
    }

    /// Time that these phases take, and the searches for their knees.
    pub fn total_time(&self, phases: &[Phase]) -> TimeRange {
        let each = |phase: &Phase| self.phase_time(*phase) + self.search_time(*phase);
        let all = phases.iter().map(each);
        all.fold(TimeRange::default(), |sum, each| sum + each)
    }

    /// Time that these phases take at most, and the searches for their knees.
    pub fn total_ns(&self, phases: &[Phase]) -> u64 {
        let each = |phase: &Phase| self.phase_ns(*phase) + self.search_ns(*phase);
        phases.iter().map(each).sum()
    }
}

/// What all phases of one probe have in common.
#[derive(Debug, Clone)]
pub(super) struct Common<'a> {
    /// File or device.
    pub(super) path: &'a str,
    /// Bytes from its start that are used.
    pub(super) bytes: u64,
    /// O_DIRECT.
    pub(super) direct: bool,
    /// Seed of the offsets.
    pub(super) seed: u64,
    /// The simulated device, if it is one.
    pub(super) sim: Option<&'a str>,
    /// Consent to write to a device in use.
    pub(super) consent: bool,
    /// What is known of a target that is slow.
    pub(super) slow: Option<Slow>,
}

/// The plan of one phase.
pub(super) fn plan(phase: Phase, common: &Common<'_>, budget: &Budget) -> Plan {
    Plan {
        jobs: vec![job(phase, phase.key(), common, budget)],
        global_options: Vec::new(),
    }
}

/// Its job, under a name.
pub(super) fn job(phase: Phase, name: &str, common: &Common<'_>, budget: &Budget) -> Job {
    let mut job = target_job(name, common);
    job.workload.rw = ReadWrite {
        mode: match phase.direction() {
            Direction::Read => Mode::Read,
            _ => Mode::Write,
        },
        random: phase.is_random(),
    };
    job.workload.block_size = PerDirection::all(BlockSize::Fixed(phase.block_bytes()));
    job.io.iodepth = phase.iodepth();
    job.io.direct = common.direct && phase.may_be_direct();
    job.io.engine = match (common.sim, phase.iodepth()) {
        (Some(_), _) => Engine::Sim,
        // One at a time is how a program that waits for its I/O does it.
        (None, 1) => Engine::Psync,
        (None, _) => Engine::Auto,
    };
    if let Some(slow) = common.slow {
        if phase == Phase::Layout {
            job.workload.block_size = PerDirection::all(BlockSize::Fixed(slow.layout_block()));
        }
        job.io.iodepth = slow.depth(job.workload.block_size.write.max(), phase.iodepth());
    }
    if phase == Phase::SyncedWrite {
        job.workload.fdatasync_every = 1;
    }
    if phase == Phase::Layout {
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

/// A job on the target that does nothing yet.
pub(super) fn target_job(name: &str, common: &Common<'_>) -> Job {
    let mut job = Job::new(name);
    job.files.filenames = vec![common.path.to_owned()];
    job.files.size = Some(Extent::Bytes(common.bytes));
    job.files.allow_mounted_write = common.consent;
    job.workload.randseed = Some(common.seed);
    job.io.direct = common.direct;
    job.io.engine = match common.sim {
        Some(_) => Engine::Sim,
        None => Engine::Psync,
    };
    job.io.sim = common.sim.map(str::to_owned);
    job
}

/// The job in fio's words, for fio's formats and for whoever wants to repeat it there.
fn given(job: &Job) -> Vec<GivenOption> {
    let milliseconds = |ns: u64| format!("{}ms", ns / 1_000_000);
    let mut given = Vec::new();
    let mut give = |name: &str, value: String| {
        given.push(GivenOption {
            name: name.to_owned(),
            value,
        });
    };
    give("name", job.name.clone());
    give("filename", job.files.filenames.join(":"));
    if let Some(Extent::Bytes(bytes)) = job.files.size {
        give("size", bytes.to_string());
    }
    give("rw", job.workload.rw.name().to_owned());
    give("bs", job.workload.block_size.read.min().to_string());
    give("ioengine", job.io.engine.name().to_owned());
    give("iodepth", job.io.iodepth.to_string());
    give("numjobs", job.numjobs.to_string());
    give("direct", u8::from(job.io.direct).to_string());
    give("runtime", milliseconds(job.schedule.runtime_ns));
    if job.schedule.time_based {
        give("time_based", String::new());
        give("ramp_time", milliseconds(job.schedule.ramp_time_ns));
    }
    if job.workload.fdatasync_every > 0 {
        give("fdatasync", job.workload.fdatasync_every.to_string());
    }
    if job.workload.end_fsync {
        give("end_fsync", "1".to_owned());
    }
    if let Some(seed) = job.workload.randseed {
        give("randseed", seed.to_string());
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_phases() -> Vec<Phase> {
        let mut phases = vec![Phase::Layout];
        phases.extend(Phase::MEASURED);
        phases
    }

    #[test]
    fn the_time_promised_is_kept() {
        let normal = Budget::NORMAL.total_ns(&all_phases());
        assert!(normal <= 86 * SECOND_NS, "leaves some of 90 s for the rest");
        assert!(Budget::QUICK.total_ns(&all_phases()) <= 19 * SECOND_NS);
    }

    #[test]
    fn searches_are_as_long_as_phases_are() {
        let of = |seconds: u64| Budget::NORMAL.with_runtime(seconds * SECOND_NS);
        assert_eq!(of(6), Budget::NORMAL);
        assert_eq!(of(30).knee_ns, 50 * SECOND_NS);
        assert_eq!(of(1).knee_ns, 3 * SECOND_NS);
        assert_eq!(Budget::QUICK.with_runtime(SECOND_NS).knee_ns, 0);
    }

    #[test]
    fn time_that_was_lost_is_made_up_for_by_half_at_most() {
        let budget = Budget::NORMAL.made_up(SECOND_NS);
        assert_eq!(budget.runtime_ns, 5 * SECOND_NS);
        assert_eq!(budget.knee_ns, 9 * SECOND_NS);
        assert_eq!(
            Budget::NORMAL.made_up(60 * SECOND_NS).runtime_ns,
            3 * SECOND_NS
        );
    }

    #[test]
    fn intervals_are_short_but_not_too_many() {
        let of = |seconds: u64| Budget {
            runtime_ns: seconds * SECOND_NS,
            ..Budget::NORMAL
        };
        assert_eq!(Budget::QUICK.interval_ns(), SECOND_NS / 10);
        assert_eq!(of(8).interval_ns(), SECOND_NS / 10);
        assert_eq!(of(60).interval_ns(), SECOND_NS * 3 / 10);
        assert_eq!(of(3600).interval_ns(), SECOND_NS);
    }

    #[test]
    fn keys_are_the_names_in_json() {
        for phase in all_phases() {
            let json = serde_json::to_string(&phase).unwrap();
            assert_eq!(json, format!("\"{}\"", phase.key()));
        }
    }

    #[test]
    fn a_log_is_written_as_databases_do() {
        let common = Common {
            path: "f",
            bytes: 1 << 30,
            direct: true,
            seed: 1,
            sim: None,
            consent: false,
            slow: None,
        };
        let plan = plan(Phase::SyncedWrite, &common, &Budget::NORMAL);
        let job = &plan.jobs[0];
        assert_eq!(job.workload.fdatasync_every, 1);
        assert!(!job.io.direct && !job.workload.rw.random);
        assert_eq!(job.io.engine, Engine::Psync);
    }
}
