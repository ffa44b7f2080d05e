//! What has been measured so far, written down after every run, so that what was stopped goes on where it was.
//!
//! One line of JSON for each run, appended and synchronised: whatever ends the program takes at most the run that was going
//! on. A last line that was cut off does not count. The file is removed when all has been measured.

use crate::failure::Failure;
use crate::store::Place;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Lines that are kept until the end.
pub(crate) struct Lines {
    pub(super) path: PathBuf,
    /// `None` when it cannot be written.
    file: Option<File>,
    /// What is measured: `sweep`, `suite`.
    what: &'static str,
}

impl Lines {
    /// Opens the lines of what `question` describes. Without `resume` they begin anew. A file that cannot be written is told,
    /// and there is no resuming; one that somebody else is writing is an error.
    pub(crate) fn open<L: DeserializeOwned>(
        directory: Option<&Path>,
        what: &'static str,
        question: &impl Serialize,
        resume: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Lines, Vec<L>), Failure> {
        let text = serde_json::to_vec(question).map_err(anyhow::Error::from)?;
        let digest: String = Sha256::digest(&text)[..8]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let path = directory
            .unwrap_or(Path::new(""))
            .join(format!("{digest}.jsonl"));
        let mut lines = Lines {
            path,
            file: None,
            what,
        };
        let opened = match directory {
            Some(directory) => lines.lock(directory),
            None => Err(io::Error::other("there is no directory for it")),
        };
        match opened {
            Ok(true) => {
                let known = lines.begin(resume, tell);
                Ok((lines, known))
            }
            Ok(false) => Err(Failure::usage(
                format!("the same {what} is going on in another program"),
                "wait for it, or change something about this one, e.g. its --seed",
            )),
            Err(error) => {
                lines.lose(&error, tell);
                Ok((lines, Vec::new()))
            }
        }
    }

    /// Opens the file for nobody else; false when somebody else has it.
    fn lock(&mut self, directory: &Path) -> io::Result<bool> {
        std::fs::create_dir_all(directory)?;
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&self.path)?;
        match file.try_lock() {
            Ok(()) => {
                self.file = Some(file);
                Ok(true)
            }
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn begin<L: DeserializeOwned>(&mut self, resume: bool, tell: &mut dyn FnMut(&str)) -> Vec<L> {
        let Some(file) = &self.file else {
            return Vec::new();
        };
        let lines: Vec<L> = match read(file) {
            Ok(lines) => lines,
            Err(error) => {
                self.lose(&error, tell);
                return Vec::new();
            }
        };
        let what = self.what;
        if resume {
            if lines.is_empty() {
                tell(&format!("nothing is known of this {what} yet: it begins"));
            }
            return lines;
        }
        if !lines.is_empty() {
            tell(&format!(
                "the same {what} was stopped before; it begins anew, as there is no --resume"
            ));
        }
        if let Err(error) = file.set_len(0) {
            self.lose(&error, tell);
        }
        Vec::new()
    }

    fn lose(&mut self, error: &io::Error, tell: &mut dyn FnMut(&str)) {
        self.file = None;
        tell(&format!(
            "note: progress cannot be written down ({}: {error}), so this {} cannot be resumed",
            self.path.display(),
            self.what
        ));
    }

    /// Writes down what a run has found.
    pub(crate) fn write(&mut self, line: &impl Serialize, tell: &mut dyn FnMut(&str)) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| writeln!(file, "{text}"))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            self.lose(&error, tell);
        }
    }

    /// Whether there is something to go on from.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// All has been measured.
    pub(crate) fn remove(self) {
        if self.file.is_some() {
            // It is in nobody's way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where lines of a kind are: beside the history, whether or not anything is kept there.
pub(crate) fn directory(store: Option<&Path>, name: &str) -> Option<PathBuf> {
    let place = Place::find(store).ok()?;
    Some(place.path.parent()?.join(name))
}

/// All whole lines.
fn read<L: DeserializeOwned>(mut file: &File) -> io::Result<Vec<L>> {
    file.seek(SeekFrom::Start(0))?;
    let mut lines = Vec::new();
    let mut whole_bytes = 0;
    let mut reader = BufReader::new(file);
    loop {
        let mut text = String::new();
        let length = reader.read_line(&mut text)?;
        if length == 0 || !text.ends_with('\n') {
            break;
        }
        let Ok(line) = serde_json::from_str(&text) else {
            break;
        };
        lines.push(line);
        whole_bytes += length as u64;
    }
    // What was cut off would spoil the line behind it.
    file.set_len(whole_bytes)?;
    Ok(lines)
}
