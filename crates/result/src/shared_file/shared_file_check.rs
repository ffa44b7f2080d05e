//! Drives the rounds of the check and evaluates the answers.

use super::file_rounds::{WriteRound, consistency_rounds, file_bytes, lock_steps};
use super::{
    ConsistencyCheck, FileConsistency, FileLock, LockFigures, LockLatency, LockSample, MEMBERS_MAX,
    MemberStep, RangeAssignment, RefusedLock, SharedFileAction, SharedFileReply, SharedFileResult,
    SharedFileStep, WrongByte,
};
use crate::histogram::Histogram;
use crate::run_error::{RunError, SharedFileProblem, SystemFailure};

/// Performs steps at the same time, and returns the answers in the order of the steps.
type AskMembers<'a> = dyn FnMut(&[MemberStep]) -> Result<Vec<SharedFileReply>, RunError> + 'a;

/// Reason why the check has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedFileFailure {
    /// A pod read a wrong byte.
    Wrong {
        /// Number of the pod that read it.
        reader: u16,
        /// The byte.
        wrong: WrongByte,
        /// The promise that was broken.
        consistency: FileConsistency,
    },
    /// A step failed.
    Step {
        /// Number of the pod.
        pod: u16,
        /// The operation.
        action: SharedFileAction,
        /// Its error.
        failure: SystemFailure,
    },
    /// A pod was not reached.
    Unanswered(RunError),
}

impl SharedFileFailure {
    /// Returns the error of the run, with the names of the pods.
    #[must_use]
    pub fn into_run_error(self, target: &str, pods: &[String]) -> RunError {
        let name = |pod: u16| pods.get(usize::from(pod)).cloned().unwrap_or_default();
        let problem = match self {
            SharedFileFailure::Wrong {
                reader,
                wrong,
                consistency,
            } => SharedFileProblem::WrongByte {
                writer: name(wrong.writer),
                reader: name(reader),
                wrong,
                consistency,
            },
            SharedFileFailure::Step {
                pod,
                action,
                failure,
            } => SharedFileProblem::StepFailed {
                pod: name(pod),
                action,
                failure,
            },
            SharedFileFailure::Unanswered(error) => return error,
        };
        problem.into_run_error(target)
    }
}

/// Checks one file that `pods` pods write and read. `ask` has the pods perform steps.
///
/// # Errors
/// On the first wrong byte, on the first call that fails, or if `ask` fails. A file system without
/// O_DIRECT or without locks is no error.
pub fn check_shared_file(
    pods: u16,
    ask: &mut AskMembers<'_>,
) -> Result<SharedFileResult, SharedFileFailure> {
    assert!(
        (2..=MEMBERS_MAX).contains(&pods),
        "{pods} pods share a file"
    );
    let mut check = SharedFileCheck { pods, ask };
    check.perform(&[MemberStep {
        pod: 0,
        step: SharedFileStep::Create,
    }])?;
    let result = check.run()?;
    // An NFS client keeps the name of a removed file that is open.
    let close = |pod| MemberStep {
        pod,
        step: SharedFileStep::Close,
    };
    check.perform(&(0..pods).map(close).collect::<Vec<_>>())?;
    check.perform(&[MemberStep {
        pod: 0,
        step: SharedFileStep::Remove,
    }])?;
    Ok(result)
}

/// A check that goes on.
struct SharedFileCheck<'a, 'b> {
    pods: u16,
    ask: &'a mut AskMembers<'b>,
}

impl SharedFileCheck<'_, '_> {
    /// Runs all rounds on the new file.
    fn run(&mut self) -> Result<SharedFileResult, SharedFileFailure> {
        let (mut checks, mut direct_refused) = (Vec::new(), None);
        let mut generation = 0;
        for consistency in [FileConsistency::CloseToOpen, FileConsistency::Immediate] {
            let rounds = consistency_rounds(self.pods, consistency, &mut generation);
            match self.run_rounds(&rounds, consistency)? {
                Ok(done) => checks.extend(done),
                Err(refused) => direct_refused = Some(refused),
            }
        }
        let (mut locks, mut refused_locks) = (Vec::new(), Vec::new());
        for lock in FileLock::ALL {
            for holders in [1, self.pods] {
                match self.measure_lock(lock, holders)? {
                    Ok(figures) => locks.push(figures),
                    Err(failure) => {
                        refused_locks.push(RefusedLock { lock, failure });
                        break;
                    }
                }
            }
        }
        Ok(SharedFileResult {
            pods: self.pods,
            file_bytes: file_bytes(self.pods),
            checks,
            direct_refused,
            locks,
            refused_locks,
        })
    }

