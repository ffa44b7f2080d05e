//! Notes of resources that a killed test leaves behind, for `tests/clean-up.sh`.

use std::path::PathBuf;
use std::{env, fs};

/// A note in the directory for temporary files, removed on drop together with its resource.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
}

impl Note {
    /// `kind` is `group`, with a control group's directory, or `zram`, with a device's number.
    pub(crate) fn new(kind: &str, thing: &str) -> Note {
        let name = thing.rsplit('/').next().unwrap_or(thing);
        let path = env::temp_dir().join(format!("undo-{kind}-{name}"));
        fs::write(&path, thing).expect("a note in the directory for temporary files");
        Note { path }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
