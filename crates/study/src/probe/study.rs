//! Running the phases of a probe, one after the other.

use super::class::classify;
use super::evidence::Evidence;
use super::figure::Figure;
use super::knee::{self, Knee};
use super::observer::PhaseObserver;
use super::outcome::{FORMAT, PhaseRun, ProbeOptions, ProbeResult};
use super::phase::{self, Budget, Common, Phase};
use super::second_size;
use super::slow::{self, Slow};
use super::target::{
    ProbeTarget, TargetKind, WorkingSet, WorkingSetError, laid_out_bytes, planned_bytes,
};
use super::watcher::{Announcement, Watcher};
use crate::CutShort;
use crate::ceiling;
use crate::saturation::LongerRun;
use crate::stopped::{self, MOST_REPEATS, stopped_ns};
use iosonde_job::plan::{Direction, Plan};
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::session::{RunError, Session};

/// errno of a system call that refuses its arguments: what O_DIRECT meets where it is not supported.
const EINVAL: i32 = 22;

/// Why a probe has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The working set does not fit.
    #[error("{target}: {source}")]
    WorkingSet {
        /// The target as the user wrote it.
        target: String,
        /// Why.
        source: WorkingSetError,
    },
    /// A phase could not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Laying out the working set failed.
    #[error("{target}: the working file could not be written: {}", failure.message)]
    Layout {
        /// The target as the user wrote it.
        target: String,
        /// What went wrong.
        failure: Box<IoFailure>,
    },
}

/// Bytes of the working set at most.
///
/// # Errors
/// Without the room for it.
pub fn working_set(target: &ProbeTarget, options: &ProbeOptions) -> Result<u64, ProbeError> {
    let planned = planned_bytes(&target.kind, options.size_bytes, &options.budget);
    planned.map_err(|source| ProbeError::WorkingSet {
        target: target.name.clone(),
        source,
    })
}

/// Probes one target.
///
/// # Errors
/// When nothing could be measured. An I/O error in one phase does not end the others; see [`ProbeResult::failure`].
pub fn probe(
    session: &mut dyn Session,
    target: &ProbeTarget,
    options: &ProbeOptions,
    watcher: &mut dyn Watcher,
) -> Result<ProbeResult, ProbeError> {
    let bytes = working_set(target, options)?;
    let phases = target.kind.phases();
    watcher.begin(&Announcement {
        target,
        bytes,
        phases: &phases,
        budget: &options.budget,
        direct: options.direct,
    });
    let mut study = Study {
        session,
        target,
        options,
        watcher,
        bytes,
        direct: options.direct,
        figures: Vec::new(),
        knees: Vec::new(),
        notes: Vec::new(),
        runs: Vec::new(),
        slow: None,
        left_out: 0,
        error: None,
        planned_ns: 0,
        spent_ns: 0,
    };
    study.try_out(&phases);
    for phase in &phases {
        if study.is_over() {
            break;
        }
        if let Some(slow) = study.slow.filter(|slow| slow.is_too_large(*phase)) {
            study.left_out += 1;
            study.note(slow.left_out(*phase));
            continue;
        }
        match study.phase(*phase) {
            // The wish to stop may come just before a run begins.
            Err(ProbeError::Run(RunError::Interrupted)) if !study.figures.is_empty() => break,
            // What has been measured counts.
            Err(ProbeError::Run(error)) if !study.figures.is_empty() => {
                study.note(format!("ended by an error: {error}; {}", error.remedy()));
                study.error = Some(error.into());
                break;
            }
            outcome => outcome?,
        }
    }
    study.conclude(bytes, phases.len())
}

struct Study<'a> {
    session: &'a mut dyn Session,
    target: &'a ProbeTarget,
    options: &'a ProbeOptions,
    watcher: &'a mut dyn Watcher,
    bytes: u64,
    direct: bool,
    figures: Vec<Figure>,
    knees: Vec<Knee>,
    notes: Vec<String>,
    runs: Vec<PhaseRun>,
    slow: Option<Slow>,
    /// Phases that are not run.
    left_out: usize,
    /// What ended it early.
    error: Option<CutShort>,
    /// Time that the steps so far were to take at most, and took.
    planned_ns: u64,
    spent_ns: u64,
}

