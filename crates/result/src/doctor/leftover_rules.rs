//! Findings about leftovers of earlier runs, and about runs in progress.

use super::{Remedied, found};
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{Finding, Holder, Leftover, MadeBy};
use crate::words;

pub(super) fn finding(left: &Leftover) -> Finding {
    let path = left.path.display().to_string();
    let size = match left.age_s {
        Some(age) => format!(
            "{}, changed {} ago",
            words::bytes(left.bytes),
            words::duration(age as f64)
        ),
        None => words::bytes(left.bytes),
    };
    match left.holder {
        Holder::Nobody if left.made_by != MadeBy::ThisBoot => of_another_host(left, &path, &size),
        Holder::Nobody => found(
            Note,
            "leftover",
            &path,
            format!("a run that was killed has left it, and no live process holds it: {size}"),
            "it takes room",
        )
        .remedy("remove what killed runs have left, here and in the other places")
        .command("iosonde doctor --clean"),
        Holder::Process => found(
            Warning,
            "another-run",
            &path,
            "another run holds it",
            "both runs see less than the target can do",
        )
        .remedy("measure when it is over"),
        Holder::Unknown => found(
            Note,
            "leftover",
            &path,
            format!("it has the name of a run's working file; whether that run still goes on cannot be told: {size}"),
            "it takes room",
        )
        .remedy("remove it, if no run goes on"),
    }
}

/// Reports a leftover of another host. No process here holds its lock, but one there may.
fn of_another_host(left: &Leftover, path: &str, size: &str) -> Finding {
    let whose = match left.made_by {
        MadeBy::Unknown => "iosonde 0.1.0 has made it, on this host or another one",
        _ => "another host has made it, or this one before it was booted",
    };
    let directory = left.path.parent().unwrap_or(&left.path).display();
    found(
        Note,
        "leftover",
        path,
        format!("{whose}, and no live process here holds it: {size}"),
        "it takes room, or a run on another host uses it",
    )
    .remedy("make sure that no run on another host uses it, and remove it")
    .command(format!("iosonde doctor --clean {directory}"))
}
