//! Measurements of one worker, by direction, without allocation.
//!
//! I/Os of one submission and one reap share their time stamps, so their latencies are equal. They
//! are counted as one group, which makes full statistics nearly free at high depth.

mod single_counts;

use crate::io::{Op, Slot};
use crate::worker::counters::{LatencyCounters, WorkerCounters};
use iosonde_job::plan::{Direction, MeasureOptions, PerDirection};
use iosonde_result::run::{DirectionStats, RampResult, SyncStats};
pub(crate) use single_counts::{RoundTimes, SingleCompletion};
use std::sync::Arc;

/// Adjacent completions with the same time stamps.
#[derive(Debug, Clone, Copy)]
struct CompletionGroup {
    op: Op,
    start_ns: u64,
    issue_ns: u64,
    ios: u64,
    bytes: u64,
    prepared_ns: u64,
}

const NO_GROUP: CompletionGroup = CompletionGroup {
    op: Op::Read,
    start_ns: u64::MAX,
    issue_ns: u64::MAX,
    ios: 0,
    bytes: 0,
    prepared_ns: u64::MAX,
};

#[derive(Debug)]
#[repr(C)]
struct DirectionCounters {
    clat: LatencyCounters,
    lat: LatencyCounters,
    slat: LatencyCounters,
    ios: u64,
    bytes: u64,
    issued: u64,
    short: u64,
    dropped: u64,
}

impl DirectionCounters {
    fn new() -> DirectionCounters {
        DirectionCounters {
            issued: 0,
            ios: 0,
            bytes: 0,
            short: 0,
            dropped: 0,
            slat: LatencyCounters::default(),
            clat: LatencyCounters::default(),
            lat: LatencyCounters::default(),
        }
    }
}

/// Measurements of one worker. The fields that each step uses come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Recorder {
    group: CompletionGroup,
    shared: Arc<WorkerCounters>,
    /// Earlier I/Os are not measured (`ramp_time`).
    measure_from_ns: u64,
    /// I/Os submitted before this time were in flight during a stop of the process.
    resumed_ns: u64,
    slat: bool,
    clat: bool,
    lat: bool,
    /// Reaps by number of completions, in the buckets of `submit`.
    pub(crate) complete: [u64; 7],
    /// Submissions by number of I/Os: 0, up to 4, 8, 16, 32, 64, and more.
    pub(crate) submit: [u64; 7],
    /// I/Os by depth at submission: 1, 2, 4, 8, 16, 32, 64 and more.
    pub(crate) level: [u64; 7],
    directions: [DirectionCounters; 3],
    syncs: SyncCounts,
    sync_latency: LatencyCounters,
    /// Counts of the ramp.
    ramp: Option<Box<RampCounters>>,
    /// Total latencies from the actual start, if `lat` counts from the intended start.
    started: Option<Box<[LatencyCounters; 3]>>,
}

/// Syncs by kind.
#[derive(Debug, Default, Clone, Copy)]
struct SyncCounts {
    all: u64,
    other_than_fsync: u64,
}

impl SyncCounts {
    fn add(&mut self, group: CompletionGroup) {
        self.all += group.ios;
        if group.op != Op::Fsync {
            self.other_than_fsync += group.ios;
        }
    }
}

/// Counts of a ramp, in case it does not end. [`WorkerCounters`] counts the bytes.
#[derive(Debug, Default)]
struct RampCounters {
    issued: [u64; 3],
    syncs: SyncCounts,
    level: [u64; 7],
    submit: [u64; 7],
    complete: [u64; 7],
}

