//! The directory that the agent writes to, besides the measured volume. It is an emptyDir, because
//! the root file system is read-only.

use super::{AGENT_DIRECTORY, RunSpec, quantity};
use iosonde_result::wire::LONGEST_MESSAGE_BYTES;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, EnvVar, Volume};

/// Name of the volume with the agent directory.
pub(super) const AGENT_VOLUME: &str = "agent";
/// Bytes for the agent and its socket.
const AGENT_BYTES: u64 = 64 << 20;
/// Bytes for the kept result: twice the limit, since a new result is written beside the old one.
const RESULT_BYTES: u64 = 2 * LONGEST_MESSAGE_BYTES as u64;
/// Bytes per second of a run for its message, interval and machine slice. Each has up to 2.6 KB on
/// a device with widely spread latencies.
const SPILL_BYTES_PER_SECOND: u64 = 8 << 10;

impl RunSpec<'_> {
    /// Returns the space for the agent until the Job's deadline. The kubelet evicts a pod that
    /// exceeds it. On a full node the agent keeps the rest in memory.
    fn agent_directory_bytes(&self) -> u64 {
        let spilled = self
            .options
            .deadline
            .as_secs()
            .saturating_mul(SPILL_BYTES_PER_SECOND);
        let own = match self.keeps_result() {
            true => RESULT_BYTES,
            false => AGENT_BYTES,
        };
        let bytes = own.saturating_add(spilled);
        // Rounded up to whole MiB for a readable manifest.
        bytes.div_ceil(1 << 20) << 20
    }

    pub(super) fn agent_volume(&self) -> Volume {
        Volume {
            name: AGENT_VOLUME.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: Some(quantity(self.agent_directory_bytes())),
                medium: None,
            }),
            ..Volume::default()
        }
    }
}

/// Sets the directory of the agent's temporary files.
pub(super) fn temporary_directory() -> EnvVar {
    EnvVar {
        name: "TMPDIR".to_owned(),
        value: Some(AGENT_DIRECTORY.to_owned()),
        value_from: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::interval::{Interval, IntervalCounts};
    use iosonde_result::spill_list::BlockItem;

    /// An interval of a device whose latencies lie everywhere between 50 us and 50 ms.
    #[test]
    fn agent_directory_size_covers_each_second_of_a_run() {
        let mut interval = Interval {
            start_ns: 600_000_000_000_000,
            length_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.directions.read = IntervalCounts {
            ios: 1_000_000,
            bytes: 4_096_000_000,
        };
        for step in 0..100_000_u64 {
            let latency_ns = 50_000.0 * 1000_f64.powf(step as f64 / 100_000.0);
            interval.latency.record(latency_ns as u64);
        }
        let mut bytes = Vec::new();
        interval.compacted().encode(&mut bytes);
        let once = bytes.len() as u64;
        assert!(
            3 * once <= SPILL_BYTES_PER_SECOND,
            "{once} bytes, and as many in messages and in slices"
        );
    }
}
