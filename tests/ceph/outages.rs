//! Storage daemons that stop for a while, do not come back, or are one of several that dies: each is in the result, and none is waited for
//! longer than the time that is set.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, is_full, require};
use rustix::process::Signal;
use serde_json::Value;

use crate::engines::wait_for;

/// A job of `fio` that is kept in a history of its own.
struct Kept {
    child: Child,
    store: PathBuf,
    figures: PathBuf,
}

/// Starts something whose output goes to a file, where it finds room however long nobody reads, and waits until that has these words.
fn until_it_says(words: &str, mut command: Command, output: &Path) -> Child {
    let file = std::fs::File::create(output).expect("a file");
    let command = command.stdout(file).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    wait_for(words, || {
        assert_eq!(child.try_wait().expect("a child"), None, "it has ended");
        let text = std::fs::read_to_string(output).expect("a file");
        text.contains(words).then_some(())
    });
    child
}

impl Kept {
    /// Starts it, and waits until its first figures show that I/O goes on.
    fn under_way(cluster: &Cluster, scratch: &Scratch, name: &str, job: &str) -> Kept {
        let store = scratch.out().join(format!("{name}.db"));
        let figures = scratch.out().join(name);
        let line = format!(
            "--store {} fio {job} --name={name} --time_based --status-interval=1",
            store.display()
        );
        let mut command = cluster.iosonde(&line);
        command.env_remove("IOSONDE_NO_SAVE");
        Kept {
            child: until_it_says("IOPS=", command, &figures),
            store,
            figures,
        }
    }

    /// Waits for it, which has to end well. Its result, and its report with the notes below.
    fn end(self, cluster: &Cluster) -> (Value, String) {
        let output = self.child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let shown = std::fs::read_to_string(&self.figures).expect("a file");
        assert!(output.status.success(), "{said}{shown}");
        (exported(cluster, &self.store), shown)
    }
}