    fn ask(&mut self, steps: &[MemberStep]) -> Result<Vec<SharedFileReply>, SharedFileFailure> {
        debug_assert!(steps.iter().all(|step| step.pod < self.pods));
        let replies = (self.ask)(steps).map_err(SharedFileFailure::Unanswered)?;
        assert_eq!(replies.len(), steps.len(), "one answer for each step");
        Ok(replies)
    }

    /// Performs steps and fails if one does. Returns the error of O_DIRECT if it is refused.
    fn perform(
        &mut self,
        steps: &[MemberStep],
    ) -> Result<Option<SystemFailure>, SharedFileFailure> {
        let replies = self.ask(steps)?;
        let mut refused = None;
        for (MemberStep { pod, step }, reply) in steps.iter().zip(replies) {
            match reply {
                SharedFileReply::Done | SharedFileReply::Locked(_) => {}
                SharedFileReply::DirectRefused(failure) => refused = Some(failure),
                SharedFileReply::Wrong(wrong) => {
                    return Err(SharedFileFailure::Wrong {
                        reader: *pod,
                        wrong,
                        consistency: consistency_of(step),
                    });
                }
                SharedFileReply::Failed { action, failure } => {
                    return Err(SharedFileFailure::Step {
                        pod: *pod,
                        action,
                        failure,
                    });
                }
            }
        }
        Ok(refused)
    }

    /// Runs all rounds of a promise, or none if O_DIRECT is refused.
    fn run_rounds(
        &mut self,
        rounds: &[WriteRound],
        consistency: FileConsistency,
    ) -> Result<Result<Vec<ConsistencyCheck>, SystemFailure>, SharedFileFailure> {
        let mut checks = RangeAssignment::ALL.map(|assignment| ConsistencyCheck {
            consistency,
            assignment,
            writes: 0,
            verified_bytes: 0,
        });
        for round in rounds {
            // Close-to-open consistency promises nothing while several pods have the file open for
            // writing: an NFS client may take changes of other clients for its own and keep its
            // cache.
            let writes_at_once = match consistency {
                FileConsistency::CloseToOpen => 1,
                FileConsistency::Immediate => round.writes.len(),
            };
            // All writes are complete before the first read.
            let writes = round.writes.chunks(writes_at_once);
            for steps in writes.chain([round.reads.as_slice()]) {
                if let Some(refused) = self.perform(steps)? {
                    return Ok(Err(refused));
                }
            }
            let same = |check: &&mut ConsistencyCheck| check.assignment == round.assignment;
            if let Some(check) = checks.iter_mut().find(same) {
                check.writes += round.writes.len() as u64;
                check.verified_bytes += round.reads.iter().map(verified_bytes).sum::<u64>();
            }
        }
        Ok(Ok(checks.to_vec()))
    }

    /// Measures a lock that the first `holders` pods take. Returns the error if it is refused.
    fn measure_lock(
        &mut self,
        lock: FileLock,
        holders: u16,
    ) -> Result<Result<LockFigures, SystemFailure>, SharedFileFailure> {
        let steps = lock_steps(lock, holders);
        let mut samples = Vec::with_capacity(steps.len());
        for (step, reply) in steps.iter().zip(self.ask(&steps)?) {
            match reply {
                SharedFileReply::Locked(sample) => samples.push(*sample),
                SharedFileReply::Failed {
                    action: SharedFileAction::Lock,
                    failure,
                } => return Ok(Err(failure)),
                SharedFileReply::Failed { action, failure } => {
                    return Err(SharedFileFailure::Step {
                        pod: step.pod,
                        action,
                        failure,
                    });
                }
                SharedFileReply::Done
                | SharedFileReply::Wrong(_)
                | SharedFileReply::DirectRefused(_) => {}
            }
        }
        Ok(Ok(lock_figures(lock, holders, &samples)))
    }
}

