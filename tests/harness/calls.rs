//! System calls of a traced run; see [`Invocation::traced`](crate::program::Invocation::traced).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// System calls that strace wrote to a file, each on one line with its result, in order of return.
///
/// # Panics
/// When the file cannot be read.
#[must_use]
pub fn system_calls(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("what strace wrote");
    whole_calls(&text)
}

/// Joins calls that strace split in two. A call that never returned has only the first part.
fn whole_calls(text: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let mut begun = BTreeMap::new();
    for line in text.lines() {
        let pid = line.split(' ').next().unwrap_or_default();
        if let Some((start, _)) = line.split_once(" <unfinished ...>") {
            begun.insert(pid, start);
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let start = begun.remove(pid).unwrap_or_default();
            calls.push(format!("{start}{end}"));
        } else {
            calls.push(line.to_owned());
        }
    }
    calls.extend(begun.into_values().map(str::to_owned));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_call_becomes_one_line() {
        let text = "\
            7 preadv2(3</d/job>,  <unfinished ...>\n\
            8 getpid() = 7\n\
            9 close(4 <unfinished ...>\n\
            7 <... preadv2 resumed>[{iov_len=4}], 1, 0, RWF_HIPRI) = 4\n";
        let expected = [
            "8 getpid() = 7",
            "7 preadv2(3</d/job>, [{iov_len=4}], 1, 0, RWF_HIPRI) = 4",
            "9 close(4",
        ];
        assert_eq!(whole_calls(text), expected);
    }
}
