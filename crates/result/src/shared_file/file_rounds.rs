//! Rounds of the check of a shared file: the steps of the pods that write and then read.

use super::{FileConsistency, FileLock, RangeAssignment, RangeContent, SharedFileStep};

/// Length of the range of one pod: a multiple of every block size.
const RANGE_BYTES: u32 = 64 << 10;
/// Largest number of pods. A run with more pods is refused.
pub const MEMBERS_MAX: u16 = 4096;
/// Most neighbours whose ranges a pod reads, and most pods that write all ranges in turn. It keeps
/// the time of the check from growing with the square of the number of pods.
const NEIGHBOURS_MAX: u16 = 16;
/// Number of times that the ranges are written in each way. A reader has read the contents of the
/// time before, which its cache may return again.
const REPETITIONS: u16 = 4;
/// Duration of a lock step.
const LOCK_DURATION_MS: u64 = 1000;

// The numbers of all writes of a check fit into 16 bits.
const _: () = assert!(2 * REPETITIONS as u32 * (1 + NEIGHBOURS_MAX as u32) < u16::MAX as u32);

/// A step and the pod that performs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStep {
    /// Number of the pod.
    pub pod: u16,
    /// The step.
    pub step: SharedFileStep,
}

/// Writes of a round, and the reads that follow once all writes are complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WriteRound {
    pub(super) assignment: RangeAssignment,
    pub(super) writes: Vec<MemberStep>,
    pub(super) reads: Vec<MemberStep>,
}

/// Returns the size of the file.
pub(super) fn file_bytes(pods: u16) -> u64 {
    u64::from(pods) * u64::from(RANGE_BYTES)
}

/// Returns the rounds for one promise. `generation` is the number of the latest write.
pub(super) fn consistency_rounds(
    pods: u16,
    consistency: FileConsistency,
    generation: &mut u16,
) -> Vec<WriteRound> {
    debug_assert!((2..=MEMBERS_MAX).contains(&pods));
    let mut rounds = Vec::new();
    let mut next = || {
        *generation += 1;
        *generation
    };
    for _ in 0..REPETITIONS {
        rounds.push(disjoint_round(pods, consistency, next()));
        for writer in 0..pods.min(NEIGHBOURS_MAX) {
            rounds.push(contended_round(pods, consistency, writer, next()));
        }
    }
    rounds
}

/// Each pod writes its range. Each then reads the ranges of the next pods.
fn disjoint_round(pods: u16, consistency: FileConsistency, generation: u16) -> WriteRound {
    let content = |writer: u16| RangeContent {
        offset_bytes: u64::from(writer) * u64::from(RANGE_BYTES),
        bytes: RANGE_BYTES,
        writer,
        generation,
    };
    let write = |pod| MemberStep {
        pod,
        step: SharedFileStep::Write {
            content: content(pod),
            consistency,
        },
    };
    let neighbours = NEIGHBOURS_MAX.min(pods - 1);
    let read = |pod| MemberStep {
        pod,
        step: SharedFileStep::Verify {
            contents: (1..=neighbours)
                .map(|distance| content((pod + distance) % pods))
                .collect(),
            consistency,
        },
    };
    WriteRound {
        assignment: RangeAssignment::Disjoint,
        writes: (0..pods).map(write).collect(),
        reads: (0..pods).map(read).collect(),
    }
}

/// One pod writes all ranges, or the first ones. All others read them.
fn contended_round(
    pods: u16,
    consistency: FileConsistency,
    writer: u16,
    generation: u16,
) -> WriteRound {
    let content = RangeContent {
        offset_bytes: 0,
        bytes: RANGE_BYTES * u32::from(pods.min(NEIGHBOURS_MAX)),
        writer,
        generation,
    };
    let read = |pod| MemberStep {
        pod,
        step: SharedFileStep::Verify {
            contents: vec![content],
            consistency,
        },
    };
    WriteRound {
        assignment: RangeAssignment::Contended,
        writes: vec![MemberStep {
            pod: writer,
            step: SharedFileStep::Write {
                content,
                consistency,
            },
        }],
        reads: (0..pods).filter(|pod| *pod != writer).map(read).collect(),
    }
}

/// Returns the steps of the first pods that take a lock at the same time.
pub(super) fn lock_steps(lock: FileLock, pods: u16) -> Vec<MemberStep> {
    let step = |pod| MemberStep {
        pod,
        step: SharedFileStep::Lock {
            lock,
            duration_ms: LOCK_DURATION_MS,
        },
    };
    (0..pods).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(pods: u16) -> Vec<WriteRound> {
        consistency_rounds(pods, FileConsistency::CloseToOpen, &mut 0)
    }

    /// Returns the contents that the steps write or expect, with their pods.
    fn contents(steps: &[MemberStep]) -> Vec<(u16, RangeContent)> {
        let of_step = |step: &MemberStep| match &step.step {
            SharedFileStep::Write { content, .. } => vec![(step.pod, *content)],
            SharedFileStep::Verify { contents, .. } => contents
                .iter()
                .map(|content| (step.pod, *content))
                .collect(),
            other => panic!("{other:?}"),
        };
        steps.iter().flat_map(of_step).collect()
    }

    #[test]
    fn disjoint_ranges_cover_the_file_without_overlap() {
        for pods in [2, 5, 40] {
            let round = disjoint_round(pods, FileConsistency::Immediate, 1);
            let written = contents(&round.writes);
            let mut end_bytes = 0;
            for (pod, content) in written {
                assert_eq!((content.offset_bytes, content.writer), (end_bytes, pod));
                end_bytes += u64::from(content.bytes);
            }
            assert_eq!(end_bytes, file_bytes(pods));
        }
    }

    #[test]
    fn readers_never_verify_their_own_writes() {
        for pods in [2, 3, 17, 40] {
            for round in rounds(pods) {
                let read = contents(&round.reads);
                assert!(read.iter().all(|(pod, content)| *pod != content.writer));
                let written: Vec<_> = contents(&round.writes)
                    .into_iter()
                    .map(|(_, c)| c)
                    .collect();
                assert!(read.iter().all(|(_, content)| written.contains(content)));
                let is_read =
                    |content: &RangeContent| read.iter().any(|(_, other)| other == content);
                assert!(written.iter().all(is_read), "each write is read");
            }
        }
    }

    #[test]
    fn write_numbers_increase_over_both_promises() {
        let mut generation = 0;
        let mut all = consistency_rounds(3, FileConsistency::CloseToOpen, &mut generation);
        all.extend(consistency_rounds(
            3,
            FileConsistency::Immediate,
            &mut generation,
        ));
        let numbers: Vec<u16> = all
            .iter()
            .map(|round| contents(&round.writes)[0].1.generation)
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert_eq!(numbers.first(), Some(&1));
        assert_eq!(numbers.len(), 2 * 4 * (1 + 3));
    }

    #[test]
    fn rounds_of_many_pods_are_bounded() {
        let rounds = rounds(1000);
        assert_eq!(rounds.len(), 4 * (1 + 16));
        let reads = contents(&rounds[0].reads);
        assert_eq!(reads.len(), 1000 * 16);
    }
}
