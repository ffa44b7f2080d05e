//! Caches of the client and of the cluster: librbd's cache, and a cache tier of a pool.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL, TIER_BYTES, Tier};
use iosonde_e2e::{Scratch, ensure, one_good_try};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::engines::wait_for;
use crate::mounted::flowing;

/// Held by tests that compare with and without a tier, since they look for pools that any
/// comparison has made.
static COMPARISON: Mutex<()> = Mutex::new(());

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ok(cluster: &Cluster, line: &str) -> (String, String) {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Bytes of objects in the tier and in its base pool, from listings: statistics lag by seconds.
fn tier_bytes(cluster: &Cluster, tier: &Tier<'_>) -> (u64, u64) {
    let bytes = |pool: &str| cluster.objects(pool).len() as u64 * (4 << 20);
    (bytes(&tier.hot), bytes(&tier.base))
}

/// Objects of iosonde that remain in both pools of a tier. The flush comes first, because the
/// listing of an unflushed tier includes removed objects.
fn left(cluster: &Cluster, tier: &Tier<'_>) -> Vec<String> {
    tier.flush();
    let all = [&tier.base, &tier.hot].map(|pool| cluster.objects(pool));
    let mut all = all.concat();
    all.retain(|name| name.contains("iosonde-"));
    all
}

/// Runs a sweep with its output in a file. Returns the most bytes of objects that were in the tier
/// and in its base pool meanwhile.
fn most_tier_bytes(cluster: &Cluster, tier: &Tier<'_>, line: &str, table: &Path) -> (u64, u64) {
    let file = std::fs::File::create(table).expect("a file");
    let mut sweep = cluster
        .iosonde(line)
        .stdout(file)
        .spawn()
        .expect("it starts");
    let (mut most_hot, mut most_cold) = (0, 0);
    while sweep.try_wait().expect("a child").is_none() {
        let (hot, cold) = tier_bytes(cluster, tier);
        (most_hot, most_cold) = (most_hot.max(hot), most_cold.max(cold));
        sleep(Duration::from_millis(600));
    }
    assert!(sweep.wait().expect("a child").success());
    (most_hot, most_cold)
}

#[test]
#[ignore = "needs Ceph"]
fn cache_tier_is_named_and_its_objects_are_removed() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let tier = cluster.tier("named");
    let named = format!("cache tier {} (writeback)", tier.hot);
    let target = format!("rados://{}", tier.base);

    let job = format!(
        "fio --target={target} --name=skewed --rw=randrw --bs=64k --size=16m --iodepth=4 \
         --random_distribution=zipf:1.2 --time_based --runtime=2"
    );
    let (said, _) = ok(&cluster, &format!("{job} --output-format=normal"));
    let expected = format!("storage: {target} (librados); {named}");
    assert!(said.contains(&expected), "{expected}: {said}");
    assert_eq!(left(&cluster, &tier), [""; 0]);

    let line = format!(
        "sweep {target} --working-set 1m,4m,16m,128m --bs 64k --random_distribution zipf:1.2 \
         --runtime 1 --warm-up 1"
    );
    let table = scratch.out().join("table");
    // The largest working set exceeds the tier: the rest of its objects is in the base pool. A busy
    // machine may list neither pool while these objects exist.
    one_good_try(|| {
        let (hot, cold) = most_tier_bytes(&cluster, &tier, &line, &table);
        eprintln!("{hot} in the tier, {cold} behind it");
        ensure(hot > 0 && hot < 2 * TIER_BYTES && cold > TIER_BYTES, || {
            format!("{hot} in the tier, {cold} behind it")
        })
    });
    let text = std::fs::read_to_string(table).expect("a file");
    let expected = format!("Storage: {target} (librados); {named}.");
    assert!(flowing(&text).contains(&expected), "{expected}: {text}");
    assert!(text.contains("from cache"), "{text}");

    let (text, _) = ok(
        &cluster,
        &format!("probe {target} --quick --size 16m --runtime 1 --details"),
    );
    let text = flowing(&text);
    assert!(text.contains(&named), "{named}: {text}");
    let (stdout, _) = ok(&cluster, &format!("{job} --output-format=json"));
    let ours = &json(&stdout)["iosonde"];
    assert_eq!(
        ours["ceph"]["pool"]["cache_tier"],
        format!("{} (writeback)", tier.hot)
    );
    assert_eq!(ours["storage"]["caches"][0], named, "{ours:#}");
    assert_eq!(left(&cluster, &tier), [""; 0]);
}

