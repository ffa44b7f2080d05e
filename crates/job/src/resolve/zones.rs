//! Checks the zone options: a zone mode and a zone size need each other.

use super::job_finisher::JobFinisher;
use crate::diagnostic::{Diagnostic, OptionConflict};
use crate::options::JobBuilder;
use crate::plan::StridedZones;

impl JobFinisher<'_> {
    /// Sets the zones of a job. As in fio, a zone size without a zone mode is an error.
    pub(super) fn zones(&mut self, b: &mut JobBuilder) {
        let zones = &b.zones;
        if !zones.strided {
            if zones.size > 0 {
                let no_effect = OptionConflict::NoEffectWithout {
                    option: "zonesize",
                    missing: "zonemode=strided",
                };
                let error = Diagnostic::error_from(no_effect).at(self.place(b, "zonesize"));
                self.diagnostics.push(error.help("add zonemode=strided"));
            }
            return;
        }
        if zones.size == 0 {
            let needs = OptionConflict::Needs {
                setting: "zonemode=strided".to_owned(),
                missing: "zonesize",
            };
            return self.error(b, "zonemode", needs);
        }
        b.job.workload.zones = Some(StridedZones {
            zone_size_bytes: zones.size,
            zone_range_bytes: match zones.range {
                0 => zones.size,
                range => range,
            },
            zone_skip_bytes: zones.skip,
        });
    }
}