fn consistency_of(step: &SharedFileStep) -> FileConsistency {
    match step {
        SharedFileStep::Write { consistency, .. } | SharedFileStep::Verify { consistency, .. } => {
            *consistency
        }
        SharedFileStep::Create
        | SharedFileStep::Lock { .. }
        | SharedFileStep::Close
        | SharedFileStep::Remove => FileConsistency::CloseToOpen,
    }
}

fn verified_bytes(read: &MemberStep) -> u64 {
    match &read.step {
        SharedFileStep::Verify { contents, .. } => contents
            .iter()
            .map(|content| u64::from(content.bytes))
            .sum(),
        _ => 0,
    }
}

fn lock_figures(lock: FileLock, pods: u16, samples: &[LockSample]) -> LockFigures {
    let (mut lock_ns, mut unlock_ns) = (Histogram::default(), Histogram::default());
    let mut locks_per_second = 0.0;
    for sample in samples {
        lock_ns.merge(&sample.lock_ns);
        unlock_ns.merge(&sample.unlock_ns);
        if sample.elapsed_ns > 0 {
            locks_per_second += sample.lock_ns.total() as f64 / (sample.elapsed_ns as f64 / 1e9);
        }
    }
    LockFigures {
        lock,
        pods,
        locks_per_second,
        lock_latency: latency(&lock_ns),
        unlock_latency: latency(&unlock_ns),
    }
}

