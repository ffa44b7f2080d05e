//! What a sweep has measured, written down after every run, so that a sweep that was stopped goes on where it was.
//!
//! One line of JSON for each run, appended and synchronised: whatever ends the program takes at most the cell that was going
//! on. A last line that was cut off does not count. The file is removed when the sweep comes to its end.

use crate::failure::Failure;
use iosonde_study::saturation::{Record, SoFar};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The journal of one sweep.
pub(crate) struct Journal {
    path: PathBuf,
    /// `None` when it cannot be written.
    file: Option<File>,
    known: Vec<SoFar>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    curve: usize,
    spent_ns: u64,
    record: Record,
}

impl Journal {
    /// Opens the journal of the sweep that `question` describes. Without `resume` it begins anew. One that cannot be written is
    /// told, and the sweep cannot be resumed; one that somebody else is writing is an error.
    pub(super) fn open(
        directory: Option<&Path>,
        question: &impl Serialize,
        curves: usize,
        resume: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Journal, Failure> {
        let text = serde_json::to_vec(question).map_err(anyhow::Error::from)?;
        let digest: String = Sha256::digest(&text)[..8]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let path = directory
            .unwrap_or(Path::new(""))
            .join(format!("{digest}.jsonl"));
        let mut journal = Journal {
            path,
            file: None,
            known: vec![SoFar::default(); curves],
        };
        let opened = match directory {
            Some(directory) => journal.lock(directory),
            None => Err(io::Error::other("there is no directory for it")),
        };
        match opened {
            Ok(true) => journal.begin(resume, tell),
            Ok(false) => {
                return Err(Failure::usage(
                    "the same sweep is going on in another program",
                    "wait for it, or change something about this one, e.g. its --seed",
                ));
            }
            Err(error) => journal.lose(&error, tell),
        }
        Ok(journal)
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

    fn begin(&mut self, resume: bool, tell: &mut dyn FnMut(&str)) {
        let Some(file) = &self.file else { return };
        let lines = match read(file) {
            Ok(lines) => lines,
            Err(error) => return self.lose(&error, tell),
        };
        let cells = lines.len();
        if resume {
            for line in lines {
                self.take(line.curve, &line.record, line.spent_ns);
            }
            if cells == 0 {
                tell("nothing is known of this sweep yet: it begins");
            }
            return;
        }
        if cells > 0 {
            tell("the same sweep was stopped before; it begins anew, as there is no --resume");
        }
        if let Err(error) = file.set_len(0) {
            self.lose(&error, tell);
        }
    }

    fn lose(&mut self, error: &io::Error, tell: &mut dyn FnMut(&str)) {
        self.file = None;
        tell(&format!(
            "note: progress cannot be written down ({}: {error}), so this sweep cannot be resumed",
            self.path.display()
        ));
    }

    /// What is known of each curve.
    pub(super) fn so_far(&self) -> Vec<SoFar> {
        self.known.clone()
    }

    fn take(&mut self, curve: usize, record: &Record, spent_ns: u64) {
        if let Some(known) = self.known.get_mut(curve) {
            known.records.retain(|other| !other.is_of_same_cell(record));
            known.records.push(record.clone());
            known.spent_ns = spent_ns;
        }
    }

    /// Writes down what a run has found.
    pub(crate) fn write(
        &mut self,
        curve: usize,
        record: &Record,
        spent_ns: u64,
        tell: &mut dyn FnMut(&str),
    ) {
        let Some(file) = &mut self.file else { return };
        let line = Line {
            curve,
            spent_ns,
            record: record.clone(),
        };
        let written = serde_json::to_string(&line)
            .map_err(io::Error::other)
            .and_then(|text| writeln!(file, "{text}"))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            self.lose(&error, tell);
        }
    }

    /// Whether the sweep can be resumed.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// The sweep has come to its end.
    pub(crate) fn remove(self) {
        if self.file.is_some() {
            // It is in nobody's way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// All whole lines.
fn read(mut file: &File) -> io::Result<Vec<Line>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::local::LocalRunner;
    use iosonde_job::plan::{Engine, Extent, Job};
    use iosonde_study::saturation::measure_cell;

    fn record(iodepth: u32) -> Record {
        let mut job = Job::new("cell");
        job.files.size = Some(Extent::Bytes(1 << 30));
        job.io.engine = Engine::Sim;
        job.io.sim = Some("seed=1,read_us=1000".into());
        let mut session = LocalRunner::default().open();
        let times = (1_000_000, 300_000_000);
        measure_cell(&mut session, &job, iodepth, times, &mut ())
            .unwrap()
            .record
    }

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("iosonde-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn what_was_written_is_read_back_but_for_a_torn_line() {
        let place = directory("torn");
        let open = |resume| {
            let mut told = Vec::new();
            let journal = Journal::open(Some(&place), &"question", 2, resume, &mut |note| {
                told.push(note.to_owned())
            });
            (journal.unwrap(), told)
        };
        let (mut journal, told) = open(false);
        assert!(told.is_empty() && journal.is_kept());
        let busy = Journal::open(Some(&place), &"question", 2, true, &mut |_| {});
        assert!(busy.is_err_and(|failure| failure.status() == 2));
        journal.write(1, &record(1), 7, &mut |_| {});
        journal.write(1, &record(2), 8, &mut |_| {});
        let path = journal.path.clone();
        drop(journal);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"curve\":0,\"spe").unwrap();
        let (mut journal, _) = open(true);
        let known = journal.so_far();
        assert_eq!((known[0].records.len(), known[1].records.len()), (0, 2));
        assert_eq!(known[1].spent_ns, 8);
        assert_eq!(known[1].records[0], record(1));
        journal.write(0, &record(4), 9, &mut |_| {});
        drop(journal);
        let (journal, _) = open(true);
        assert_eq!(journal.so_far()[0].records.len(), 1);
        drop(journal);
        // Without --resume it begins anew, and says so.
        let (journal, told) = open(false);
        assert!(told[0].contains("--resume"), "{told:?}");
        assert!(journal.so_far()[1].records.is_empty());
        journal.remove();
        assert!(!path.exists());
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_journal_that_cannot_be_written_is_told() {
        let mut told = Vec::new();
        let place = Path::new("/proc/nowhere");
        let journal = Journal::open(Some(place), &"question", 1, false, &mut |note| {
            told.push(note.to_owned())
        })
        .unwrap();
        assert!(!journal.is_kept());
        assert!(told[0].contains("cannot be resumed"), "{told:?}");
    }
}
