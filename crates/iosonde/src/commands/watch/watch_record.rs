//! Recordings of `iosonde watch`: JSON lines, the version first, then a line per interval.

use super::watch_sample::WatchSample;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_job::errno::describe;
use iosonde_report::json_document::PROGRAM;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Version of the lines.
const VERSION: u32 = 1;
/// Size limit of a line: thousands of devices.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// First line of a recording.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordHeader {
    /// Version of the lines.
    iosonde_watch: u32,
    /// Program that wrote them.
    #[serde(default)]
    program: String,
}

/// Writes a recording, line by line.
pub(super) struct RecordWriter {
    output: Output,
}

impl RecordWriter {
    /// Opens the file and writes the header.
    pub(super) fn open(path: &Path) -> Result<RecordWriter, CommandError> {
        let mut output = Output::open(Some(path))?;
        // Each line reaches the file at once, so that a killed recording can be replayed.
        output.stream()?;
        let mut writer = RecordWriter { output };
        writer.write_line(&RecordHeader {
            iosonde_watch: VERSION,
            program: PROGRAM.to_owned(),
        })?;
        Ok(writer)
    }

    /// Appends a sample.
    pub(super) fn write_sample(&mut self, sample: &WatchSample) -> Result<(), CommandError> {
        self.write_line(sample)
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<(), CommandError> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.output.write_unchanged(&text)
    }
}

/// Reads a recording, line by line.
pub(super) struct RecordReader<R> {
    path: PathBuf,
    reader: R,
    line_number: u64,
    is_cut_off: bool,
}

impl RecordReader<BufReader<File>> {
    /// Opens a recording and checks its version.
    pub(super) fn open(path: &Path) -> Result<RecordReader<BufReader<File>>, CommandError> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        RecordReader::begin(path, BufReader::new(file))
    }
}

impl<R: BufRead> RecordReader<R> {
    fn begin(path: &Path, reader: R) -> Result<RecordReader<R>, CommandError> {
        let mut records = RecordReader {
            path: path.to_owned(),
            reader,
            line_number: 0,
            is_cut_off: false,
        };
        let line = records.read_line()?.unwrap_or_default();
        let header: Result<RecordHeader, _> = serde_json::from_slice(&line);
        match header {
            Ok(header) if header.iosonde_watch <= VERSION => Ok(records),
            Ok(header) => Err(CommandError::usage(
                format!(
                    "{}: the recording has version {}, and this iosonde reads version {VERSION}",
                    path.display(),
                    header.iosonde_watch
                ),
                format!(
                    "replay it with the program that wrote it: {}",
                    header.program
                ),
            )),
            Err(_) => Err(CommandError::usage(
                format!("{} is not a recording of iosonde watch", path.display()),
                "name a file that iosonde watch --record FILE wrote",
            )),
        }
    }

    /// Returns the next sample. `None` at the end, or at a last line that was cut off.
    pub(super) fn next_sample(&mut self) -> Result<Option<WatchSample>, CommandError> {
        let Some(line) = self.read_line()? else {
            return Ok(None);
        };
        match serde_json::from_slice(&line) {
            Ok(sample) => Ok(Some(sample)),
            Err(_) if line.last() != Some(&b'\n') && (line.len() as u64) < LINE_BYTES_MAX => {
                self.is_cut_off = true;
                Ok(None)
            }
            Err(error) => Err(CommandError::usage(
                format!(
                    "{}: line {} is not a sample of iosonde watch: {error}",
                    self.path.display(),
                    self.line_number
                ),
                "remove the line, or record again",
            )),
        }
    }

    /// Whether the last line was cut off.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Reads a line with its line feed. `None` at the end.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>, CommandError> {
        let mut line = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        let bytes = read.map_err(|error| unreadable(&self.path, &error))?;
        self.line_number += 1;
        Ok((bytes > 0).then_some(line))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::usage(
        format!("{}: {}", path.display(), describe(error)),
        "name a file that iosonde watch --record FILE wrote",
    )
}

#[cfg(test)]
mod tests {
    use super::super::watch_sample::tests::sample;
    use super::*;

    fn reader(text: &[u8]) -> Result<RecordReader<&[u8]>, CommandError> {
        RecordReader::begin(Path::new("disks.jsonl"), text)
    }

    fn recorded(samples: u32) -> Vec<u8> {
        let root = std::env::temp_dir();
        let name = format!("iosonde-watch-{}-{samples}.jsonl", std::process::id());
        let path = root.join(name);
        let mut writer = RecordWriter::open(&path).unwrap();
        for _ in 0..samples {
            writer.write_sample(&sample()).unwrap();
        }
        drop(writer);
        let text = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text
    }

    #[test]
    fn recording_is_replayed_as_it_was() {
        let text = recorded(2);
        assert!(text.starts_with(b"{\"iosonde_watch\":1,\"program\":\""));
        let mut records = reader(&text).unwrap();
        assert_eq!(records.next_sample().unwrap(), Some(sample()));
        assert_eq!(records.next_sample().unwrap(), Some(sample()));
        assert_eq!(records.next_sample().unwrap(), None);
        assert!(!records.is_cut_off());
    }

    #[test]
    fn recording_with_a_cut_off_last_line_ends_before_it() {
        let text = recorded(3);
        let mut records = reader(&text[..text.len() - 9]).unwrap();
        let mut samples = 0;
        while records.next_sample().unwrap().is_some() {
            samples += 1;
        }
        assert_eq!((samples, records.is_cut_off()), (2, true));
    }

    #[test]
    fn recording_with_a_broken_line_within_names_the_line() {
        let mut text = recorded(0);
        text.extend(b"{\"at\":\n{}\n");
        let mut records = reader(&text).unwrap();
        let failure = records.next_sample().unwrap_err();
        let (problem, _) = failure.usage_parts();
        let expected = "disks.jsonl: line 2 is not a sample of iosonde watch: ";
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[test]
    fn other_files_and_newer_recordings_are_refused() {
        for (text, expected) in [
            ("", "is not a recording"),
            ("time,device,tps\n", "is not a recording"),
            ("{\"iosonde_watch\":2,\"program\":\"x\"}\n", "has version 2"),
        ] {
            let failure = reader(text.as_bytes()).err().unwrap().text(false);
            assert!(failure.contains(expected), "{failure}");
        }
        let missing = RecordReader::open(Path::new("/nonexistent/x")).err();
        assert_eq!(
            missing.unwrap().usage_parts().0,
            "/nonexistent/x: No such file or directory (ENOENT)"
        );
    }
}
