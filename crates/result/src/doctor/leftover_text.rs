//! Words of findings about leftovers and runs in progress.

use super::finding_cause::LeftoverCause;
use super::finding_words::FindingWords;
use crate::words;
use iosonde_job::quote_shell_word;

pub(super) fn describe(cause: &LeftoverCause) -> FindingWords {
    match cause {
        LeftoverCause::KilledRun { bytes, age_s } => FindingWords::new(
            "leftover",
            format!(
                "a killed run left this file, and no process holds it: {}",
                size_and_age(*bytes, *age_s)
            ),
            "it occupies space",
        )
        .remedy("remove the leftovers of killed runs, here and elsewhere")
        .command("iosonde doctor --clean"),
        LeftoverCause::AnotherHost {
            bytes,
            age_s,
            is_boot_known,
            directory,
        } => {
            let whose = match is_boot_known {
                false => "iosonde 0.1.0 created it, on this host or another one",
                true => "another host created it, or this host before its last boot",
            };
            FindingWords::new(
                "leftover",
                format!(
                    "{whose}, and no process here holds it: {}",
                    size_and_age(*bytes, *age_s)
                ),
                "it occupies space, or a run on another host uses it",
            )
            .remedy("make sure that no run on another host uses it, then remove it")
            .command(format!(
                "iosonde doctor --clean {}",
                quote_shell_word(directory)
            ))
        }
        LeftoverCause::AnotherRun => FindingWords::new(
            "another-run",
            "another run uses it",
            "each run gets only a part of the target's performance",
        )
        .remedy("measure after that run has ended"),
        LeftoverCause::UnknownUse { bytes, age_s } => FindingWords::new(
            "leftover",
            format!(
                "the file has the name of a run's working file; cannot tell whether that run is \
                 still in progress: {}",
                size_and_age(*bytes, *age_s)
            ),
            "it occupies space",
        )
        .remedy("remove it if no run is in progress"),
    }
}

fn size_and_age(bytes: u64, age_s: Option<u64>) -> String {
    match age_s {
        Some(age) => format!(
            "{}, changed {} ago",
            words::bytes(bytes),
            words::duration(age as f64)
        ),
        None => words::bytes(bytes),
    }
}
