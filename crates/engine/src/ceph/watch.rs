//! Looks at a cluster while it is measured: its state every two seconds, its storage daemons before and after.
//!
//! Nothing of it is on the way of the measured I/O, and what cannot be asked is a note in the result, never a failure.

use super::side::{self, OsdOps, Status};
use super::{CephError, Cluster, connect};
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_result::ceph::CephSide;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// Longest wait for an answer, in seconds: what is stopped will not answer a later question either.
const LONGEST_S: u32 = 5;

/// Of larger clusters only so many storage daemons are asked one by one.
const MOST_OSDS: u32 = 64;

/// A watch that goes on.
#[derive(Debug)]
pub struct Watch {
    stop: Sender<bool>,
    thread: JoinHandle<CephSide>,
}

impl Watch {
    /// Begins to look at the cluster that a plan's jobs speak to; `None` where they speak to none, or it does not answer a
    /// client more.
    pub(crate) fn of(plan: &Plan) -> Option<Watch> {
        let job = plan.jobs.iter().find(|job| job.io.engine.is_ceph())?;
        let ceph = job.io.ceph.as_deref()?;
        let access = CephAccess {
            timeout_s: ceph.access.timeout_s.min(LONGEST_S),
            ..ceph.access.clone()
        };
        Watch::begin(connect(&access).ok()?, &ceph.pool).ok()
    }

    /// Begins to look at the cluster, and at a pool of it.
    pub fn begin(cluster: Cluster, pool: &str) -> std::io::Result<Watch> {
        let (stop, stopped) = channel();
        let mut seen = Seen::new(cluster, pool);
        seen.before = seen.ops();
        let thread = std::thread::Builder::new()
            .name("ceph".to_owned())
            .spawn(move || {
                let ends_at_once = loop {
                    match stopped.recv_timeout(EVERY) {
                        Err(RecvTimeoutError::Timeout) => seen.look(),
                        told => break told.unwrap_or(true),
                    }
                };
                match ends_at_once {
                    true => seen.side,
                    false => seen.end(),
                }
            })?;
        Ok(Watch { stop, thread })
    }

    /// Takes a last look, unless the user does not want to wait for one: who is stopped would be asked as well.
    pub fn end(self, at_once: bool) -> CephSide {
        // It ends as well when this end of the channel goes.
        let _ = self.stop.send(at_once);
        self.thread.join().unwrap_or_default()
    }
}

/// What was seen so far.
struct Seen {
    cluster: Cluster,
    side: CephSide,
    before: BTreeMap<u32, OsdOps>,
}

impl Seen {
    fn new(cluster: Cluster, pool: &str) -> Seen {
        let mut seen = Seen {
            cluster,
            side: CephSide::default(),
            before: BTreeMap::new(),
        };
        seen.look();
        seen.side.pool = seen.pool(pool);
        seen
    }

    fn look(&mut self) {
        if let Some(status) = self.ask("status", "status") {
            Status::of(&status).add_to(&mut self.side);
        }
    }

    fn pool(&mut self, name: &str) -> Option<iosonde_result::ceph::CephPool> {
        let command = r#"osd pool ls", "detail": "detail"#;
        let pools = self.ask("the pools", command)?;
        side::pool(&pools, name, |profile| {
            let command = format!(r#"osd erasure-code-profile get", "name": "{profile}"#);
            self.ask("an erasure code", &command)
        })
    }

    /// What each storage daemon has done so far.
    fn ops(&mut self) -> BTreeMap<u32, OsdOps> {
        let count = self.side.osds.total;
        if count > MOST_OSDS {
            self.note(format!(
                "the cluster has {count} storage daemons: they were not asked one by one"
            ));
            return BTreeMap::new();
        }
        let mut found = BTreeMap::new();
        for osd in 0..count {
            let answer = i32::try_from(osd).map(|osd| {
                self.cluster
                    .osd_command(osd, r#"{"prefix": "perf dump", "format": "json"}"#)
            });
            match answer {
                Ok(Ok(answer)) => {
                    if let Some(ops) = parsed(&answer).and_then(|answer| side::ops(&answer)) {
                        found.insert(osd, ops);
                    }
                }
                Ok(Err(error)) => self.cannot("the storage daemons' latencies", &error),
                Err(_) => {}
            }
        }
        found
    }

    fn end(mut self) -> CephSide {
        self.look();
        let after = self.ops();
        let perf = self.ask("osd perf", "osd perf");
        let perf = perf.map(|answer| side::perf(&answer)).unwrap_or_default();
        self.side.osd_latency = side::latencies(&self.before, &after, &perf);
        self.side
    }

    /// The answer to a command. `what` is for the note when there is none.
    fn ask(&mut self, what: &str, command: &str) -> Option<Value> {
        let command = format!(r#"{{"prefix": "{command}", "format": "json"}}"#);
        match self.cluster.mon_command(&command) {
            Ok(answer) => parsed(&answer),
            Err(error) => {
                self.cannot(what, &error);
                None
            }
        }
    }

    fn cannot(&mut self, what: &str, error: &CephError) {
        self.note(format!("{what} could not be asked for: {error}"));
    }

    fn note(&mut self, note: String) {
        if !self.side.notes.contains(&note) {
            self.side.notes.push(note);
        }
    }
}

fn parsed(answer: &str) -> Option<Value> {
    serde_json::from_str(answer.trim()).ok()
}
