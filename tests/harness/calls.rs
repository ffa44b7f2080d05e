//! The system calls of a traced run; [`Invocation::traced`](crate::program::Invocation::traced) writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The system calls that strace has written into a file, each on one line with its result, in the order of their ends.
///
/// # Panics
/// When the file cannot be read.
#[must_use]
pub fn system_calls(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("what strace wrote");
    whole_calls(&text)
}

/// strace cuts a call in two lines when another thread makes one meanwhile: a call that never ended has the first part only.
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
    fn call_that_was_cut_in_two_is_one_line() {
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
