//! Fetches the logs that the jobs of the last run have written in the pods.

use super::PodSession;
use super::ending::no_answer;
use crate::connection::{AgentEvent, unreadable};
use crate::setup_observer::{ANSWER_TIMEOUT, TICK};
use iosonde_job::Plan;
use iosonde_job::outside_access::relocate_logs;
use iosonde_result::fio::log::{LogKind, file_name};
use iosonde_result::run_error::{PathAction, RunError};
use iosonde_result::wire::{AgentMessage, AgentRequest, LogPart};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

impl PodSession<'_> {
    /// Writes the logs of the last run, that of `plan`, below a local directory, those of several
    /// pods into a directory for each. Returns their paths.
    ///
    /// # Errors
    /// If a pod does not send its logs, or sends other files, or a file cannot be written.
    pub fn write_logs(&self, plan: &Plan, root: &Path) -> Result<Vec<PathBuf>, RunError> {
        let names = log_names(plan);
        let mut written = Vec::new();
        for (index, pod) in self.pods.iter().enumerate() {
            let directory = match self.has_common_start {
                true => root.join(&pod.name),
                false => root.to_owned(),
            };
            let mut logs = LocalLogs::new(directory, &names);
            self.receive_logs(index, &mut logs)?;
            written.extend(logs.paths);
        }
        Ok(written)
    }

    fn receive_logs(&self, index: usize, logs: &mut LocalLogs<'_>) -> Result<(), RunError> {
        let pod = &self.pods[index];
        pod.connection.ask(&AgentRequest::Logs);
        let mut received = Instant::now();
        loop {
            // The first interrupt has ended the run, whose logs are wanted. A pod may never end.
            if (self.watch.interrupts)() > 1 {
                return Err(RunError::Interrupted);
            }
            match pod.connection.events.recv_timeout(TICK) {
                Ok(AgentEvent::Message(AgentMessage::LogPart(part))) => {
                    logs.add(&part)?;
                    received = Instant::now();
                }
                Ok(AgentEvent::Message(AgentMessage::LogsEnd(Ok(())))) => return logs.flush(),
                Ok(AgentEvent::Message(AgentMessage::LogsEnd(Err(failure)))) => {
                    return Err(RunError::PathAccess {
                        path: format!("the logs of {}", pod.name),
                        action: PathAction::Read,
                        failure,
                        is_root: false,
                    });
                }
                Ok(AgentEvent::Message(_)) => {}
                Ok(AgentEvent::Unreadable(problem)) => return Err(unreadable(problem)),
                Err(RecvTimeoutError::Timeout) if received.elapsed() < ANSWER_TIMEOUT => {}
                Ok(AgentEvent::Ended) | Err(_) => {
                    return Err(self.explain_loss(index, no_answer(&pod.name)));
                }
            }
        }
    }
}

/// Log files of a pod on this machine.
struct LocalLogs<'n> {
    directory: PathBuf,
    /// Names of the logs that the jobs write.
    names: &'n BTreeSet<String>,
    /// Name and file of the log that is being received.
    open: Option<(String, BufWriter<File>)>,
    paths: Vec<PathBuf>,
}

impl LocalLogs<'_> {
    fn new(directory: PathBuf, names: &BTreeSet<String>) -> LocalLogs<'_> {
        LocalLogs {
            directory,
            names,
            open: None,
            paths: Vec::new(),
        }
    }

    /// Appends a part to its file, which replaces one of the same name. Agents are not trusted, so
    /// only logs of the jobs are written.
    fn add(&mut self, part: &LogPart) -> Result<(), RunError> {
        let is_open = self
            .open
            .as_ref()
            .is_some_and(|(name, _)| *name == part.name);
        if !is_open {
            self.flush()?;
            debug_assert!(self.open.is_none(), "one log is open at a time");
            if !self.names.contains(&part.name) {
                let problem = format!("no job writes the log {:?}", part.name);
                return Err(unreadable(problem));
            }
            let path = self.directory.join(&part.name);
            let file = create(&path).map_err(|error| not_written(&path, &error))?;
            self.open = Some((part.name.clone(), BufWriter::new(file)));
            self.paths.push(path);
        }
        let Some((_, file)) = &mut self.open else {
            return Ok(());
        };
        let written = file.write_all(part.text.as_bytes());
        written.map_err(|error| not_written(&self.directory.join(&part.name), &error))
    }

    fn flush(&mut self) -> Result<(), RunError> {
        let Some((name, mut file)) = self.open.take() else {
            return Ok(());
        };
        let flushed = file.flush();
        flushed.map_err(|error| not_written(&self.directory.join(name), &error))
    }
}

