//! Consent: interactive for pods that need root, and checks of `--allow-overwrite`.

use crate::args::{ClusterArgs, ConsentArgs};
use crate::commands::cluster::target_within;
use crate::failure::CommandError;
use iosonde_job::{TargetScheme, quote_shell_word};
use iosonde_machine::consent::{CONSENT_OPTION, IN_USE_OPTION};
use iosonde_result::run_error::{RunError, WriteRefusal};
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Asks whether pods may run as root, for each target whose pod would. `--run-as` answers in
/// advance. Without a terminal nothing is asked: a note is printed when the pod is created.
pub(crate) fn to_root(
    targets: &[String],
    args: &ClusterArgs,
    interrupts: &dyn Fn() -> u32,
) -> Result<(), CommandError> {
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
        eprint!("{name}: its pod would run as root: {why}. Continue? [y/N] ");
        if !is_yes(interrupts)? {
            let reason = why.to_owned();
            return Err(CommandError::Run(RunError::write_refused(
                name,
                WriteRefusal::RootPod { reason },
            )));
        }
    }
    Ok(())
}

/// Refuses consent to overwrite a path that is not a target: it may be a typing error.
/// `may_be_within`: jobs name files of their own, so any existing path or image is accepted.
pub(crate) fn refuse_unmatched(
    consent: &ConsentArgs,
    targets: &[String],
    may_be_within: bool,
) -> Result<(), CommandError> {
    let is_target = |path: &Path| {
        let mut targets = targets.iter().map(Path::new);
        targets.any(|target| resolved_path(target) == resolved_path(path))
    };
    let is_image = |uri: &str| TargetScheme::Rbd.strip(uri).is_some();
    let exists = |path: &Path| path.exists() || path.to_str().is_some_and(is_image);
    let is_known = |path: &Path| is_target(path) || may_be_within && exists(path);
    if let Some(path) = consent.allow_overwrite.iter().find(|path| !is_known(path)) {
        return Err(CommandError::usage(
            format!(
                "{CONSENT_OPTION} {}: no target has this name",
                path.display()
            ),
            match targets {
                [] => "name an existing file".to_owned(),
                targets => format!("name one of the targets: {}", targets.join(", ")),
            },
        ));
    }
    refuse_in_use_alone(&consent.allow_overwrite, &consent.allow_in_use)
}

/// Refuses consent to write a target in use without consent to overwrite it.
pub(crate) fn refuse_in_use_alone(
    overwrite: &[PathBuf],
    in_use: &[PathBuf],
) -> Result<(), CommandError> {
    let is_agreed = |path: &Path| {
        overwrite
            .iter()
            .any(|other| resolved_path(other) == resolved_path(path))
    };
    match in_use.iter().find(|path| !is_agreed(path)) {
        None => Ok(()),
        Some(path) => Err(CommandError::usage(
            format!(
                "{IN_USE_OPTION} {0} requires {CONSENT_OPTION} {0}",
                path.display()
            ),
            format!(
                "add {CONSENT_OPTION} {}, or leave out {IN_USE_OPTION}",
                quote_shell_word(&path.to_string_lossy())
            ),
        )),
    }
}

fn resolved_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Reads the answer. An interrupt ends the wait.
pub(crate) fn is_yes(interrupts: &dyn Fn() -> u32) -> Result<bool, CommandError> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = stdin().read_line(&mut line);
        // The receiver is dropped after an interrupt.
        let _ = sender.send(read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes"));
    });
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if interrupts() == 0 => {}
            Err(_) => {
                eprintln!();
                return Err(CommandError::Run(RunError::Interrupted));
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
        let expected = (
            "--allow-overwrite /etc/hostnam: no target has this name",
            "name one of the targets: /etc/hostname, rbd://pool/image",
        );
        assert_eq!(failure.usage_parts(), expected);
        assert!(refused("/etc/passwd", false).is_some());
        assert!(refused("/etc/passwd", true).is_none());
        assert!(refused("rbd://pool/other", true).is_none());
        assert!(refused("rbd://pool/other", false).is_some());
    }

    #[test]
    fn allow_in_use_requires_allow_overwrite() {
        let one = [PathBuf::from("/etc/hostname")];
        let same = [PathBuf::from("/etc/../etc/hostname")];
        assert!(refuse_in_use_alone(&one, &same).is_ok());
        let failure = refuse_in_use_alone(&one, &["/etc/passwd".into()]).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.usage_parts().0,
            "--allow-in-use /etc/passwd requires --allow-overwrite /etc/passwd"
        );
        assert_eq!(
            failure.usage_parts().1,
            "add --allow-overwrite /etc/passwd, or leave out --allow-in-use"
        );
    }
}
