//! Names of working files and scratch directories: `PREFIX HOST-BOOT-RANDOM-NUMBER`.
//!
//! A lock may be visible only on its host, as flock(2) is local on some network file systems. So
//! names hold the boot. Unless asked, iosonde removes only files of this boot, whose locks it sees.

use iosonde_result::doctor::MadeBy;
use iosonde_study::probe::StudyTarget;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Prefix of the names of working files.
pub(in crate::commands) const PROBE_PREFIX: &str = ".iosonde-probe-";
/// Prefix of the names of scratch directories.
pub(in crate::commands) const SUITE_PREFIX: &str = ".iosonde-suite-";
/// Name of the lock file that marks a scratch directory as in use.
pub(in crate::commands) const SUITE_LOCK: &str = "in-use";
/// Letters of the host's name in a name.
const HOST_LETTERS_MAX: usize = 32;
/// Hexadecimal digits of the boot id in a name. 48 bits distinguish all boots.
const BOOT_DIGITS: usize = 12;
/// Hexadecimal digits of the random number of a process.
const RANDOM_DIGITS: usize = 16;

/// An endless sequence of names that no other process makes.
///
/// The kernel provides no random numbers.
pub(in crate::commands) fn new_names(prefix: &str) -> io::Result<impl Iterator<Item = String>> {
    let start = format!("{prefix}{}-{}-{}", host_name(), boot_id_start(), process()?);
    Ok((0_u64..).map(move |number| format!("{start}-{number}")))
}

/// Whether this boot or another made the file of this name.
pub(in crate::commands) fn made_by(name: &str, prefix: &str) -> MadeBy {
    match parts(name, prefix) {
        None => MadeBy::Unknown,
        Some((made_at, _)) if made_at == boot_id_start() && made_at != NO_BOOT => MadeBy::ThisBoot,
        Some(_) => MadeBy::AnotherBoot,
    }
}

/// Whether this process made the file of this name.
pub(in crate::commands) fn is_of_this_process(name: &str, prefix: &str) -> bool {
    let by = parts(name, prefix).map(|(_, by)| by);
    by.is_some_and(|by| process().is_ok_and(|process| process == by))
}

/// The working file beside which a neighbour's file lies, and whose lock is that of both. `None`:
/// the path is no neighbour's file.
pub(in crate::commands) fn working_file_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    Some(path.with_file_name(name.strip_suffix(StudyTarget::NEIGHBOUR_SUFFIX)?))
}

/// Boot and process. `None`: a name of iosonde 0.1.0, `PREFIX PID-NUMBER`, or of another program.
fn parts<'a>(name: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    let name = name
        .strip_suffix(StudyTarget::NEIGHBOUR_SUFFIX)
        .unwrap_or(name);
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

/// Stands for an unknown boot id.
const NO_BOOT: &str = "000000000000";

/// The start of the boot id, which is the same in containers.
fn boot_id_start() -> &'static str {
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

/// This host's name, for the user.
fn host_name() -> String {
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

/// A random number for this process. Process ids are not unique across containers.
fn process() -> io::Result<&'static str> {
    static PROCESS: OnceLock<String> = OnceLock::new();
    if let Some(process) = PROCESS.get() {
        return Ok(process);
    }
    let mut bytes = [0; RANDOM_DIGITS / 2];
    getrandom::fill(&mut bytes)?;
    let number = u64::from_ne_bytes(bytes);
    Ok(PROCESS.get_or_init(|| format!("{number:016x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_identifies_boot_and_process() {
        let names: Vec<String> = new_names(".x-").unwrap().take(2).collect();
        assert_ne!(names[0], names[1]);
        for name in &names {
            assert!(name.starts_with(&format!(".x-{}-", host_name())), "{name}");
            assert_eq!(made_by(name, ".x-"), MadeBy::ThisBoot);
            assert!(is_of_this_process(name, ".x-"));
        }
        let beside = format!("{}.neighbour", names[0]);
        assert_eq!(made_by(&beside, ".x-"), MadeBy::ThisBoot);
        assert!(is_of_this_process(&beside, ".x-"));
        let working_file = working_file_beside(&Path::new("/d").join(&beside));
        assert_eq!(working_file, Some(Path::new("/d").join(&names[0])));
        assert_eq!(working_file_beside(Path::new(&names[0])), None);
        let other_process = format!(".x-a-b-{}-0123456789abcdef-0", boot_id_start());
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
