//! What has been measured so far, written down after every run, so that what was stopped goes on where it was.
//!
//! The first line is the command that began it. One line of JSON for each run follows, appended and synchronised: whatever
//! ends the program takes at most the run that was going on. A last line that was cut off does not count. The file is removed
//! when all has been measured.

use super::resumable::{Begun, CommandLine, resumable};
use crate::failure::Failure;
use crate::store::Place;
use iosonde_machine::consent::ConsentedTarget;
use iosonde_machine::disk_identity::IdentityChange;
use iosonde_machine::write_obstacles::other_disk;
use iosonde_result::session::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How a journal begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// From nothing: what is known is forgotten.
    Anew,
    /// From what is known, which may be nothing: a part of something larger that is resumed.
    Known,
    /// From a journal that is there; without one it is an error.
    Resumed,
}

impl Beginning {
    /// What a command's `--resume` asks for.
    pub(crate) fn of_flag(resume: bool) -> Beginning {
        match resume {
            true => Beginning::Resumed,
            false => Beginning::Anew,
        }
    }
}

/// Lines that are kept until the end.
pub(crate) struct Lines {
    pub(super) path: PathBuf,
    /// `None` when it cannot be written.
    file: Option<File>,
    /// What is measured: `sweep`, `suite`.
    what: &'static str,
}

impl Lines {
    /// Opens the journal of the study that `question` describes. If the file cannot be written, a note says so and the study
    /// cannot be resumed. A journal that another process writes is an error, and so is a missing one with `--resume`, or
    /// one of a study that had `consent` to overwrite another disk.
    pub(crate) fn open<L: DeserializeOwned>(
        directory: Option<&Path>,
        what: &'static str,
        question: &impl Serialize,
        (beginning, consent): (Beginning, &[ConsentedTarget]),
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
        if beginning == Beginning::Resumed && !path.is_file() {
            return Err(nothing_to_resume(what, directory));
        }
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
                if beginning != Beginning::Anew {
                    lines.refuse_other_disk(consent)?;
                }
                let known = lines.begin(beginning != Beginning::Anew, consent, tell);
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

    /// Refuses to resume on a disk that was not consented to when the study began, whatever its name is.
    fn refuse_other_disk(&self, consent: &[ConsentedTarget]) -> Result<(), Failure> {
        let Some(noted) = self.file.as_ref().and_then(noted_consent) else {
            return Ok(());
        };
        for target in consent {
            let Some(now) = &target.disk else { continue };
            let before = noted.iter().find(|other| other.path == target.path);
            let change = match before.and_then(|before| before.disk.as_ref()) {
                Some(before) => before.change(now),
                None => Some(IdentityChange::Unknown),
            };
            if let Some(change) = change {
                return Err(Failure::Run(RunError::Refused {
                    device: target.path.display().to_string(),
                    found: other_disk(&change),
                    remedy: format!(
                        "make sure that it is the right disk, then start this {} anew, without --resume",
                        self.what
                    ),
                }));
            }
        }
        Ok(())
    }

    fn begin<L: DeserializeOwned>(
        &mut self,
        resume: bool,
        consent: &[ConsentedTarget],
        tell: &mut dyn FnMut(&str),
    ) -> Vec<L> {
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
        if resume && !lines.is_empty() {
            return lines;
        }
        if !resume && !lines.is_empty() {
            tell(&format!(
                "the same {what} was stopped before; it begins anew, as there is no --resume"
            ));
        }
        if let Err(error) = file.set_len(0) {
            self.lose(&error, tell);
        }
        let begun = Begun {
            command: CommandLine::of_this_process(),
            consent: Some(consent.to_vec()),
        };
        self.write(&begun, tell);
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

/// The consent that a journal was begun with, none where it does not say; `None`: the journal holds no result.
fn noted_consent(mut file: &File) -> Option<Vec<ConsentedTarget>> {
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next()?.ok()?;
    lines.next()?.ok()?;
    let begun: Option<Begun> = serde_json::from_str(&first).ok();
    Some(begun.and_then(|begun| begun.consent).unwrap_or_default())
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
        match serde_json::from_str(&text) {
            Ok(line) => lines.push(line),
            Err(_) if whole_bytes == 0 && serde_json::from_str::<Begun>(&text).is_ok() => {}
            Err(_) => break,
        }
        whole_bytes += length as u64;
    }
    // What was cut off would spoil the line behind it.
    file.set_len(whole_bytes)?;
    Ok(lines)
}

/// The error of a `--resume` that no journal matches, with what could be resumed.
fn nothing_to_resume(what: &str, directory: Option<&Path>) -> Failure {
    let others = directory.map(resumable).unwrap_or_default();
    let help = match &others[..] {
        [] => format!("leave out --resume to start this {what}"),
        others => format!(
            "leave out --resume to start this {what}, or resume a stopped one:\n  {}",
            others.join("\n  ")
        ),
    };
    Failure::usage(
        format!("--resume: no stopped {what} has these targets and options"),
        help,
    )
}
