//! Sweeps and load studies of targets in memory.

use crate::common::Scratch;
use std::fs;
use std::path::PathBuf;

/// A directory on `/dev/shm`, removed in the drop.
struct MemoryDirectory(PathBuf);

impl Drop for MemoryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn studies_in_memory_say_that_data_is_lost() {
    let scratch = Scratch::new("studies-memory");
    let name = format!("/dev/shm/iosonde-studies-{}", std::process::id());
    let directory = MemoryDirectory(PathBuf::from(name));
    fs::create_dir(&directory.0).unwrap();
    let target = directory.0.to_str().unwrap();
    let sweep = "--rw randread --iodepth 1,2 --exhaustive --runtime 1 --size 16m";
    let load = "--rw randread --rates 100,200 --runtime 1 --size 16m";
    let caution = "This is memory (tmpfs): its data does not survive a restart.";
    for (study, options) in [("sweep", sweep), ("load", load)] {
        let options: Vec<&str> = options.split(' ').collect();
        let measured = scratch.done(&[&[study, target], options.as_slice()].concat());
        let stored = scratch.done(&["show", "latest"]);
        for text in [measured, stored] {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.join(" ").contains(caution), "{study}: {text}");
        }
    }
}
