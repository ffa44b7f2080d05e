//! In what a test was not as the specification asks.

use super::preset::Preset;
use super::study::PtsOptions;
use crate::probe::TargetKind;

/// What a test was done on, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions<'a> {
    pub(super) options: &'a PtsOptions,
    pub(super) kind: &'a TargetKind,
    /// What the preset asks for of a device; `None` of what is none.
    pub(super) active_bytes: Option<u64>,
    /// What was used.
    pub(super) bytes: u64,
    pub(super) direct: bool,
    /// Before each series.
    pub(super) purged: bool,
    /// Whether block sizes were refused.
    pub(super) refused: bool,
    /// Whether the device's volatile write cache is on, as the kernel knows it.
    pub(super) write_cache: Option<bool>,
}

impl Conditions<'_> {
    /// Each in one sentence.
    pub(super) fn deviations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let scale = self.options.time_scale;
        if (scale - 1.0).abs() > f64::EPSILON {
            found.push(format!(
                "times and amounts are multiplied by {scale}: this is a trial"
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
            found.push("it was not purged before".to_owned());
        }
        if !self.direct {
            found.push("the I/O went through the page cache".to_owned());
        }
        if self.refused {
            found.push("some block sizes are refused and were left out".to_owned());
        }
        found.extend(self.cache());
        found
    }

    fn cache(&self) -> Option<String> {
        if matches!(self.kind, TargetKind::Simulated { .. }) {
            return None;
        }
        match (self.write_cache, self.options.preset) {
            (None, Preset::Client) => {
                Some("whether the volatile write cache is on is not known".to_owned())
            }
            (None, Preset::Enterprise) => {
                Some("whether the volatile write cache is off is not known".to_owned())
            }
            (Some(true), Preset::Enterprise) => Some("the volatile write cache is on".to_owned()),
            // A device that has none looks like one where it is off.
            (Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::preset::PtsTest;
    use super::super::study::Purge;
    use super::*;

    fn deviations(preset: Preset, bytes: u64, write_cache: Option<bool>) -> Vec<String> {
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
        let kind = TargetKind::Existing {
            bytes: 1 << 30,
            device: true,
            consent: true,
        };
        let conditions = Conditions {
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
    fn the_write_cache_is_looked_at() {
        let of = |preset, cache| deviations(preset, 1 << 30, cache);
        assert_eq!(of(Preset::Enterprise, Some(false)), [""; 0]);
        assert_eq!(
            of(Preset::Enterprise, Some(true)),
            ["the volatile write cache is on"]
        );
        assert_eq!(of(Preset::Client, Some(true)), [""; 0]);
        assert_eq!(
            of(Preset::Client, None),
            ["whether the volatile write cache is on is not known"]
        );
    }

    #[test]
    fn a_part_of_the_device_is_told() {
        let of = |preset| deviations(preset, 768 << 20, Some(false));
        assert_eq!(
            of(Preset::Enterprise),
            ["less than 100 % of the device was used"]
        );
        assert_eq!(of(Preset::Client), [""; 0]);
    }
}
