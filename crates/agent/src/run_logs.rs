//! Logs of the last run: jobs write them to a directory of the agent, and clients ask for them.

use iosonde_job::Plan;
use iosonde_job::outside_access::relocate_logs;
use iosonde_result::wire::{AgentMessage, LogPart};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Bytes of a log that are sent at a time, until the end of a line.
const PART_BYTES: usize = 256 << 10;

/// The directory of the logs. It exists while it has logs.
#[derive(Debug)]
pub(crate) struct RunLogs {
    directory: PathBuf,
}

impl RunLogs {
    /// Chooses a directory among the temporary files of the agent.
    pub(crate) fn new() -> RunLogs {
        let name = format!("iosonde-logs-{}", std::process::id());
        RunLogs {
            directory: std::env::temp_dir().join(name),
        }
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes the logs of an earlier run, and moves those of the plan into the directory.
    pub(crate) fn prepare(&self, plan: &mut Plan) {
        self.remove();
        let directory = self.directory.to_string_lossy();
        for job in &mut plan.jobs {
            relocate_logs(job, &directory, &BTreeSet::new());
        }
    }

    /// Removes the directory. It is missing if no job has written a log.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }

    /// Sends all logs in parts.
    pub(crate) fn send(&self, send: &mut dyn FnMut(&AgentMessage)) -> io::Result<()> {
        for path in files_below(&self.directory)? {
            let name = path.strip_prefix(&self.directory).unwrap_or(&path);
            send_file(&path, &name.to_string_lossy(), send)?;
        }
        Ok(())
    }
}

/// Returns the files in a directory and its subdirectories, sorted. None if it does not exist.
fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => pending.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn send_file(path: &Path, name: &str, send: &mut dyn FnMut(&AgentMessage)) -> io::Result<()> {
    let mut from = BufReader::new(File::open(path)?);
    let mut is_first = true;
    loop {
        let mut bytes = Vec::new();
        while bytes.len() < PART_BYTES && from.read_until(b'\n', &mut bytes)? > 0 {}
        if bytes.is_empty() && !is_first {
            return Ok(());
        }
        is_first = false;
        send(&AgentMessage::LogPart(LogPart {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_of(logs: &RunLogs) -> Vec<LogPart> {
        let mut parts = Vec::new();
        logs.send(&mut |message| match message {
            AgentMessage::LogPart(part) => parts.push(part.clone()),
            other => panic!("{other:?}"),
        })
        .unwrap();
        parts
    }

    #[test]
    fn logs_are_sent_in_parts_that_end_with_a_line() {
        let scratch = tempfile::tempdir().unwrap();
        let logs = RunLogs {
            directory: scratch.path().join("logs"),
        };
        assert!(parts_of(&logs).is_empty(), "no log was written");
        fs::create_dir_all(logs.directory().join("sub")).unwrap();
        let text = "1000, 4096, 0, 4096, 0\n".repeat(20_000);
        fs::write(logs.directory().join("b_bw.1.log"), &text).unwrap();
        fs::write(logs.directory().join("sub/c_bw.1.log"), "").unwrap();
        let parts = parts_of(&logs);
        let long: Vec<_> = parts
            .iter()
            .filter(|part| part.name == "b_bw.1.log")
            .collect();
        assert!(long.len() > 1, "{}", long.len());
        assert!(
            long.iter()
                .all(|part| part.text.is_empty() || part.text.ends_with('\n'))
        );
        let joined: String = long.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(joined, text);
        let last = parts.last().unwrap();
        assert_eq!(
            (last.name.as_str(), last.text.as_str()),
            ("sub/c_bw.1.log", "")
        );
        logs.remove();
        assert!(!logs.directory().exists());
    }
}