fn exported(cluster: &Cluster, store: &Path) -> Value {
    let line = format!("export latest --store {} --format json", store.display());
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// I/Os of each interval.
fn series(result: &Value) -> Vec<u64> {
    let intervals = result["intervals"].as_array().expect("intervals");
    let ios = intervals.iter().map(|interval| {
        let of = |direction: &str| interval["directions"][direction]["ios"].as_u64();
        of("read").unwrap_or(0) + of("write").unwrap_or(0)
    });
    ios.collect()
}

/// Between intervals with many I/Os there is at least one with next to none. What comes after may be slower: other runs went on as well.
fn assert_stalled(series: &[u64], what: &str) {
    let most = series.iter().copied().max().unwrap_or(0);
    let is_busy = |ios: &u64| *ios * 10 > most;
    let is_still = |ios: &u64| *ios * 50 < most;
    let is_gap = |at: usize| {
        let (before, after) = series.split_at(at);
        is_still(&series[at]) && before.iter().any(is_busy) && after.iter().any(is_busy)
    };
    assert!(
        (0..series.len()).any(is_gap),
        "{what} shows no stall: {series:?}"
    );
}

fn begun(mut command: Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

#[test]
#[ignore = "needs Ceph"]
fn a_stall_is_a_gap_in_the_series_and_silence_an_error_with_a_remedy() {
    require!(Root);
    let scratch = Scratch::shared();
    let options = ["--store", "memstore", "--no-mgr", "--size", "4294967296"];
    let cluster = Cluster::up(&scratch, &options);
    cluster.rbd(&format!("create {POOL}/silent --size 16M"));
    let image = format!("--target=rbd://{POOL}/silent --allow-overwrite=rbd://{POOL}/silent");
    let fill = format!("fio {image} --name=fill --rw=write --bs=1m");
    let (status, stdout, stderr) = cluster.run(&fill);
    assert_eq!(status, Some(0), "{stdout}{stderr}");

    // Reads of an image: librbd's own cache takes writes for a while.
    let reads = format!("{image} --rw=randread --bs=4k --iodepth=4");
    let writes = format!("--target=rados://{POOL} --rw=randwrite --bs=4k --size=4m --iodepth=4");
    let line = format!("rados bench -p {POOL} 12 write -b 4k -t 4 -f json");
    let bench = begun(cluster.iosonde(&line));
    let runs = [("image", &reads), ("pool", &writes)].map(|(name, job)| {
        let job = format!("{job} --runtime=12");
        (
            name,
            Kept::under_way(&cluster, &scratch, &format!("stall-{name}"), &job),
        )
    });
    cluster.signal("osd.0", Signal::STOP);
    // At least one whole interval of a second lies within.
    sleep(Duration::from_millis(2500));
    cluster.signal("osd.0", Signal::CONT);
    for (name, run) in runs {
        let (result, _) = run.end(&cluster);
        assert_stalled(&series(&result), name);
    }
    let output = bench.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let seconds = result["datas"].as_array().expect("seconds");
    let finished: Vec<u64> = (seconds.iter())
        .filter_map(|second| second["finished"].as_u64())
        .collect();
    let each: Vec<u64> = finished.windows(2).map(|two| two[1] - two[0]).collect();
    assert_stalled(&each, "rados bench");

    // The same without an end: each ends of itself, long before its time is over. An image takes longer where librbd holds writes back.
    let mut jobs = vec![("read of 4096 bytes", reads.clone())];
    if is_full() {
        let writes = reads.replace("randread", "randwrite");
        jobs.push(("write of 4096 bytes", writes));
    }
    let mut ours: Vec<(&str, Child)> = Vec::new();
    for (what, job) in jobs {
        let job = format!("{job} --runtime=600 --ceph-timeout=3");
        let name = format!("silent-{}", ours.len());
        ours.push((what, Kept::under_way(&cluster, &scratch, &name, &job).child));
    }
    let line = format!("rados bench -p {POOL} 600 write -b 4k -t 4 --timeout 3");
    let seconds = scratch.out().join("seconds");
    let bench = until_it_says("\n    1 ", cluster.iosonde(&line), &seconds);
    ours.push(("write of 4096 bytes", bench));
    cluster.signal("osd.0", Signal::STOP);
    for (what, mut child) in ours {
        let status = wait_for("the end", || child.try_wait().expect("a child"));
        let output = child.wait_with_output().expect("it has ended");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(status.code(), Some(1), "{what}: {said}");
        let error = said.lines().find(|line| line.starts_with("error: "));
        let error = error.unwrap_or_else(|| panic!("{what}: {said}"));
        for words in [what, "ETIMEDOUT", "did not answer", "`ceph -s`"] {
            assert!(error.contains(words), "{words}: {said}");
        }
        // What it could not remove is said beside the cause, with the command that does it.
        let is_bench = error.contains("benchmark_data");
        let command = format!("iosonde rados -p {POOL} cleanup --prefix benchmark_data");
        assert!(!is_bench || said.contains(&command), "{said}");
    }
}

#[test]
#[ignore = "needs Ceph"]
fn a_daemon_of_three_that_dies_is_in_the_result_of_a_run_that_goes_on() {
    require!(Root);
    let scratch = Scratch::shared();
    let options = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];
    let three = ["--osds", "3", "--replicas", "2"];
    let cluster = Cluster::up(&scratch, &[&options[..], &three].concat());
    let job = format!("--target=rados://{POOL} --rw=randrw --bs=4k --size=4m --iodepth=4");
    let up = |result: &Value| {
        let osds = &result["ceph"]["osds"];
        (osds["up"].as_u64(), osds["total"].as_u64())
    };
    let degraded = |result: &Value| {
        let verdicts = result["verdicts"].as_array().expect("verdicts");
        let found = verdicts
            .iter()
            .find(|verdict| verdict["kind"] == "cluster_degraded");
        found.map(|verdict| verdict["evidence"].to_string())
    };
    // Before, all are there and nothing is said.
    let line = format!("{job} --runtime=2");
    let (before, said) = Kept::under_way(&cluster, &scratch, "before", &line).end(&cluster);
    assert_eq!(up(&before), (Some(3), Some(3)));
    assert_eq!(degraded(&before), None, "{said}");

    let line = format!("{job} --runtime=15");
    let run = Kept::under_way(&cluster, &scratch, "during", &line);
    cluster.signal("osd.1", Signal::KILL);
    let (during, said) = run.end(&cluster);
    let worker = &during["workers"][0];
    assert!(worker["error"].is_null(), "{worker:#}");
    assert_eq!(worker["total_errors"].as_u64().unwrap_or(0), 0);
    // It goes on, also in its last three seconds.
    let series = series(&during);
    let last: u64 = series.iter().rev().take(3).sum();
    let most = series.iter().copied().max().unwrap_or(0);
    assert!(last * 10 > most, "{series:?}");
    assert_eq!(up(&during), (Some(2), Some(3)));
    assert_eq!(during["ceph"]["health"], "HEALTH_WARN");
    let checks = during["ceph"]["checks"].to_string();
    assert!(checks.contains("OSD_DOWN"), "{checks}");
    // For people as well.
    let told = "1 of the cluster's 3 OSDs did not run";
    let evidence = degraded(&during).expect("a finding");
    assert!(evidence.contains(told), "{evidence}");
    assert!(said.contains(told) && said.contains("OSD_DOWN"), "{said}");
    // None of its objects is left, though one of those that held them is gone.
    let left = cluster.objects(POOL);
    assert!(!left.concat().contains("iosonde-"), "{left:?}");
}
