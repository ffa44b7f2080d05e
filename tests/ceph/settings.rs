//! Precedence of settings: of a job and its target, and of a client, a pool and an image.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::engines::{start, wait_closely_for};

#[test]
#[ignore = "needs Ceph"]
fn reported_cache_is_that_of_image() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    // A pool of its own: other tests check the cache of images in the shared pool.
    cluster.ceph("osd pool create overridden 8 8");
    cluster.rbd("pool init overridden");
    cluster.rbd("create overridden/i --size 4M");
    let assert_reported = |expected: &str| {
        let line = "fio --target=rbd://overridden/i --name=a --rw=write --bs=1m";
        let (status, stdout, stderr) = cluster.run(line);
        let said = stdout + &stderr;
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
    };
    assert_reported("rbd_cache is on (writearound)");
    cluster.rbd("config pool set overridden rbd_cache_policy writethrough");
    assert_reported("rbd_cache is on (writethrough)");
    cluster.rbd("config pool set overridden rbd_cache false");
    assert_reported("rbd_cache is off");
    cluster.rbd("config image set overridden/i rbd_cache true");
    cluster.rbd("config image set overridden/i rbd_cache_policy writeback");
    assert_reported("rbd_cache is on (writeback)");
    cluster.rbd("config image set overridden/i rbd_cache false");
    assert_reported("rbd_cache is off");
    cluster.ceph("osd pool delete overridden overridden --yes-i-really-really-mean-it");
}

#[test]
#[ignore = "needs Ceph"]
fn job_options_apply_to_its_target() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let names = scratch.out().join("names");
    let list_script = scratch.write(
        "look",
        format!("rados -p {POOL} -N own ls > {} 2>&1\n", names.display()),
    );
    let job = scratch.write(
        "own.fio",
        format!(
            "[global]\nioengine=rados\npool=none\nceph_namespace=own\nceph_object_size=1m\n\
             [options]\nrw=read\nbs=64k\nsize=2m\n\
             exec_prerun=sh {}\n",
            list_script.display()
        ),
    );
    let line = format!("fio --target=rados://{POOL} {}", job.display());
    let done = cluster.iosonde(&line).current_dir(scratch.out()).output();
    let done = done.expect("iosonde starts");
    assert!(done.status.success(), "{done:?}");
    let names = std::fs::read_to_string(&names).expect("what was seen");
    let ours = names.lines().filter(|name| name.contains("-options."));
    assert_eq!(ours.count(), 2, "{names}");
    let (status, stdout, stderr) = cluster.run(&line.replace(POOL, &format!("{POOL}/other")));
    let said = stdout + &stderr;
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("ceph_namespace=own"), "{said}");
}

/// The answer of a client on its admin socket; `None` if there is no client.
fn setting(socket: &Path, name: &str) -> Option<String> {
    let mut client = UnixStream::connect(socket).ok()?;
    let question = format!("{{\"prefix\": \"config get\", \"var\": \"{name}\"}}\0");
    client.write_all(question.as_bytes()).ok()?;
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut answer).ok()?;
    let answer: Value = serde_json::from_slice(&answer).ok()?;
    answer[name].as_str().map(str::to_owned)
}

/// iosonde sets options that save CPU time of object I/O, unless the user sets them.
#[test]
#[ignore = "needs Ceph"]
fn ceph_args_take_precedence_over_defaults() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    for (given, threads, ahead) in [
        ("", "1", "32768"),
        ("--ms_tcp_prefetch_max_size=8192", "1", "8192"),
        ("--librados_thread_count=3", "3", "32768"),
    ] {
        let sockets = scratch.out().join(format!("s{threads}{ahead}"));
        std::fs::create_dir(&sockets).expect("a directory");
        let line = "--name=settings --rw=randread --bs=4k --size=64k --time_based --runtime=600";
        let mut command = cluster.iosonde(&format!("fio --target=rados://{POOL} {line}"));
        let arguments = format!("--admin_socket={}/$cctid {given}", sockets.display());
        command.env("CEPH_ARGS", arguments);
        let mut child = start(command);
        // Clients that only ask the monitors keep librados' defaults.
        wait_closely_for(&format!("{threads} and {ahead}"), || {
            let all = std::fs::read_dir(&sockets).expect("sockets");
            let mut all = all.flatten().map(|socket| socket.path());
            let is_it = all.any(|socket| {
                setting(&socket, "librados_thread_count").as_deref() == Some(threads)
                    && setting(&socket, "ms_tcp_prefetch_max_size").as_deref() == Some(ahead)
            });
            is_it.then_some(())
        });
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        child.wait().expect("it ends");
    }
}