fn latency(histogram: &Histogram) -> LockLatency {
    let at = |percent| histogram.percentile(percent).unwrap_or(0);
    LockLatency {
        p50_ns: at(50.0),
        p99_ns: at(99.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_file::{RangeContent, WrongByteOrigin};

    /// A file in memory that all pods see.
    #[derive(Default)]
    struct MemoryFile {
        bytes: Vec<u8>,
        /// A pod that reads the file as it was when it first read it.
        stale_reader: Option<u16>,
        stale: Vec<u8>,
        refuses_direct: bool,
        refuses_locks: bool,
    }

    impl MemoryFile {
        fn write(&mut self, content: &RangeContent) -> SharedFileReply {
            let start = content.offset_bytes as usize;
            let end = start + content.bytes as usize;
            self.bytes.resize(self.bytes.len().max(end), 0);
            content.fill(&mut self.bytes[start..end]);
            SharedFileReply::Done
        }

        fn verify(&mut self, pod: u16, contents: &[RangeContent]) -> SharedFileReply {
            let is_stale = self.stale_reader == Some(pod);
            if is_stale && self.stale.is_empty() {
                self.stale.clone_from(&self.bytes);
            }
            let seen = if is_stale { &self.stale } else { &self.bytes };
            let find = |content: &RangeContent| {
                let start = content.offset_bytes as usize;
                content.find_wrong_byte(&seen[start..start + content.bytes as usize])
            };
            let wrong = contents.iter().find_map(find);
            wrong.map_or(SharedFileReply::Done, SharedFileReply::Wrong)
        }

        fn perform(&mut self, MemberStep { pod, step }: &MemberStep) -> SharedFileReply {
            let refused = SystemFailure::Errno(22);
            match step {
                SharedFileStep::Create | SharedFileStep::Close | SharedFileStep::Remove => {
                    SharedFileReply::Done
                }
                SharedFileStep::Write {
                    consistency: FileConsistency::Immediate,
                    ..
                } if self.refuses_direct => SharedFileReply::DirectRefused(refused),
                SharedFileStep::Write { content, .. } => self.write(content),
                SharedFileStep::Verify { contents, .. } => self.verify(*pod, contents),
                SharedFileStep::Lock { .. } if self.refuses_locks => SharedFileReply::Failed {
                    action: SharedFileAction::Lock,
                    failure: refused,
                },
                SharedFileStep::Lock { .. } => {
                    let mut sample = LockSample {
                        lock_ns: Histogram::default(),
                        unlock_ns: Histogram::default(),
                        elapsed_ns: 1_000_000_000,
                    };
                    sample.lock_ns.record_n(1000, 50);
                    sample.unlock_ns.record_n(100, 50);
                    SharedFileReply::Locked(Box::new(sample))
                }
            }
        }

        fn check(mut self, pods: u16) -> Result<SharedFileResult, SharedFileFailure> {
            check_shared_file(pods, &mut |steps| {
                Ok(steps.iter().map(|step| self.perform(step)).collect())
            })
        }
    }

    #[test]
    fn coherent_file_passes_all_checks_with_lock_figures() {
        let result = MemoryFile::default().check(3).unwrap();
        assert_eq!(result.checks.len(), 4);
        assert!(result.checks.iter().all(|check| check.verified_bytes > 0));
        // Four times one write of each pod, or of each in turn.
        assert!(result.checks.iter().all(|check| check.writes == 12));
        let rates: Vec<_> = (result.locks.iter())
            .map(|figures| (figures.lock, figures.pods, figures.locks_per_second))
            .collect();
        let expected = [
            (FileLock::Flock, 1, 50.0),
            (FileLock::Flock, 3, 150.0),
            (FileLock::Fcntl, 1, 50.0),
            (FileLock::Fcntl, 3, 150.0),
        ];
        assert_eq!(rates, expected);
        assert!(result.locks[0].lock_latency.p50_ns > 900);
        assert_eq!(
            (result.direct_refused, result.refused_locks),
            (None, vec![])
        );
    }

    #[test]
    fn stale_reader_fails_with_offset_and_both_pods() {
        let file = MemoryFile {
            stale_reader: Some(1),
            ..MemoryFile::default()
        };
        let Err(SharedFileFailure::Wrong { reader, wrong, .. }) = file.check(3) else {
            panic!("stale data pass");
        };
        assert_eq!(
            (reader, wrong.writer),
            (1, 0),
            "pod 0 overwrites all ranges next"
        );
        let is_earlier = matches!(wrong.origin, WrongByteOrigin::EarlierWrite { .. });
        assert!(is_earlier && wrong.generation == 2, "{wrong:?}");
        let names = ["a", "b", "c"].map(str::to_owned);
        let failure = SharedFileFailure::Wrong {
            reader,
            wrong,
            consistency: FileConsistency::CloseToOpen,
        };
        let error = failure.into_run_error("sc://nfs", &names);
        let problem = SharedFileProblem::WrongByte {
            writer: "a".to_owned(),
            reader: "b".to_owned(),
            wrong,
            consistency: FileConsistency::CloseToOpen,
        };
        assert_eq!(error, problem.into_run_error("sc://nfs"));
    }

    #[test]
    fn pods_write_at_the_same_time_only_with_direct_io() {
        let mut file = MemoryFile::default();
        let mut writers_max = (0, 0);
        let checked = check_shared_file(3, &mut |steps| {
            let writers = |wanted: FileConsistency| {
                let is_write = |step: &&MemberStep| match step.step {
                    SharedFileStep::Write { consistency, .. } => consistency == wanted,
                    _ => false,
                };
                steps.iter().filter(is_write).count()
            };
            writers_max = (
                writers(FileConsistency::CloseToOpen).max(writers_max.0),
                writers(FileConsistency::Immediate).max(writers_max.1),
            );
            Ok(steps.iter().map(|step| file.perform(step)).collect())
        });
        assert!(checked.is_ok());
        assert_eq!(writers_max, (1, 3));
    }

    #[test]
    fn refused_direct_io_and_locks_are_part_of_the_result() {
        let file = MemoryFile {
            refuses_direct: true,
            refuses_locks: true,
            ..MemoryFile::default()
        };
        let result = file.check(2).unwrap();
        let is_close_to_open =
            |check: &ConsistencyCheck| check.consistency == FileConsistency::CloseToOpen;
        assert!(result.checks.len() == 2 && result.checks.iter().all(is_close_to_open));
        assert_eq!(result.direct_refused, Some(SystemFailure::Errno(22)));
        assert_eq!((result.locks.len(), result.refused_locks.len()), (0, 2));
    }

    #[test]
    fn failed_call_names_its_pod() {
        let failed = check_shared_file(2, &mut |steps| {
            let fail = |_: &MemberStep| SharedFileReply::Failed {
                action: SharedFileAction::Create,
                failure: SystemFailure::Errno(28),
            };
            Ok(steps.iter().map(fail).collect())
        });
        let Err(SharedFileFailure::Step { pod, action, .. }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!((pod, action), (0, SharedFileAction::Create));
    }
}
