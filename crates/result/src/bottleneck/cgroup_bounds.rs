//! Bounds that control groups of this process put on its I/O, in words.

use super::Observed;
use crate::words;
use iosonde_job::plan::Direction;

/// The first bound of a group of this process on I/O of a direction that was used: its path and its value.
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
