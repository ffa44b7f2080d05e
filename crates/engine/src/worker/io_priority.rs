//! `cmdprio`: sets the priority of a share of the I/Os, and keeps the latencies of each priority.

use crate::io::Slot;
use crate::sys::thread::ioprio_bits;
use crate::worker::counters::LatencyCounters;
use iosonde_job::plan::{Direction, IoPriority, Job, PerDirection};
use iosonde_result::run::PriorityLatency;
use iosonde_workload::Op;
use iosonde_workload::rng::Rng;

/// A share of the I/Os and its priority.
#[derive(Debug, Clone, Copy)]
struct PriorityShare {
    /// Block size of the share; `None` stands for any.
    block_bytes: Option<u64>,
    percent: u8,
    priority: IoPriority,
}

/// Latencies of one priority in one direction.
#[derive(Debug)]
struct PriorityLatencies {
    bits: u16,
    priority: IoPriority,
    latency: LatencyCounters,
}

/// Sets the priorities of I/Os, and keeps their latencies by priority.
#[derive(Debug)]
pub(crate) struct Cmdprio {
    shares: PerDirection<Vec<PriorityShare>>,
    kept: [Vec<PriorityLatencies>; 3],
    /// Whether total instead of completion latencies are kept (`lat_percentiles`).
    total: bool,
    measure_from_ns: u64,
    rng: Rng,
}

impl Cmdprio {
    /// Returns the priorities of a job's I/Os, or `None` if all I/Os have the job's priority.
    pub(crate) fn new(job: &Job, measure_from_ns: u64, rng: Rng) -> Option<Cmdprio> {
        let shares = PerDirection::from_fn(|direction| shares(job, direction));
        if shares.iter().all(|(_, shares)| shares.is_empty()) {
            return None;
        }
        let own = job.io.ioprio.unwrap_or(IoPriority { class: 0, level: 0 });
        let kept = Direction::ALL.map(|direction| {
            // Slots of the job's own priority carry none: the thread's priority applies.
            let mut kept = vec![PriorityLatencies::new(0, own)];
            for share in &shares[direction] {
                let bits = ioprio_bits(share.priority);
                if !kept.iter().any(|known| known.bits == bits) {
                    kept.push(PriorityLatencies::new(bits, share.priority));
                }
            }
            kept
        });
        Some(Cmdprio {
            shares,
            kept,
            total: job.measure.lat_percentiles,
            measure_from_ns,
            rng,
        })
    }

    /// Returns the priority of an I/O in the kernel's encoding; 0 stands for the job's priority.
    pub(crate) fn draw(&mut self, op: Op, len: u32) -> u16 {
        let Some(direction) = op.direction() else {
            return 0;
        };
        let shares = &self.shares[direction];
        if shares.is_empty() {
            return 0;
        }
        let mut drawn = self.rng.below(100);
        let of_this_size = |share: &&PriorityShare| {
            share
                .block_bytes
                .is_none_or(|bytes| bytes == u64::from(len))
        };
        for share in shares.iter().filter(of_this_size) {
            match drawn.checked_sub(u64::from(share.percent)) {
                None => return ioprio_bits(share.priority),
                Some(rest) => drawn = rest,
            }
        }
        0
    }

    /// Records the latency of a completed I/O.
    pub(crate) fn completed(&mut self, slot: &Slot, now_ns: u64) {
        let Some(direction) = slot.op.direction() else {
            return;
        };
        if slot.start_ns < self.measure_from_ns {
            return;
        }
        let from_ns = if self.total {
            slot.prepared_ns
        } else {
            slot.issue_ns
        };
        let mut kept = self.kept[direction as usize].iter_mut();
        if let Some(kept) = kept.find(|kept| kept.bits == slot.priority) {
            kept.latency.record_n(now_ns.saturating_sub(from_ns), 1);
        }
    }

    /// Returns the latencies of each priority that occurred.
    pub(crate) fn results(&self, direction: Direction) -> Vec<PriorityLatency> {
        self.kept[direction as usize]
            .iter()
            .map(|kept| PriorityLatency {
                priority: kept.priority,
                latency: kept.latency.stats(),
            })
            .filter(|each| each.latency.moments.count > 0)
            .collect()
    }
}

impl PriorityLatencies {
    fn new(bits: u16, priority: IoPriority) -> PriorityLatencies {
        PriorityLatencies {
            bits,
            priority,
            latency: LatencyCounters::default(),
        }
    }
}

fn shares(job: &Job, direction: Direction) -> Vec<PriorityShare> {
    if direction == Direction::Trim || !job.workload.rw.has(direction) {
        return Vec::new();
    }
    let shares: Vec<PriorityShare> = match &job.io.cmdprio_split {
        Some(split) => split[direction]
            .iter()
            .map(|part| PriorityShare {
                block_bytes: Some(part.block_bytes),
                percent: part.percent,
                priority: part.priority,
            })
            .collect(),
        None => vec![PriorityShare {
            block_bytes: None,
            percent: job.io.cmdprio_percent[direction],
            priority: job.io.cmdprio[direction],
        }],
    };
    shares
        .into_iter()
        .filter(|share| share.percent > 0)
        .collect()
}
