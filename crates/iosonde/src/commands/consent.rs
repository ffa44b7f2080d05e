//! What a pod needs beyond the restricted Pod Security Standard is asked for, where somebody is there to answer.

use crate::args::{ClusterArgs, ConsentArgs};
use crate::commands::cluster::target_within;
use crate::failure::Failure;
use iosonde_machine::consent::{CONSENT_OPTION, IN_USE_OPTION};
use iosonde_result::session::RunError;
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Asks whether pods may run as root, for each of these targets whose pod would. Who is no terminal is only told, when the pod
/// is made; `--run-as` answers beforehand.
pub(crate) fn to_root(
    targets: &[String],
    args: &ClusterArgs,
    interrupts: &dyn Fn() -> u32,
) -> Result<(), Failure> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Ok(());
    }
    for name in targets {
        let Some((target, within)) = target_within(name, args)? else {
            continue;
        };
        let Some(why) = within.options(target).why_root() else {
            continue;
        };
        eprint!("{name}: its pod would run as root: {why}. Go on? [y/N] ");
        if !is_yes(interrupts)? {
            return Err(Failure::Run(RunError::Refused {
                device: name.clone(),
                found: format!("its pod would run as root: {why}"),
                remedy: "agree, beforehand with --run-as 0, or name another user with --run-as UID"
                    .to_owned(),
            }));
        }
    }
    Ok(())
}

/// Refuses consent to overwrite what is no target: a name that is mistyped would be ignored. `may_be_within`: jobs name files
/// of their own, so that one that exists may be meant.
pub(crate) fn refuse_unmatched(
    consent: &ConsentArgs,
    targets: &[String],
    may_be_within: bool,
) -> Result<(), Failure> {
    let is_target = |path: &Path| {
        let mut targets = targets.iter().map(Path::new);
        targets.any(|target| real(target) == real(path))
    };
    let is_known = |path: &Path| is_target(path) || may_be_within && path.exists();
    if let Some(path) = consent.allow_overwrite.iter().find(|path| !is_known(path)) {
        return Err(Failure::usage(
            format!(
                "{CONSENT_OPTION} {}: no target has this name",
                path.display()
            ),
            match targets {
                [] => "name a file that exists".to_owned(),
                targets => format!("name one of the targets: {}", targets.join(", ")),
            },
        ));
    }
    refuse_in_use_alone(&consent.allow_overwrite, &consent.allow_in_use)
}

/// Refuses consent to write what is in use without consent to overwrite it.
pub(crate) fn refuse_in_use_alone(
    overwrite: &[PathBuf],
    in_use: &[PathBuf],
) -> Result<(), Failure> {
    let is_agreed = |path: &Path| overwrite.iter().any(|other| real(other) == real(path));
    match in_use.iter().find(|path| !is_agreed(path)) {
        None => Ok(()),
        Some(path) => Err(Failure::usage(
            format!(
                "{IN_USE_OPTION} {0}: there is no {CONSENT_OPTION} {0}",
                path.display()
            ),
            "name the target in both options, or in neither",
        )),
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The answer, for which nobody has to wait who wants to stop.
fn is_yes(interrupts: &dyn Fn() -> u32) -> Result<bool, Failure> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = stdin().read_line(&mut line);
        // Nobody listens to an answer that comes too late.
        let _ = tell.send(read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes"));
    });
    loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if interrupts() == 0 => {}
            Err(_) => {
                eprintln!();
                return Err(Failure::Run(RunError::Interrupted));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_that_matches_no_target_is_refused() {
        let targets = ["/etc/hostname".to_owned(), "rbd://pool/image".to_owned()];
        let refused = |name: &str, may_be_within| {
            let consent = ConsentArgs {
                allow_overwrite: vec![name.into()],
                allow_in_use: Vec::new(),
            };
            refuse_unmatched(&consent, &targets, may_be_within).err()
        };
        for name in ["/etc/../etc/hostname", "rbd://pool/image"] {
            assert!(refused(name, false).is_none(), "{name}");
        }
        let failure = refused("/etc/hostnam", true).unwrap();
        assert_eq!(failure.status(), 2);
        let text = failure.text(false);
        assert!(
            text.contains("/etc/hostnam:") && text.contains(&targets.join(", ")),
            "{text}"
        );
        assert!(refused("/etc/passwd", false).is_some());
        assert!(refused("/etc/passwd", true).is_none());
    }

    #[test]
    fn consent_to_write_in_use_wants_consent_to_overwrite() {
        let one = [PathBuf::from("/etc/hostname")];
        let same = [PathBuf::from("/etc/../etc/hostname")];
        assert!(refuse_in_use_alone(&one, &same).is_ok());
        let failure = refuse_in_use_alone(&one, &["/etc/passwd".into()]).unwrap_err();
        assert_eq!(failure.status(), 2);
        let text = failure.text(false);
        assert!(text.contains("--allow-in-use /etc/passwd"), "{text}");
    }
}
