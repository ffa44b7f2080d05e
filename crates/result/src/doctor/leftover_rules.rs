//! Findings about leftovers of earlier runs, and about runs in progress.

use super::finding_cause::{FindingCause, LeftoverCause};
use super::finding_text;
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{ExaminedLeftover, Finding, LeftoverUser, MadeBy};

pub(super) fn finding(left: &ExaminedLeftover) -> Finding {
    let (bytes, age_s) = (left.bytes, left.age_s);
    let (severity, cause) = match left.holder {
        // No process here holds its lock, but one on another host may.
        LeftoverUser::NoProcess if left.made_by != MadeBy::ThisBoot => {
            let directory = left.path.parent().unwrap_or(&left.path);
            let cause = LeftoverCause::AnotherHost {
                bytes,
                age_s,
                is_boot_known: left.made_by != MadeBy::Unknown,
                directory: directory.display().to_string(),
            };
            (Note, cause)
        }
        LeftoverUser::NoProcess => (Note, LeftoverCause::KilledRun { bytes, age_s }),
        LeftoverUser::Process => (Warning, LeftoverCause::AnotherRun),
        LeftoverUser::Unknown => (Note, LeftoverCause::UnknownUse { bytes, age_s }),
    };
    let path = left.path.display().to_string();
    finding_text::finding(severity, &path, FindingCause::Leftover(cause))
}
