//! Running a test: purge, fill, rounds until they agree.

use super::deviations::Conditions;
use super::outcome::{FORMAT, PtsCell, PtsResult, Round, SeriesResult};
use super::plan::Ground;
use super::preset::{Preset, PtsTest, Series, Workload};
use super::relay::{FillRelay, Relay};
use super::times::{Ahead, Pace, PtsAnnouncement, most_written_bytes, rounds_left, rounds_of};
use crate::TimeRange;
use crate::probe::{
    Budget, ProbeTarget, TargetKind, WorkingSetError, is_direct_refused, planned_bytes,
};
use crate::saturation::measure_cell;
use crate::stopped::{self, stopped_ns};
use iosonde_job::plan::Plan;
use iosonde_result::observer::Progress;
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::session::{RunError, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long each workload of a round runs.
pub const MINUTE_NS: u64 = 60_000_000_000;
/// Shorter tells nothing, however the time is scaled.
const SHORTEST_NS: u64 = 200_000_000;
/// How often the fill writes everything.
const FILLS: f64 = 2.0;
/// Write saturation ends when so many times the capacity is written, or after so many rounds: 24 hours.
pub(super) const SATURATION_FILLS: f64 = 4.0;
const SATURATION_ROUNDS: u32 = 24 * 60;
/// errno of a system call that refuses its arguments: blocks smaller than those of the device.
const EINVAL: i32 = 22;

/// How a test is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsOptions {
    /// Which one.
    pub test: PtsTest,
    /// For which kind of device.
    #[serde(default)]
    pub preset: Preset,
    /// What times and amounts are multiplied by: 1 for a test, less for a trial.
    pub time_scale: f64,
    /// Most rounds.
    pub most_rounds: u32,
    /// I/Os in flight of each job; the latency test has one.
    pub iodepth: u32,
    /// Jobs; tests of sequential I/O and of latency have one.
    pub numjobs: u32,
    /// How the target gets rid of what it holds.
    pub purge: Purge,
    /// Bytes of the active range; `None` is the preset's share of a device, or what a probe would use of a directory.
    pub size_bytes: Option<u64>,
    /// Seed of the offsets.
    pub seed: u64,
}

/// How the target gets rid of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purge {
    /// It does not.
    None,
    /// Every block is discarded before each series.
    Discard,
    /// The user has done it, by means of the vendor's.
    Done,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtsError {
    /// The target is not to be written.
    #[error("{target}: the test overwrites all of it, and it exists")]
    Consent {
        /// The target as the user wrote it.
        target: String,
    },
    /// The active range does not fit.
    #[error("{target}: {source}")]
    WorkingSet {
        /// The target as the user wrote it.
        target: String,
        /// Why.
        source: WorkingSetError,
    },
    /// A run has no result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The fill failed.
    #[error("{target}: {}", failure.message)]
    Io {
        /// The target as the user wrote it.
        target: String,
        /// What went wrong.
        failure: Box<IoFailure>,
    },
}

/// Sees a test while it goes on.
pub trait PtsWatcher {
    /// Nothing has been written yet.
    fn begin(&mut self, target: &ProbeTarget, announcement: &PtsAnnouncement) {
        let _ = (target, announcement);
    }

    /// How long all of it will still take, once the target has shown how fast it is: while it is filled, and before a round.
    fn left(&mut self, left: TimeRange) {
        let _ = left;
    }

    /// A step begins, which takes this long at most, if that is known.
    fn step(&mut self, title: &str, planned_ns: Option<u64>) {
        let _ = (title, planned_ns);
    }

    /// Called several times a second.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// A round is complete.
    fn round(&mut self, series: &SeriesResult) {
        let _ = series;
    }

    /// Something that the user should know.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Whether the user wants it to end now.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl PtsWatcher for () {}

impl PtsOptions {
    /// Measured time of a workload of a round.
    pub(super) fn cell_ns(&self) -> u64 {
        ((MINUTE_NS as f64 * self.time_scale) as u64).max(SHORTEST_NS)
    }

