//! `iosonde doctor` on every kind of target that this machine can create.

use std::collections::BTreeSet;
use std::path::Path;

use iosonde_e2e::device::{self, Loop};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::throttle::Throttle;
use iosonde_e2e::{Scratch, ours, require};
use serde_json::Value;

const MIB: usize = 1 << 20;

fn doctor(scratch: &Scratch, line: &str) -> Invocation {
    Invocation::new(scratch, vec![iosonde().into(), "doctor".into()]).and(line)
}

/// Findings on a target and the devices below it, and the first device.
fn examined(invocation: Invocation) -> (BTreeSet<String>, Value) {
    let run = invocation.and("--format json").ok();
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = document["findings"].as_array().expect("findings");
    let found = findings
        .iter()
        .filter(|finding| finding["subject"] != "machine")
        .map(|finding| text(&finding["id"]));
    (
        found.collect(),
        document["targets"][0]["info"]["devices"][0].clone(),
    )
}

#[track_caller]
fn finds(invocation: Invocation, wanted: &[&str]) {
    let (found, _) = examined(invocation);
    for id in wanted {
        assert!(found.contains(*id), "no {id} in {found:?}");
    }
}

#[test]
fn loop_device_and_its_file_system_are_examined() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let memory = Mount::tmpfs(scratch.work().join("memory"), 64 * MIB as u64);
    let disk = Loop::in_memory(&memory, 32 * MIB);
    let node = disk.path().display().to_string();
    let (found, info) = examined(doctor(&scratch, &node));
    assert!(found.contains("buffered-loop"), "{found:?}");
    assert!(
        !found.contains("in-use") && !found.contains("unreadable"),
        "{found:?}"
    );
    assert_eq!(info["kind"], "loop");
    let files = Mount::ext4(scratch.work().join("files"), disk.path());
    let dir = files.dir().display().to_string();
    let (found, info) = examined(doctor(&scratch, &dir));
    assert!(!found.contains("unwritable"), "{found:?}");
    assert_eq!(info["kind"], "loop", "the directory leads to its device");
    finds(doctor(&scratch, &node), &["in-use"]);
    files.make_read_only();
    finds(doctor(&scratch, &dir), &["read-only"]);
}

#[test]
fn targets_without_local_device_are_named() {
    require!(Root, Nbdfuse);
    ours!();
    let scratch = Scratch::shared();
    let memory = Mount::tmpfs(scratch.work().join("memory"), MIB as u64);
    let dir = memory.dir().display().to_string();
    finds(doctor(&scratch, &dir), &["memory-file-system"]);
    let file = FuseFile::serve(&scratch, "served", MIB as u64, &Behaviour::plain());
    let (found, _) = examined(doctor(&scratch, &file.path().display().to_string()));
    assert!(found.contains("user-space-file-system"), "{found:?}");
    assert!(
        !found.contains("sparse-file"),
        "its server counts no blocks: {found:?}"
    );
    finds(doctor(&scratch, "/proc"), &["pseudo-file-system"]);
}

#[test]
fn cgroup_limit_and_sparse_file_are_found() {
    require!(Root, Zram, Throttle);
    ours!();
    let scratch = Scratch::shared();
    let disk = device::Zram::new(32 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), &disk.path());
    let sparse = files.dir().join("sparse");
    std::fs::File::create(&sparse)
        .and_then(|file| file.set_len(8 << 20))
        .expect("a sparse file");
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let run = |path: &Path| doctor(&scratch, &path.display().to_string()).throttled(&throttle);
    finds(run(&sparse), &["cgroup-io", "sparse-file", "memory-device"]);
    let text = run(&sparse).ok().stdout;
    assert!(text.contains("500 reads/s"), "{text}");
    let wide = |line: &&str| line.chars().count() > 80 && !line.contains("   $ ");
    assert_eq!(text.lines().find(wide), None);
}

#[test]
fn unreadable_targets_do_not_stop_the_others() {
    ours!();
    let scratch = Scratch::shared();
    for (target, words) in [
        ("/no/such/place", ["/no/such/place", "ENOENT"]),
        (
            "/dev/null",
            ["/dev/null", "not a directory, file or block device"],
        ),
    ] {
        let refused = doctor(&scratch, target).run();
        assert_eq!(refused.status.code(), Some(3), "{refused}");
        refused.refused_with(&words);
    }
    // The remaining targets are still examined.
    let some = doctor(&scratch, "/no/such/place . --format json").run();
    assert_eq!(some.status.code(), Some(3), "{some}");
    assert!(some.stderr.contains("/no/such/place"), "{some}");
    let document: Value = serde_json::from_str(&some.stdout).expect("JSON");
    assert_eq!(document["targets"][0]["name"], ".", "{some}");
    let unfit = doctor(&scratch, "/proc --fail-on problem").run();
    assert_eq!(unfit.status.code(), Some(8), "{unfit}");
    assert!(unfit.stdout.contains("problem  /proc"), "{unfit}");
}
