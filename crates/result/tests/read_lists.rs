//! Lists that are read from JSON, in a program that has set the file of their blocks.

use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::spill_list::{BlockFile, make_files_with};
use std::io;
use std::sync::{Arc, Mutex};

/// Blocks written by all lists of this program.
static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Shared;

impl BlockFile for Shared {
    fn append(&self, block: &[u8]) -> io::Result<u64> {
        let mut written = WRITTEN.lock().unwrap();
        written.extend(block);
        Ok((written.len() - block.len()) as u64)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        bytes.copy_from_slice(&WRITTEN.lock().unwrap()[from..from + bytes.len()]);
        Ok(())
    }
}

#[test]
fn list_read_from_json_spills_blocks_beyond_the_bound() {
    let busy = |number: u64| {
        let mut interval = Interval {
            start_ns: number,
            ..Interval::default()
        };
        (0..700).for_each(|value| interval.latency.record(value * value * 1000));
        interval.compacted()
    };
    let json = serde_json::to_string(&(0..6000).map(busy).collect::<Vec<_>>()).unwrap();
    make_files_with(|| Arc::new(Shared));
    let list: Intervals = serde_json::from_str(&json).unwrap();
    assert!(!WRITTEN.lock().unwrap().is_empty());
    assert!(list.is_whole());
    assert_eq!(serde_json::to_string(&list).unwrap(), json);
}
