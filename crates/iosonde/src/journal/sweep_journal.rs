//! The journal of a sweep: measured cells, from which the sweep is resumed.

use super::journal_file::{Beginning, JournalFile};
use crate::failure::CommandError;
use iosonde_machine::consent::ConsentedTarget;
use iosonde_study::saturation::{CellRecord, SearchProgress};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The journal of one sweep.
pub(crate) struct SweepJournal {
    lines: JournalFile,
    known: Vec<SearchProgress>,
    is_empty: bool,
}

#[derive(Serialize, Deserialize)]
struct SweepJournalLine {
    curve: usize,
    spent_ns: u64,
    record: CellRecord,
}

impl SweepJournal {
    /// Opens the journal of the sweep that `key` identifies.
    pub(crate) fn open(
        directory: Option<&Path>,
        key: &impl Serialize,
        curves: usize,
        begins: (Beginning, &[ConsentedTarget]),
        report_note: &mut dyn FnMut(&str),
    ) -> Result<SweepJournal, CommandError> {
        let (lines, known) =
            JournalFile::open::<SweepJournalLine>(directory, "sweep", key, begins, report_note)?;
        let mut journal = SweepJournal {
            lines,
            known: vec![SearchProgress::default(); curves],
            is_empty: known.is_empty(),
        };
        for line in known {
            journal.take(line.curve, &line.record, line.spent_ns);
        }
        Ok(journal)
    }

    /// Measured cells of each curve.
    pub(crate) fn so_far(&self) -> Vec<SearchProgress> {
        self.known.clone()
    }

    fn take(&mut self, curve: usize, record: &CellRecord, spent_ns: u64) {
        if let Some(known) = self.known.get_mut(curve) {
            known.records.retain(|other| !other.is_of_same_cell(record));
            known.records.push(record.clone());
            known.spent_ns = spent_ns;
        }
    }

    /// Records a measured cell.
    pub(crate) fn write(
        &mut self,
        curve: usize,
        record: &CellRecord,
        spent_ns: u64,
        report_note: &mut dyn FnMut(&str),
    ) {
        let line = SweepJournalLine {
            curve,
            spent_ns,
            record: record.clone(),
        };
        self.lines.write(&line, report_note);
        self.is_empty = false;
    }

    /// Whether no cell is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether the sweep can be resumed.
    pub(crate) fn is_kept(&self) -> bool {
        self.lines.is_kept()
    }

    /// Removes the journal of a complete sweep.
    pub(crate) fn remove(self) {
        self.lines.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_job::plan::{BytesOrPercent, Engine, Job};
    use iosonde_study::StudyDriver;
    use iosonde_study::saturation::{CurveLog, measure_cell};
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;

    fn record(iodepth: u32) -> CellRecord {
        let mut job = Job::new("cell");
        job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
        job.io.engine = Engine::Sim;
        job.io.sim = Some("seed=1,read_us=1000".into());
        let mut session = LocalRunner::default().open();
        let times = (1_000_000, 300_000_000);
        let observer = &mut ();
        let mut driver = StudyDriver::new(&mut session, observer);
        measure_cell(&mut driver, &job, iodepth, times, &mut CurveLog::default())
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
    fn journal_is_read_back_without_torn_line() {
        let place = directory("torn");
        let open = |beginning| {
            let mut notes = Vec::new();
            let journal = SweepJournal::open(
                Some(&place),
                &"question",
                2,
                (beginning, &[]),
                &mut |note| notes.push(note.to_owned()),
            );
            (journal.unwrap(), notes)
        };
        let (mut journal, notes) = open(Beginning::Anew);
        assert!(notes.is_empty() && journal.is_kept());
        let busy = SweepJournal::open(
            Some(&place),
            &"question",
            2,
            (Beginning::Resumed, &[]),
            &mut |_| {},
        );
        assert!(busy.is_err_and(|failure| failure.status() == 2));
        journal.write(1, &record(1), 7, &mut |_| {});
        journal.write(1, &record(2), 8, &mut |_| {});
        let path = journal.lines.path.clone();
        drop(journal);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"curve\":0,\"spe").unwrap();
        let (mut journal, _) = open(Beginning::Resumed);
        let known = journal.so_far();
        assert_eq!((known[0].records.len(), known[1].records.len()), (0, 2));
        assert_eq!(known[1].spent_ns, 8);
        assert_eq!(known[1].records[0], record(1));
        journal.write(0, &record(4), 9, &mut |_| {});
        drop(journal);
        let (journal, _) = open(Beginning::Resumed);
        assert_eq!(journal.so_far()[0].records.len(), 1);
        drop(journal);
        // Without --resume the journal restarts, with a note.
        let (journal, notes) = open(Beginning::Anew);
        assert!(notes[0].contains("--resume"), "{notes:?}");
        assert!(journal.so_far()[1].records.is_empty());
        journal.remove();
        assert!(!path.exists());
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn unwritable_journal_is_noted() {
        let mut notes = Vec::new();
        let place = Path::new("/proc/nowhere");
        let journal = SweepJournal::open(
            Some(place),
            &"question",
            1,
            (Beginning::Anew, &[]),
            &mut |note| notes.push(note.to_owned()),
        )
        .unwrap();
        assert!(!journal.is_kept());
        assert!(notes[0].contains("cannot be resumed"), "{notes:?}");
    }

    #[test]
    fn resume_without_match_names_resumable_study() {
        let place = directory("unmatched");
        let open = |question: &str, beginning| {
            SweepJournal::open(Some(&place), &question, 1, (beginning, &[]), &mut |_| {})
        };
        let refused = |question| {
            let failure = open(question, Beginning::Resumed).err();
            failure.map(|failure| (failure.status(), failure.text(false)))
        };
        let help = "help: leave out --resume to start this sweep";
        let (status, text) = refused("a").unwrap();
        assert!(status == 2 && text.ends_with(help), "{text}");
        let mut journal = open("a", Beginning::Anew).ok().unwrap();
        let listed = |text: &str| text.contains("\n  cd ");
        // Journals without a result or with a writer cannot be resumed.
        assert!(!listed(&refused("b").unwrap().1));
        journal.write(0, &record(1), 1, &mut |_| {});
        assert!(!listed(&refused("b").unwrap().1));
        drop(journal);
        let (_, text) = refused("b").unwrap();
        assert!(text.contains(help) && listed(&text), "{text}");
        assert!(text.ends_with(" --resume"), "{text}");
        // A part of a resumed suite may not have started.
        assert!(open("b", Beginning::Known).is_ok());
        std::fs::remove_dir_all(&place).unwrap();
    }
}