impl<'a> Study<'a> {
    fn is_over(&self) -> bool {
        self.watcher.is_interrupted()
    }

    /// A first look at how fast the target is. Whatever goes wrong with it will go wrong with the first phase, and be told then.
    fn try_out(&mut self, phases: &[Phase]) {
        let direction = match phases.first() {
            Some(Phase::Layout) => Direction::Write,
            _ => Direction::Read,
        };
        let plan = slow::trial(&self.common(), direction);
        let Ok(result) = self.session.run(&plan, &mut ()) else {
            return;
        };
        self.slow = Slow::of(&result);
        if let Some(slow) = self.slow {
            self.note(slow.note());
            self.spent_ns += result.elapsed_ns;
        }
    }

    fn phase(&mut self, phase: Phase) -> Result<(), ProbeError> {
        let mut outcome = self.run(phase);
        if self.direct && is_direct_refused(&outcome) {
            self.direct = false;
            self.note(
                "O_DIRECT is refused here, so all I/O goes through the page cache: reads may come from memory"
                    .to_owned(),
            );
            outcome = self.run(phase);
        }
        let result = outcome?;
        if phase == Phase::Layout {
            self.laid_out(&result)?;
        } else if let Some(figure) = Figure::of(phase, &result, self.options.budget.width) {
            self.watcher.figure(&figure);
            self.figures.push(figure);
        } else if result.workers.iter().all(|worker| worker.error.is_none()) && !self.is_over() {
            self.note(format!(
                "{}: nothing was measured, as no I/O ended in its time",
                phase.title()
            ));
        }
        self.runs.push(PhaseRun { phase, result });
        if self.options.budget.searches(phase) && !self.is_over() {
            self.search()?;
        }
        Ok(())
    }

