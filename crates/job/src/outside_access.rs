//! Accesses of a job outside of its target: shell commands, settings of the machine, and paths that
//! it reads or writes.
//!
//! `iosonde fio` permits all of them, as fio does. A study runs jobs on a target that the user
//! named, and permits other accesses only if the user asked for them.

use crate::plan::{Job, Memory};
use crate::relocate::downward;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The kind of an access outside of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Runs a shell command.
    Command,
    /// Changes a setting of the machine.
    Setting,
    /// Creates a file for its buffers.
    BufferFile,
    /// Writes a log.
    Log,
    /// Reads a file.
    Read,
}

/// One access of a job outside of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideAccess {
    /// The job's name.
    pub job: String,
    /// The option that causes the access.
    pub option: &'static str,
    /// The command, the setting or the path.
    pub value: String,
    /// The kind of the access.
    pub kind: AccessKind,
}

impl fmt::Display for OutsideAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe_access(
            &self.job,
            self.option,
            &self.value,
            self.kind,
        ))
    }
}

/// Describes an access of a job outside of its target.
pub fn describe_access(job: &str, option: &str, value: &str, kind: AccessKind) -> String {
    let does = match kind {
        AccessKind::Command => "runs a command",
        AccessKind::Setting => "changes a setting of the machine",
        AccessKind::BufferFile => "creates a file for its buffers",
        AccessKind::Log => "writes a log",
        AccessKind::Read => "reads a file",
    };
    format!("job `{job}` {does} outside of its target: {option}={value}")
}

impl OutsideAccess {
    /// Whether the access is permitted only if the user trusts the job.
    pub fn needs_trust(&self) -> bool {
        matches!(
            self.kind,
            AccessKind::Command | AccessKind::Setting | AccessKind::BufferFile
        )
    }
}

/// Lists the accesses of a job outside of its target.
pub fn outside_accesses(job: &Job) -> Vec<OutsideAccess> {
    let mut found = Vec::new();
    let mut add = |kind, option, value: &str| {
        found.push(OutsideAccess {
            job: job.name.clone(),
            option,
            value: value.to_owned(),
            kind,
        });
    };
    let schedule = &job.schedule;
    for (option, command) in [
        ("exec_prerun", &schedule.exec_prerun),
        ("exec_postrun", &schedule.exec_postrun),
    ] {
        if let Some(command) = command {
            add(AccessKind::Command, option, command);
        }
    }
    if let Some(scheduler) = &job.io.scheduler {
        add(AccessKind::Setting, "ioscheduler", scheduler);
    }
    match &job.io.mem {
        Memory::Mmap(Some(path)) => add(AccessKind::BufferFile, "mem", &format!("mmap:{path}")),
        Memory::MmapHuge(Some(path)) => {
            add(AccessKind::BufferFile, "mem", &format!("mmaphuge:{path}"));
        }
        _ => {}
    }
    let logs = &job.measure.logs;
    for (option, name) in [
        ("write_bw_log", &logs.bw),
        ("write_iops_log", &logs.iops),
        ("write_lat_log", &logs.lat),
        ("write_hist_log", &logs.hist),
        ("write_iolog", &logs.trace),
    ] {
        match name.as_deref() {
            Some("") => add(AccessKind::Log, option, &job.name),
            Some(name) => add(AccessKind::Log, option, name),
            None => {}
        }
    }
    for trace in job.replay.iter().flat_map(|replay| &replay.traces) {
        add(AccessKind::Read, "read_iolog", trace);
    }
    if let Some(ceph) = job.io.ceph.as_deref() {
        for (option, path) in [
            ("conf", &ceph.access.conf),
            ("ceph_keyring", &ceph.access.keyring),
        ] {
            if let Some(path) = path {
                add(AccessKind::Read, option, path);
            }
        }
    }
    found
}

/// Moves all logs of a job below `directory`. `recorded` holds the traces that jobs of the same
/// study record (`write_iolog`): a job that replays one of them reads it from there.
pub fn relocate_logs(job: &mut Job, directory: &str, recorded: &BTreeSet<String>) {
    let below = |name: &str| format!("{directory}/{}", downward(name));
    let own = job.name.clone();
    let logs = &mut job.measure.logs;
    let names = [
        &mut logs.bw,
        &mut logs.iops,
        &mut logs.lat,
        &mut logs.hist,
        &mut logs.trace,
    ];
    for name in names.into_iter().flatten() {
        *name = below(if name.is_empty() { &own } else { name });
    }
    for trace in job.replay.iter_mut().flat_map(|replay| &mut replay.traces) {
        if recorded.contains(trace) {
            *trace = below(trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeEnv;

    fn job(words: &str) -> Job {
        let words: Vec<_> = words.split(' ').map(Into::into).collect();
        let mut plan = crate::parse(&words, &FakeEnv::new()).unwrap().plan;
        plan.jobs.swap_remove(0)
    }

    #[test]
    fn outside_accesses_name_options_that_leave_the_target() {
        let all = job(
            "--name=a --size=1m --exec_prerun=true --exec_postrun=false --ioscheduler=none \
             --mem=mmap:/m --write_bw_log=b --write_iops_log=/i --write_lat_log --write_hist_log=h \
             --log_hist_msec=1 --write_iolog=t --read_iolog=r",
        );
        let found = outside_accesses(&all);
        let trusted: Vec<&str> = (found.iter())
            .filter(|access| access.needs_trust())
            .map(|access| access.option)
            .collect();
        assert_eq!(
            trusted,
            ["exec_prerun", "exec_postrun", "ioscheduler", "mem"]
        );
        let logs: Vec<&str> = (found.iter())
            .filter(|access| access.kind == AccessKind::Log)
            .map(|access| access.value.as_str())
            .collect();
        assert_eq!(logs, ["b", "/i", "a", "h", "t"]);
        assert!(found.iter().any(|access| access.option == "read_iolog"));
        assert!(outside_accesses(&job("--name=a --size=1m --mem=mmap")).is_empty());
    }

    #[test]
    fn relocated_logs_are_below_their_directory() {
        let mut all = job(
            "--name=../a --size=1m --write_bw_log=/etc/b --write_iops_log=../../i --write_lat_log \
             --write_iolog=t --read_iolog=t:u",
        );
        relocate_logs(&mut all, "/logs", &BTreeSet::from(["t".to_owned()]));
        let logs = &all.measure.logs;
        let names = [&logs.bw, &logs.iops, &logs.lat, &logs.trace].map(|name| name.as_deref());
        let expected = ["/logs/etc/b", "/logs/i", "/logs/a", "/logs/t"].map(Some);
        assert_eq!(names, expected);
        assert_eq!(all.replay.unwrap().traces, ["/logs/t", "u"]);
    }
}
