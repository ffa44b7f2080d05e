//! OSDs that pause, do not come back, or die alone: the result shows each case, and no run waits
//! longer than the timeout.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, ensure, is_full, one_good_try, require};
use rustix::process::Signal;
use serde_json::Value;

use crate::engines::{start_piped, start_until_output, wait_closely_for};

/// A running `iosonde fio` with a history of its own.
struct BackgroundRun {
    child: Child,
    store: PathBuf,
    figures: PathBuf,
}

impl BackgroundRun {
    /// Starts a job and waits for its first figures, which show that I/O is running.
    fn start(cluster: &Cluster, scratch: &Scratch, name: &str, job: &str) -> BackgroundRun {
        let store = scratch.out().join(format!("{name}.db"));
        let figures = scratch.out().join(name);
        let line = format!(
            "--store {} fio {job} --name={name} --time_based --status-interval=1",
            store.display()
        );
        let mut command = cluster.iosonde(&line);
        command.env_remove("IOSONDE_NO_SAVE");
        BackgroundRun {
            child: start_until_output("IOPS=", command, &figures),
            store,
            figures,
        }
    }

    /// Waits for a successful exit. Returns the stored result and the printed report.
    fn wait_for_success(self, cluster: &Cluster) -> (Value, String) {
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
        let count_ios = |direction: &str| interval["directions"][direction]["ios"].as_u64();
        count_ios("read").unwrap_or(0) + count_ios("write").unwrap_or(0)
    });
    ios.collect()
}

/// Checks for an interval with almost no I/O between busy ones. Other runs may slow the rest.
fn check_stall(series: &[u64], what: &str) -> Result<(), String> {
    let most = series.iter().copied().max().unwrap_or(0);
    let is_busy = |ios: &u64| *ios * 10 > most;
    let is_still = |ios: &u64| *ios * 50 < most;
    let is_gap = |at: usize| {
        let (before, after) = series.split_at(at);
        is_still(&series[at]) && before.iter().any(is_busy) && after.iter().any(is_busy)
    };
    ensure((0..series.len()).any(is_gap), || {
        format!("{what} shows no stall: {series:?}")
    })
}

#[test]
#[ignore = "needs Ceph"]
fn stopped_osd_is_gap_in_series_then_timeout_error() {
    require!(Root);
    let scratch = Scratch::shared();
    let options = ["--store", "memstore", "--no-mgr", "--size", "4294967296"];
    let cluster = Cluster::up(&scratch, &options);
    cluster.rbd(&format!("create {POOL}/silent --size 16M"));
    let image = format!("--target=rbd://{POOL}/silent --allow-overwrite=rbd://{POOL}/silent");
    let fill = format!("fio {image} --name=fill --rw=write --bs=1m");
    let (status, stdout, stderr) = cluster.run(&fill);
    assert_eq!(status, Some(0), "{stdout}{stderr}");

    // Reads, because librbd's cache can absorb writes for a while.
    let reads = format!("{image} --rw=randread --bs=4k --iodepth=4");
    // On a busy machine the runs may end before all of them have begun, or an interval may begin
    // late and end after the stop.
    one_good_try(|| short_stop_is_gap(&cluster, &scratch, &reads));
    assert_long_stop_is_timeout(&cluster, &scratch, &reads);
}

/// Stops an OSD for 2.5 s during runs on an image and a pool and a benchmark.
fn short_stop_is_gap(cluster: &Cluster, scratch: &Scratch, reads: &str) -> Result<(), String> {
    let writes = format!("--target=rados://{POOL} --rw=randwrite --bs=4k --size=4m --iodepth=4");
    // It begins before the others, and ends after them. One I/O in flight, and fixed rates of the
    // other runs, show a stop as well as the highest rates, which would keep the CPUs busy.
    let line = format!("rados bench -p {POOL} 20 write -b 4k -t 1 -f json");
    let bench = start_piped(cluster.iosonde(&line));
    let runs = [("image", reads), ("pool", writes.as_str())].map(|(name, job)| {
        let job = format!("{job} --rate_iops=500 --runtime=12");
        (
            name,
            BackgroundRun::start(cluster, scratch, &format!("stall-{name}"), &job),
        )
    });
    cluster.signal("osd.0", Signal::STOP);
    // Long enough for a whole interval of one second.
    sleep(Duration::from_millis(2500));
    cluster.signal("osd.0", Signal::CONT);
    let series = runs.map(|(name, run)| (name, series(&run.wait_for_success(cluster).0)));
    let output = bench.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let seconds = result["datas"].as_array().expect("seconds");
    let finished: Vec<u64> = (seconds.iter())
        .filter_map(|second| second["finished"].as_u64())
        .collect();
    let each: Vec<u64> = finished.windows(2).map(|two| two[1] - two[0]).collect();
    check_stall(&each, "rados bench")?;
    series
        .iter()
        .try_for_each(|(name, series)| check_stall(series, name))
}