impl Recorder {
    /// Records the latencies in `measure` for I/Os that start at `measure_from_ns` or later.
    pub(crate) fn new(
        measure: &MeasureOptions,
        measure_from_ns: u64,
        shared: Arc<WorkerCounters>,
    ) -> Recorder {
        Recorder {
            measure_from_ns,
            resumed_ns: 0,
            slat: measure.slat,
            clat: measure.clat,
            lat: measure.lat,
            directions: [
                DirectionCounters::new(),
                DirectionCounters::new(),
                DirectionCounters::new(),
            ],
            syncs: SyncCounts::default(),
            sync_latency: LatencyCounters::default(),
            ramp: (measure_from_ns > 0).then(Box::default),
            started: None,
            level: [0; 7],
            submit: [0; 7],
            complete: [0; 7],
            group: NO_GROUP,
            shared,
        }
    }

    /// Also records total latencies from the actual start, for jobs whose I/Os have a due time.
    pub(crate) fn with_due_times(mut self, has_due_times: bool) -> Recorder {
        self.started = (has_due_times && self.lat).then(Box::default);
        self
    }

    /// Sets the end of the last process stop: the latency of I/Os submitted before it is unknown.
    /// The I/Os count, as refilling the queue costs the time that completing in the stop saved.
    #[inline(always)]
    pub(crate) fn resumed(&mut self, resumed_ns: u64) {
        self.resumed_ns = resumed_ns;
    }

    /// Returns the start of the measured time.
    pub(crate) fn measure_from_ns(&self) -> u64 {
        self.measure_from_ns
    }

    /// Counts a submitted batch that was prepared at `prepared_ns`; `depth` I/Os are in flight now.
    #[inline(always)]
    pub(crate) fn submitted(
        &mut self,
        counts: &[u64; 3],
        prepared_ns: u64,
        issue_ns: u64,
        depth: u32,
        timed: bool,
    ) {
        if prepared_ns < self.measure_from_ns {
            return self.submitted_in_ramp(counts, depth);
        }
        let batch = counts[0] + counts[1] + counts[2];
        self.level[level_index(depth)] += batch;
        self.submit[batch_index(batch)] += 1;
        debug_assert!(
            issue_ns >= prepared_ns || !timed,
            "an I/O is prepared before it is issued"
        );
        let slat_ns = (timed && self.slat).then(|| issue_ns.saturating_sub(prepared_ns));
        for (direction, count) in counts.iter().enumerate() {
            if *count > 0 {
                self.count_issued(direction, *count, slat_ns);
            }
        }
    }

    /// Counts I/Os issued in one direction. Not inlined: the directions share one copy in the L1
    /// cache.
    #[inline(never)]
    fn count_issued(&mut self, direction: usize, count: u64, slat_ns: Option<u64>) {
        let tally = &mut self.directions[direction];
        tally.issued += count;
        if let Some(slat_ns) = slat_ns {
            tally.slat.record_n(slat_ns, count);
        }
    }

    #[cold]
    fn submitted_in_ramp(&mut self, counts: &[u64; 3], depth: u32) {
        if let Some(ramp) = &mut self.ramp {
            let batch = counts.iter().sum();
            ramp.level[level_index(depth)] += batch;
            ramp.submit[batch_index(batch)] += 1;
            for (issued, count) in ramp.issued.iter_mut().zip(counts) {
                *issued += count;
            }
        }
    }

    #[cold]
    fn reaped_in_ramp(&mut self, count: usize) {
        if let Some(ramp) = &mut self.ramp {
            ramp.complete[batch_index(count as u64)] += 1;
        }
    }

    /// Returns the I/O of the ramp, which began at `start_ns` and has not ended by `now_ns`.
    pub(crate) fn ramp_result(&self, start_ns: u64, now_ns: u64) -> Option<Box<RampResult>> {
        let ramp = self.ramp.as_ref()?;
        let moved = PerDirection::from_fn(|direction| self.shared.counts(direction));
        Some(Box::new(RampResult {
            io_bytes: PerDirection::from_fn(|direction| moved[direction].bytes),
            total_ios: PerDirection::from_fn(|direction| ramp.issued[direction as usize]),
            runtime_ns: PerDirection::from_fn(|direction| match moved[direction].ios {
                0 => 0,
                _ => now_ns.saturating_sub(start_ns),
            }),
            syncs: ramp.syncs.all,
            syncs_other_than_fsync: ramp.syncs.other_than_fsync,
            iodepth_level: ramp.level,
            iodepth_submit: ramp.submit,
            iodepth_complete: ramp.complete,
        }))
    }

