//! Captured machines for tests: `tests/machines/NAME.tree` unpacked into a temporary directory.
//!
//! The lines are `path = value`, `link -> /absolute/target` (made relative), `directory/`, or `path
//! <<` with the text up to `>>`. `@ /dir` sets the directory of the paths that follow.

use crate::proc_root::System;
use std::fs;
use std::path::{Path, PathBuf};

/// A captured machine on disk. It is removed when the value is dropped.
pub(crate) struct CapturedMachine {
    root: tempfile::TempDir,
}

impl CapturedMachine {
    /// Unpacks `tests/machines/NAME.tree`.
    pub(crate) fn unpack(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/machines")
            .join(format!("{name}.tree"));
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        let mut lines = text.lines();
        let mut base = PathBuf::from("/");
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
            } else if let Some(dir) = line.strip_prefix("@ ") {
                base = PathBuf::from(dir);
            } else if let Some((link, target)) = line.split_once(" -> ") {
                machine.link(&base.join(link), Path::new(target));
            } else if let Some(path) = line.strip_suffix(" <<") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != ">>").collect();
                machine.write(&base.join(path), &(body.join("\n") + "\n"));
            } else if let Some((path, value)) = line.split_once(" = ") {
                machine.write(&base.join(path), &format!("{value}\n"));
            } else if let Some(dir) = line.strip_suffix('/') {
                fs::create_dir_all(machine.system().at(base.join(dir))).unwrap();
            } else {
                panic!("{name}.tree: {line:?} is of no known form");
            }
        }
        machine
    }

    /// The captured system.
    pub(crate) fn system(&self) -> System {
        System::captured(self.root.path())
    }

    /// Writes a file of the machine.
    pub(crate) fn write(&self, path: &Path, text: &str) {
        fs::write(self.place(path), text).unwrap();
    }

    /// Makes a symbolic link of the machine.
    pub(crate) fn link(&self, link: &Path, target: &Path) {
        let up = link.components().count() - 2;
        let relative = Path::new(&"../".repeat(up)).join(target.strip_prefix("/").unwrap());
        std::os::unix::fs::symlink(relative, self.place(link)).unwrap();
    }

    fn place(&self, path: &Path) -> PathBuf {
        let place = self.system().at(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }
}
