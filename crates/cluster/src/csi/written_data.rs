//! Data with a checksum: the scripts that write and read them, and their output.

use crate::manifest::MOUNT;
use crate::pod_command::{CommandEnd, Printed};
use iosonde_result::data_service::DataCheck;
use std::time::Duration;

/// Unit of the size of the data.
pub(super) const DATA_UNIT_BYTES: u64 = 1 << 20;
/// Start of the line with the checksum.
const SUM: &str = "sum ";
/// Start of the line with the node's uptime before and after a read, in seconds.
const UPTIMES: &str = "uptimes ";
/// Digits of a SHA-256.
const SUM_DIGITS: usize = 64;
/// Most characters of an output in a cause.
const CAUSE_CHARS_MAX: usize = 200;

/// Returns the path of the data of a run, which is the same in restored volumes and clones.
fn data_path(run: &str) -> String {
    format!("{MOUNT}/.iosonde-{run}-checked")
}

/// Returns the script that writes new random data and prints their checksum. Its output never
/// pauses for long, since a silent connection counts as broken.
pub(super) fn write_script(run: &str, bytes: u64) -> String {
    debug_assert!(bytes > 0 && bytes.is_multiple_of(DATA_UNIT_BYTES));
    let count = bytes / DATA_UNIT_BYTES;
    let path = data_path(run);
    let write = format!(
        "out=$(LC_ALL=C dd if=/dev/urandom of={path} bs={DATA_UNIT_BYTES} count={count} \
         conv=fsync 2>&1)"
    );
    with_periodic_output(&format!("{write} && out=\"{SUM}$(sha256sum {path})\""))
}

/// Returns the script that prints the checksum of the data. They are read with O_DIRECT where the
/// volume allows it: the page cache of the pod that has written them would hide an error.
pub(super) fn sum_script(run: &str) -> String {
    let path = data_path(run);
    let read = format!("dd if={path} bs={DATA_UNIT_BYTES}");
    with_periodic_output(&format!(
        "flag=; {read} of=/dev/null count=1 iflag=direct 2>/dev/null && flag=iflag=direct; \
         out=$(LC_ALL=C {read} of=/dev/null count=1 2>&1) && \
         out=\"{SUM}$({read} $flag 2>/dev/null | sha256sum)\""
    ))
}

/// Returns the script of a pod that has no other task. Its output becomes the message of the
/// container. The read is timed here, because the cluster reports containers only every second.
pub(super) fn pod_script(run: &str) -> String {
    let path = data_path(run);
    format!(
        "read -r begun _ < /proc/uptime; out=$(sha256sum {path} 2>&1); rc=$?; \
         read -r ended _ < /proc/uptime; \
         printf '{SUM}%s\\n{UPTIMES}%s\\n' \"$out\" \"$begun $ended\" > /dev/termination-log; \
         exit $rc"
    )
}

/// Runs a command that sets `out`, and prints a line every few seconds until it ends.
fn with_periodic_output(command: &str) -> String {
    format!(
        "(while sleep 5 >/dev/null 2>&1; do echo .; done) & t=$!; {command}; rc=$?; kill $t; \
         echo \"$out\"; exit $rc"
    )
}

/// Returns the checksum in the output of a script, or the reason why there is none.
pub(super) fn read_printed(printed: &Printed) -> Result<String, String> {
    let text = String::from_utf8_lossy(&printed.bytes);
    match &printed.end {
        Some(CommandEnd::Success) => find_sum(&text).ok_or_else(|| last_lines(&text)),
        Some(CommandEnd::Failure { message, .. }) => match last_lines(&text) {
            empty if empty.is_empty() => Err(message.clone()),
            lines => Err(lines),
        },
        None => Err("the connection to the pod broke".to_owned()),
    }
}

/// Compares the message of a container that has read the data with their checksum.
pub(super) fn check_message(message: &str, expected: &str) -> DataCheck {
    match find_sum(message) {
        Some(found) if found == expected => DataCheck::Right,
        Some(found) => DataCheck::Wrong {
            expected: expected.to_owned(),
            found,
        },
        None => {
            let cause = last_lines(message);
            let cause = cause.strip_prefix(SUM).unwrap_or(&cause);
            DataCheck::NotRead {
                cause: match cause {
                    "" => "the pod has printed no checksum".to_owned(),
                    cause => cause.to_owned(),
                },
            }
        }
    }
}

