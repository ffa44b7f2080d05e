//! Discarded ranges are filled before the next job reads them, or the read is refused.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use std::path::Path;

#[test]
#[ignore = "needs Ceph"]
fn discarded_image_range_is_filled_before_next_read() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/discarded --size 8M"));
    let job =
        |name: &str, rw: &str| format!("--name={name} --rw={rw} --bs=4m --size=8m --stonewall");
    let all = format!(
        "fio --ioengine=rbd --pool={POOL} --rbdname=discarded {} {} {}",
        job("fill", "write"),
        job("gone", "trim"),
        job("reads", "read")
    );
    let (status, stdout, stderr) = cluster.run(&all);
    let said = stdout + &stderr;
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("laid out again"), "{said}");
    assert_eq!(cluster.image_used_bytes("discarded"), Some(8 << 20));
    // Ranges that a later job writes are not refilled, and neither are ranges that no job reads.
    let kept = format!(
        "fio --ioengine=rbd --pool={POOL} --rbdname=discarded {} {} --verify=crc32c --do_verify=0 \
         {} --verify=crc32c --verify_only",
        job("gone", "trim"),
        job("writes", "write"),
        job("checks", "read")
    );
    let (status, stdout, stderr) = cluster.run(&kept);
    let said = stdout + &stderr;
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("laid out again"), "{said}");
    let (status, ..) = cluster.run(&format!(
        "fio --ioengine=rbd --pool={POOL} --rbdname=discarded {}",
        job("gone", "trim")
    ));
    let used_bytes = cluster.image_used_bytes("discarded");
    assert_eq!((status, used_bytes), (Some(0), Some(0)));
    cluster.rbd(&format!("rm --no-progress {POOL}/discarded"));
}

#[test]
#[ignore = "needs Ceph"]
fn discarded_object_is_filled_or_read_is_refused() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    // Records the object when the reading job is about to start.
    let seen = scratch.out().join("seen");
    let stat_script = scratch.write(
        "look",
        format!("rados -p {POOL} stat gone.0.0 > {}\n", seen.display()),
    );
    let text = format!(
        "[global]\nioengine=rados\npool={POOL}\nfilename=gone.0.0\nbs=64k\nsize=1m\n[fill]\n\
         rw=read\n[gone]\nstonewall\nrw=trim\n\
         [reads]\nstonewall\nrw=read\nexec_prerun=sh {}\n",
        stat_script.display()
    );
    // Files that the hook creates are outside the work directory.
    let run = |job: &Path| {
        let mut command = cluster.iosonde(&format!("fio {}", job.display()));
        let done = command.current_dir(scratch.out()).output();
        let done = done.expect("iosonde starts");
        let said = [done.stdout, done.stderr].concat();
        (
            done.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let job = scratch.write("gone.fio", &text);
    let (status, said) = run(&job);
    assert_eq!(status, Some(0), "{said}");
    let seen = std::fs::read_to_string(&seen).expect("what was seen");
    assert!(seen.trim_end().ends_with("size 1048576"), "{seen}");
    assert!(said.contains("laid out again"), "{said}");
    // The rest of the object is unchanged: one job wrote it, and another verifies it.
    let part = format!(
        "[global]\nioengine=rados\npool={POOL}\nfilename=gone.0.0\nbs=64k\nsize=1m\n[fill]\n\
         rw=write\nverify=crc32c\ndo_verify=0\n\
         [gone]\nstonewall\nrw=trim\nsize=64k\n[checks]\nstonewall\nrw=read\noffset=512k\n\
         size=512k\nverify=crc32c\n\
         [reads]\nstonewall\nrw=read\n"
    );
    let (status, said) = run(&scratch.write("part.fio", part));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("laid out again"), "{said}");
    // An object of another program may be discarded with consent. Later reads are refused.
    let path = scratch.write("data", vec![7; 1 << 20]);
    cluster.rados(&format!("-p {POOL} put gone.0.0 {}", path.display()));
    let theirs = text.replace("[gone]\n", "[gone]\nallow_mounted_write=1\n");
    let job = scratch.write("theirs.fio", theirs);
    let (status, said) = run(&job);
    assert_ne!(status, Some(0), "{said}");
    for words in [
        "an earlier job discarded 1048576 of the 1048576 bytes",
        "allow_mounted_write=1",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    cluster.rados(&format!("-p {POOL} rm gone.0.0"));
}
