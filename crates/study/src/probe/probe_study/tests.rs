//! Tests of whole probes.

use super::*;
use crate::fake_session::{FakeDevice, FakeSession};
use crate::test_targets::{directory_target, probe_options};
use iosonde_job::plan::ReadWrite;
use iosonde_result::observer::Observer;
use iosonde_result::run_error::pod_failure::PodFailure;

/// Probes the directory `/data` with the budget `NORMAL`.
fn probe_data(
    session: &mut dyn Session,
    observer: &mut dyn StudyObserver,
) -> Result<ProbeResult, StudyError> {
    let options = probe_options(ProbeBudget::NORMAL, None);
    probe(session, &directory_target("/data"), &options, observer)
}

#[test]
fn probe_runs_all_phases_and_measures_device() {
    let mut session = FakeSession::new(FakeDevice::nvme());
    let result = probe_data(&mut session, &mut ()).unwrap();
    assert_eq!(result.figures.len(), 7);
    assert!(!result.interrupted && result.notes.is_empty());
    let read = result.figure(ProbePhase::RandomRead).unwrap();
    let truth = FakeDevice::nvme().random_read_iops;
    assert!((read.iops.mean - truth).abs() < 0.05 * truth);
    assert!(read.iops.error.unwrap() < 0.05 * truth);
    assert_eq!(read.settled, Some(true));
    assert!(read.direct);
    assert!(!result.figure(ProbePhase::SyncedWrite).unwrap().direct);
}

/// Loses its pod at the first run of a pattern.
struct LosingSession(FakeSession, ReadWrite);

impl Session for LosingSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let job = &plan.jobs[0];
        match job.workload.rw == self.1 && job.schedule.time_based {
            true => Err(RunError::Lost(Box::new(PodFailure::from_texts(
                "the pod",
                "its node died",
                "measure again",
            )))),
            false => self.0.run(plan, observer),
        }
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn lost_run_keeps_figures_of_earlier_phases() {
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
        let mut session = LosingSession(FakeSession::new(FakeDevice::nvme()), rw);
        probe_data(&mut session, &mut ())
    };
    let cut = lost_at("write").unwrap();
    let phases: Vec<ProbePhase> = cut.figures.iter().map(|figure| figure.phase).collect();
    assert!(phases.contains(&ProbePhase::RandomRead), "{phases:?}");
    assert!(!phases.contains(&ProbePhase::SequentialWrite), "{phases:?}");
    assert!(cut.error.is_some() && !cut.interrupted);
    let expected_note = "ended by an error: the pod was lost: its node died; measure again";
    assert!(
        cut.notes.iter().any(|note| note == expected_note),
        "{:?}",
        cut.notes
    );
    // Without a figure there is no result.
    let nothing = lost_at("randread");
    let lost = matches!(nothing, Err(StudyError::Run(RunError::Lost { .. })));
    assert!(lost, "{nothing:?}");
}

/// Counts the runs of random reads at depth 1 in which the process is still to be stopped.
struct Stopped(FakeSession, u32);

impl Session for Stopped {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut result = self.0.run(plan, observer)?;
        if plan.jobs[0].name == ProbePhase::ReadLatency.key() && self.1 > 0 {
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
        let result = probe_data(&mut session, &mut ()).unwrap();
        let is_phase = |plan: &&Plan| plan.jobs[0].name == ProbePhase::ReadLatency.key();
        let runs = session.0.plans.iter().filter(is_phase).count();
        assert_eq!(result.figures.len(), 7);
        let is_stop_note = |note: &&String| note.contains("the process was stopped for 3.00 s");
        let stop_notes: Vec<String> = result.notes.iter().filter(is_stop_note).cloned().collect();
        (runs, stop_notes)
    };
    assert_eq!(probed(0), (1, Vec::new()));
    let (runs, stop_notes) = probed(1);
    assert_eq!((runs, stop_notes.len()), (2, 1));
    assert!(stop_notes[0].ends_with("measured again"), "{stop_notes:?}");
    let (runs, stop_notes) = probed(9);
    assert_eq!((runs, stop_notes.len()), (3, 3), "that ends some time");
    assert!(
        stop_notes[2].ends_with("its figures exclude that time"),
        "{stop_notes:?}"
    );
}

#[test]
fn slow_layout_shrinks_working_set() {
    let device = FakeDevice {
        write_bytes_per_s: 10e6,
        ..FakeDevice::hard_disk()
    };
    let mut session = FakeSession::new(device);
    let result = probe_data(&mut session, &mut ()).unwrap();
    assert!(result.working_set.bytes < result.working_set.planned_bytes);
    assert!(result.working_set.bytes > 90 << 20);
    assert!(result.notes[0].starts_with("layout ended after 12 s"));
    let sizes: Vec<_> = session
        .plans
        .iter()
        .map(|plan| plan.jobs[0].files.size)
        .collect();
    let expected = Some(iosonde_job::plan::BytesOrPercent::Bytes(
        result.working_set.bytes,
    ));
    assert!(sizes[1..].iter().all(|size| *size == expected));
}

#[test]
fn refused_o_direct_falls_back_to_page_cache() {
    let device = FakeDevice {
        refuses_direct: true,
        ..FakeDevice::nvme()
    };
    let mut session = FakeSession::new(device);
    let result = probe_data(&mut session, &mut ()).unwrap();
    assert!(result.notes[0].contains("refuses O_DIRECT"));
    assert!(result.figures.iter().all(|figure| !figure.direct));
    assert_eq!(result.figures.len(), 7);
    // O_DIRECT is tried once, not in every phase.
    let is_phase = |plan: &&Plan| !plan.jobs[0].name.ends_with(knee::SUFFIX);
    assert_eq!(session.plans.iter().filter(is_phase).count(), 9);
}

/// Interrupts a probe after this number of figures.
pub(crate) struct StopsAfter(pub(crate) usize);

impl StudyObserver for StopsAfter {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if matches!(event, StudyEvent::Found(StudyFinding::Figure(_))) {
            self.0 -= 1;
        }
    }
    fn is_interrupted(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn interrupted_probe_keeps_measured_figures() {
    let mut session = FakeSession::new(FakeDevice::nvme());
    let result = probe_data(&mut session, &mut StopsAfter(2)).unwrap();
    assert!(result.interrupted);
    assert_eq!(result.figures.len(), 2);
    let mut session = FakeSession::new(FakeDevice::nvme());
    let nothing = probe_data(&mut session, &mut StopsAfter(0));
    assert!(matches!(
        nothing,
        Err(StudyError::Run(RunError::Interrupted))
    ));
}

#[test]
fn full_file_system_fails_layout() {
    let device = FakeDevice {
        full_after_bytes: Some(100 << 20),
        ..FakeDevice::nvme()
    };
    let mut session = FakeSession::new(device);
    let error = probe_data(&mut session, &mut ()).unwrap_err();
    assert!(matches!(error, StudyError::Layout { .. }), "{error}");
}

#[test]
fn probe_result_round_trips_through_json() {
    let mut session = FakeSession::new(FakeDevice::hard_disk());
    let result = probe_data(&mut session, &mut ()).unwrap();
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<ProbeResult>(&json).unwrap(), result);
}
