//! Findings on what runs have left, and on runs that go on.

use super::{Remedied, found};
use crate::words;
use iosonde_result::doctor::Severity::{Note, Warning};
use iosonde_result::doctor::{Finding, Holder, Leftover};

pub(super) fn finding(left: &Leftover) -> Finding {
    let path = left.path.display().to_string();
    let size = words::bytes(left.bytes);
    match left.holder {
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
