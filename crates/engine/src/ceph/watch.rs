//! Looks at a cluster while it is measured: its state every two seconds, its storage daemons before and after.
//!
//! Nothing of it is on the way of the measured I/O, and what cannot be asked is a note in the result, never a failure.

use super::places::{Place, Pool, places};
use super::side::{self, OsdOps, Status};
use super::{CephError, Cluster, connect};
use crate::device::system::System;
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_result::ceph::CephSide;
use iosonde_result::host::TargetInfo;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// Longest wait for an answer, in seconds: what is stopped will not answer a later question either.
const LONGEST_S: u32 = 5;

/// So long a cluster that could not be reached is not tried again.
const LOST_FOR: Duration = Duration::from_secs(60);

/// Of larger clusters only so many storage daemons are asked one by one.
const MOST_OSDS: u32 = 64;

/// A watch that goes on.
#[derive(Debug)]
pub struct Watch {
    stop: Sender<bool>,
    thread: JoinHandle<CephSide>,
}

impl Watch {
    /// Begins to look at the cluster that a plan's jobs speak to or that their files are in; `None` where there is none, or it does not
    /// answer a client more. `given` says how it is reached where the plan does not.
    pub(crate) fn of(plan: &Plan, targets: &[TargetInfo], given: &CephAccess) -> Option<Watch> {
        let places = places(plan, targets, &System::live(), given);
        let mut known = Known::default();
        let (cluster, fsid) = places.iter().find_map(|place| known.cluster(place))?;
        let mut seen = Seen::new(cluster);
        let (mut pools, mut elsewhere) = (Vec::new(), Vec::new());
        for place in &places {
            match known.cluster(place) {
                Some((_, other)) if other == fsid => pools.push(&place.pool),
                _ => elsewhere.push(place),
            }
        }
        seen.look_at_pools(&pools);
        for place in elsewhere {
            seen.note(format!(
                "{} is in another cluster, or cannot be asked for: what was done there is not known",
                place.pool
            ));
        }
        Watch::begin(seen).ok()
    }

    fn begin(mut seen: Seen) -> std::io::Result<Watch> {
        let (stop, stopped) = channel();
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

/// Ways to clusters that led nowhere, with the time.
static LOST: Mutex<Vec<(CephAccess, Instant)>> = Mutex::new(Vec::new());

/// Connects. What did not answer is left alone for a while: each run of a study would wait for it again.
fn reach(access: &CephAccess) -> Option<(Cluster, String)> {
    let lost = || LOST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_lost = {
        let mut lost = lost();
        lost.retain(|(_, at)| at.elapsed() < LOST_FOR);
        lost.iter().any(|(other, _)| other == access)
    };
    if is_lost {
        return None;
    }
    let found = connect(access).and_then(|cluster| Ok((cluster.clone(), cluster.fsid()?)));
    if found.is_err() {
        lost().push((access.clone(), Instant::now()));
    }
    found.ok()
}

/// Clusters by how they are reached, with their identity; `None` where one cannot be.
#[derive(Default)]
struct Known(Vec<(CephAccess, Option<(Cluster, String)>)>);

impl Known {
    /// The cluster of a pool, unless it is another one that is reached in this way.
    fn cluster(&mut self, place: &Place) -> Option<(Cluster, String)> {
        let found = match self.0.iter().find(|(access, _)| *access == place.access) {
            Some((_, found)) => found.clone(),
            None => {
                let access = CephAccess {
                    timeout_s: place.access.timeout_s.min(LONGEST_S),
                    ..place.access.clone()
                };
                let found = reach(&access);
                self.0.push((place.access.clone(), found.clone()));
                found
            }
        };
        found.filter(|(_, fsid)| place.fsid.as_ref().is_none_or(|wanted| wanted == fsid))
    }
}

/// What was seen so far.
struct Seen {
    cluster: Cluster,
    side: CephSide,
    before: BTreeMap<u32, OsdOps>,
}

impl Seen {
    fn new(cluster: Cluster) -> Seen {
        let mut seen = Seen {
            cluster,
            side: CephSide::default(),
            before: BTreeMap::new(),
        };
        seen.look();
        seen
    }

    fn look(&mut self) {
        if let Some(status) = self.ask("status", "status") {
            Status::of(&status).add_to(&mut self.side);
        }
    }

    fn look_at_pools(&mut self, pools: &[&Pool]) {
        let mut names: Vec<String> = Vec::new();
        for pool in pools {
            let name = match pool {
                Pool::Named(name) => Some(name.clone()),
                Pool::OfFileSystem(file_system) => {
                    let answer = self.ask("the file systems", "fs ls");
                    answer.and_then(|answer| side::data_pool(&answer, file_system.as_deref()))
                }
            };
            names.extend(name.filter(|name| !names.contains(name)));
        }
        let command = r#"osd pool ls", "detail": "detail"#;
        let Some(all) = self.ask("the pools", command) else {
            return;
        };
        let mut found = Vec::new();
        for name in &names {
            found.extend(side::pool(&all, name, |profile| {
                let command = format!(r#"osd erasure-code-profile get", "name": "{profile}"#);
                self.ask("an erasure code", &command)
            }));
        }
        let mut found = found.into_iter();
        self.side.pool = found.next();
        self.side.more_pools = found.collect();
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
                Ok(Err(error)) => {
                    self.cannot("the storage daemons' latencies", &error);
                    // Each of the others might take as long to say nothing.
                    if error.errno() == Some(libc::ETIMEDOUT) {
                        break;
                    }
                }
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