    /// Counts a slot that completed in full. [`Recorder::reaped`] must follow.
    #[inline(always)]
    pub(crate) fn completed(&mut self, slot: &Slot, now_ns: u64) {
        let group = &mut self.group;
        if group.issue_ns == slot.issue_ns && group.start_ns == slot.start_ns && group.op == slot.op
        {
            group.ios += 1;
            group.bytes += u64::from(slot.len);
        } else {
            self.close_group(now_ns);
            self.group = CompletionGroup {
                op: slot.op,
                start_ns: slot.start_ns,
                issue_ns: slot.issue_ns,
                ios: 1,
                bytes: u64::from(slot.len),
                prepared_ns: slot.prepared_ns,
            };
        }
    }

    /// Ends one reap, after all its completions were counted.
    #[inline(always)]
    pub(crate) fn reaped(&mut self, count: usize, now_ns: u64) {
        self.close_group(now_ns);
        self.group = NO_GROUP;
        if now_ns >= self.measure_from_ns {
            self.complete[batch_index(count as u64)] += 1;
        } else {
            self.reaped_in_ramp(count);
        }
    }

    #[inline(always)]
    fn close_group(&mut self, now_ns: u64) {
        if self.group.ios > 0 {
            self.count_group(now_ns);
        }
    }

    /// Counts the I/Os of the group. Not inlined: the callers share one copy in the L1 cache.
    #[inline(never)]
    fn count_group(&mut self, now_ns: u64) {
        let group = self.group;
        if group.issue_ns < self.resumed_ns {
            return self.count_without_latency(group);
        }
        let total_ns = now_ns.saturating_sub(group.start_ns);
        let Some(direction) = group.op.direction() else {
            return self.synced(group, total_ns);
        };
        self.shared.add(direction, group.ios, group.bytes);
        if self.lat || self.clat {
            self.shared.latency.record_n(total_ns, group.ios);
            self.shared.latency_sum_ns.add(total_ns * group.ios);
        }
        if group.start_ns < self.measure_from_ns {
            return;
        }
        let tally = &mut self.directions[direction as usize];
        tally.ios += group.ios;
        tally.bytes += group.bytes;
        if self.clat {
            tally
                .clat
                .record_n(now_ns.saturating_sub(group.issue_ns), group.ios);
        }
        if self.lat {
            tally.lat.record_n(total_ns, group.ios);
            if let Some(started) = &mut self.started {
                let started_ns = now_ns.saturating_sub(group.prepared_ns);
                started[direction as usize].record_n(started_ns, group.ios);
            }
        }
    }

    #[cold]
    fn count_without_latency(&mut self, group: CompletionGroup) {
        let is_measured = group.start_ns >= self.measure_from_ns;
        let Some(direction) = group.op.direction() else {
            if is_measured {
                self.syncs.add(group);
            }
            return;
        };
        self.shared.add(direction, group.ios, group.bytes);
        if is_measured {
            let tally = &mut self.directions[direction as usize];
            tally.ios += group.ios;
            tally.bytes += group.bytes;
        }
    }

    #[cold]
    fn synced(&mut self, group: CompletionGroup, total_ns: u64) {
        if self.lat {
            self.shared.synced(total_ns, group.ios);
        }
        if group.start_ns >= self.measure_from_ns {
            self.syncs.add(group);
            if self.lat {
                self.sync_latency.record_n(total_ns, group.ios);
            }
        } else if let Some(ramp) = &mut self.ramp {
            ramp.syncs.add(group);
        }
    }

    /// Counts an I/O that transferred less than requested and is continued.
    pub(crate) fn short(&mut self, direction: Direction) {
        self.directions[direction as usize].short += 1;
    }

