//! Journal of a study: records each finished run, so that a stopped study can be resumed.
//!
//! The first line is the command of the study. One line of JSON per run follows, appended and
//! synchronised: a crash loses at most the current run. An incomplete last line is ignored. A
//! complete study removes its file.

use super::journal_key::KEY_VERSION;
use super::resumable::{JournalHeader, ResumableCommand, latest_stopped};
use crate::failure::CommandError;
use iosonde_history::HistoryPath;
use iosonde_job::{lowercase_hex, read_json};
use iosonde_machine::consent::ConsentedTarget;
use iosonde_machine::disk_identity::IdentityChange;
use iosonde_result::run_error::{RunError, WriteRefusal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How a journal begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Without earlier results, which are deleted.
    Anew,
    /// From earlier results, if any: part of a larger study that is resumed.
    Known,
    /// From an existing journal. Fails if it is missing.
    Resumed,
}

impl Beginning {
    /// The beginning for the value of `--resume`.
    pub(crate) fn of_flag(resume: bool) -> Beginning {
        match resume {
            true => Beginning::Resumed,
            false => Beginning::Anew,
        }
    }
}

/// A journal, locked until it is dropped.
pub(crate) struct JournalFile {
    pub(super) path: PathBuf,
    /// `None` if the file cannot be written.
    file: Option<File>,
    /// The kind of study: `sweep`, `suite`.
    what: &'static str,
}

impl JournalFile {
    /// Opens the journal of the study that `key` identifies. If the file cannot be written, a
    /// note says that the study cannot be resumed. Fails if another process writes it. With
    /// `--resume`, fails if it is missing or its `consent` was for another disk.
    pub(crate) fn open<L: DeserializeOwned>(
        directory: Option<&Path>,
        what: &'static str,
        key: &impl Serialize,
        (beginning, consent): (Beginning, &[ConsentedTarget]),
        report_note: &mut dyn FnMut(&str),
    ) -> Result<(JournalFile, Vec<L>), CommandError> {
        let text = serde_json::to_vec(key).map_err(anyhow::Error::from)?;
        let digest = lowercase_hex(&Sha256::digest(&text)[..8]);
        let path = directory
            .unwrap_or(Path::new(""))
            .join(format!("{digest}.jsonl"));
        if beginning == Beginning::Resumed && !path.is_file() {
            return Err(nothing_to_resume(what, directory));
        }
        let mut lines = JournalFile {
            path,
            file: None,
            what,
        };
        let opened = match directory {
            Some(directory) => lines.lock(directory),
            None => Err(io::Error::other("neither HOME nor XDG_DATA_HOME is set")),
        };
        match opened {
            Ok(true) => {
                if beginning != Beginning::Anew {
                    lines.refuse_other_disk(consent)?;
                }
                let known = lines.begin(beginning != Beginning::Anew, consent, report_note);
                Ok((lines, known))
            }
            Ok(false) => Err(CommandError::usage(
                format!("another process is running the same {what}"),
                "wait until it ends, or change an option, e.g. --seed",
            )),
            Err(error) => {
                lines.lose(&error, report_note);
                Ok((lines, Vec::new()))
            }
        }
    }

    /// Opens and locks the file. `false` if another process holds the lock.
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

    /// Refuses to resume on a disk that had no consent when the study began, whatever its name.
    fn refuse_other_disk(&self, consent: &[ConsentedTarget]) -> Result<(), CommandError> {
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
                return Err(CommandError::Run(RunError::write_refused(
                    target.path.display().to_string(),
                    WriteRefusal::ResumedOnOtherDisk {
                        change,
                        study: self.what.to_owned(),
                    },
                )));
            }
        }
        Ok(())
    }

    fn begin<L: DeserializeOwned>(
        &mut self,
        resume: bool,
        consent: &[ConsentedTarget],
        report_note: &mut dyn FnMut(&str),
    ) -> Vec<L> {
        let Some(file) = &self.file else {
            return Vec::new();
        };
        let lines: Vec<L> = match recover_lines(file) {
            Ok(lines) => lines,
            Err(error) => {
                self.lose(&error, report_note);
                return Vec::new();
            }
        };
        let what = self.what;
        if resume && !lines.is_empty() {
            return lines;
        }
        if !resume && !lines.is_empty() {
            report_note(&format!(
                "the same {what} was stopped before; without --resume it starts again from the \
                 beginning"
            ));
        }
        if let Err(error) = file.set_len(0) {
            self.lose(&error, report_note);
        }
        let begun = JournalHeader {
            command: ResumableCommand::of_this_process(),
            consent: consent.to_vec(),
            key_version: KEY_VERSION,
        };
        self.write(&begun, report_note);
        Vec::new()
    }

    fn lose(&mut self, error: &io::Error, report_note: &mut dyn FnMut(&str)) {
        self.file = None;
        report_note(&format!(
            "note: this {} cannot be resumed: its progress cannot be written to {}: {}",
            self.what,
            self.path.display(),
            iosonde_job::errno::describe(error)
        ));
    }

    /// Appends the result of a run and synchronises the file.
    pub(crate) fn write(&mut self, line: &impl Serialize, report_note: &mut dyn FnMut(&str)) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| writeln!(file, "{text}"))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            self.lose(&error, report_note);
        }
    }

    /// Whether the study can be resumed.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Removes the journal of a complete study.
    pub(crate) fn remove(self) {
        if self.file.is_some() {
            // An error is ignored: a remaining file does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Directory of journals beside the history, even if the history is not used.
pub(crate) fn directory(store: Option<&Path>, name: &str) -> Option<PathBuf> {
    let place = HistoryPath::find(store).ok()?;
    Some(place.path.parent()?.join(name))
}

/// The consent that the journal began with. `None`: it has no results.
fn noted_consent(mut file: &File) -> Option<Vec<ConsentedTarget>> {
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next()?.ok()?;
    lines.next()?.ok()?;
    let begun: JournalHeader = read_json(&first).ok()?;
    Some(begun.consent)
}

/// Reads all complete lines and truncates the rest. A journal without a header has no results.
fn recover_lines<L: DeserializeOwned>(mut file: &File) -> io::Result<Vec<L>> {
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
        if whole_bytes == 0 {
            if read_json::<JournalHeader>(&text).is_err() {
                break;
            }
        } else {
            match read_json(&text) {
                Ok(line) => lines.push(line),
                Err(_) => break,
            }
        }
        whole_bytes += length as u64;
    }
    // A line appended to an incomplete one would be unreadable.
    file.set_len(whole_bytes)?;
    Ok(lines)
}

/// The error of a `--resume` without a journal, with the latest study that can be resumed.
fn nothing_to_resume(what: &str, directory: Option<&Path>) -> CommandError {
    let start = format!("leave out --resume to start this {what}");
    let help = match directory.and_then(latest_stopped) {
        Some(stopped) => format!("{start}, or resume {stopped}"),
        None => start,
    };
    CommandError::usage(
        format!("--resume: no stopped {what} has these targets and options"),
        help,
    )
}