    /// Depth and jobs of the test.
    fn in_flight(&self, series: &Series) -> (u32, u32) {
        match (self.test, series.random) {
            (PtsTest::Latency, _) => (1, 1),
            // Several would begin at the same place.
            (_, false) => (self.iodepth * self.numjobs, 1),
            (_, true) => (self.iodepth, self.numjobs),
        }
    }
}

/// Most rounds of a series.
pub(super) fn longest_rounds(options: &PtsOptions) -> u32 {
    match options.test {
        PtsTest::WriteSaturation => SATURATION_ROUNDS,
        _ => options.most_rounds,
    }
}

/// Runs a test of the specification on one target.
///
/// # Errors
/// When nothing could be measured. An I/O error ends it with what is known, see [`PtsResult::failure`], and so does a run without
/// a result, see [`PtsResult::error`].
pub fn pts(
    session: &mut dyn Session,
    target: &ProbeTarget,
    options: &PtsOptions,
    watcher: &mut dyn PtsWatcher,
) -> Result<PtsResult, PtsError> {
    if !target.kind.is_writable() {
        return Err(PtsError::Consent {
            target: target.name.clone(),
        });
    }
    let whole = match &target.kind {
        TargetKind::Existing { bytes, .. } => Some(*bytes),
        _ => None,
    };
    let active = whole.map(|bytes| options.preset.active_bytes(bytes));
    let planned = planned_bytes(&target.kind, options.size_bytes.or(active), &Budget::NORMAL);
    let bytes = planned.map_err(|source| PtsError::WorkingSet {
        target: target.name.clone(),
        source,
    })?;
    let mut study = Study {
        session,
        target,
        options,
        watcher,
        bytes,
        capacity: match options.size_bytes {
            Some(_) => bytes,
            None => whole.unwrap_or(bytes),
        },
        direct: true,
        refused: Vec::new(),
        write_cache: None,
        failure: None,
        error: None,
        notes: Vec::new(),
        pace: Pace::default(),
        later: Vec::new(),
    };
    study.announce();
    let mut all = Vec::new();
    let series = options.test.series(options.preset);
    for (index, series) in series.iter().enumerate() {
        if study.is_over() {
            break;
        }
        study.later = options.test.series(options.preset).split_off(index + 1);
        let mut found = SeriesResult::new(series);
        study.error = study.series(series, index == 0, &mut found).err();
        all.push(found);
    }
    study.conclude(all, active)
}

struct Study<'a> {
    session: &'a mut dyn Session,
    target: &'a ProbeTarget,
    options: &'a PtsOptions,
    watcher: &'a mut dyn PtsWatcher,
    /// The active range.
    bytes: u64,
    /// What is purged, and what the fill is counted in: all of a device that the user has not bounded.
    capacity: u64,
    direct: bool,
    /// Block sizes that the target refuses.
    refused: Vec<u64>,
    /// Whether the device's volatile write cache is on, as the kernel knows it.
    write_cache: Option<bool>,
    failure: Option<IoFailure>,
    error: Option<RunError>,
    notes: Vec<String>,
    /// How fast the target has been filled.
    pace: Pace,
    /// Series that come after the one that runs.
    later: Vec<Series>,
}

