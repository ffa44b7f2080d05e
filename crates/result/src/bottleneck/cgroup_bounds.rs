//! Control group limits on the I/O of this process.

use super::RunObservation;
use crate::verdict_cause::{CgroupIoLimit, IoRateLimit};
use iosonde_job::plan::Direction;

/// Returns the first control group limit on a direction that the run used.
pub(super) fn own_bound(seen: &RunObservation) -> Option<CgroupIoLimit> {
    let is_used = |direction: Direction| seen.own[direction].ios > 0;
    seen.limits.iter().find_map(|limit| {
        let iops = IoRateLimit::Iops;
        let bytes = IoRateLimit::BytesPerS;
        let rates = [
            (Direction::Read, limit.read_iops.map(iops)),
            (Direction::Write, limit.write_iops.map(iops)),
            (Direction::Read, limit.read_bytes_per_s.map(bytes)),
            (Direction::Write, limit.write_bytes_per_s.map(bytes)),
        ];
        rates
            .into_iter()
            .filter(|(direction, _)| is_used(*direction))
            .find_map(|(direction, rate)| {
                Some(CgroupIoLimit {
                    cgroup: limit.cgroup.clone(),
                    direction,
                    rate: rate?,
                })
            })
    })
}
