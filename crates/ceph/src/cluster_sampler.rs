//! Samples a cluster during a run: its status every two seconds, its OSDs before and after.
//!
//! Sampling is not on the path of the measured I/O. A failed query becomes a note in the result.

use crate::access::connect;
use crate::ceph_side_builder::{self as side, ClusterDisturbance, ClusterStatus, OsdOps};
use crate::error::CephError;
use crate::osd_hardware::DaemonMetadata;
use crate::pools_of_run::{PoolAccess, PoolName, pools_of_run};
use crate::sys::rados::RadosCluster;
use iosonde_engine::remote_storage::RemoteWatch;
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_machine::net_counters::LinkSpeeds;
use iosonde_machine::proc_root::System;
use iosonde_result::ceph::CephSide;
use iosonde_result::ceph_hardware::CephHardware;
use iosonde_result::host::TargetInfo;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

/// Longest wait for an answer, in seconds, so that an unreachable cluster delays a run little.
const ANSWER_TIMEOUT_S: u32 = 5;

/// Time for which an unreachable cluster is not tried again.
const UNREACHABLE_FOR: Duration = Duration::from_secs(60);

/// OSDs are only queried one by one if the cluster has at most this many.
const OSDS_MAX: u32 = 64;

/// A running sampler.
#[derive(Debug)]
pub(crate) struct ClusterSampler(SamplerKind);

#[derive(Debug)]
enum SamplerKind {
    /// The cluster answers.
    Samples {
        stop: Sender<bool>,
        thread: JoinHandle<CephSide>,
    },
    /// The cluster does not answer: the notes for the result.
    Silence(Box<CephSide>),
}

impl ClusterSampler {
    /// Starts to sample the cluster that a plan's jobs or files use. `None` if there is none.
    /// `given` is the access where the plan does not describe it.
    pub(crate) fn start(
        plan: &Plan,
        targets: &[TargetInfo],
        given: &CephAccess,
    ) -> Option<ClusterSampler> {
        let used = pools_of_run(plan, targets, &System::live(), given);
        let mut known = ClustersByAccess::default();
        let mut first: Option<(RadosCluster, String)> = None;
        let mut pools: Vec<&PoolAccess> = Vec::new();
        let mut notes: Vec<String> = Vec::new();
        for pool in &used {
            match (known.cluster(pool), &first) {
                (Ok((_, fsid)), Some((_, of_first))) if fsid != *of_first => notes.push(format!(
                    "the cluster of {} was not queried: it differs from that of {}",
                    pool.pool, pools[0].pool
                )),
                (Ok(found), _) => {
                    first.get_or_insert(found);
                    pools.push(pool);
                }
                (Err(why), _) => notes.push(format!(
                    "the cluster of {} could not be queried: {why}",
                    pool.pool
                )),
            }
        }
        let Some((cluster, _)) = first else {
            let side = CephSide {
                notes,
                ..CephSide::default()
            };
            return (!used.is_empty())
                .then_some(ClusterSampler(SamplerKind::Silence(Box::new(side))));
        };
        let mut samples = ClusterSamples::new(cluster);
        samples.query_pools(&pools);
        samples.query_hardware();
        notes.into_iter().for_each(|note| samples.note(note));
        ClusterSampler::begin(samples).ok()
    }

    fn begin(mut samples: ClusterSamples) -> std::io::Result<ClusterSampler> {
        let (stop, stopped) = channel();
        samples.before = samples.osd_ops();
        let thread = std::thread::Builder::new()
            .name("ceph".to_owned())
            .spawn(move || {
                let ends_at_once = loop {
                    match stopped.recv_timeout(SAMPLE_INTERVAL) {
                        Err(RecvTimeoutError::Timeout) => samples.sample_status(),
                        received => break received.unwrap_or(true),
                    }
                };
                match ends_at_once {
                    true => samples.side,
                    false => samples.finish(),
                }
            })?;
        Ok(ClusterSampler(SamplerKind::Samples { stop, thread }))
    }
}

impl RemoteWatch for ClusterSampler {
    fn finish_sampling(self: Box<Self>, at_once: bool) -> CephSide {
        match self.0 {
            SamplerKind::Samples { stop, thread } => {
                // The thread also ends when the channel closes.
                let _ = stop.send(at_once);
                thread.join().unwrap_or_default()
            }
            SamplerKind::Silence(side) => *side,
        }
    }
}

/// A cluster with its identity, or the reason why it cannot be reached.
type Reached = Result<(RadosCluster, String), String>;

/// Failed connections, with time and reason.
static UNREACHABLE: Mutex<Vec<(CephAccess, Instant, String)>> = Mutex::new(Vec::new());

