//! Deviations of a test from the specification.

use super::pts_options::PtsOptions;
use crate::figures::preset::PtsPreset;
use crate::study_target::StudyTargetKind;

/// Conditions of a test.
#[derive(Debug, Clone, Copy)]
pub(super) struct PtsConditions<'a> {
    pub(super) options: &'a PtsOptions,
    pub(super) kind: &'a StudyTargetKind,
    /// Bytes that the preset requires of a device. `None`: the target is not a device.
    pub(super) active_bytes: Option<u64>,
    /// Bytes that were used.
    pub(super) bytes: u64,
    pub(super) direct: bool,
    /// Whether the target was purged before each series.
    pub(super) purged: bool,
    /// Whether the target refused block sizes.
    pub(super) refused: bool,
    /// Whether the kernel reports a volatile write cache.
    pub(super) write_cache: Option<bool>,
}

impl PtsConditions<'_> {
    /// Returns the deviations, each in one sentence.
    pub(super) fn deviations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let scale = self.options.time_scale;
        if (scale - 1.0).abs() > f64::EPSILON {
            found.push(format!(
                "times and amounts are scaled by {scale}, as a trial"
            ));
        }
        if self.kind.is_ours() {
            found.push("a file in a file system was tested, not a device".to_owned());
        }
        if self
            .active_bytes
            .is_some_and(|active| self.bytes < active / 100 * 99)
        {
            let percent = self.options.preset.active_percent();
            found.push(format!("less than {percent} % of the device was used"));
        }
        if !self.purged {
            found.push("the device was not purged before the test".to_owned());
        }
        if !self.direct {
            found.push("the I/O went through the page cache".to_owned());
        }
        if self.refused {
            found.push("the device refused some block sizes, which were skipped".to_owned());
        }
        found.extend(self.cache());
        found
    }

    fn cache(&self) -> Option<String> {
        if matches!(self.kind, StudyTargetKind::Simulated { .. }) {
            return None;
        }
        match (self.write_cache, self.options.preset) {
            (None, PtsPreset::Client) => {
                Some("the state of the volatile write cache is unknown; it should be on".to_owned())
            }
            (None, PtsPreset::Enterprise) => Some(
                "the state of the volatile write cache is unknown; it should be off".to_owned(),
            ),
            (Some(true), PtsPreset::Enterprise) => {
                Some("the volatile write cache is on".to_owned())
            }
            // A device without a cache looks like one with its cache off.
            (Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pts_options::Purge;
    use super::*;
    use crate::figures::preset::PtsTest;

    fn deviations(preset: PtsPreset, bytes: u64, write_cache: Option<bool>) -> Vec<String> {
        let options = PtsOptions {
            test: PtsTest::Iops,
            preset,
            time_scale: 1.0,
            most_rounds: 25,
            iodepth: 32,
            numjobs: 4,
            purge: Purge::Discard,
            size_bytes: None,
            seed: 1,
        };
        let kind = StudyTargetKind::Existing {
            bytes: 1 << 30,
            device: true,
            consent: true,
        };
        let conditions = PtsConditions {
            options: &options,
            kind: &kind,
            active_bytes: Some(preset.active_bytes(1 << 30)),
            bytes,
            direct: true,
            purged: true,
            refused: false,
            write_cache,
        };
        conditions.deviations()
    }

    #[test]
    fn write_cache_state_is_checked_against_preset() {
        let deviations_of = |preset, cache| deviations(preset, 1 << 30, cache);
        assert_eq!(deviations_of(PtsPreset::Enterprise, Some(false)), [""; 0]);
        assert_eq!(
            deviations_of(PtsPreset::Enterprise, Some(true)),
            ["the volatile write cache is on"]
        );
        assert_eq!(deviations_of(PtsPreset::Client, Some(true)), [""; 0]);
        assert_eq!(
            deviations_of(PtsPreset::Client, None),
            ["the state of the volatile write cache is unknown; it should be on"]
        );
    }

    #[test]
    fn unused_part_of_device_is_a_deviation() {
        let deviations_of = |preset| deviations(preset, 768 << 20, Some(false));
        assert_eq!(
            deviations_of(PtsPreset::Enterprise),
            ["less than 100 % of the device was used"]
        );
        assert_eq!(deviations_of(PtsPreset::Client), [""; 0]);
    }
}
