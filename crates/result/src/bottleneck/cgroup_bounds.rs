//! Control group limits on the I/O of this process, in words.

use super::Observed;
use crate::words;
use iosonde_job::plan::Direction;

/// Returns the path and value of the first control group limit on a direction that the run used.
pub(super) fn own_bound(seen: &Observed) -> Option<String> {
    let is_used = |direction: Direction| seen.own[direction].ios > 0;
    seen.limits.iter().find_map(|limit| {
        let rates = [
            (Direction::Read, limit.read_iops, "reads/s"),
            (Direction::Write, limit.write_iops, "writes/s"),
        ];
        let bytes = [
            (Direction::Read, limit.read_bytes_per_s, "reads"),
            (Direction::Write, limit.write_bytes_per_s, "writes"),
        ];
        let rates = rates
            .into_iter()
            .filter_map(|(direction, bound, noun)| Some((direction, format!("{} {noun}", bound?))));
        let bytes = bytes.into_iter().filter_map(|(direction, bound, noun)| {
            let bound = words::bandwidth(bound? as f64);
            Some((direction, format!("{noun} of {bound}")))
        });
        let (_, bound) = rates
            .chain(bytes)
            .find(|(direction, _)| is_used(*direction))?;
        Some(format!("cgroup {}, which allows {bound}", limit.cgroup))
    })
}