/// Mode of a pool that is a cache tier.
fn cache_mode(cluster: &Cluster, pool: &str) -> String {
    let pools = json(&cluster.ceph("osd pool ls detail -f json"));
    let all = pools.as_array().expect("pools");
    let found = all.iter().find(|each| each["pool_name"] == pool);
    found.expect("the pool")["cache_mode"].to_string()
}

/// Names of the pools that a comparison has made and not removed.
fn made_pools(cluster: &Cluster) -> Vec<String> {
    let listed = cluster.ceph("osd pool ls");
    let is_made = |name: &&str| name.starts_with("iosonde-") && name.ends_with("-base");
    listed.lines().filter(is_made).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs Ceph"]
fn cache_tier_activity_is_counted_during_the_run() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let tier = cluster.tier("counted");
    let line = format!(
        "fio --target=rados://{} --name=skewed --rw=randrw --bs=64k --size=160m --iodepth=8 \
         --random_distribution=zipf:1.2 --time_based --runtime=6",
        tier.base
    );
    let (said, _) = ok(&cluster, &line);
    assert!(said.contains("note: cache tier: "), "{said}");
    let (stdout, _) = ok(&cluster, &format!("{line} --output-format=json"));
    let ours = &json(&stdout)["iosonde"];
    let activity = &ours["ceph"]["cache_tier"];
    let count = |name: &str| {
        activity[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{ours:#}"))
    };
    assert!(count("hits") > 0, "{activity:#}");
    // The working set exceeds the tier, so the tier writes back and evicts.
    assert!(count("promotions") + count("evictions") > 0, "{activity:#}");
    assert_eq!(left(&cluster, &tier), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn cache_comparison_restores_the_mode_and_removes_its_pool() {
    let _comparison = COMPARISON.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let tier = cluster.tier("compared");
    let job = format!(
        "fio --target=rados://{} --cache-compare --name=skewed --rw=randread --bs=64k --size=32m \
         --iodepth=8 --random_distribution=zipf:1.2 --time_based --runtime=3",
        tier.base
    );
    let document = scratch.out().join("comparison.json");
    let line = format!("{job} --output-format=json --output={}", document.display());
    ok(&cluster, &line);
    let found = json(&std::fs::read_to_string(document).expect("a file"));
    let names: Vec<&str> = (found["setups"].as_array().expect("setups").iter())
        .filter_map(|setup| setup["name"].as_str())
        .collect();
    assert_eq!(names, ["writeback", "readproxy", "no tier"], "{found:#}");
    assert!(found["setups"][0]["cache_tier"]["hits"].as_u64() > Some(0));
    assert_eq!(found["setups"][2]["cache_tier"], Value::Null);
    let finding = found["findings"][0].as_str().expect("a finding");
    assert!(finding.contains("IOPS with the tier"), "{finding}");
    assert_eq!(cache_mode(&cluster, &tier.hot), "\"writeback\"");
    assert_eq!(made_pools(&cluster), [""; 0]);

    let (text, _) = ok(&cluster, &job);
    assert!(text.contains("tier promotions"), "{text}");
    assert_eq!(left(&cluster, &tier), [""; 0]);

    let refused = |target: &str| {
        let line = format!("fio --target={target} --cache-compare --name=a --rw=read --size=4m");
        let (status, _, stderr) = cluster.run(&line);
        assert_ne!(status, Some(0), "{target}");
        stderr
    };
    assert!(refused(&format!("rados://{}", tier.hot)).contains("has none"));
    assert!(refused(&format!("rbd://{POOL}/none")).contains("rados://POOL"));
    assert_eq!(cache_mode(&cluster, &tier.hot), "\"writeback\"");
}

#[test]
#[ignore = "needs Ceph"]
fn interrupt_in_readproxy_mode_restores_the_mode() {
    let _comparison = COMPARISON.lock().unwrap_or_else(PoisonError::into_inner);
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let tier = cluster.tier("stopped");
    let line = format!(
        "fio --target=rados://{} --cache-compare --name=skewed --rw=randread --bs=64k --size=4m \
         --time_based --runtime=8",
        tier.base
    );
    // A busy machine may not see this mode before the end.
    one_good_try(|| {
        let mut run = (cluster.iosonde(&line).stdout(Stdio::null()))
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let is_in_mode = wait_for("readproxy mode", || {
            let is_in_mode = cache_mode(&cluster, &tier.hot) == "\"readproxy\"";
            let has_ended = run.try_wait().expect("a child").is_some();
            (is_in_mode || has_ended).then_some(!has_ended)
        });
        ensure(is_in_mode, || "it ended first".to_owned())?;
        kill_process(Pid::from_child(&run), Signal::INT).expect("it runs");
        let status = run.wait().expect("it ends");
        assert_eq!(status.code(), Some(130));
        Ok(())
    });
    assert_eq!(cache_mode(&cluster, &tier.hot), "\"writeback\"");
    assert_eq!(made_pools(&cluster), [""; 0]);
    assert_eq!(left(&cluster, &tier), [""; 0]);
}

/// The figures cover the measured time alone, without the warm-up.
fn assert_warm(sweep: &Value) {
    for curve in sweep["curves"].as_array().expect("curves") {
        let cell = &curve["cells"][0];
        let figure = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{curve:#}"));
        let measured_ns = figure(&cell["measured_ns"]);
        let warmup_ns = figure(&cell["warmup"]["length_ns"]);
        let count = figure(&cell["latency"]["count"]);
        let counted = figure(&cell["iops"]["mean"]) * measured_ns / 1e9;
        assert!((count / counted - 1.0).abs() < 0.02, "{curve:#}");
        let spent_ns = figure(&curve["saturation"]["spent_ns"]);
        // The last interval may end after the run, by the time until the clock is read.
        assert!(measured_ns + warmup_ns <= spent_ns * 1.01, "{curve:#}");
    }
}

/// An image with librbd's cache on and off. Other tests that compare a cache with the cluster slow
/// the cluster more, which only makes the difference larger.
#[test]
#[ignore = "needs Ceph"]
fn librbd_cache_is_measured_or_reported_as_off() {
    let _scratch = Scratch::calm();
    let cluster = Cluster::shared();
    let image = format!("rbd://{POOL}/cached");
    cluster.rbd(&format!("create {POOL}/cached --size 64M"));
    let sweep = |arguments: &str, sizes: &str| {
        let line = format!(
            "sweep {image} --working-set {sizes} --bs 64k --runtime 1 --warm-up 2 --format json \
             --allow-overwrite {image}"
        );
        let mut command = cluster.iosonde(&line);
        let done = command.env("CEPH_ARGS", arguments).output();
        let done = done.expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        json(&String::from_utf8_lossy(&done.stdout))["sweep"].clone()
    };
    let caches = |sweep: &Value| {
        let mut all: Vec<String> = (sweep["curves"].as_array().expect("curves").iter())
            .map(|curve| curve["storage"]["caches"].to_string())
            .collect();
        all.dedup();
        all
    };
    let mean_ns = |sweep: &Value, size: &str| {
        let curves = sweep["curves"].as_array().expect("curves");
        let is_it = |curve: &&Value| curve["values"].to_string().contains(&format!("\"{size}\""));
        let curve = curves.iter().find(is_it).expect("a curve");
        curve["cells"][0]["mean_latency_ns"]
            .as_f64()
            .expect("a latency")
    };
    // A cluster without CPU time may complete no I/O within one second.
    let is_measured = |sweep: &Value| {
        let mut curves = sweep["curves"].as_array().expect("curves").iter();
        let has_latencies = curves.all(|curve| curve["cells"][0]["mean_latency_ns"].is_number());
        ensure(has_latencies, || format!("no latency: {sweep:#}"))
    };
    one_good_try(|| {
        let on = sweep(
            "--rbd-cache-policy=writeback --rbd-cache-size=8388608",
            "1m,2m,64m",
        );
        assert_eq!(caches(&on), [r#"["rbd_cache on (writeback)"]"#]);
        is_measured(&on)?;
        assert_warm(&on);
        // Reads from this process's cache are far faster than reads over the network.
        let (fits, does_not) = (mean_ns(&on, "2m"), mean_ns(&on, "64m"));
        ensure(fits * 2.0 < does_not, || {
            format!("{fits} {does_not}: {on:#}")
        })?;
        let off = sweep("--rbd-cache=false", "1m,2m");
        assert_eq!(caches(&off), [r#"["rbd_cache off"]"#]);
        is_measured(&off)?;
        assert_warm(&off);
        // With the cache off, working sets of every size are read over the network.
        for size in ["1m", "2m"] {
            let uncached = mean_ns(&off, size);
            ensure(fits * 2.0 < uncached, || {
                format!("{fits} {uncached}: {off:#}")
            })?;
        }
        Ok(())
    });
    cluster.rbd(&format!("rm --no-progress {POOL}/cached"));
}
