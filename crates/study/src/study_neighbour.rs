//! [`StudyNeighbour`]: the neighbour that runs beside the measurements of a study on one target.

use crate::error::{StudyError, WritingStudy};
use crate::run_hook::RunPurpose;
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::words;
use iosonde_job::Neighbour;
use iosonde_job::plan::{Direction, Engine, Job, PerDirection, Plan};
use iosonde_job::target_scheme::{is_path_name, is_simulated_name};
use iosonde_result::neighbour_rate::{CloneRate, missed_rates};
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::stats::LatencyStats;

/// The neighbour of a study on one target.
#[derive(Debug, Clone)]
pub struct StudyNeighbour {
    /// The options as given.
    options: String,
    /// Path of the measured file or device.
    path: String,
    /// The target as the user wrote it.
    target: String,
    job: Job,
    /// Number of runs with the neighbour.
    runs: usize,
    moved: PerDirection<MovedData>,
}

/// I/Os of the neighbour in one direction.
#[derive(Debug, Clone, Default)]
struct MovedData {
    ios: u64,
    bytes: u64,
    runtime_ns: u64,
    latency: LatencyStats,
}

impl StudyNeighbour {
    /// Places a neighbour on the target of a study: in a file or objects of its own, or in a region
    /// at the end of an existing file or device.
    ///
    /// # Errors
    /// If the neighbour writes to an existing target without consent.
    pub fn new(neighbour: &Neighbour, target: &StudyTarget) -> Result<StudyNeighbour, StudyError> {
        let mut job = match &target.kind {
            StudyTargetKind::Directory { free_bytes } | StudyTargetKind::Pool { free_bytes } => {
                let mut job = neighbour.job_within(*free_bytes);
                job.files.filenames = vec![target.neighbour_path()];
                job
            }
            StudyTargetKind::Existing { bytes, consent, .. } => {
                let mut job = neighbour.job_at_end(*bytes);
                let rw = &job.workload.rw;
                if !consent && (rw.has(Direction::Write) || rw.has(Direction::Trim)) {
                    return Err(StudyError::WriteRefused {
                        targets: vec![target.name.clone()],
                        writer: WritingStudy::Neighbour {
                            rw: rw.name().to_owned(),
                        },
                    });
                }
                job.files.filenames = vec![target.path.clone()];
                job.files.allow_mounted_write = *consent;
                job
            }
            StudyTargetKind::Simulated { .. } => {
                let mut job = neighbour.job_within(u64::MAX);
                job.files.filenames = vec![target.path.clone()];
                job
            }
        };
        if !is_path_name(&target.path) && !is_simulated_name(&target.path) {
            job.io.engine = Engine::Auto;
        }
        Ok(StudyNeighbour {
            options: neighbour.options.clone(),
            path: target.path.clone(),
            target: target.name.clone(),
            job,
            runs: 0,
            moved: PerDirection::default(),
        })
    }

    /// Whether the measured jobs of a plan use this neighbour's target.
    fn is_beside(&self, plan: &Plan) -> bool {
        let mut names = plan.jobs.iter().flat_map(|job| &job.files.filenames);
        names.any(|name| *name == self.path)
    }

    /// Returns the plan with the neighbour.
    fn plan_beside(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let mut job = self.job.clone();
        let measured = plan.jobs.first();
        // A simulated device belongs to its text, which differs between runs, and has one file.
        if let Some(measured) = measured.filter(|measured| measured.io.engine == Engine::Sim) {
            job.io.engine = Engine::Sim;
            job.io.sim.clone_from(&measured.io.sim);
            job.files.size = measured.files.size;
        }
        Neighbour::join_plan(job, &mut plan);
        plan
    }

    /// Adds the neighbour's I/Os of a run.
    fn record_run(&mut self, result: &RunResult) {
        self.runs += 1;
        for (direction, stats) in result.neighbours.iter().flat_map(|w| w.directions.iter()) {
            let moved = &mut self.moved[direction];
            moved.ios += stats.total_ios;
            moved.bytes += stats.io_bytes;
            moved.runtime_ns += stats.runtime_ns;
            let latency = match stats.lat.moments.count {
                0 => &stats.clat,
                _ => &stats.lat,
            };
            moved.latency.merge(latency);
        }
    }

    /// Describes the neighbour's figures, which are in no other figure.
    fn sentence(&self) -> String {
        let mut figures = Vec::new();
        for (direction, moved) in self.moved.iter().filter(|(_, moved)| moved.ios > 0) {
            let seconds = moved.runtime_ns.max(1) as f64 / 1e9;
            let p99 = moved.latency.percentile(99.0);
            figures.push(format!(
                "{} {} IOPS, {}{}",
                direction.name(),
                words::iops_text(moved.ios as f64 / seconds),
                words::bandwidth(moved.bytes as f64 / seconds),
                p99.map_or(String::new(), |ns| {
                    format!(", p99 {}", words::latency(ns as f64))
                })
            ));
        }
        if figures.is_empty() {
            figures.push("no I/O".to_owned());
        }
        let missed = self.missed_rates();
        format!(
            "{}: measured beside a neighbour ({}), whose own I/O is in no figure: {} in {}{}",
            self.target,
            self.options,
            figures.join("; "),
            words::counted(self.runs, "run"),
            missed.map_or(String::new(), |missed| format!("; {missed}"))
        )
    }

    /// The rates that it missed over all runs.
    fn missed_rates(&self) -> Option<String> {
        missed_rates(&self.job, |direction| {
            let moved = &self.moved[direction];
            let seconds = moved.runtime_ns.max(1) as f64 / 1e9;
            CloneRate {
                iops: moved.ios as f64 / seconds,
                bytes_per_s: moved.bytes as f64 / seconds,
            }
        })
    }
}

