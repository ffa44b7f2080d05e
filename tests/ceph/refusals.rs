//! What cannot be measured, or must not be written, is said in the right words.

use std::fs;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};

/// The words of a run that is refused.
fn refused(cluster: &Cluster, line: &str) -> String {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(3), "{line}: {stdout}{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

#[test]
#[ignore = "needs Ceph"]
fn a_cluster_that_cannot_be_used_says_why() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let job = "--name=a --rw=randwrite --bs=4k --size=1m";
    let deaf = scratch.out().join("deaf.conf");
    // Nobody listens at port 1.
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
            format!("--target=rados://{POOL} --ceph-client=nobody"),
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
fn what_an_image_carries_is_not_overwritten_without_consent() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let file = scratch.out().join("ext4");
    let made = std::process::Command::new("mkfs.ext4")
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
fn an_object_of_others_is_neither_written_nor_removed() {
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
