//! Faults of a Ceph cluster, each on a cluster of its own.

use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::Signal;

use crate::fault_fixture::{FaultFixture, Outcome, is_explained};
use crate::table::{Cell, Fault};

/// Pool and namespace of the command's objects.
const TARGET: &str = "rados://testbench/measured";

/// Size of an OSD in memory.
const STORE_BYTES: &str = "1073741824";

pub(crate) fn hit(cell: Cell, number: u32) -> Outcome {
    let fixture = FaultFixture::new();
    // Only the manager reports the usage of a pool.
    let options = match cell.fault {
        Fault::PoolFull => &["--store", "memstore", "--size", STORE_BYTES][..],
        _ => &["--store", "memstore", "--no-mgr", "--size", STORE_BYTES],
    };
    let cluster = Cluster::up(&fixture.scratch, options);
    let theirs = fixture.scratch.work().join("neighbour");
    cluster.rados(&format!(
        "-p {POOL} -N measured put theirs {}",
        theirs.display()
    ));
    cluster.rados(&format!("-p {POOL} put theirs {}", theirs.display()));
    let before = cluster.objects(POOL);
    let command = |words: &str| {
        fixture
            .command(cell, TARGET, &format!("--ceph-timeout 5 {words}"))
            .env("CEPH_CONF", cluster.conf())
    };
    if cell.fault == Fault::PoolFull {
        fill(&cluster)?;
    }
    // With a full pool the command fails at once.
    let running = match cell.fault {
        Fault::PoolFull => command("").start(),
        _ => fixture.until_random_point(|| command(""), cell, number + 2),
    };
    match cell.fault {
        Fault::Sigkill => running.signal(Signal::KILL),
        Fault::Sigterm => running.signal(Signal::TERM),
        Fault::OsdStopped => {
            cluster.signal("osd.0", Signal::STOP);
            sleep(Duration::from_secs(2));
            cluster.signal("osd.0", Signal::CONT);
        }
        Fault::OsdKilled => cluster.signal("osd.0", Signal::KILL),
        Fault::MonitorKilled => cluster.signal("mon.a", Signal::KILL),
        Fault::PoolFull => {}
        _ => return Err("no function causes this fault".to_owned()),
    }
    let run = running.wait();
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&[])?;
    match cell.fault {
        Fault::Sigkill => {
            fixture.is_taken_up(cell, command)?;
            remove_objects_of_killed_run(&fixture, &cluster);
        }
        Fault::Sigterm => is_explained(&run, &[143, 0], &["interrupted"])?,
        Fault::OsdStopped => is_explained(&run, &[0], &[])?,
        Fault::OsdKilled => return is_explained(&run, &[1, 3], &["ETIMEDOUT", "did not answer"]),
        Fault::MonitorKilled => {
            return is_explained(
                &run,
                &[0, 1, 3],
                &["monitor", "did not answer", "ETIMEDOUT"],
            );
        }
        _ => is_explained(&run, &[0, 1, 3, 4], &["quota", "full", "EDQUOT", "ENOSPC"])?,
    }
    let left = cluster.objects(POOL);
    match left == before {
        true => Ok(()),
        false => Err(format!("objects left: {left:?} of {before:?}: {run}")),
    }
}

/// Sets a quota below the pool's usage and waits until the cluster reports it.
fn fill(cluster: &Cluster) -> Outcome {
    cluster.ceph(&format!("osd pool set-quota {POOL} max_objects 1"));
    for _ in 0..600 {
        if cluster.ceph("health detail").contains("POOL_FULL") {
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
    Err("the pool did not become full".to_owned())
}

/// Objects of a run that may still be active are removed only by the full name of that run.
fn remove_objects_of_killed_run(fixture: &FaultFixture, cluster: &Cluster) {
    let run = |line: &str| {
        let command = fixture.iosonde(line).env("CEPH_CONF", cluster.conf());
        command.ok().stdout
    };
    let listed = run(&format!(
        "rados -p {POOL} -N measured cleanup --prefix iosonde-"
    ));
    for line in listed.lines() {
        if let Some((_, command)) = line.split_once(" If this run has ended: iosonde ") {
            let _ = run(command);
        }
    }
}