/// Returns the names of all logs of a plan in the directory to which agents move them. They are
/// relative and do not lead upward.
fn log_names(plan: &Plan) -> BTreeSet<String> {
    const ROOT: &str = "logs";
    let mut moved = plan.clone();
    for job in &mut moved.jobs {
        relocate_logs(job, ROOT, &BTreeSet::new());
    }
    let mut paths = Vec::new();
    for (index, job) in moved.jobs.iter().enumerate() {
        paths.extend(job.measure.logs.trace.clone());
        for clone in 0..job.numjobs {
            let logs = LogKind::ALL.map(|kind| file_name(&moved, index, clone, kind));
            paths.extend(logs.into_iter().flatten());
        }
    }
    let below = |path: &String| Some(path.strip_prefix(ROOT)?.strip_prefix('/')?.to_owned());
    paths.iter().filter_map(below).collect()
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::create(path)
}

fn not_written(path: &Path, error: &io::Error) -> RunError {
    RunError::PathAccess {
        path: path.display().to_string(),
        action: PathAction::Write,
        failure: error.into(),
        is_root: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Job;

    fn part(name: &str, text: &str) -> LogPart {
        LogPart {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    fn plan() -> Plan {
        let mut job = Job::new("a");
        job.numjobs = 2;
        // An empty prefix is the name of the job.
        job.measure.logs.bw = Some(String::new());
        job.measure.logs.lat = Some("sub/b".to_owned());
        Plan {
            jobs: vec![job],
            ..Plan::default()
        }
    }

    #[test]
    fn parts_of_logs_are_joined_into_files() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("a_bw.1.log"), "of an earlier run").unwrap();
        let names = log_names(&plan());
        let mut logs = LocalLogs::new(scratch.path().to_owned(), &names);
        for part in [
            part("a_bw.1.log", "1, 2\n"),
            part("a_bw.1.log", "3, 4\n"),
            part("sub/b_lat.1.log", ""),
        ] {
            logs.add(&part).unwrap();
        }
        logs.flush().unwrap();
        let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
        assert_eq!(read("a_bw.1.log"), "1, 2\n3, 4\n");
        assert_eq!(read("sub/b_lat.1.log"), "");
        assert_eq!(logs.paths.len(), 2);
    }

    #[test]
    fn file_that_no_job_writes_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let names = log_names(&plan());
        let mut logs = LocalLogs::new(scratch.path().join("logs"), &names);
        for name in ["../x", "/x", "a/../../x", "", ".bashrc", "a_bw.3.log"] {
            assert!(logs.add(&part(name, "text")).is_err(), "{name}");
        }
        assert!(!scratch.path().join("x").exists());
        assert!(!scratch.path().join("logs").exists());
    }

    #[test]
    fn names_of_logs_do_not_lead_upward() {
        let mut plan = plan();
        plan.jobs[0].measure.logs.bw = Some("../../etc/a".to_owned());
        plan.jobs[0].measure.logs.lat = None;
        plan.jobs[0].measure.logs.trace = Some("/t".to_owned());
        let names: Vec<String> = log_names(&plan).into_iter().collect();
        assert_eq!(names, ["etc/a_bw.1.log", "etc/a_bw.2.log", "t"]);
    }
}
