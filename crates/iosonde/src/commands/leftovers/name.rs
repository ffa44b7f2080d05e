//! Names of working files and scratch directories: `PREFIX HOST-BOOT-RANDOM-NUMBER`.
//!
//! A lock may be seen on its own host only: flock(2) is local on some network file systems. So a name says which boot of which
//! host made it, and without being asked iosonde removes only what this boot has made, whose locks it sees.

use iosonde_result::doctor::MadeBy;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::sync::OnceLock;

/// Letters of a host's name that are kept.
const HOST_LETTERS_MAX: usize = 32;
/// Digits of the boot id that are kept: 48 bits tell all boots apart.
const BOOT_DIGITS: usize = 12;
/// Digits of the part that tells processes apart.
const RANDOM_DIGITS: usize = 16;

/// Names that no other process makes, one after the other.
///
/// # Errors
/// The kernel gives no random numbers.
pub(in crate::commands) fn new_names(prefix: &str) -> io::Result<impl Iterator<Item = String>> {
    let start = format!("{prefix}{}-{}-{}", host(), boot(), process()?);
    Ok((0_u64..).map(move |number| format!("{start}-{number}")))
}

/// Which boot made what has this name, and whether this process did.
pub(in crate::commands) fn made_by(name: &str, prefix: &str) -> MadeBy {
    match parts(name, prefix) {
        None => MadeBy::Unknown,
        Some((made_at, _)) if made_at == boot() && made_at != NO_BOOT => MadeBy::ThisBoot,
        Some(_) => MadeBy::AnotherBoot,
    }
}

/// Whether this process has made what has this name.
pub(in crate::commands) fn is_of_this_process(name: &str, prefix: &str) -> bool {
    let by = parts(name, prefix).map(|(_, by)| by);
    by.is_some_and(|by| process().is_ok_and(|process| process == by))
}

/// Boot and process; `None` is a name of iosonde 0.1.0, `PREFIX PID-NUMBER`, or one of nobody's.
fn parts<'a>(name: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    let mut parts = name.strip_prefix(prefix)?.rsplitn(4, '-');
    let (number, process, boot) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next()?;
    let is_hexadecimal = |part: &str, digits| {
        part.len() == digits && part.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_new = number.bytes().all(|digit| digit.is_ascii_digit())
        && is_hexadecimal(process, RANDOM_DIGITS)
        && is_hexadecimal(boot, BOOT_DIGITS);
    is_new.then_some((boot, process))
}

/// The boot of a kernel that does not tell it.
const NO_BOOT: &str = "000000000000";

/// This boot of this host, also in its containers.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits = id.chars().filter(char::is_ascii_hexdigit);
        let digits: String = digits.take(BOOT_DIGITS).collect();
        match digits.len() {
            BOOT_DIGITS => digits,
            _ => NO_BOOT.to_owned(),
        }
    })
}

/// This host's name, for people.
fn host() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    let letters = name
        .chars()
        .take(HOST_LETTERS_MAX)
        .map(|letter| match letter {
            '-' | '.' => letter,
            _ if letter.is_ascii_alphanumeric() => letter,
            _ => '_',
        });
    let host: String = letters.collect();
    match host.is_empty() {
        true => "localhost".to_owned(),
        false => host,
    }
}

/// What tells this process from all others, also from those of other containers with the same process id.
fn process() -> io::Result<&'static str> {
    static PROCESS: OnceLock<String> = OnceLock::new();
    if let Some(process) = PROCESS.get() {
        return Ok(process);
    }
    let mut bytes = [0; RANDOM_DIGITS / 2];
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    let number = u64::from_ne_bytes(bytes);
    Ok(PROCESS.get_or_init(|| format!("{number:016x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_made_them() {
        let names: Vec<String> = new_names(".x-").unwrap().take(2).collect();
        assert_ne!(names[0], names[1]);
        for name in &names {
            assert!(name.starts_with(&format!(".x-{}-", host())), "{name}");
            assert_eq!(made_by(name, ".x-"), MadeBy::ThisBoot);
            assert!(is_of_this_process(name, ".x-"));
        }
        let other_process = format!(".x-a-b-{}-0123456789abcdef-0", boot());
        assert_eq!(made_by(&other_process, ".x-"), MadeBy::ThisBoot);
        assert!(!is_of_this_process(&other_process, ".x-"));
        let other_boot = ".x-db-1-0123456789ab-0123456789abcdef-0";
        assert_eq!(made_by(other_boot, ".x-"), MadeBy::AnotherBoot);
        for old in [
            ".x-7-0",
            ".x-",
            ".x-0123456789ab-0123456789abcdef-0",
            ".y-1-0",
        ] {
            assert_eq!(made_by(old, ".x-"), MadeBy::Unknown, "{old}");
        }
        let unknown = format!(".x-a-{NO_BOOT}-0123456789abcdef-0");
        assert_eq!(made_by(&unknown, ".x-"), MadeBy::AnotherBoot);
    }
}