    /// Searches the knee of the phase that has just run.
    fn search(&mut self) -> Result<(), ProbeError> {
        let Some(PhaseRun { phase, result }) = self.runs.last() else {
            return Ok(());
        };
        // What failed at one depth will fail at others.
        if result.workers.iter().any(|worker| worker.error.is_some()) {
            return Ok(());
        }
        let budget = self.budget();
        let searched_ns = budget.search_ns(*phase);
        self.watcher.search(*phase, searched_ns);
        let common = self.common();
        match knee::search(self.session, *phase, &common, &budget, result, self.watcher) {
            Ok((mut knee, notes)) => {
                notes.into_iter().for_each(|note| self.notes.push(note));
                self.planned_ns += self.options.budget.search_ns(*phase);
                let figure = Figure::of(*phase, result, budget.width);
                if let Some(figure) = figure {
                    let (iodepth, iops) = (figure.iodepth, figure.iops);
                    knee.saturation.raise_to(LongerRun { iodepth, iops });
                }
                self.watcher.knee(&knee);
                // Time that this takes is made up for by the next step.
                let (session, watcher) = (&mut *self.session, &mut *self.watcher);
                match second_size::look(session, &knee, &common, &budget, watcher) {
                    Ok(found) => knee.second_size = found,
                    Err(RunError::Interrupted | RunError::NothingDone) => {}
                    Err(error) => return Err(error.into()),
                }
                self.spent_ns += knee.spent_ns();
                self.knees.push(knee);
                Ok(())
            }
            Err(RunError::Interrupted | RunError::NothingDone) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn run(&mut self, phase: Phase) -> Result<RunResult, RunError> {
        let budget = self.budget();
        let plan = self.plan(phase, &budget);
        // Layout is work that is done once.
        let mut repeats = match phase {
            Phase::Layout => 0,
            _ => MOST_REPEATS,
        };
        let result = loop {
            self.watcher.phase(phase, budget.phase_ns(phase));
            let mut observer = PhaseObserver::new(phase, &budget, repeats > 0, self.watcher);
            let result = self.session.run(&plan, &mut observer)?;
            let stopped_ns = stopped_ns(&result);
            let is_again = stopped_ns > 0 && repeats > 0 && !self.is_over();
            if stopped_ns > 0 && phase != Phase::Layout {
                self.note(stopped::note(phase.title(), stopped_ns, is_again));
            }
            if !is_again {
                break result;
            }
            repeats -= 1;
        };
        self.planned_ns += self.options.budget.phase_ns(phase);
        self.spent_ns += result.elapsed_ns;
        Ok(result)
    }

    /// What the next step may take, so that the whole takes no longer than announced.
    fn budget(&self) -> Budget {
        let late_ns = self.spent_ns.saturating_sub(self.planned_ns);
        self.options.budget.made_up(late_ns)
    }

    fn plan(&self, phase: Phase, budget: &Budget) -> Plan {
        phase::plan(phase, &self.common(), budget)
    }

    /// Later phases use what has been written, and nothing else.
    fn laid_out(&mut self, result: &RunResult) -> Result<(), ProbeError> {
        let written: u64 = result
            .workers
            .iter()
            .map(|worker| worker.directions.write.io_bytes)
            .sum();
        let failure = result
            .workers
            .iter()
            .find_map(|worker| worker.error.clone());
        if let Some(failure) = failure {
            return Err(ProbeError::Layout {
                target: self.target.name.clone(),
                failure: Box::new(failure),
            });
        }
        let usable = match self.slow {
            Some(slow) => slow.laid_out_bytes(written),
            None => laid_out_bytes(written),
        };
        if usable == 0 {
            return Err(RunError::without_figures(self.watcher.is_interrupted()).into());
        }
        if usable < self.bytes && !self.watcher.is_interrupted() {
            self.note(format!(
                "layout ended after {}: {} of the planned {} were written, and are what is measured",
                crate::words::wait(self.options.budget.layout_ns),
                crate::words::bytes(usable),
                crate::words::bytes(self.bytes),
            ));
        }
        self.bytes = usable;
        Ok(())
    }

    /// What all runs share.
    fn common(&self) -> Common<'a> {
        let target = self.target;
        Common {
            path: &target.path,
            bytes: self.bytes,
            direct: self.direct,
            seed: self.options.seed,
            sim: match &target.kind {
                TargetKind::Simulated { options } => Some(options),
                _ => None,
            },
            consent: matches!(target.kind, TargetKind::Existing { consent: true, .. }),
            slow: self.slow,
        }
    }

    fn note(&mut self, note: String) {
        self.watcher.note(&note);
        self.notes.push(note);
    }

    fn conclude(mut self, planned_bytes: u64, phases: usize) -> Result<ProbeResult, ProbeError> {
        let is_cut = self.runs.len() + self.left_out < phases && self.error.is_none();
        let interrupted = is_cut || self.is_over();
        if self.figures.is_empty() && interrupted {
            return Err(RunError::without_figures(self.watcher.is_interrupted()).into());
        }
        self.remark_on_devices();
        let evidence = Evidence::of(&self.figures, &self.runs);
        let ceilings = ceiling::of_probe(&self.knees, &self.figures, &self.runs, &[]);
        Ok(ProbeResult {
            format: FORMAT,
            target: self.target.name.clone(),
            path: self.target.path.clone(),
            kind: self.target.kind.clone(),
            options: self.options.clone(),
            working_set: WorkingSet {
                planned_bytes,
                bytes: self.bytes,
            },
            interrupted,
            error: self.error,
            classification: classify(&evidence),
            figures: self.figures,
            ceilings,
            knees: self.knees,
            notes: self.notes,
            expected: Vec::new(),
            runs: self.runs,
        })
    }

    fn remark_on_devices(&mut self) {
        if let TargetKind::Existing { consent: false, .. } = self.target.kind {
            self.note(
                "only read, not written: what is on it is not ours; blocks that were never written may be answered without the medium"
                    .to_owned(),
            );
        }
    }
}

/// Whether a run failed because its target cannot be opened or used with O_DIRECT.
pub(crate) fn is_direct_refused(outcome: &Result<RunResult, RunError>) -> bool {
    match outcome {
        Err(RunError::Unsupported { problem, .. } | RunError::Target { problem, .. }) => {
            problem.contains("O_DIRECT")
        }
        Err(_) => false,
        Ok(result) => result.workers.iter().any(|worker| {
            let moved: u64 = worker.directions.iter().map(|(_, d)| d.io_bytes).sum();
            let refused = worker
                .error
                .as_ref()
                .is_some_and(|error| error.errno == EINVAL);
            refused && moved == 0
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeDevice, FakeSession};
    use iosonde_job::plan::ReadWrite;
    use iosonde_result::observer::Observer;

    fn directory() -> ProbeTarget {
        ProbeTarget {
            name: "/data".into(),
            path: "/data/.iosonde-probe-1".into(),
            kind: TargetKind::Directory {
                free_bytes: 1 << 40,
            },
        }
    }

    fn options() -> ProbeOptions {
        ProbeOptions {
            budget: Budget::NORMAL,
            size_bytes: None,
            direct: true,
            seed: 1,
        }
    }

    #[test]
    fn runs_every_phase_and_finds_what_the_device_does() {
        let mut session = FakeSession::new(FakeDevice::nvme());
        let result = probe(&mut session, &directory(), &options(), &mut ()).unwrap();
        assert_eq!(result.figures.len(), 7);
        assert!(!result.interrupted && result.notes.is_empty());
        let read = result.figure(Phase::RandomRead).unwrap();
        let truth = FakeDevice::nvme().random_read_iops;
        assert!((read.iops.mean - truth).abs() < 0.05 * truth);
        assert!(read.iops.error.unwrap() < 0.05 * truth);
        assert_eq!(read.settled, Some(true));
        assert!(read.direct);
        assert!(!result.figure(Phase::SyncedWrite).unwrap().direct);
    }

    /// Its pod is lost at the first run of a pattern.
    struct Lost(FakeSession, ReadWrite);

    impl Session for Lost {
        fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
            let job = &plan.jobs[0];
            match job.workload.rw == self.1 && job.schedule.time_based {
                true => Err(RunError::Lost {
                    what: "the pod".to_owned(),
                    cause: "its node died".to_owned(),
                    remedy: "measure again".to_owned(),
                }),
                false => self.0.run(plan, observer),
            }
        }

        fn close(self: Box<Self>) -> Result<(), RunError> {
            Ok(())
        }
    }

    #[test]
    fn a_run_without_a_result_leaves_the_phases_before_it() {
        let lost_at = |rw: &str| {
            let job = iosonde_job::parse(
                &[
                    "--name=a".into(),
                    "--size=1m".into(),
                    format!("--rw={rw}").into(),
                ],
                &iosonde_job::env::FakeEnv::new(),
            );
            let rw = job.unwrap().plan.jobs[0].workload.rw;
            let mut session = Lost(FakeSession::new(FakeDevice::nvme()), rw);
            probe(&mut session, &directory(), &options(), &mut ())
        };
        let cut = lost_at("write").unwrap();
        let phases: Vec<Phase> = cut.figures.iter().map(|figure| figure.phase).collect();
        assert!(phases.contains(&Phase::RandomRead), "{phases:?}");
        assert!(!phases.contains(&Phase::SequentialWrite), "{phases:?}");
        assert!(cut.error.is_some() && !cut.interrupted);
        let told = "ended by an error: the pod was lost: its node died; measure again";
        assert!(cut.notes.iter().any(|note| note == told), "{:?}", cut.notes);
        // Before the first figure there is nothing to keep.
        let nothing = lost_at("randread");
        let lost = matches!(nothing, Err(ProbeError::Run(RunError::Lost { .. })));
        assert!(lost, "{nothing:?}");
    }

    /// The number of runs of random reads at depth 1 in which the process is stopped.
    struct Stopped(FakeSession, u32);

    impl Session for Stopped {
        fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
            let mut result = self.0.run(plan, observer)?;
            if plan.jobs[0].name == Phase::ReadLatency.key() && self.1 > 0 {
                self.1 -= 1;
                result.intervals.change_each(|index, interval| {
                    if index == 0 {
                        interval.stopped_ns = 3_000_000_000;
                    }
                });
            }
            Ok(result)
        }

        fn close(self: Box<Self>) -> Result<(), RunError> {
            Ok(())
        }
    }

    #[test]
    fn stopped_phase_is_measured_again() {
        let probed = |stops: u32| {
            let mut session = Stopped(FakeSession::new(FakeDevice::nvme()), stops);
            let result = probe(&mut session, &directory(), &options(), &mut ()).unwrap();
            let is_phase = |plan: &&Plan| plan.jobs[0].name == Phase::ReadLatency.key();
            let runs = session.0.plans.iter().filter(is_phase).count();
            assert_eq!(result.figures.len(), 7);
            let is_told = |note: &&String| note.contains("the process was stopped for 3.00 s");
            let told: Vec<String> = result.notes.iter().filter(is_told).cloned().collect();
            (runs, told)
        };
        assert_eq!(probed(0), (1, Vec::new()));
        let (runs, told) = probed(1);
        assert_eq!((runs, told.len()), (2, 1));
        assert!(told[0].ends_with("measured again"), "{told:?}");
        let (runs, told) = probed(9);
        assert_eq!((runs, told.len()), (3, 3), "that ends some time");
        assert!(told[2].ends_with("left out of its figures"), "{told:?}");
    }

    #[test]
    fn a_slow_device_gets_the_working_set_it_can_write_in_time() {
        let device = FakeDevice {
            write_bytes_per_s: 10e6,
            ..FakeDevice::hard_disk()
        };
        let mut session = FakeSession::new(device);
        let result = probe(&mut session, &directory(), &options(), &mut ()).unwrap();
        assert!(result.working_set.bytes < result.working_set.planned_bytes);
        assert!(result.working_set.bytes > 90 << 20);
        assert!(result.notes[0].starts_with("layout ended after 12 s"));
        let sizes: Vec<_> = session
            .plans
            .iter()
            .map(|plan| plan.jobs[0].files.size)
            .collect();
        let expected = Some(iosonde_job::plan::Extent::Bytes(result.working_set.bytes));
        assert!(sizes[1..].iter().all(|size| *size == expected));
    }

    #[test]
    fn goes_on_through_the_page_cache_where_o_direct_is_refused() {
        let device = FakeDevice {
            refuses_direct: true,
            ..FakeDevice::nvme()
        };
        let mut session = FakeSession::new(device);
        let result = probe(&mut session, &directory(), &options(), &mut ()).unwrap();
        assert!(result.notes[0].contains("O_DIRECT is refused"));
        assert!(result.figures.iter().all(|figure| !figure.direct));
        assert_eq!(result.figures.len(), 7);
        // Asked once, not in every phase.
        let phases = session.plans.iter().filter(|plan| !knee::is_search(plan));
        assert_eq!(phases.count(), 9);
    }

    struct StopsAfter(usize);
    impl Watcher for StopsAfter {
        fn figure(&mut self, _: &Figure) {
            self.0 -= 1;
        }
        fn is_interrupted(&self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn an_interrupted_probe_tells_what_it_knows() {
        let mut session = FakeSession::new(FakeDevice::nvme());
        let result = probe(&mut session, &directory(), &options(), &mut StopsAfter(2)).unwrap();
        assert!(result.interrupted);
        assert_eq!(result.figures.len(), 2);
        let mut session = FakeSession::new(FakeDevice::nvme());
        let nothing = probe(&mut session, &directory(), &options(), &mut StopsAfter(0));
        assert!(matches!(
            nothing,
            Err(ProbeError::Run(RunError::Interrupted))
        ));
    }

    #[test]
    fn a_full_file_system_is_an_error_and_not_a_figure() {
        let device = FakeDevice {
            full_after_bytes: Some(100 << 20),
            ..FakeDevice::nvme()
        };
        let mut session = FakeSession::new(device);
        let error = probe(&mut session, &directory(), &options(), &mut ()).unwrap_err();
        assert!(matches!(error, ProbeError::Layout { .. }), "{error}");
    }

    #[test]
    fn the_result_survives_json() {
        let mut session = FakeSession::new(FakeDevice::hard_disk());
        let result = probe(&mut session, &directory(), &options(), &mut ()).unwrap();
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<ProbeResult>(&json).unwrap(), result);
    }
}
