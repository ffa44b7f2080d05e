//! The history on full and read-only file systems: it stays readable, no result is lost, and a run
//! that cannot be stored still succeeds.

use std::fs;
use std::path::Path;

use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::Run;
use iosonde_e2e::{Scratch, require};

const JOB: &str = "fio --name=j --ioengine=sim --rw=randread --size=1m --runtime=2 --time_based \
                   --output-format=json";

fn run(scratch: &Scratch, line: &str) -> Run {
    super::run(scratch, line).env("IOSONDE_NO_SAVE", "").run()
}

/// Ids in a history.
fn listed(scratch: &Scratch, store: &str) -> Vec<String> {
    let list = run(scratch, &format!("list --format csv --store {store}"));
    assert!(list.status.success(), "{list}");
    let lines = list.stdout.lines().skip(1);
    lines.map(|line| line[..10].to_owned()).collect()
}

/// Fills the file system except for this many bytes.
fn fill(directory: &Path, left_bytes: u64) {
    // Truncates the previous filler first.
    let filler = directory.join("filler");
    fs::write(&filler, "").expect("an empty file");
    let facts = rustix::fs::statvfs(directory).expect("facts of a file system");
    let bytes = (facts.f_bavail * facts.f_frsize).saturating_sub(left_bytes);
    let zeros = vec![0; usize::try_from(bytes).expect("a small file system")];
    fs::write(filler, zeros).expect("room for the filler");
}

#[test]
fn read_only_history_can_be_read() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("kept"), 2 << 20);
    let kept = run(&scratch, &format!("--store kept/h.db {JOB}"));
    assert!(kept.status.success(), "{kept}");
    let ids = listed(&scratch, "kept/h.db");
    mount.make_read_only();
    assert_eq!(listed(&scratch, "kept/h.db"), ids);
    for command in ["show", "export"] {
        let run = run(&scratch, &format!("{command} {} --store kept/h.db", ids[0]));
        assert!(run.status.success(), "{run}");
    }
    for line in [
        format!("--store kept/h.db {JOB}"),
        format!("rm {} --store kept/h.db", ids[0]),
    ] {
        let refused = run(&scratch, &line);
        assert_eq!(refused.status.code(), Some(5), "{refused}");
        refused.refused_with(&["kept/h.db", "Read-only file system", "--store"]);
    }
    assert_eq!(listed(&scratch, "kept/h.db"), ids);
}

#[test]
fn unread_write_ahead_log_is_reported() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("kept"), 2 << 20);
    let kept = run(&scratch, &format!("--store kept/h.db {JOB}"));
    assert!(kept.status.success(), "{kept}");
    fs::write(mount.dir().join("h.db-wal"), "left by a crash").expect("a log");
    mount.make_read_only();
    let refused = run(&scratch, "list --store kept/h.db");
    assert_eq!(refused.status.code(), Some(5), "{refused}");
    refused.refused_with(&["kept/h.db-wal", "copy both files"]);
}

#[test]
fn full_disk_keeps_stored_results() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("kept"), 2 << 20);
    let mut sure = Vec::new();
    // Decreasing space: for the tables, for some runs, for none.
    for left_bytes in [1 << 20, 300_000, 150_000, 80_000, 40_000, 0] {
        fill(mount.dir(), left_bytes);
        for _ in 0..3 {
            let job = run(&scratch, &format!("--store kept/h.db {JOB}"));
            match job.status.code() {
                // Space ran out after the result was printed; otherwise before the run started.
                Some(0) => {
                    let is_not_kept = job.stderr.starts_with("note: this result is not stored");
                    assert!(job.stderr.is_empty() || is_not_kept, "{job}");
                    assert!(job.stdout.contains("total_ios"), "{job}");
                }
                _ => job.refused_with(&["kept/h.db", "its file system is full", "free some space"]),
            }
            let now = listed(&scratch, "kept/h.db");
            assert!(sure.iter().all(|id| now.contains(id)), "{sure:?}, {now:?}");
            sure = now;
        }
    }
    assert!(!sure.is_empty());
    let last = run(&scratch, &format!("--store kept/h.db {JOB}"));
    assert!(last.text().contains("its file system is full"), "{last}");
    for id in &sure {
        let shown = run(&scratch, &format!("show {id} --store kept/h.db"));
        assert!(shown.status.success(), "{shown}");
    }
    fs::remove_file(mount.dir().join("filler")).expect("the filler");
    let job = run(&scratch, &format!("--store kept/h.db {JOB}"));
    assert!(job.status.success() && job.stderr.is_empty(), "{job}");
    assert_eq!(listed(&scratch, "kept/h.db").len(), sure.len() + 1);
}