/// Connects. A failure is cached, because each run of a study would wait for it again.
fn reach(access: &CephAccess) -> Reached {
    let lost = || UNREACHABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = {
        let mut lost = lost();
        lost.retain(|(_, at, _)| at.elapsed() < UNREACHABLE_FOR);
        let mut same = lost.iter().filter(|(other, ..)| other == access);
        same.next().map(|(.., why)| why.clone())
    };
    if let Some(why) = known {
        return Err(why);
    }
    let found = connect(access).and_then(|cluster| Ok((cluster.clone(), cluster.fsid()?)));
    found.map_err(|error| {
        let remedy = match error {
            CephError::Library { .. } | CephError::NotBuilt => error.remedy(),
            _ => "set --ceph-conf, --ceph-client and --ceph-keyring to connect to it".to_owned(),
        };
        let why = format!("{error}; {remedy}");
        if error != CephError::Interrupted {
            lost().push((access.clone(), Instant::now(), why.clone()));
        }
        why
    })
}

/// Hardware of the clusters that were queried, by fsid.
static HARDWARE: Mutex<Vec<(String, CephHardware)>> = Mutex::new(Vec::new());

/// Reason to wait before a run on a cluster. `None` if there is none, or if the cluster, with the
/// expected identity if there is one, does not answer: then the run reports that itself.
pub fn cluster_disturbance(
    access: &CephAccess,
    expected_fsid: Option<&str>,
) -> Option<ClusterDisturbance> {
    let access = CephAccess {
        timeout_s: access.timeout_s.min(ANSWER_TIMEOUT_S),
        ..access.clone()
    };
    let (cluster, fsid) = reach(&access).ok()?;
    if expected_fsid.is_some_and(|expected| expected != fsid) {
        return None;
    }
    let status = cluster.mon_command(r#"{"prefix": "status", "format": "json"}"#);
    ClusterStatus::parse(&parsed(&status.ok()?)?).disturbance()
}

/// Clusters by access.
#[derive(Default)]
struct ClustersByAccess(Vec<(CephAccess, Reached)>);

impl ClustersByAccess {
    /// Cluster of a pool. Fails if another cluster than the expected one answers.
    fn cluster(&mut self, pool: &PoolAccess) -> Reached {
        let found = match self.0.iter().find(|(access, _)| *access == pool.access) {
            Some((_, found)) => found.clone(),
            None => {
                let access = CephAccess {
                    timeout_s: pool.access.timeout_s.min(ANSWER_TIMEOUT_S),
                    ..pool.access.clone()
                };
                let found = reach(&access);
                self.0.push((pool.access.clone(), found.clone()));
                found
            }
        };
        let (cluster, fsid) = found?;
        match &pool.fsid {
            Some(wanted) if *wanted != fsid => Err(format!(
                "the target is in cluster {wanted}, but cluster {fsid} answered; set --ceph-conf \
                 to the configuration of the former"
            )),
            _ => Ok((cluster, fsid)),
        }
    }
}

/// Observations so far.
struct ClusterSamples {
    cluster: RadosCluster,
    side: CephSide,
    before: BTreeMap<u32, OsdOps>,
    /// Whether a pool is reached through metadata servers.
    is_mounted: bool,
}

impl ClusterSamples {
    fn new(cluster: RadosCluster) -> ClusterSamples {
        let mut samples = ClusterSamples {
            cluster,
            side: CephSide::default(),
            before: BTreeMap::new(),
            is_mounted: false,
        };
        samples.sample_status();
        // The version only selects results, so a refusal needs no note.
        let version = samples
            .cluster
            .mon_command(r#"{"prefix": "version", "format": "json"}"#);
        let version = version.ok().and_then(|answer| parsed(&answer));
        samples.side.version = version.and_then(|answer| side::release(&answer));
        samples
    }

    fn sample_status(&mut self) {
        let Some(status) = self.mon_answer("status", "status") else {
            return;
        };
        let status = ClusterStatus::parse(&status);
        let is_recovering = status.is_recovering();
        status.add_to(&mut self.side);
        self.sample_metadata_servers();
        if is_recovering && let Some(pools) = self.mon_answer("recovering pools", "osd pool stats")
        {
            for pool in side::recovering_pools(&pools) {
                self.side.activity.take_recovering_pool(&pool);
            }
        }
    }

    fn query_pools(&mut self, pools: &[&PoolAccess]) {
        let mut names: Vec<String> = Vec::new();
        self.is_mounted = pools.iter().any(|pool| pool.is_mounted);
        for pool in pools {
            let name = match &pool.pool {
                PoolName::Named(name) => Some(name.clone()),
                PoolName::OfFileSystem(file_system) => self.data_pool(file_system.as_deref()),
                PoolName::BehindNfs(servers) => {
                    self.note_unlisted_server(servers);
                    self.data_pool(None)
                }
            };
            names.extend(name.filter(|name| !names.contains(name)));
        }
        let command = r#"osd pool ls", "detail": "detail"#;
        let Some(all) = self.mon_answer("the pools", command) else {
            return;
        };
        let mut found = Vec::new();
        for name in &names {
            found.extend(side::ceph_pool(&all, name, |profile| {
                let command = format!(r#"osd erasure-code-profile get", "name": "{profile}"#);
                self.mon_answer("an erasure code", &command)
            }));
        }
        let mut found = found.into_iter();
        self.side.pool = found.next();
        self.side.more_pools = found.collect();
        self.sample_metadata_servers();
    }

    fn data_pool(&mut self, file_system: Option<&str>) -> Option<String> {
        let answer = self.mon_answer("the file systems", "fs ls")?;
        side::data_pool(&answer, file_system)
    }

    /// Notes an NFS server that the cluster does not list: it may belong to another cluster.
    fn note_unlisted_server(&mut self, servers: &[String]) {
        let answer = self.mon_answer("its services", "service dump");
        if answer.is_some_and(|answer| !side::has_ganesha(&answer, servers)) {
            self.note(format!(
                "the cluster does not list the NFS server {} as NFS-Ganesha: it was queried \
                 because --ceph-conf, --ceph-client or --ceph-keyring name it",
                servers.join(", ")
            ));
        }
    }

    /// Samples load and cache of the metadata servers, if the run uses a mounted file system.
    fn sample_metadata_servers(&mut self) {
        if !self.is_mounted {
            return;
        }
        let answer = self.mon_answer("the metadata servers", "fs status");
        // The manager answers. Without one, each sample would wait for the timeout.
        self.is_mounted = answer.is_some();
        for server in answer.iter().flat_map(side::metadata_servers) {
            self.side.take_metadata_server(&server);
        }
    }

    /// Queries the hardware once per process: it does not change between the runs of a study.
    fn query_hardware(&mut self) {
        let fsid = self.side.fsid.clone();
        if fsid.is_empty() {
            return;
        }
        let known = || HARDWARE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().iter().find(|(of, _)| *of == fsid).cloned();
        if let Some((_, hardware)) = found {
            self.side.hardware = Some(hardware);
            return;
        }
        let Some(osds) = self.mon_answer("the hardware of its OSDs", "osd metadata") else {
            return;
        };
        // Classes and other daemons are details, so a refusal needs no note.
        let answer = |prefix: &str| {
            let command = format!(r#"{{"prefix": "{prefix}", "format": "json"}}"#);
            let answer = self.cluster.mon_command(&command).ok();
            answer
                .and_then(|answer| parsed(&answer))
                .unwrap_or_default()
        };
        let metadata = DaemonMetadata {
            osds,
            tree: answer("osd tree"),
            others: vec![
                ("mon", answer("mon metadata")),
                ("mgr", answer("mgr metadata")),
                ("mds", answer("mds metadata")),
            ],
        };
        let system = System::live();
        let host: String = system
            .value("/proc/sys/kernel/hostname")
            .unwrap_or_default();
        let speeds = LinkSpeeds::read(&system);
        let hardware = metadata.hardware(&host, |name| speeds.mbit_per_s(name));
        known().push((fsid, hardware.clone()));
        self.side.hardware = Some(hardware);
    }

    /// Operations of each OSD so far.
    fn osd_ops(&mut self) -> BTreeMap<u32, OsdOps> {
        let count = self.side.osds.total;
        if count > OSDS_MAX {
            self.note(format!(
                "the cluster has {count} OSDs, too many to query each of them"
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
                    if let Some(ops) =
                        parsed(&answer).and_then(|answer| side::osd_operations(&answer))
                    {
                        found.insert(osd, ops);
                    }
                }
                Ok(Err(error)) => {
                    self.note_failure("the latencies of the OSDs", &error);
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

    fn finish(mut self) -> CephSide {
        self.sample_status();
        let after = self.osd_ops();
        let perf = self.mon_answer("osd perf", "osd perf");
        let perf = perf
            .map(|answer| side::osd_latencies(&answer))
            .unwrap_or_default();
        self.side.osd_latency = side::latencies(&self.before, &after, &perf);
        if self.side.pools().any(|pool| pool.cache_tier.is_some()) {
            self.side.cache_tier = side::tier_activity(&self.before, &after);
        }
        self.side
    }

    /// Sends a command and parses the answer. `what` names it in the note about a failure.
    fn mon_answer(&mut self, what: &str, command: &str) -> Option<Value> {
        let command = format!(r#"{{"prefix": "{command}", "format": "json"}}"#);
        match self.cluster.mon_command(&command) {
            Ok(answer) => parsed(&answer),
            Err(error) => {
                self.note_failure(what, &error);
                None
            }
        }
    }

    fn note_failure(&mut self, what: &str, error: &CephError) {
        self.note(format!("the cluster did not report {what}: {error}"));
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
