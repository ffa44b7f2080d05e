//! What a sweep has measured, as it is written down to be taken up again.

use crate::commands::journal::{Beginning, Lines};
use crate::failure::Failure;
use iosonde_machine::consent::ConsentedTarget;
use iosonde_study::saturation::{Record, SoFar};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The journal of one sweep.
pub(crate) struct Journal {
    lines: Lines,
    known: Vec<SoFar>,
    is_empty: bool,
}

#[derive(Serialize, Deserialize)]
struct Line {
    curve: usize,
    spent_ns: u64,
    record: Record,
}

impl Journal {
    /// Opens the journal of the sweep that `question` describes.
    pub(in crate::commands) fn open(
        directory: Option<&Path>,
        question: &impl Serialize,
        curves: usize,
        begins: (Beginning, &[ConsentedTarget]),
        tell: &mut dyn FnMut(&str),
    ) -> Result<Journal, Failure> {
        let (lines, known) = Lines::open::<Line>(directory, "sweep", question, begins, tell)?;
        let mut journal = Journal {
            lines,
            known: vec![SoFar::default(); curves],
            is_empty: known.is_empty(),
        };
        for line in known {
            journal.take(line.curve, &line.record, line.spent_ns);
        }
        Ok(journal)
    }

    /// What is known of each curve.
    pub(in crate::commands) fn so_far(&self) -> Vec<SoFar> {
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
        let line = Line {
            curve,
            spent_ns,
            record: record.clone(),
        };
        self.lines.write(&line, tell);
        self.is_empty = false;
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether the sweep can be resumed.
    pub(crate) fn is_kept(&self) -> bool {
        self.lines.is_kept()
    }

    /// The sweep has come to its end.
    pub(crate) fn remove(self) {
        self.lines.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_job::plan::{Engine, Extent, Job};
    use iosonde_study::saturation::measure_cell;
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;

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
        let open = |beginning| {
            let mut told = Vec::new();
            let journal = Journal::open(
                Some(&place),
                &"question",
                2,
                (beginning, &[]),
                &mut |note| told.push(note.to_owned()),
            );
            (journal.unwrap(), told)
        };
        let (mut journal, told) = open(Beginning::Anew);
        assert!(told.is_empty() && journal.is_kept());
        let busy = Journal::open(
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
        // Without --resume it begins anew, and says so.
        let (journal, told) = open(Beginning::Anew);
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
        let journal = Journal::open(
            Some(place),
            &"question",
            1,
            (Beginning::Anew, &[]),
            &mut |note| told.push(note.to_owned()),
        )
        .unwrap();
        assert!(!journal.is_kept());
        assert!(told[0].contains("cannot be resumed"), "{told:?}");
    }

    #[test]
    fn resume_without_a_match_is_refused_with_what_could_be_resumed() {
        let place = directory("unmatched");
        let open = |question: &str, beginning| {
            Journal::open(Some(&place), &question, 1, (beginning, &[]), &mut |_| {})
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
        // One that has no result yet could not be resumed, nor could one that another process writes.
        assert!(!listed(&refused("b").unwrap().1));
        journal.write(0, &record(1), 1, &mut |_| {});
        assert!(!listed(&refused("b").unwrap().1));
        drop(journal);
        let (_, text) = refused("b").unwrap();
        assert!(text.contains(help) && listed(&text), "{text}");
        assert!(text.ends_with(" --resume"), "{text}");
        // What is part of a suite that is resumed may not have begun.
        assert!(open("b", Beginning::Known).is_ok());
        std::fs::remove_dir_all(&place).unwrap();
    }
}