/// Returns the duration of the read in the message of a container. `None`: unknown, or shorter than
/// the resolution of the uptime.
pub(super) fn read_time_ns(message: &str) -> Option<u64> {
    let mut lines = message.lines();
    let times = lines.find_map(|line| line.strip_prefix(UPTIMES))?;
    let (begun, ended) = times.split_once(' ')?;
    let (begun, ended): (f64, f64) = (begun.parse().ok()?, ended.parse().ok()?);
    let read = Duration::try_from_secs_f64(ended - begun).ok()?;
    let ns = u64::try_from(read.as_nanos()).ok()?;
    (ns > 0).then_some(ns)
}

/// Returns the last checksum in a text.
fn find_sum(text: &str) -> Option<String> {
    let sums = text.lines().filter_map(|line| line.strip_prefix(SUM));
    let mut words = sums.filter_map(|line| line.split_whitespace().next());
    let is_sum = |word: &&str| {
        word.len() == SUM_DIGITS && word.chars().all(|letter| letter.is_ascii_hexdigit())
    };
    words.rfind(is_sum).map(str::to_owned)
}

/// Returns the lines of an output without those that only show that the command runs, or its time.
fn last_lines(text: &str) -> String {
    let is_about_time = |line: &str| line == "." || line.starts_with(UPTIMES);
    let lines = text
        .lines()
        .filter(|line| !is_about_time(line) && !line.is_empty());
    let joined = lines.collect::<Vec<_>>().join("; ");
    let cause: String = joined.chars().take(CAUSE_CHARS_MAX).collect();
    debug_assert!(!cause.contains('\n'), "a cause is one line");
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, end: Option<CommandEnd>) -> Printed {
        Printed {
            bytes: text.as_bytes().to_vec(),
            end,
        }
    }

    #[test]
    fn checksum_is_found_among_periodic_output() {
        let sum = "ab".repeat(32);
        let text = format!(".\n.\nsum {sum}  /data/x\n");
        let read = read_printed(&printed(&text, Some(CommandEnd::Success)));
        assert_eq!(read, Ok(sum));
    }

    #[test]
    fn failed_write_returns_its_output_and_broken_connection_is_reported() {
        let failed = || CommandEnd::Failure {
            status: Some(1),
            message: "exit 1".to_owned(),
        };
        let full = ".\ndd: error writing 'x': No space left on device\n";
        let read = read_printed(&printed(full, Some(failed())));
        let expected = "dd: error writing 'x': No space left on device";
        assert_eq!(read, Err(expected.to_owned()));
        assert_eq!(
            read_printed(&printed("", Some(failed()))),
            Err("exit 1".to_owned())
        );
        let broken = Err("the connection to the pod broke".to_owned());
        assert_eq!(read_printed(&printed("", None)), broken);
    }

    #[test]
    fn message_of_a_pod_is_right_wrong_or_unreadable() {
        let (ours, other) = ("ab".repeat(32), "cd".repeat(32));
        let message = format!("sum {ours}  /data/x\n");
        assert_eq!(check_message(&message, &ours), DataCheck::Right);
        let wrong = DataCheck::Wrong {
            expected: other.clone(),
            found: ours,
        };
        assert_eq!(check_message(&message, &other), wrong);
        let text = "sum sha256sum: can't open '/data/x'\nuptimes 7.00 7.00\n";
        let missing = check_message(text, &other);
        let cause = "sha256sum: can't open '/data/x'".to_owned();
        assert_eq!(missing, DataCheck::NotRead { cause });
    }

    #[test]
    fn scripts_write_whole_units_into_the_volume() {
        let script = write_script("3f2a9c00", 64 << 20);
        let write = "of=/data/.iosonde-3f2a9c00-checked bs=1048576 count=64 conv=fsync";
        assert!(script.contains(write), "{script}");
        let sum = "sha256sum /data/.iosonde-3f2a9c00-checked";
        assert!(pod_script("3f2a9c00").contains(sum));
        let read = "dd if=/data/.iosonde-3f2a9c00-checked bs=1048576 $flag";
        assert!(sum_script("3f2a9c00").contains(read));
    }

    #[test]
    fn read_is_timed_in_its_pod() {
        let read = |line: &str| read_time_ns(&format!("sum ab  /data/x\n{line}\n"));
        assert_eq!(read("uptimes 100.25 101.50"), Some(1_250_000_000));
        for line in ["", "uptimes 100.25 100.25", "uptimes 9 8", "uptimes x y"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