/// The neighbours of a study, one per target.
#[derive(Debug, Default)]
pub(crate) struct StudyNeighbours(Vec<StudyNeighbour>);

impl StudyNeighbours {
    /// Adds the neighbour of a target.
    pub(crate) fn add(&mut self, neighbour: StudyNeighbour) {
        self.0.push(neighbour);
    }

    /// Returns the plan with the neighbour of its target. `None` if the run has no neighbour.
    pub(crate) fn plan_beside(&self, plan: &Plan, purpose: RunPurpose) -> Option<Plan> {
        if purpose == RunPurpose::Trial || purpose.is_preparation() {
            return None;
        }
        let found = self.0.iter().find(|neighbour| neighbour.is_beside(plan));
        found.map(|neighbour| neighbour.plan_beside(plan))
    }

    /// Adds the neighbour's I/Os of a run of a plan. Returns the I/O error that ended the
    /// neighbour. The plan of the result may name other files: several pods move them.
    pub(crate) fn record_run(&mut self, plan: &Plan, result: &RunResult) -> Option<IoFailure> {
        let mut all = self.0.iter_mut();
        if let Some(neighbour) = all.find(|neighbour| neighbour.is_beside(plan)) {
            neighbour.record_run(result);
        }
        let mut workers = result.neighbours.iter();
        workers.find_map(|worker| worker.error.clone())
    }

    /// Returns a sentence for each neighbour that ran.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let ran = self.0.iter().filter(|neighbour| neighbour.runs > 0);
        ran.map(StudyNeighbour::sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_session::{FakeDevice, FakeSession};
    use iosonde_job::env::FakeEnv;
    use iosonde_job::plan::BytesOrPercent;
    use iosonde_result::session::Session;

    fn target(kind: StudyTargetKind) -> StudyTarget {
        StudyTarget {
            name: "/data".to_owned(),
            path: "/data/file".to_owned(),
            kind,
        }
    }

    fn neighbour(options: &str) -> Neighbour {
        Neighbour::parse("--beside", options, &FakeEnv::new()).unwrap()
    }

    fn measured() -> Plan {
        let mut job = Job::new("measured");
        job.files.filenames = vec!["/data/file".to_owned()];
        Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        }
    }

    #[test]
    fn neighbour_has_its_own_file_in_a_directory() {
        let directory = StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        };
        let placed = StudyNeighbour::new(&neighbour("rw=write"), &target(directory)).unwrap();
        let mut all = StudyNeighbours::default();
        all.add(placed);
        let plan = all.plan_beside(&measured(), RunPurpose::Phase).unwrap();
        assert_eq!(plan.jobs[1].files.filenames, ["/data/file.neighbour"]);
        assert!(plan.jobs[1].schedule.neighbour && !plan.jobs[0].schedule.neighbour);
        for purpose in [RunPurpose::Layout, RunPurpose::Trial, RunPurpose::Purge] {
            assert_eq!(all.plan_beside(&measured(), purpose), None);
        }
    }

    /// Several pods move the files of a plan into their own directories.
    #[test]
    fn neighbour_of_moved_files_is_recorded() {
        let directory = StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        };
        let placed = StudyNeighbour::new(&neighbour("rw=write"), &target(directory)).unwrap();
        let mut all = StudyNeighbours::default();
        all.add(placed);
        let mut measured = measured();
        measured.jobs[0].schedule.runtime_ns = 1_000_000_000;
        measured.jobs[0].schedule.time_based = true;
        let mut session = FakeSession::new(FakeDevice::nvme());
        let mut result = session.run(&measured, &mut ()).unwrap();
        result.neighbours = result.workers.clone();
        let plan = all.plan_beside(&measured, RunPurpose::Phase).unwrap();
        result.plan = plan.clone();
        result.plan.jobs[0].files.filenames = vec!["file".to_owned()];
        assert_eq!(all.record_run(&plan, &result), None);
        let sentences = all.sentences();
        assert!(sentences[0].ends_with(" in 1 run"), "{sentences:?}");
    }

    #[test]
    fn neighbour_that_misses_its_rate_is_named() {
        let directory = StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        };
        let options = neighbour("rw=randread rate_iops=500");
        let mut placed = StudyNeighbour::new(&options, &target(directory)).unwrap();
        placed.runs = 1;
        placed.moved.read = MovedData {
            ios: 1200,
            bytes: 1200 * 4096,
            runtime_ns: 10_000_000_000,
            latency: LatencyStats::default(),
        };
        let sentence = placed.sentence();
        assert!(sentence.ends_with("read 120 of 500 IOPS"), "{sentence}");
        placed.moved.read.ios = 5000;
        assert!(!placed.sentence().contains("missed"));
    }

    #[test]
    fn device_needs_consent_for_a_neighbour_that_writes() {
        let device = |consent| {
            target(StudyTargetKind::Existing {
                bytes: 100 << 30,
                device: true,
                consent,
            })
        };
        let placed = |options, consent| StudyNeighbour::new(&neighbour(options), &device(consent));
        assert!(matches!(
            placed("rw=write", false),
            Err(StudyError::WriteRefused { .. })
        ));
        assert!(placed("rw=randread", false).is_ok());
        let written = placed("rw=write size=2g", true).unwrap();
        let offset = BytesOrPercent::Bytes(98 << 30);
        assert_eq!(written.job.files.offset, offset);
        assert_eq!(written.job.files.filenames, ["/data/file"]);
    }
}
