//! Targets that cannot be measured or must not be written are refused with the reason.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::scratch::incompressible;
use iosonde_e2e::{Scratch, is_full};
use serde_json::Value;

use crate::engines::{start, wait_for};

/// The messages of a run that is refused.
fn refused(cluster: &Cluster, line: &str) -> String {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(3), "{line}: {stdout}{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

#[test]
#[ignore = "needs Ceph"]
fn unusable_cluster_is_explained() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let job = "--name=a --rw=randwrite --bs=4k --size=1m";
    let deaf = scratch.out().join("deaf.conf");
    // No server listens on port 1.
    fs::write(&deaf, "[global]\nmon host = [v2:127.0.0.1:1]\n").expect("a file");
    let keyring = cluster.conf().with_file_name("keyring");
    let key = fs::read_to_string(&keyring).unwrap_or_default();
    let wrong = scratch.out().join("wrong.keyring");
    let other = "[client.admin]\n\tkey = AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==\n";
    fs::write(&wrong, other).expect("a file");
    assert!(!key.contains("AQAAAAAAAAAAABAA"));
    let cases = [
        ("--target=rados://nosuch".to_owned(), "ceph osd pool ls"),
        (format!("--target=rbd://{POOL}/nosuch"), "rbd ls"),
        (
            format!("--target=rados://{POOL} --ceph-conf=/nonexistent"),
            "/nonexistent",
        ),
        (
            format!(
                "--target=rados://{POOL} --ceph-timeout=2 --ceph-conf={}",
                deaf.display()
            ),
            "no monitor answered",
        ),
        (
            format!(
                "--target=rados://{POOL} --ceph-timeout=5 --ceph-keyring={}",
                wrong.display()
            ),
            "key",
        ),
        (
            format!("--target=rados://{POOL} --ceph-client=missing"),
            "key",
        ),
    ];
    for (target, words) in cases {
        let said = refused(&cluster, &format!("fio {target} {job}"));
        assert!(
            said.contains(words) && said.contains("help: "),
            "{target}: {said}"
        );
    }
}

#[test]
#[ignore = "needs Ceph"]
fn image_with_data_is_not_overwritten_without_consent() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let file = scratch.out().join("ext4");
    let made = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(&file)
        .arg("8m")
        .status();
    assert!(made.expect("mkfs.ext4").success());
    cluster.rbd(&format!(
        "import --no-progress {} {POOL}/carries",
        file.display()
    ));
    let target = format!("--target=rbd://{POOL}/carries");
    let write = "--name=a --rw=randwrite --bs=4k --io_size=64k";
    let said = refused(&cluster, &format!("fio {target} {write}"));
    assert!(
        said.contains("ext4 file system") && said.contains("--allow-overwrite=rbd://"),
        "{said}"
    );
    let said = refused(
        &cluster,
        &format!("fio {target} --name=a --rw=randread --bs=4k"),
    );
    assert!(said.contains("were never written"), "{said}");
    let exported = scratch.out().join("exported");
    cluster.rbd(&format!(
        "export --no-progress {POOL}/carries {}",
        exported.display()
    ));
    assert!(fs::read(&file).expect("a file") == fs::read(&exported).expect("a file"));
    let consent = format!("--allow-overwrite=rbd://{POOL}/carries");
    let (status, stdout, stderr) = cluster.run(&format!("fio {target} {consent} {write}"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    cluster.rbd(&format!("rm --no-progress {POOL}/carries"));
}

#[test]
#[ignore = "needs Ceph"]
fn foreign_object_is_neither_written_nor_removed() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rados(&format!("-p {POOL} put foreign.0.0 /etc/hostname"));
    let job = format!("fio --ioengine=rados --pool={POOL} --name=foreign --size=1m");
    let said = refused(&cluster, &format!("{job} --rw=write"));
    assert!(said.contains("object of this name"), "{said}");
    let said = refused(&cluster, &format!("{job} --rw=read"));
    assert!(said.contains("job foreign needs 1048576"), "{said}");
    cluster.rados(&format!("-p {POOL} rm foreign.0.0"));
}

