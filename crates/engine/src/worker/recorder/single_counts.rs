//! Counts of I/Os that were submitted and reaped one by one or in rounds, some at a time.

use super::{CompletionGroup, Recorder, batch_index, level_index};
use crate::io::{Op, Slot};
use iosonde_job::plan::Direction;
use iosonde_workload::Io;

/// A full completion of an I/O that was alone in flight, with its time stamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SingleCompletion {
    pub(crate) start_ns: u64,
    pub(crate) issue_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) len: u32,
    pub(crate) op: Op,
}

/// Time stamps of I/Os that one call submitted, and whose completions were reaped together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTimes {
    pub(crate) start_ns: u64,
    pub(crate) issue_ns: u64,
    pub(crate) end_ns: u64,
}

impl Recorder {
    /// Counts reads and writes that completed in full, with nothing else in flight, as
    /// [`Recorder::submitted`], [`Recorder::completed`] and [`Recorder::reaped`] count them.
    pub(crate) fn count_round(&mut self, times: &RoundTimes, ios: &[Io]) {
        let mut counts = [0; 3];
        for direction in ios.iter().filter_map(|io| io.op.direction()) {
            counts[direction as usize] += 1;
        }
        let (start_ns, issue_ns) = (times.start_ns, times.issue_ns);
        self.submitted(&counts, start_ns, issue_ns, ios.len() as u32, true);
        for group in ios.chunk_by(|first, second| first.op == second.op) {
            self.close_group(times.end_ns);
            self.group = CompletionGroup {
                op: group[0].op,
                start_ns,
                issue_ns,
                ios: group.len() as u64,
                bytes: group.iter().map(|io| u64::from(io.len)).sum(),
                prepared_ns: start_ns,
            };
        }
        self.reaped(ios.len(), times.end_ns);
    }

    /// Counts completions as [`Recorder::submitted`], [`Recorder::completed`] and
    /// [`Recorder::reaped`] count them one by one. `timed`: submission latency is measured.
    #[inline(never)]
    pub(crate) fn count_singles(&mut self, completions: &[SingleCompletion], timed: bool) {
        for row in completions.chunk_by(|first, second| first.op == second.op) {
            // The time stamps of a row ascend, so the first I/O decides for the others.
            let first = row[0];
            let is_usual =
                first.issue_ns >= self.resumed_ns && first.start_ns >= self.measure_from_ns;
            match first.op.direction() {
                Some(direction) if is_usual && self.started.is_none() => {
                    self.count_row(direction, row, timed);
                }
                _ => {
                    for it in row {
                        self.count_single(it, timed);
                    }
                }
            }
        }
    }

    /// Counts I/Os of one direction, all of which are measured.
    fn count_row(&mut self, direction: Direction, row: &[SingleCompletion], timed: bool) {
        debug_assert!(
            row.is_sorted_by_key(|it| it.start_ns),
            "an I/O follows the other"
        );
        let ios = row.len() as u64;
        let (mut bytes, mut latency_sum_ns) = (0, 0);
        // Read once: stores to histograms could change the fields, as far as the compiler knows.
        let (slat, clat, lat) = (timed && self.slat, self.clat, self.lat);
        let tally = &mut self.directions[direction as usize];
        for it in row {
            let total_ns = it.end_ns.saturating_sub(it.start_ns);
            bytes += u64::from(it.len);
            latency_sum_ns += total_ns;
            if slat {
                tally.slat.record_n(it.issue_ns - it.start_ns, 1);
            }
            if clat {
                let latency_ns = it.end_ns.saturating_sub(it.issue_ns);
                tally.clat.record_n(latency_ns, 1);
            }
            if lat {
                tally.lat.record_n(total_ns, 1);
            }
            if lat || clat {
                self.shared.latency.record_n(total_ns, 1);
            }
        }
        tally.ios += ios;
        tally.issued += ios;
        tally.bytes += bytes;
        self.level[level_index(1)] += ios;
        self.submit[batch_index(1)] += ios;
        self.complete[batch_index(1)] += ios;
        self.shared.add(direction, ios, bytes);
        if lat || clat {
            self.shared.latency_sum_ns.add(latency_sum_ns);
        }
    }

    /// Counts one I/O in the general way.
    #[cold]
    fn count_single(&mut self, it: &SingleCompletion, timed: bool) {
        let mut counts = [0; 3];
        if let Some(direction) = it.op.direction() {
            counts[direction as usize] = 1;
        }
        self.submitted(&counts, it.start_ns, it.issue_ns, 1, timed);
        let slot = Slot {
            start_ns: it.start_ns,
            issue_ns: it.issue_ns,
            prepared_ns: it.start_ns,
            len: it.len,
            op: it.op,
            ..Slot::IDLE
        };
        self.completed(&slot, it.end_ns);
        self.reaped(1, it.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::counters::WorkerCounters;
    use iosonde_job::plan::{MeasureOptions, PerDirection};
    use std::sync::Arc;

    const OPS: [Op; 6] = [Op::Read, Op::Read, Op::Write, Op::Fsync, Op::Read, Op::Trim];

    fn completions() -> Vec<SingleCompletion> {
        let completion = |(number, op): (u64, Op)| SingleCompletion {
            start_ns: 1_000 * number,
            issue_ns: 1_000 * number + 10 * number,
            end_ns: 1_000 * number + 700 + 13 * number,
            len: 4096,
            op,
        };
        (1..).zip(OPS).map(completion).collect()
    }

    /// The statistics as text, and the counts that other threads see.
    fn counted(resumed_ns: u64, timed: bool, in_rows: bool) -> (String, Vec<(u64, u64)>) {
        let shared = Arc::new(WorkerCounters::default());
        let mut recorder = Recorder::new(&MeasureOptions::default(), 0, shared.clone());
        recorder.resumed(resumed_ns);
        if in_rows {
            recorder.count_singles(&completions(), timed);
        } else {
            for it in completions() {
                recorder.count_single(&it, timed);
            }
        }
        let (directions, syncs) = recorder.results(PerDirection::from_value(1));
        let indices = (recorder.level, recorder.submit, recorder.complete);
        let latency_sum_ns = shared.latency_sum_ns.get();
        let text = format!("{directions:?} {syncs:?} {indices:?} {latency_sum_ns}");
        let counts = Direction::ALL.map(|direction| {
            let counts = shared.counts(direction);
            (counts.ios, counts.bytes)
        });
        (text, counts.to_vec())
    }

    #[test]
    fn rows_count_as_single_ios_do() {
        // The second number is within the first row: that I/O was in flight during a stop.
        for resumed_ns in [0, 1_011] {
            for timed in [true, false] {
                let in_rows = counted(resumed_ns, timed, true);
                assert_eq!(in_rows, counted(resumed_ns, timed, false));
                assert_eq!(in_rows.1[0], (3, 3 * 4096));
            }
        }
    }
}
