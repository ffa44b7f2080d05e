//! `iosonde rados bench` beside `rados bench`: each reads the other's objects and leaves none.

use std::process::{Command, Stdio};

use crate::engines::wait_for;
use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use serde_json::Value;

/// Objects of one namespace: each test has its own in the shared pool.
fn objects_of(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let listed = cluster.rados(&format!("-p {POOL} -N {namespace} ls"));
    let mut names: Vec<String> = listed.lines().map(str::to_owned).collect();
    names.sort();
    names
}

fn iosonde(cluster: &Cluster, line: &str) -> String {
    let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} {line}"));
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_reads_and_removes_objects_of_iosonde() {
    let _alone = Scratch::shared();
    let cluster = Cluster::shared();
    let write = "-N ours bench 2 write -b 64k -O 256k -t 8 --no-cleanup --run-name mine -f json";
    let result = json(&iosonde(&cluster, write));
    let ops = result["total_writes_made"].as_u64().expect("a count");
    // Operations of 64 KiB fill objects of 256 KiB, and one more object holds the metadata.
    let expected = ops.div_ceil(4) + 1;
    assert_eq!(objects_of(&cluster, "ours").len() as u64, expected);
    let seq = format!("-p {POOL} -N ours bench 60 seq -t 4 --run-name mine");
    let seen = cluster.rados(&seq);
    assert!(
        seen.contains(&format!("Total reads made:     {ops}")),
        "{seen}"
    );
    // `rados bench` prints "not correct" for wrong contents but still exits with 0.
    assert!(!seen.contains("not correct"), "{seen}");
    cluster.rados(&format!("-p {POOL} -N ours cleanup --run-name mine"));
    assert_eq!(objects_of(&cluster, "ours"), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn iosonde_verifies_and_removes_objects_of_rados_bench() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let write = format!("-p {POOL} -N theirs bench 2 write -b 65536 -O 131072 -t 4 --no-cleanup");
    let theirs = cluster.rados(&write);
    let made = theirs
        .lines()
        .find(|line| line.starts_with("Total writes made"));
    let made: u64 = made
        .and_then(|line| line.split_whitespace().last()?.parse().ok())
        .expect("a count");
    let seq = json(&iosonde(&cluster, "-N theirs bench 60 seq -f json"));
    assert_eq!(seq["total_reads_made"], made);
    assert_eq!(
        (&seq["op_size"], &seq["damaged_reads"]),
        (&65536.into(), &0.into())
    );
    let rand = iosonde(&cluster, "-N theirs bench 2 rand -t 4");
    for words in [
        "sec Cur ops",
        "Total reads made:",
        "Bandwidth (MB/sec):",
        "p99.9 latency(s):",
        "Client CPU (us/op):",
    ] {
        assert!(rand.contains(words), "{words}: {rand}");
    }
    // Damages one object: the read finds it, and with verification off it does not.
    let name = objects_of(&cluster, "theirs")
        .into_iter()
        .find(|name| name.ends_with("_object0"))
        .expect("an object");
    cluster.rados(&format!(
        "-p {POOL} -N theirs put {name} /etc/hostname --offset 70000"
    ));
    let (status, stdout, stderr) =
        cluster.run(&format!("rados -p {POOL} -N theirs bench 60 seq -f json"));
    assert_eq!(status, Some(1), "{stderr}");
    assert_eq!(json(&stdout)["damaged_reads"], 1);
    iosonde(&cluster, "-N theirs bench 60 seq --no-verify");
    let removed = iosonde(&cluster, "-N theirs cleanup");
    assert!(removed.starts_with("Removed "), "{removed}");
    assert_eq!(objects_of(&cluster, "theirs"), [""; 0]);
    // As with `rados cleanup`, nothing to remove is no failure.
    let again = iosonde(&cluster, "-N theirs cleanup");
    assert!(again.starts_with("Removed 0 objects\n"), "{again}");
}

#[test]
#[ignore = "needs Ceph"]
fn operations_in_flight_are_counted() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let result = json(&iosonde(
        &cluster,
        "-N flying bench 3 write -b 64k -t 8 -f json",
    ));
    let rows = result["datas"].as_array().expect("rows");
    let counted = rows.iter().skip(1).map(|row| {
        let in_flight = row["cur_ops"].as_u64().expect("a count");
        let started = row["started"].as_u64().expect("a count");
        assert_eq!(
            started,
            row["finished"].as_u64().expect("a count") + in_flight
        );
        in_flight
    });
    let counted: Vec<u64> = counted.collect();
    assert!(counted.iter().all(|count| *count <= 8), "{counted:?}");
    assert!(counted.iter().any(|count| *count >= 4), "{counted:?}");
}

