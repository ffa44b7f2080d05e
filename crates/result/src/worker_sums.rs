//! Sums of results of workers that ran at the same time, by fio's rule for a reporting group.

use crate::run::{CpuUse, DirectionStats, PriorityLatency};
use crate::stats::Moments;

pub(crate) fn add_each(sum: &mut [u64; 7], more: &[u64; 7]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

pub(crate) fn add_cpu(sum: &mut CpuUse, more: &CpuUse) {
    *sum = sum.and(more);
}

pub(crate) fn add_direction(sum: &mut DirectionStats, more: &DirectionStats) {
    sum.io_bytes += more.io_bytes;
    sum.total_ios += more.total_ios;
    sum.short_ios += more.short_ios;
    sum.drop_ios += more.drop_ios;
    sum.runtime_ns = sum.runtime_ns.max(more.runtime_ns);
    sum.slat.merge(&more.slat);
    sum.clat.merge(&more.clat);
    if sum.started_lat.is_some() || more.started_lat.is_some() {
        // If no I/O had an intended start, both latencies are equal.
        let due = sum.started_lat.get_or_insert_with(|| sum.lat.clone());
        due.merge(more.started_lat.as_ref().unwrap_or(&more.lat));
    }
    sum.lat.merge(&more.lat);
    sum.bw = side_by_side(&sum.bw, &more.bw);
    sum.iops = side_by_side(&sum.iops, &more.iops);
    for each in &more.by_priority {
        add_priority(&mut sum.by_priority, each);
    }
}

pub(crate) fn add_priority(sum: &mut Vec<PriorityLatency>, more: &PriorityLatency) {
    if more.latency.moments.count == 0 {
        return;
    }
    match sum.iter_mut().find(|sum| sum.priority == more.priority) {
        Some(sum) => sum.latency.merge(&more.latency),
        None => sum.push(more.clone()),
    }
}

/// Adds the samples of two parallel members. As in fio, all moments and the counts add up.
fn side_by_side(a: &Moments, b: &Moments) -> Moments {
    Moments {
        count: a.count + b.count,
        min: a.min + b.min,
        max: a.max + b.max,
        mean: a.mean + b.mean,
        m2: a.m2 + b.m2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_processor_time_includes_the_time_waiting_for_a_processor() {
        let mut sum = CpuUse {
            user_ns: 1,
            queued_ns: 20,
            ..CpuUse::default()
        };
        let more = CpuUse {
            queued_ns: 3,
            minor_faults: 5,
            ..CpuUse::default()
        };
        add_cpu(&mut sum, &more);
        let expected = CpuUse {
            user_ns: 1,
            queued_ns: 23,
            minor_faults: 5,
            ..CpuUse::default()
        };
        assert_eq!(sum, expected);
    }
}
