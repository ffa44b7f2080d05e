//! Drops the caches of OSDs, as `ceph tell osd.* cache drop` does.
//!
//! An OSD drops metadata and data of BlueStore. The page cache of its host is not part of them.

use crate::access::connect;
use crate::error::{CephAction, CephError};
use crate::pools_of_run::pools_of_run;
use crate::stoppable_connect::{stop_requests, wait_for_outcome};
use crate::sys::rados::RadosCluster;
use iosonde_job::plan::{CephAccess, Plan};
use iosonde_machine::proc_root::System;
use iosonde_result::cache_state::CacheLayer;
use iosonde_result::host::TargetInfo;
use iosonde_result::run_error::{RunError, SystemFailure, UnsupportedFeature};
use serde_json::Value;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Target in errors of the connection to the cluster.
const OPTION: &str = "--cold osd";
/// Maximum wait for the answer of an OSD. A stopped OSD counts as up until others report it.
const OSD_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Command to each OSD.
const CACHE_DROP: &str = r#"{"prefix": "cache drop"}"#;
/// Command to the monitors that lists the OSDs.
const OSD_DUMP: &str = r#"{"prefix": "osd dump", "format": "json"}"#;

/// Drops the caches of all OSDs of a cluster that are up. Returns their number.
///
/// # Errors
/// If the cluster does not answer, or an OSD refuses the client or does not answer in time.
pub fn drop_osd_caches(access: &CephAccess) -> Result<u32, RunError> {
    drop_in_clusters(std::slice::from_ref(access))
}

/// Drops the caches of the clusters that a run uses, by its jobs or its mounts. `given` is the
/// access where the plan describes none.
pub(crate) fn drop_caches_of_run(
    plan: &Plan,
    targets: &[TargetInfo],
    given: &CephAccess,
) -> Result<u32, RunError> {
    let mut accesses: Vec<CephAccess> = Vec::new();
    for pool in pools_of_run(plan, targets, &System::live(), given) {
        if !accesses.contains(&pool.access) {
            accesses.push(pool.access);
        }
    }
    // Other storage may lie on a cluster that this machine does not see.
    if accesses.is_empty() {
        accesses.push(given.clone());
    }
    drop_in_clusters(&accesses)
}

fn drop_in_clusters(accesses: &[CephAccess]) -> Result<u32, RunError> {
    let mut known: Vec<String> = Vec::new();
    let mut count = 0;
    for access in accesses {
        let reached = connect(access).and_then(|cluster| Ok((cluster.fsid()?, cluster)));
        let (fsid, cluster) = reached.map_err(|error| error.on(OPTION))?;
        if !known.contains(&fsid) {
            count += drop_in_cluster(&cluster)?;
            known.push(fsid);
        }
    }
    Ok(count)
}

fn drop_in_cluster(cluster: &RadosCluster) -> Result<u32, RunError> {
    let dump = cluster.mon_command(OSD_DUMP);
    let osds = osds_up(&dump.map_err(|error| error.on(OPTION))?);
    if osds.is_empty() {
        let failure = SystemFailure::Text("none is listed as up".to_owned());
        return Err(osd_refusal("the OSDs of the cluster".to_owned(), failure));
    }
    for osd in &osds {
        drop_in_osd(cluster, *osd).map_err(|error| not_dropped(*osd, &error))?;
    }
    Ok(osds.len() as u32)
}

/// Drops the caches of an OSD. After a timeout or a stop request, the command continues in its
/// thread until librados ends it.
fn drop_in_osd(cluster: &RadosCluster, osd: i32) -> Result<(), CephError> {
    let requests_before = stop_requests();
    let deadline = Instant::now() + OSD_ANSWER_TIMEOUT;
    let (send, answers) = channel();
    let asking = cluster.clone();
    let thread = std::thread::Builder::new().name("cache drop".to_owned());
    let started = thread.spawn(move || {
        let outcome = asking.osd_command(osd, CACHE_DROP).map(|_| ());
        // The client is dropped first, so that the caller is the last to close it.
        drop(asking);
        // After a timeout the receiver is gone.
        let _ = send.send(outcome);
    });
    if started.is_err() {
        return cluster.osd_command(osd, CACHE_DROP).map(|_| ());
    }
    let is_stopped = || stop_requests() > requests_before;
    let ended = wait_for_outcome(&answers, || is_stopped() || Instant::now() >= deadline);
    match ended {
        Err(CephError::Interrupted) if !is_stopped() => Err(CephError::Call {
            action: CephAction::Query(format!("osd.{osd}")),
            errno: libc::ETIMEDOUT,
            said: String::new(),
        }),
        ended => ended,
    }
}

/// Ids of the OSDs that are up. Others have no caches.
fn osds_up(dump: &str) -> Vec<i32> {
    let dump: Value = serde_json::from_str(dump.trim()).unwrap_or(Value::Null);
    let osds = dump["osds"].as_array().into_iter().flatten();
    let up = osds.filter(|osd| osd["up"] == 1);
    up.filter_map(|osd| i32::try_from(osd["osd"].as_i64()?).ok())
        .collect()
}

fn not_dropped(osd: i32, error: &CephError) -> RunError {
    match error.errno() {
        Some(errno) => osd_refusal(format!("osd.{osd}"), SystemFailure::Errno(errno)),
        None => error.on(OPTION),
    }
}

fn osd_refusal(place: String, failure: SystemFailure) -> RunError {
    UnsupportedFeature::CachesNotDropped {
        layer: CacheLayer::Osd,
        place,
        failure,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osds_that_are_down_are_skipped() {
        let dump = r#"{"epoch": 9, "osds": [
            {"osd": 0, "up": 1, "in": 1}, {"osd": 1, "up": 0, "in": 1}, {"osd": 4, "up": 1}
        ]}"#;
        assert_eq!(osds_up(dump), [0, 4]);
        assert!(osds_up("").is_empty());
    }

    #[test]
    fn refusal_names_the_osd_and_the_errno() {
        let refused = CephError::Call {
            action: CephAction::Query("osd.4".to_owned()),
            errno: libc::EACCES,
            said: String::new(),
        };
        let error = not_dropped(4, &refused);
        let denied = SystemFailure::Errno(libc::EACCES);
        assert_eq!(error, osd_refusal("osd.4".to_owned(), denied));
    }

    #[test]
    fn silent_osd_is_named_with_the_timeout() {
        let silent = CephError::Call {
            action: CephAction::Query("osd.2".to_owned()),
            errno: libc::ETIMEDOUT,
            said: String::new(),
        };
        let error = not_dropped(2, &silent);
        let timed_out = SystemFailure::Errno(libc::ETIMEDOUT);
        assert_eq!(error, osd_refusal("osd.2".to_owned(), timed_out));
        let interrupted = not_dropped(2, &CephError::Interrupted);
        assert_eq!(interrupted, RunError::Interrupted);
    }
}
