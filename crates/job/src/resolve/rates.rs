//! Checks the rate options: which cannot be combined, and which is the smaller.

use super::job_finisher::JobFinisher;
use crate::diagnostic::OptionConflict;
use crate::options::JobBuilder;
use crate::plan::{Direction, PerDirection};

impl JobFinisher<'_> {
    pub(super) fn rates(&mut self, b: &JobBuilder) {
        let s = &b.job.schedule;
        let has_any =
            |rates: &PerDirection<Option<u64>>| rates.iter().any(|(_, rate)| rate.is_some());
        // As in fio, the options cannot be combined even for different directions.
        for (bytes, ios, options) in [
            (&s.rate_bytes, &s.rate_iops, ["rate", "rate_iops"]),
            (
                &s.rate_min_bytes,
                &s.rate_iops_min,
                ["rate_min", "rate_iops_min"],
            ),
        ] {
            if has_any(bytes) && has_any(ios) {
                return self.error(b, options[1], OptionConflict::Excluded { options });
            }
        }
        for direction in Direction::ALL {
            let pairs = [
                (
                    "rate_min",
                    "rate",
                    s.rate_min_bytes[direction],
                    s.rate_bytes[direction],
                ),
                (
                    "rate_iops_min",
                    "rate_iops",
                    s.rate_iops_min[direction],
                    s.rate_iops[direction],
                ),
            ];
            for (low, high, min, max) in pairs {
                if let (Some(min), Some(max)) = (min, max)
                    && min > max
                {
                    let above = OptionConflict::MinimumAboveRate {
                        low,
                        high,
                        direction: direction.name(),
                    };
                    return self.error(b, low, above);
                }
            }
        }
    }
}