#[test]
#[ignore = "needs Ceph"]
fn write_bench_removes_its_objects() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let text = iosonde(&cluster, "-N gone bench 60 write -b 16k --max-objects 40");
    assert!(text.contains("Total writes made:      40"), "{text}");
    assert!(
        text.contains("Maintaining 16 concurrent writes of 16384 bytes"),
        "{text}"
    );
    assert_eq!(objects_of(&cluster, "gone"), [""; 0]);
}

/// Runs a command in a new PID namespace as process 1, as in a container.
fn as_process_1(command: &Command) -> Command {
    let mut alone = Command::new("unshare");
    alone
        .args(["--pid", "--fork"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        alone.env(name, value.expect("a value"));
    }
    alone
}

#[test]
#[ignore = "needs Ceph"]
fn runs_with_equal_host_and_pid_keep_separate_objects() {
    require!(Root);
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let write = |rest: &str| {
        let line = format!("rados -p {POOL} -N kin bench 60 write -b 16k {rest}");
        as_process_1(&cluster.iosonde(&line))
    };
    let ends = |mut command: Command| {
        let done = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
    };
    let reads_all = |run: &str, count: u64| {
        let line = format!("-N kin bench 60 seq -f json --run-name {run}");
        let read = json(&iosonde(&cluster, &line));
        assert_eq!(read["total_reads_made"], count);
        assert_eq!(read["damaged_reads"], 0);
    };
    ends(write("--max-objects 40 --no-cleanup --run-name first"));
    let first = objects_of(&cluster, "kin");
    assert_eq!(first.len(), 41);
    assert!(first[0].ends_with("_1_object0"), "{first:?}");
    // A run that removes its objects.
    ends(write("--max-objects 60"));
    assert_eq!(objects_of(&cluster, "kin"), first);
    // Two runs that start together.
    let pair = ["second", "third"].map(|run| {
        let mut command = write(&format!("--max-objects 50 --no-cleanup --run-name {run}"));
        command.stdout(Stdio::null()).spawn().expect("it starts")
    });
    for mut run in pair {
        assert!(run.wait().expect("it ends").success());
    }
    assert_eq!(objects_of(&cluster, "kin").len(), 41 + 2 * 51);
    for (run, count) in [("first", 40), ("second", 50), ("third", 50)] {
        reads_all(run, count);
        iosonde(&cluster, &format!("-N kin cleanup --run-name {run}"));
    }
    assert_eq!(objects_of(&cluster, "kin"), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn wrong_pools_and_keys_are_explained() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let fails = |line: &str, words: &str| {
        let (status, stdout, stderr) = cluster.run(line);
        assert!(status.is_some_and(|status| status > 0), "{line}: {stdout}");
        assert!(
            stderr.contains(words) && !stderr.contains("panicked"),
            "{line}: {stderr}"
        );
    };
    fails("rados bench -p nosuch 1 write", "ceph osd pool ls");
    fails("rados bench 1 write", "-p POOL");
    fails(
        &format!("rados bench -p {POOL} 1 write --keyring /dev/null"),
        "keyring",
    );
    fails(
        &format!("rados bench -p {POOL} -N nothing 1 seq"),
        "write objects first",
    );
}

/// The result has the state of the cluster.
#[test]
#[ignore = "needs Ceph"]
fn bench_result_has_cluster_state() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    one_good_try(|| {
        let result = json(&iosonde(&cluster, "-N side bench 3 write -b 4k -f json"));
        let side = &result["cluster"];
        // A note reports a daemon without CPU time, which answers too late.
        let notes = side["notes"].as_array().expect("notes");
        ensure(notes.is_empty(), || format!("{side:#}"))?;
        assert_eq!(side["osds"]["up"], 3, "{side:#}");
        assert_eq!(side["pool"]["redundancy"]["replicated"]["size"], 2);
        assert_eq!(side["pool"]["pgs"], 32);
        assert_eq!(side["osd_latency"].as_array().map(Vec::len), Some(3));
        assert!(side["osd_latency"][0]["ops"].as_u64() > Some(0), "{side:#}");
        Ok(())
    });
}

/// The stored result of a run counts whole I/Os of each direction.
fn assert_result_counts_bytes(cluster: &Cluster) {
    let directory = tempfile::tempdir().expect("a directory");
    let with_history = |line: &str| {
        let mut command = cluster.iosonde(line);
        let command = command
            .env_remove("IOSONDE_NO_SAVE")
            .env("IOSONDE_STORE", directory.path().join("history.db"));
        let output = command.output().expect("iosonde starts");
        assert!(output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for work in [
        "--rw=write",
        "--rw=read",
        "--rw=rw",
        "--rw=write --verify=crc32c",
    ] {
        with_history(&format!(
            "fio --ioengine=rados --pool={POOL} --name=large {work} --bs=1m --size=4m --iodepth=4"
        ));
        let result = json(&with_history("export latest --format json"));
        let worker = &result["workers"][0];
        let count_bytes = |direction: &str| worker["directions"][direction]["io_bytes"].as_u64();
        let moved = count_bytes("read")
            .unwrap_or(0)
            .max(count_bytes("write").unwrap_or(0));
        let all = count_bytes("read").unwrap_or(0) + count_bytes("write").unwrap_or(0);
        assert!(moved > 0 && all % (4 << 20) == 0, "{work}: {worker:#}");
        assert!(worker["error"].is_null(), "{work}: {worker:#}");
    }
}

/// Large I/Os move the right data and count correctly: with many in flight, over several objects,
/// and with each way to fill a buffer.
#[test]
#[ignore = "needs Ceph"]
fn large_ios_move_their_data() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let write = "-N large bench 60 write -b 4M -t 16 --max-objects 40 --no-cleanup \
                 --run-name large -f json";
    let result = json(&iosonde(&cluster, write));
    assert_eq!(result["total_writes_made"], 40);
    let seq = format!("-p {POOL} -N large bench 60 seq -t 4 --run-name large");
    let seen = cluster.rados(&seq);
    assert!(seen.contains("Total reads made:     40"), "{seen}");
    assert!(!seen.contains("not correct"), "{seen}");
    cluster.rados(&format!("-p {POOL} -N large cleanup --run-name large"));
    let fio = |line: &str| {
        let (status, stdout, stderr) = cluster.run(&format!(
            "fio --ioengine=rados --pool={POOL} --name=large --size=16m --iodepth=16 {line}"
        ));
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    };
    // Contents that differ from block to block, over several objects.
    fio("--rw=randwrite --bsrange=4k-1m --verify=crc32c --ceph_object_size=1m");
    // Contents that never change: in one object and in several, of one length and of many.
    for (contents, pattern, writes) in [
        (
            "buffer_pattern=0xabcd",
            "0xabcd",
            "--bs=1m --ceph_object_size=1m",
        ),
        ("zero_buffers", "0", "--bs=4m --ceph_object_size=1m"),
        ("zero_buffers", "0", "--bsrange=4k-1m --ceph_object_size=1m"),
    ] {
        fio(&format!(
            "--filename=constant --iodepth=4 --rw=randwrite --loops=3 {writes} --{contents} \
             --name=read --filename=constant --size=16m --ioengine=rados --pool={POOL} \
             --ceph_object_size=1m --stonewall --rw=read --bs=1m --verify=pattern \
             --verify_pattern={pattern}"
        ));
    }
    // Contents that change in reused buffers: an OSD rejects data that do not fit their checksum.
    for contents in ["scramble_buffers=1", "refill_buffers"] {
        fio(&format!(
            "--rw=write --bs=1m --iodepth=4 --{contents} --ceph_timeout=20"
        ));
    }
    assert_result_counts_bytes(&cluster);
}

/// iosonde sets one callback thread, unless the user sets another number.
#[test]
#[ignore = "needs Ceph"]
fn librados_thread_count_of_user_takes_precedence() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let threads = |arguments: &str| {
        let line = format!("rados bench -p {POOL} -N threads 600 write -b 4k --run-name threads");
        let mut child = cluster
            .iosonde(&line)
            .env("CEPH_ARGS", arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        // The run claims its name with an object before the worker writes.
        wait_for("the worker's objects", || {
            (objects_of(&cluster, "threads").len() > 1).then_some(())
        });
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads");
        let names = tasks.flatten().filter_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            name.starts_with("io_context_pool").then_some(())
        });
        let count = names.count();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        child.wait().expect("it ends");
        count
    };
    // The clients of the worker, of the objects and of the sampler, which keeps librados' 2.
    assert_eq!(threads(""), 4);
    assert_eq!(threads("--librados-thread-count=5"), 15);
}