    /// Counts an I/O that transferred 0 bytes.
    pub(crate) fn dropped(&mut self, direction: Direction) {
        self.directions[direction as usize].dropped += 1;
    }

    /// Returns the number of I/Os measured so far, in all directions.
    pub(crate) fn measured_ios(&self) -> u64 {
        self.directions.iter().map(|tally| tally.ios).sum()
    }

    /// Returns the number of I/Os measured so far in this direction.
    pub(crate) fn ios(&self, direction: Direction) -> u64 {
        self.directions[direction as usize].ios
    }

    /// Returns the statistics without samples. `runtime_ns` is set for directions with I/O.
    pub(crate) fn results(
        &self,
        runtime_ns: PerDirection<u64>,
    ) -> (PerDirection<DirectionStats>, SyncStats) {
        let directions = PerDirection::from_fn(|direction| {
            let tally = &self.directions[direction as usize];
            let (ios, issued) = (tally.ios, tally.issued);
            assert!(ios <= issued, "{ios} I/Os of {issued} issued completed");
            for latencies in [&tally.clat, &tally.lat] {
                assert!(
                    latencies.count() <= ios,
                    "a latency belongs to an I/O that completed"
                );
            }
            assert!(
                tally.slat.count() <= issued,
                "a latency belongs to an I/O that was issued"
            );
            DirectionStats {
                io_bytes: tally.bytes,
                total_ios: tally.issued,
                short_ios: tally.short,
                drop_ios: tally.dropped,
                runtime_ns: if tally.ios > 0 {
                    runtime_ns[direction]
                } else {
                    0
                },
                slat: tally.slat.stats(),
                clat: tally.clat.stats(),
                lat: tally.lat.stats(),
                started_lat: (self.started.as_ref())
                    .map(|started| started[direction as usize].stats())
                    .filter(|stats| stats.moments.count > 0),
                ..DirectionStats::default()
            }
        });
        (
            directions,
            SyncStats {
                total_ios: self.syncs.all,
                other_than_fsync: self.syncs.other_than_fsync,
                lat: self.sync_latency.stats(),
            },
        )
    }
}

/// Returns the bucket of a depth: its power of two, up to 64.
#[inline(always)]
fn level_index(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}

/// Returns the bucket of a batch size: 0, up to 4, 8, 16, 32, 64, and more.
#[inline(always)]
fn batch_index(count: u64) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_in_flight_during_a_stop_has_no_latency() {
        let shared = Arc::new(WorkerCounters::default());
        let mut recorder = Recorder::new(&MeasureOptions::default(), 0, shared.clone());
        let slot = |issue_ns: u64| Slot {
            op: Op::Read,
            len: 4096,
            start_ns: issue_ns,
            issue_ns,
            ..Slot::IDLE
        };
        recorder.submitted(&[2, 0, 0], 900, 900, 2, false);
        recorder.resumed(1_000);
        recorder.completed(&slot(900), 1_005);
        recorder.completed(&slot(1_000), 1_005);
        recorder.reaped(2, 1_005);
        let (directions, _) = recorder.results(PerDirection::from_value(1));
        assert_eq!(recorder.ios(Direction::Read), 2);
        assert_eq!(directions.read.io_bytes, 8192);
        let latency = &directions.read.lat.moments;
        assert_eq!((latency.count, latency.max), (1, 5.0));
        assert_eq!(shared.counts(Direction::Read).ios, 2);
    }

    #[test]
    fn depth_and_batch_indices_follow_powers_of_two() {
        assert_eq!(
            [1, 2, 3, 4, 31, 32, 63, 64, 1000].map(level_index),
            [0, 1, 1, 2, 4, 5, 5, 6, 6]
        );
        assert_eq!(
            [0, 1, 4, 5, 16, 17, 64, 65].map(batch_index),
            [0, 1, 1, 2, 3, 4, 5, 6]
        );
    }
}
