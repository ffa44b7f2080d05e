//! Samples a cluster during a run: its status every two seconds, its OSDs before and after.
//!
//! Sampling is not on the path of the measured I/O. A failed query becomes a note in the result.

use super::places::{Place, Pool, places};
use super::side::{self, OsdOps, Status};
use super::{CephError, Cluster, connect};
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_machine::proc_root::System;
use iosonde_result::ceph::CephSide;
use iosonde_result::host::TargetInfo;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two samples.
const EVERY: Duration = Duration::from_secs(2);

/// Longest wait for an answer, in seconds, so that an unreachable cluster delays a run little.
const LONGEST_S: u32 = 5;

/// Time for which an unreachable cluster is not tried again.
const LOST_FOR: Duration = Duration::from_secs(60);

/// OSDs are only queried one by one if the cluster has at most this many.
const MOST_OSDS: u32 = 64;

/// A running sampler.
#[derive(Debug)]
pub struct Watch(Kind);

#[derive(Debug)]
enum Kind {
    /// The cluster answers.
    Looks {
        stop: Sender<bool>,
        thread: JoinHandle<CephSide>,
    },
    /// The cluster does not answer: the notes for the result.
    Silence(Box<CephSide>),
}

impl Watch {
    /// Starts to sample the cluster that a plan's jobs or files use. `None` if there is none.
    /// `given` is the access where the plan does not describe it.
    pub(crate) fn of(plan: &Plan, targets: &[TargetInfo], given: &CephAccess) -> Option<Watch> {
        let places = places(plan, targets, &System::live(), given);
        let mut known = Known::default();
        let mut first: Option<(Cluster, String)> = None;
        let (mut pools, mut notes) = (Vec::new(), Vec::new());
        for place in &places {
            match (known.cluster(place), &first) {
                (Ok((_, fsid)), Some((_, of_first))) if fsid != *of_first => notes.push(format!(
                    "the cluster of {} was not asked: it is another than that of {}",
                    place.pool, pools[0]
                )),
                (Ok(found), _) => {
                    first.get_or_insert(found);
                    pools.push(&place.pool);
                }
                (Err(why), _) => notes.push(format!(
                    "the cluster of {} could not be asked: {why}",
                    place.pool
                )),
            }
        }
        let Some((cluster, _)) = first else {
            let side = CephSide {
                notes,
                ..CephSide::default()
            };
            return (!places.is_empty()).then_some(Watch(Kind::Silence(Box::new(side))));
        };
        let mut seen = Seen::new(cluster);
        seen.look_at_pools(&pools);
        notes.into_iter().for_each(|note| seen.note(note));
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
        Ok(Watch(Kind::Looks { stop, thread }))
    }

    /// Stops. Takes a last sample before, unless `at_once` (the user does not want to wait) is set.
    pub fn end(self, at_once: bool) -> CephSide {
        match self.0 {
            Kind::Looks { stop, thread } => {
                // The thread also ends when the channel closes.
                let _ = stop.send(at_once);
                thread.join().unwrap_or_default()
            }
            Kind::Silence(side) => *side,
        }
    }
}

/// A cluster with its identity, or the reason why it cannot be reached.
type Reached = Result<(Cluster, String), String>;

/// Failed connections, with time and reason.
static LOST: Mutex<Vec<(CephAccess, Instant, String)>> = Mutex::new(Vec::new());

/// Connects. A failure is cached, because each run of a study would wait for it again.
fn reach(access: &CephAccess) -> Reached {
    let lost = || LOST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = {
        let mut lost = lost();
        lost.retain(|(_, at, _)| at.elapsed() < LOST_FOR);
        let mut same = lost.iter().filter(|(other, ..)| other == access);
        same.next().map(|(.., why)| why.clone())
    };
    if let Some(why) = known {
        return Err(why);
    }
    let found = connect(access).and_then(|cluster| Ok((cluster.clone(), cluster.fsid()?)));
    found.map_err(|error| {
        let remedy = match error {
            CephError::Library { .. } => error.remedy(),
            _ => "--ceph-conf, --ceph-client and --ceph-keyring say how it is reached".to_owned(),
        };
        let why = format!("{error}; {remedy}");
        lost().push((access.clone(), Instant::now(), why.clone()));
        why
    })
}

/// Clusters by access.
#[derive(Default)]
struct Known(Vec<(CephAccess, Reached)>);

impl Known {
    /// Cluster of a pool. Fails if another cluster than the expected one answers.
    fn cluster(&mut self, place: &Place) -> Reached {
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
        let (cluster, fsid) = found?;
        match &place.fsid {
            Some(wanted) if *wanted != fsid => Err(format!(
                "it is {wanted}, and {fsid} answers; name its configuration with --ceph-conf"
            )),
            _ => Ok((cluster, fsid)),
        }
    }
}

/// Observations so far.
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

    /// Operations of each OSD so far.
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
                    // Each further OSD might time out as well.
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

    /// Sends a command and parses the answer. `what` names it in the note about a failure.
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
