//! Faults of a Ceph cluster, each on a cluster of its own.

use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::Signal;

use crate::ground::{Ground, Outcome, is_explained};
use crate::table::{Cell, Fault};

/// Where the objects of the command are.
const TARGET: &str = "rados://testbench/measured";

/// Of an OSD in memory.
const STORE_BYTES: &str = "1073741824";

pub(crate) fn hit(cell: Cell, number: u32) -> Outcome {
    let ground = Ground::new();
    // The manager is who counts what a pool holds.
    let options = match cell.fault {
        Fault::PoolFull => &["--store", "memstore", "--size", STORE_BYTES][..],
        _ => &["--store", "memstore", "--no-mgr", "--size", STORE_BYTES],
    };
    let cluster = Cluster::up(&ground.scratch, options);
    let theirs = ground.scratch.work().join("neighbour");
    cluster.rados(&format!(
        "-p {POOL} -N measured put theirs {}",
        theirs.display()
    ));
    cluster.rados(&format!("-p {POOL} put theirs {}", theirs.display()));
    let before = cluster.objects(POOL);
    let command = |words: &str| {
        ground
            .command(cell, TARGET, &format!("--ceph-timeout 5 {words}"))
            .env("CEPH_CONF", cluster.conf())
    };
    if cell.fault == Fault::PoolFull {
        fill(&cluster)?;
    }
    // What is full stops a command at once.
    let running = match cell.fault {
        Fault::PoolFull => command("").start(),
        _ => ground.until_random_point(|| command(""), cell, number + 2),
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
        _ => return Err("nobody knows this fault".to_owned()),
    }
    let run = running.wait();
    ground.is_unchanged()?;
    ground.is_history_whole()?;
    ground.is_nothing_left(&[])?;
    match cell.fault {
        Fault::Sigkill => {
            ground.is_taken_up(cell, command)?;
            remove_what_was_killed(&ground, &cluster);
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

/// Sets a quota below what the pool holds, and waits until the cluster has seen it.
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

/// Objects of a run that may still go on somewhere are removed only when that is said by their name.
fn remove_what_was_killed(ground: &Ground, cluster: &Cluster) {
    let run = |line: &str| {
        let command = ground.iosonde(line).env("CEPH_CONF", cluster.conf());
        command.ok().stdout
    };
    let told = run(&format!(
        "rados -p {POOL} -N measured cleanup --prefix iosonde-"
    ));
    for line in told.lines() {
        if let Some((_, command)) = line.split_once(" If that run is over: iosonde ") {
            let _ = run(command);
        }
    }
}
