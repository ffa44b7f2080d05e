//! Leftovers of a killed run are found by their names and removed, and no other object is.

use std::process::{Command, Stdio};

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};

use crate::engines::wait_for;

/// The objects of this test.
fn objects(cluster: &Cluster) -> Vec<String> {
    let listed = cluster.rados(&format!("-p {POOL} -N killed ls"));
    let mut names: Vec<String> = listed.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// Creates objects with this modification time, in seconds since 1970.
fn put_at(cluster: &Cluster, names: &[&str], seconds: u32) {
    let script = format!(
        "import rados\n\
         cluster = rados.Rados(conffile='{}')\n\
         cluster.connect()\n\
         pool = cluster.open_ioctx('{POOL}')\n\
         pool.set_namespace('killed')\n\
         for name in {names:?}:\n    \
             with rados.WriteOpCtx() as op:\n        \
                 op.write_full(b'x')\n        \
                 pool.operate_write_op(op, name, mtime={seconds})\n",
        cluster.conf().display()
    );
    // The system's Python, which has the `rados` module of Ceph's packages.
    let done = Command::new("/usr/bin/python3")
        .args(["-c", &script])
        .output();
    let done = done.expect("python3 starts");
    assert!(done.status.success(), "{done:?}");
}

#[test]
#[ignore = "needs Ceph"]
fn leftovers_of_killed_run_are_removed_on_request() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mut command = cluster.iosonde(&format!(
        "fio --target=rados://{POOL}/killed --name=a --rw=randrw --bs=64k --size=16m --iodepth=4 \
         --time_based --runtime=600 --rate_iops=200"
    ));
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for("its objects", || {
        (objects(&cluster).len() == 4).then_some(())
    });
    // `Child::kill` sends SIGKILL.
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    // Names similar to iosonde's, and leftovers of an old run.
    let similar = ["iosonde-notes", "iosonde-0123456789", "0123456789-iosonde-"];
    put_at(&cluster, &similar, 1_000_000_000);
    let others = objects(&cluster);
    put_at(
        &cluster,
        &["iosonde-0123456789-data.0000000000000000"],
        1_000_000_000,
    );
    let clean_up = |line: &str| {
        let (status, stdout, stderr) = cluster.run(line);
        assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
        stdout
    };
    let said = clean_up(&format!(
        "rados -p {POOL} -N killed cleanup --prefix iosonde-"
    ));
    // Neither run is known to have ended: a run that only reads writes nothing.
    let mut commands: Vec<(usize, &str)> = Vec::new();
    for line in said.lines().skip(1) {
        let (what, command) = line
            .split_once(" If this run has ended: iosonde ")
            .expect("a command");
        let count = what.split(' ').next().and_then(|count| count.parse().ok());
        commands.push((count.expect("a number"), command));
    }
    commands.sort_unstable();
    assert!(said.starts_with("Removed 0 objects\n"), "{said}");
    assert_eq!(
        commands.iter().map(|(count, _)| *count).collect::<Vec<_>>(),
        [1, 4],
        "{said}"
    );
    assert_eq!(objects(&cluster).len(), others.len() + 1);
    assert_eq!(clean_up(commands[0].1), "Removed 1 objects\n");
    assert_eq!(objects(&cluster), others);
    let named = commands[1].1;
    assert_eq!(clean_up(named), "Removed 4 objects\n");
    assert_eq!(
        objects(&cluster),
        ["0123456789-iosonde-", "iosonde-0123456789", "iosonde-notes"]
    );
    assert_eq!(clean_up(named), "Removed 0 objects\n");
    for name in objects(&cluster) {
        cluster.rados(&format!("-p {POOL} -N killed rm {name}"));
    }
}
