//! What `iosonde sweep` does with files that are there.

mod common;

use common::{Scratch, error};
use std::fs;

/// Whatever the command line or a job says of places and sizes.
#[test]
fn a_file_that_is_only_read_keeps_its_length_and_its_content() {
    let scratch = Scratch::new("sweep-precious");
    let file = scratch.path("precious");
    // No multiple of anything.
    let content = vec![7; (24 << 20) + 1003];
    fs::write(&file, &content).unwrap();
    let job = "[removes]\nrw=randread\nioengine=libaio\nunlink=1\n";
    fs::write(scratch.path("removes.fio"), job).unwrap();
    let job = "[behind]\nrw=randread\nioengine=libaio\noffset=20m\nsize=20m\n";
    fs::write(scratch.path("behind.fio"), job).unwrap();
    for (words, status, told) in [
        ("sweep precious --offset 1m,50%", 0, ""),
        ("sweep removes.fio precious", 3, "would remove it"),
        ("sweep behind.fio precious", 3, "but it is only read"),
    ] {
        let words = format!("{words} --iodepth 1 --runtime 1 --exhaustive --no-save");
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let said = error(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(told), "{words:?}: {said}");
        assert!(fs::read(&file).unwrap() == content, "{words:?}: {said}");
    }
}