impl Study<'_> {
    fn announce(&mut self) {
        let options = self.options;
        let series = options.test.series(options.preset);
        let saturates = options.test == PtsTest::WriteSaturation;
        let rounds = series.iter().filter_map(|one| rounds_of(one, options));
        let announcement = PtsAnnouncement {
            bytes: self.bytes,
            purge_bytes: match self.discards() {
                true => series.len() as u64 * self.capacity,
                false => 0,
            },
            fill_bytes: series.iter().map(|one| self.fill_bytes_of(one)).sum(),
            rounds: match saturates {
                true => {
                    TimeRange::of_steps(1, u64::from(longest_rounds(options)), options.cell_ns())
                }
                false => rounds.fold(TimeRange::default(), |sum, one| sum + one),
            },
            most_written_bytes: saturates
                .then(|| most_written_bytes(options, self.capacity) as u64),
        };
        self.watcher.begin(self.target, &announcement);
    }

    /// Blocks that the active range is filled with before the rounds of a series, and how often; `None` where it is not filled.
    fn fills(&self, series: &Series) -> Option<(u64, f64)> {
        // The rounds of write saturation begin on an empty device; a file must have been written to be one.
        let is_file = self.target.kind.is_ours();
        match series.fill_block_bytes {
            Some(block_bytes) => {
                let beyond = self.capacity as f64 / self.bytes as f64;
                let fills = (FILLS * beyond * self.options.time_scale).max(1.0);
                Some((block_bytes, fills))
            }
            None => is_file.then_some((1 << 20, 1.0)),
        }
    }

    fn fill_bytes_of(&self, series: &Series) -> u64 {
        let fills = self.fills(series).map_or(0.0, |(_, fills)| fills);
        (fills * self.bytes as f64) as u64
    }

    /// What the series that come later take.
    fn later(&self) -> Ahead {
        let all = self.later.iter();
        let purges = match self.discards() {
            true => self.later.len() as u64,
            false => 0,
        };
        all.fold(Ahead::default().with_purges(purges), |ahead, series| {
            ahead.with(self.fill_bytes_of(series), rounds_of(series, self.options))
        })
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.error.is_some() || self.watcher.is_interrupted()
    }

    fn note(&mut self, note: String) {
        self.watcher.note(&note);
        self.notes.push(note);
    }

    /// Purge, fill and rounds. What was measured before an error is in the result.
    fn series(
        &mut self,
        series: &Series,
        is_first: bool,
        result: &mut SeriesResult,
    ) -> Result<(), RunError> {
        result.purged = self.purge(is_first)?;
        if let Some((block_bytes, fills)) = self.fills(series) {
            let rounds = rounds_of(series, self.options);
            result.filled_bytes = self.fill(fills, block_bytes, rounds)?;
        }
        let most_bytes = most_written_bytes(self.options, self.capacity);
        let mut rounds_ns = 0;
        for number in 1..=longest_rounds(self.options) {
            let rounds = rounds_left(result, rounds_ns, self.capacity, self.options);
            if let Some(left) = self.later().with(0, rounds).time(&self.pace) {
                self.watcher.left(left);
            }
            let Some((round, elapsed_ns)) = self.round(series, result, number)? else {
                break;
            };
            rounds_ns += elapsed_ns;
            let written_bytes = round.written_bytes;
            result.rounds.push(round);
            if result.steady.is_none() {
                result.steady = result.settled(series);
            }
            self.watcher.round(result);
            let saturates = self.options.test == PtsTest::WriteSaturation;
            let is_done = match saturates {
                true => written_bytes >= most_bytes,
                false => result.steady.is_some(),
            };
            if is_done {
                break;
            }
        }
        Ok(())
    }

    /// Whether every block is discarded before each series.
    fn discards(&self) -> bool {
        let is_device = match self.target.kind {
            TargetKind::Directory { .. } | TargetKind::Pool { .. } => false,
            TargetKind::Existing { device, .. } => device,
            TargetKind::Simulated { .. } => true,
        };
        self.options.purge == Purge::Discard && is_device
    }

    /// Whether the target has got rid of what it held before a series.
    fn purge(&mut self, is_first: bool) -> Result<bool, RunError> {
        match self.options.purge {
            Purge::None => return Ok(false),
            // By somebody else, before the first series only.
            Purge::Done => return Ok(is_first),
            Purge::Discard if !self.discards() => {
                self.note("only devices can be purged: this one was not".to_owned());
                return Ok(false);
            }
            Purge::Discard => {}
        }
        self.watcher.step("discarding everything", None);
        let plan = self.ground().purge(self.capacity);
        let result = self.run(&plan)?;
        self.pace.take_purge(result.elapsed_ns);
        match failure_of(&result) {
            None => Ok(!self.watcher.is_interrupted()),
            Some(failure) => {
                self.note(format!("the device was not purged: {}", failure.message));
                Ok(false)
            }
        }
    }

    /// Writes everything so many times; how many bytes that were. Rounds of this length follow.
    fn fill(
        &mut self,
        fills: f64,
        block_bytes: u64,
        rounds: Option<TimeRange>,
    ) -> Result<u64, RunError> {
        let mut left = (fills * self.bytes as f64) as u64;
        let mut filled = 0;
        while left >= block_bytes && !self.is_over() {
            let bytes = left.min(self.bytes) / block_bytes * block_bytes;
            let title = format!(
                "filling, {:.0} % of it done",
                filled as f64 * 100.0 / (filled + left) as f64
            );
            self.watcher.step(&title, None);
            let plan = self.ground().fill(bytes, block_bytes);
            let mut outcome = self.run_fill(&plan, bytes, left - bytes, rounds);
            if self.direct && is_direct_refused(&outcome) {
                self.direct = false;
                self.note(
                    "O_DIRECT is refused here, so all I/O goes through the page cache".to_owned(),
                );
                let plan = self.ground().fill(bytes, block_bytes);
                outcome = self.run_fill(&plan, bytes, left - bytes, rounds);
            }
            let result = outcome?;
            self.failure = failure_of(&result);
            if self.failure.is_some() {
                break;
            }
            self.pace.take_fill(bytes, result.elapsed_ns);
            filled += bytes;
            left -= bytes;
        }
        Ok(filled)
    }

    /// Runs a fill of so many bytes, which so many more follow, and then rounds.
    fn run_fill(
        &mut self,
        plan: &Plan,
        bytes: u64,
        bytes_after: u64,
        rounds: Option<TimeRange>,
    ) -> Result<RunResult, RunError> {
        let ahead = self.later().with(bytes_after, rounds);
        let mut observer = FillRelay {
            relay: Relay {
                watcher: self.watcher,
            },
            time: ahead.after_fill(bytes, &self.pace),
        };
        let result = self.session.run(plan, &mut observer)?;
        self.note_run(plan, &result);
        Ok(result)
    }

    /// Every workload once, and how long that took; `None` if it was not completed.
    fn round(
        &mut self,
        series: &Series,
        before: &SeriesResult,
        number: u32,
    ) -> Result<Option<(Round, u64)>, RunError> {
        let mut elapsed_ns = 0;
        let mut written_bytes = before
            .rounds
            .last()
            .map_or(0.0, |round| round.written_bytes);
        let mut cells = Vec::new();
        for (index, workload) in before.workloads.iter().enumerate() {
            if self.is_over() {
                return Ok(None);
            }
            let title = format!(
                "round {number}, workload {} of {}",
                index + 1,
                before.workloads.len()
            );
            self.watcher.step(&title, Some(self.options.cell_ns()));
            let (cell, cell_ns) = self.workload(series, *workload, number)?;
            elapsed_ns += cell_ns;
            if let Some(cell) = &cell {
                let writes = f64::from(100 - workload.read_percent) / 100.0;
                written_bytes += cell.bytes_per_s * writes * self.options.cell_ns() as f64 / 1e9;
            }
            cells.push(cell);
        }
        let is_complete = self.failure.is_none() && !self.watcher.is_interrupted();
        let round = Round {
            cells,
            written_bytes,
        };
        Ok(is_complete.then_some((round, elapsed_ns)))
    }

    /// One workload, and how long it took.
    fn workload(
        &mut self,
        series: &Series,
        workload: Workload,
        number: u32,
    ) -> Result<(Option<PtsCell>, u64), RunError> {
        if self.refused.contains(&workload.block_bytes) {
            return Ok((None, 0));
        }
        let (iodepth, numjobs) = self.options.in_flight(series);
        let mut job = self.ground().workload(workload, series.random, numjobs);
        // Other offsets in each round.
        job.workload.randseed = Some(self.options.seed.wrapping_add(u64::from(number) << 32));
        let mut relay = Relay {
            watcher: self.watcher,
        };
        let times = (0, self.options.cell_ns());
        let run = measure_cell(self.session, &job, iodepth, times, &mut relay)?;
        let cell = run.record.cell();
        let found = match run.failure {
            Some(failure) if failure.errno == EINVAL && cell.latency.count == 0 && number == 1 => {
                self.refused.push(workload.block_bytes);
                self.note(format!(
                    "blocks of {} bytes are refused here: its own are larger",
                    workload.block_bytes
                ));
                None
            }
            Some(failure) => {
                self.failure = Some(failure);
                None
            }
            None if cell.latency.count == 0 => None,
            None => Some(PtsCell::of(&cell)),
        };
        Ok((found, run.elapsed_ns))
    }

    fn run(&mut self, plan: &Plan) -> Result<RunResult, RunError> {
        let mut observer = Relay {
            watcher: self.watcher,
        };
        let result = self.session.run(plan, &mut observer)?;
        self.note_run(plan, &result);
        Ok(result)
    }

    /// What a run of purge or fill tells beside its end.
    fn note_run(&mut self, plan: &Plan, result: &RunResult) {
        let stopped_ns = stopped_ns(result);
        if stopped_ns > 0 {
            let what = plan.jobs.first().map_or("a run", |job| job.name.as_str());
            self.note(stopped::note(what, stopped_ns, false));
        }
        let devices = result.targets.iter().flat_map(|one| one.bottom_devices());
        let mut queues = devices.filter_map(|device| device.queue.as_ref());
        let cache = queues.find_map(|queue| queue.volatile_write_cache);
        self.write_cache = cache.or(self.write_cache);
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            path: &self.target.path,
            bytes: self.bytes,
            direct: self.direct,
            seed: self.options.seed,
            sim: match &self.target.kind {
                TargetKind::Simulated { options } => Some(options),
                _ => None,
            },
            consent: matches!(self.target.kind, TargetKind::Existing { consent: true, .. }),
        }
    }

    fn conclude(
        self,
        series: Vec<SeriesResult>,
        active: Option<u64>,
    ) -> Result<PtsResult, PtsError> {
        let (interrupted, error) = match self.error {
            Some(RunError::Interrupted) => (true, None),
            error => (self.watcher.is_interrupted(), error),
        };
        if series.iter().all(|one| one.rounds.is_empty()) {
            return Err(match (self.failure, error) {
                (Some(failure), _) => PtsError::Io {
                    target: self.target.name.clone(),
                    failure: failure.into(),
                },
                (None, Some(error)) => error.into(),
                (None, None) => RunError::without_figures(interrupted).into(),
            });
        }
        let ground = Conditions {
            options: self.options,
            kind: &self.target.kind,
            active_bytes: active,
            bytes: self.bytes,
            direct: self.direct,
            purged: series.iter().all(|one| one.purged),
            refused: !self.refused.is_empty(),
            write_cache: self.write_cache,
        };
        let deviations = ground.deviations();
        Ok(PtsResult {
            format: FORMAT,
            target: self.target.name.clone(),
            kind: self.target.kind.clone(),
            options: self.options.clone(),
            bytes: self.bytes,
            direct: self.direct,
            series,
            deviations,
            interrupted,
            failure: self.failure,
            error: error.map(Into::into),
            notes: self.notes,
        })
    }
}

fn failure_of(result: &RunResult) -> Option<IoFailure> {
    result
        .workers
        .iter()
        .find_map(|worker| worker.error.clone())
}