/// The contents of an image.
fn contents(cluster: &Cluster, scratch: &Scratch, image: &str) -> Vec<u8> {
    let exported = scratch.out().join("exported");
    cluster.rbd(&format!(
        "export --no-progress {POOL}/{image} {}",
        exported.display()
    ));
    let bytes = fs::read(&exported).expect("a file");
    fs::remove_file(exported).expect("a file");
    bytes
}

/// Creates an image of 16 MiB whose first 4 MiB hold data without a known signature.
fn make_raw_image(cluster: &Cluster, scratch: &Scratch, image: &str) {
    let file = scratch.write("raw", incompressible(4 << 20, 7));
    let file = file.display();
    cluster.rbd(&format!("import --no-progress {file} {POOL}/{image}"));
    cluster.rbd(&format!("resize --no-progress {POOL}/{image} --size 16M"));
}

#[test]
#[ignore = "needs Ceph"]
fn partly_written_image_is_not_filled_for_reads() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    make_raw_image(&cluster, &scratch, "raw");
    let before = contents(&cluster, &scratch, "raw");
    let target = format!("rbd://{POOL}/raw");
    let reads = format!("fio --target={target} --name=a --rw=randread --bs=64k");
    let said = refused(&cluster, &reads);
    assert!(
        said.contains("12582912 of the 16777216 bytes")
            && said.contains("--allow-overwrite=rbd://"),
        "{said}"
    );
    let sweep = format!("sweep {target} --rw randread --bs 64k --iodepth 1 --runtime 1");
    let (status, stdout, stderr) = cluster.run(&sweep);
    assert_ne!(status, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains(": only read"), "{stderr}");
    // Written ranges can be read.
    let (status, stdout, stderr) = cluster.run(&format!("{reads} --size=4m"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(contents(&cluster, &scratch, "raw") == before);
    assert_eq!(cluster.image_used_bytes("raw"), Some(4 << 20));
    // Ranges that the job writes are filled before it reads them; the rest only with consent.
    let mixed = format!("fio --target={target} --name=a --rw=randrw --bs=64k --size=8m");
    let (status, stdout, stderr) = cluster.run(&mixed);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(cluster.image_used_bytes("raw"), Some(8 << 20));
    let (status, stdout, stderr) = cluster.run(&format!("{reads} --allow-overwrite={target}"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(cluster.image_used_bytes("raw"), Some(16 << 20));
    cluster.rbd(&format!("rm --no-progress {POOL}/raw"));
}

#[test]
#[ignore = "needs Ceph"]
fn sweep_of_jobs_keeps_the_data_of_their_image() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    make_raw_image(&cluster, &scratch, "kept");
    let before = contents(&cluster, &scratch, "kept");
    let image = format!("rbd://{POOL}/kept");
    let sweep_of = |named: &str, more: &str| {
        let job = format!("[a]\nrw=randwrite\nbs=4k\nsize=1m\nruntime=1\n{named}\n");
        let job = scratch.write("j.fio", job);
        format!("sweep {} --iodepth 1,2 --runtime 1 {more}", job.display())
    };
    let named = format!("ioengine=rbd\npool={POOL}\nrbdname=kept");
    let trims = format!("{named}\nrw=randtrim");
    for named in [&named, &trims] {
        let said = refused(&cluster, &sweep_of(named, ""));
        let is_named = said.contains("--allow-overwrite") && said.contains(&image);
        assert!(is_named, "{named}: {said}");
        assert!(contents(&cluster, &scratch, "kept") == before, "{named}");
    }
    let line = sweep_of(&named, &format!("--allow-overwrite={image}"));
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(contents(&cluster, &scratch, "kept") != before);
    cluster.rbd(&format!("rm --no-progress {POOL}/kept"));
}

/// A client that has an image open, wrote to it and holds its exclusive lock, until dropped.
struct ImageLockHolder(Child);

impl ImageLockHolder {
    fn lock_image(cluster: &Cluster, image: &str) -> ImageLockHolder {
        let script = format!(
            "import rados, rbd, sys\n\
             cluster = rados.Rados(conffile='{}')\n\
             cluster.connect()\n\
             image = rbd.Image(cluster.open_ioctx('{POOL}'), '{image}')\n\
             image.write(b'theirs!!' * (1 << 19), 0)\n\
             image.flush()\n\
             print('ready', flush=True)\n\
             sys.stdin.read()\n\
             image.close()\n",
            cluster.conf().display()
        );
        let mut child = Command::new("/usr/bin/python3")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        ImageLockHolder(child)
    }
}

impl Drop for ImageLockHolder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Removes an advisory lock of an image.
fn remove_lock(cluster: &Cluster, image: &str, lock: &str) {
    let locks = cluster.rbd(&format!("lock ls {POOL}/{image} --format json"));
    let locks: Value = serde_json::from_str(&locks).expect("JSON");
    let locker = locks[0]["locker"].as_str().expect("a locker").to_owned();
    cluster.rbd(&format!("lock rm {POOL}/{image} {lock} {locker}"));
}

#[test]
#[ignore = "needs Ceph"]
fn image_in_use_is_not_written_without_allow_in_use() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/held --size 16M"));
    let target = format!("rbd://{POOL}/held");
    let overwrite = format!("--allow-overwrite={target}");
    let on = |rw: &str| format!("fio --target={target} --name=a --rw={rw} --bs=64k --io_size=1m");
    let study = format!("sweep {target} --rw randread --bs 64k --iodepth 1 --runtime 1");
    let holder = ImageLockHolder::lock_image(&cluster, "held");
    let before = contents(&cluster, &scratch, "held");
    for line in [
        on("randwrite"),
        format!("{} {overwrite}", on("randwrite")),
        format!("{} {overwrite}", on("randread")),
        format!("{study} {overwrite}"),
    ] {
        let said = refused(&cluster, &line);
        for words in [
            "has the image open for writing",
            "rbd status testbench/held",
        ] {
            assert!(said.contains(words), "{line}: {said}");
        }
        assert!(!said.contains("--allow-in-use"), "{said}");
    }
    assert!(contents(&cluster, &scratch, "held") == before);
    // Reads of existing data are allowed.
    let (status, stdout, stderr) = cluster.run(&format!("{} --size=4m", on("randread")));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let in_use = format!("{} {overwrite} --allow-in-use={target}", on("randwrite"));
    let (status, stdout, stderr) = cluster.run(&in_use);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    drop(holder);

    // An advisory lock, without an open client.
    cluster.rbd(&format!("lock add {POOL}/held mine"));
    let said = refused(&cluster, &format!("{} {overwrite}", on("randwrite")));
    for words in [
        "holds the lock \"mine\" on the image",
        "rbd lock ls testbench/held",
    ] {
        assert!(said.contains(words), "{said}");
    }
    remove_lock(&cluster, "held", "mine");

    // The lock of a killed client no longer counts once the cluster knows that the client is gone.
    if is_full() {
        let endless = format!("{} {overwrite} --time_based --runtime=600", on("randwrite"));
        let mut killed = start(cluster.iosonde(&endless));
        wait_for("its lock", || {
            let locks = cluster.rbd(&format!("lock ls {POOL}/held"));
            locks.contains("auto ").then_some(())
        });
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
        refused(&cluster, &format!("{} {overwrite}", on("randwrite")));
        wait_for("an image without watchers", || {
            let watchers = cluster.rbd(&format!("status {POOL}/held"));
            watchers.contains("Watchers: none").then_some(())
        });
        assert!(
            cluster
                .rbd(&format!("lock ls {POOL}/held"))
                .contains("auto ")
        );
    }
    let (status, stdout, stderr) = cluster.run(&format!("{} {overwrite}", on("randwrite")));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    cluster.rbd(&format!("rm --no-progress {POOL}/held"));
}
