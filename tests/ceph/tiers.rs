//! Caches of a client and of the cluster: librbd's, and a cache tier before a pool.

use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL, TIER_BYTES, Tier};
use serde_json::Value;

use crate::mounted::flowing;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ok(cluster: &Cluster, line: &str) -> (String, String) {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Bytes of whole objects in the tier and in the pool behind it, from their listings: what monitors know of them is seconds old.
fn held(cluster: &Cluster, tier: &Tier<'_>) -> (u64, u64) {
    let bytes = |pool: &str| cluster.objects(pool).len() as u64 * (4 << 20);
    (bytes(&tier.hot), bytes(&tier.base))
}

/// Objects of ours that are left in both pools of a tier. Before the tier is written back its listing holds what was removed as well,
/// and afterwards the listings can be believed.
fn left(cluster: &Cluster, tier: &Tier<'_>) -> Vec<String> {
    tier.flush();
    let all = [&tier.base, &tier.hot].map(|pool| cluster.objects(pool));
    let mut all = all.concat();
    all.retain(|name| name.contains("iosonde-"));
    all
}

#[test]
#[ignore = "needs Ceph"]
fn a_cache_tier_is_named_and_what_was_written_through_it_is_removed() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let tier = cluster.tier("named");
    let named = format!("cache tier {} (writeback)", tier.hot);
    let target = format!("rados://{}", tier.base);

    let job = format!(
        "fio --target={target} --name=skewed --rw=randrw --bs=64k --size=16m --iodepth=4 --random_distribution=zipf:1.2 \
         --time_based --runtime=2"
    );
    let (said, _) = ok(&cluster, &format!("{job} --output-format=normal"));
    let expected = format!("storage: {target} (librados); {named}");
    assert!(said.contains(&expected), "{expected}: {said}");
    assert_eq!(left(&cluster, &tier), [""; 0]);

    let line = format!(
        "sweep {target} --working-set 1m,4m,16m,128m --bs 64k --random_distribution zipf:1.2 --runtime 1 --warm-up 1"
    );
    let table = scratch.out().join("table");
    let file = std::fs::File::create(&table).expect("a file");
    let mut sweep = cluster
        .iosonde(&line)
        .stdout(file)
        .spawn()
        .expect("it starts");
    let (mut most_hot, mut most_cold) = (0, 0);
    while sweep.try_wait().expect("a child").is_none() {
        let (hot, cold) = held(&cluster, &tier);
        (most_hot, most_cold) = (most_hot.max(hot), most_cold.max(cold));
        sleep(Duration::from_millis(300));
    }
    assert!(sweep.wait().expect("a child").success());
    let text = std::fs::read_to_string(table).expect("a file");
    let expected = format!("Storage: {target} (librados); {named}.");
    assert!(flowing(&text).contains(&expected), "{expected}: {text}");
    assert!(text.contains("from cache"), "{text}");
    // The largest working set does not fit: the tier has about as much as it may, the pool behind it more than that.
    eprintln!("{most_hot} in the tier, {most_cold} behind it");
    assert!(most_hot > 0 && most_hot < 2 * TIER_BYTES, "{most_hot}");
    assert!(most_cold > TIER_BYTES, "{most_cold}");

    let (text, _) = ok(
        &cluster,
        &format!("probe {target} --quick --size 16m --runtime 1"),
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

/// An image whose pool has a tier, with librbd's own cache before that, and without.
#[test]
#[ignore = "needs Ceph"]
fn librbds_cache_is_measured_and_where_it_is_off_that_is_said() {
    let _scratch = Scratch::shared();
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
    // What was done until the cache was warm is not in the figures: they are of the time that was measured alone.
    let assert_warm = |sweep: &Value| {
        for curve in sweep["curves"].as_array().expect("curves") {
            let cell = &curve["cells"][0];
            let figure = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{curve:#}"));
            let measured_ns = figure(&cell["measured_ns"]);
            let warmup_ns = figure(&cell["warmup"]["length_ns"]);
            let count = figure(&cell["latency"]["count"]);
            let counted = figure(&cell["iops"]["mean"]) * measured_ns / 1e9;
            assert!((count / counted - 1.0).abs() < 0.02, "{curve:#}");
            let spent_ns = figure(&curve["saturation"]["spent_ns"]);
            // The last interval may end a little after the run, when the clock is looked at.
            assert!(measured_ns + warmup_ns <= spent_ns * 1.01, "{curve:#}");
        }
    };
    let on = sweep(
        "--rbd-cache-policy=writeback --rbd-cache-size=8388608",
        "1m,2m,64m",
    );
    assert_eq!(caches(&on), [r#"["rbd_cache on (writeback)"]"#]);
    // What lies in this process's memory is far from what is asked for over the network.
    let (fits, does_not) = (mean_ns(&on, "2m"), mean_ns(&on, "64m"));
    assert!(fits * 2.0 < does_not, "{fits} {does_not}: {on:#}");
    let off = sweep("--rbd-cache=false", "1m,2m");
    assert_eq!(caches(&off), [r#"["rbd_cache off"]"#]);
    // Then as little as would fit is asked for over the network as well.
    for size in ["1m", "2m"] {
        let asked = mean_ns(&off, size);
        assert!(fits * 2.0 < asked, "{fits} {asked}: {off:#}");
    }
    assert_warm(&on);
    assert_warm(&off);
    cluster.rbd(&format!("rm --no-progress {POOL}/cached"));
}