/// Stops an OSD for good: each run fails by its timeout.
fn assert_long_stop_is_timeout(cluster: &Cluster, scratch: &Scratch, reads: &str) {
    let mut jobs = vec![("read of 4096 bytes", reads.to_owned())];
    if is_full() {
        // With O_DIRECT, librbd's cache acknowledges no write: only the last flush would fail.
        let writes = reads.replace("randread", "randwrite --direct=1");
        jobs.push(("write of 4096 bytes", writes));
    }
    let mut ours: Vec<(&str, Child)> = Vec::new();
    for (what, job) in jobs {
        let job = format!("{job} --runtime=600 --ceph-timeout=3");
        let name = format!("silent-{}", ours.len());
        ours.push((
            what,
            BackgroundRun::start(cluster, scratch, &name, &job).child,
        ));
    }
    let line = format!("rados bench -p {POOL} 600 write -b 4k -t 4 --timeout 3");
    let seconds = scratch.out().join("seconds");
    let bench = start_until_output("\n    1 ", cluster.iosonde(&line), &seconds);
    ours.push(("write of 4096 bytes", bench));
    cluster.signal("osd.0", Signal::STOP);
    for (what, mut child) in ours {
        let status = wait_closely_for("the end", || child.try_wait().expect("a child"));
        let output = child.wait_with_output().expect("it has ended");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(status.code(), Some(1), "{what}: {said}");
        let error = said.lines().find(|line| line.starts_with("error: "));
        let error = error.unwrap_or_else(|| panic!("{what}: {said}"));
        for words in [what, "ETIMEDOUT", "did not answer", "`ceph -s`"] {
            assert!(error.contains(words), "{words}: {said}");
        }
        // Objects that could not be removed are reported with the command that removes them.
        let is_bench = error.contains("benchmark_data");
        let command = format!("iosonde rados -p {POOL} cleanup --prefix benchmark_data");
        assert!(!is_bench || said.contains(&command), "{said}");
    }
}

#[test]
#[ignore = "needs Ceph"]
fn killed_osd_of_three_is_reported_and_run_continues() {
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
    // Before: all OSDs run, and no verdict mentions them.
    let line = format!("{job} --runtime=2");
    let (before, said) =
        BackgroundRun::start(&cluster, &scratch, "before", &line).wait_for_success(&cluster);
    assert_eq!(up(&before), (Some(3), Some(3)));
    assert_eq!(degraded(&before), None, "{said}");

    let line = format!("{job} --runtime=15");
    let run = BackgroundRun::start(&cluster, &scratch, "during", &line);
    cluster.signal("osd.1", Signal::KILL);
    let (during, said) = run.wait_for_success(&cluster);
    let worker = &during["workers"][0];
    assert!(worker["error"].is_null(), "{worker:#}");
    assert_eq!(worker["total_errors"].as_u64().unwrap_or(0), 0);
    // I/O continues, also in the second half of 15 seconds.
    let series = series(&during);
    let most = series.iter().copied().max().unwrap_or(0);
    let mut last = series.iter().rev().take(series.len() / 2);
    assert!(last.any(|ios| ios * 10 > most), "{series:?}");
    assert_eq!(up(&during), (Some(2), Some(3)));
    assert_eq!(during["ceph"]["health"], "HEALTH_WARN");
    let checks = during["ceph"]["checks"].to_string();
    assert!(checks.contains("OSD_DOWN"), "{checks}");
    // The printed report has the verdict too.
    let message = "1 of the cluster's 3 OSDs were down";
    let evidence = degraded(&during).expect("a finding");
    assert!(evidence.contains(message), "{evidence}");
    assert!(
        said.contains(message) && said.contains("OSD_DOWN"),
        "{said}"
    );
    // All objects are removed, although one of their OSDs is down.
    let left = cluster.objects(POOL);
    assert!(!left.concat().contains("iosonde-"), "{left:?}");
}
