//! The deepest queue: 1024 I/Os in flight, the limit of librados.

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, ensure, one_good_try};
use serde_json::Value;

/// Mean number of I/Os in flight, by Little's law.
fn in_flight(job: &Value, direction: &str) -> f64 {
    let figure = |name: &str| job[direction][name].as_f64().expect("a figure");
    let latency_s = job[direction]["lat_ns"]["mean"].as_f64().expect("a mean") / 1e9;
    figure("iops") * latency_s
}

fn ok(cluster: &Cluster, line: &str) -> Value {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {line}: {stdout}"))
}

/// The first 1024 I/Os see half of the depth on average. Half of the expected mean is still more
/// than a queue limited to 256 reaches. A process without CPU time while it fills its queue reaches
/// less.
fn check_depth(mean: f64, ios: u64, document: &Value) -> Result<(), String> {
    let expected = 1024.0 - 512.0 * 1024.0 / ios as f64;
    eprintln!("{mean:.0} of {ios} in flight on the mean");
    ensure(mean > expected / 2.0, || {
        format!("{mean} {expected}: {document:#}")
    })
}

/// Checks the number of I/Os of one direction, that none failed, and the depth.
fn completed(result: &Value, direction: &str, ios: u64) -> Result<(), String> {
    let job = &result["jobs"][0];
    assert_eq!(job["error"], 0, "{job:#}");
    assert_eq!(job["total_err"].as_u64().unwrap_or(0), 0, "{job:#}");
    assert_eq!(job[direction]["total_ios"], ios, "{job:#}");
    if ios <= 1024 {
        return Ok(());
    }
    // All but the first 63 I/Os enter a queue of 64 or more.
    let deep = job["iodepth_level"][">=64"].as_f64();
    ensure(deep > Some(90.0), || format!("{job:#}"))?;
    check_depth(in_flight(job, direction), ios, job)
}

#[test]
#[ignore = "needs Ceph"]
fn pool_and_image_reach_iodepth_1024() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/thousand --size 64M"));
    let image = format!("rbd://{POOL}/thousand");
    let pool = format!("rados://{POOL}/thousand");
    // With direct=1, since librbd's cache would answer the small writes at once.
    for (target, bs, mib, ios) in [
        (&pool, "4k", 16, 4096),
        (&pool, "1m", 64, 64),
        (&image, "4k", 16, 4096),
        (&image, "1m", 64, 64),
    ] {
        for direction in ["write", "read"] {
            let line = format!(
                "fio --target={target} --allow-overwrite={image} --name=thousand \
                 --rw=rand{direction} --bs={bs} --size={mib}m --iodepth=1024 --direct=1 \
                 --output-format=json"
            );
            one_good_try(|| completed(&ok(&cluster, &line), direction, ios));
        }
    }
    // Large I/Os beyond librados' limit of 100 MiB: submission blocks until others complete.
    let line = format!(
        "fio --target={pool} --name=thousand --rw=randrw --rwmixread=50 --bs=1m --size=128m \
         --io_size=160m --iodepth=1024 --output-format=json"
    );
    let mixed = ok(&cluster, &line);
    let count_ios = |direction: &str| mixed["jobs"][0][direction]["total_ios"].as_u64();
    assert_eq!(
        count_ios("read")
            .zip(count_ios("write"))
            .map(|(r, w)| r + w),
        Some(160)
    );
    // Blocks written at this depth pass verification.
    let line = format!(
        "fio --target={pool} --name=thousand --rw=randwrite --bs=4k --size=8m --iodepth=1024 \
         --verify=crc32c --output-format=json"
    );
    one_good_try(|| completed(&ok(&cluster, &line), "write", 2048));
    assert_eq!(cluster.rados(&format!("-p {POOL} -N thousand ls")), "");
    cluster.rbd(&format!("rm --no-progress {POOL}/thousand"));
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_reaches_1024_ios_in_flight() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let bench = |line: &str| {
        ok(
            &cluster,
            &format!("rados -p {POOL} -N deep bench 60 {line} -t 1024 -f json"),
        )
    };
    let count = |result: &Value, name: &str| result[name].as_u64();
    one_good_try(|| {
        let small = bench("write -b 4k --max-objects 2000");
        assert_eq!(count(&small, "total_writes_made"), Some(2000));
        assert_eq!(count(&small, "concurrent_ios"), Some(1024));
        let figure = |name: &str| small[name].as_f64().expect("a figure");
        let mean = figure("average_iops") * figure("average_latency");
        check_depth(mean, 2000, &small)
    });
    let large = bench("write -b 1m --max-objects 128 --no-cleanup");
    assert_eq!(count(&large, "total_writes_made"), Some(128));
    let read = bench("seq");
    assert_eq!(count(&read, "total_reads_made"), Some(128));
    assert_eq!(count(&read, "damaged_reads"), Some(0));
    let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} -N deep cleanup"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(cluster.rados(&format!("-p {POOL} -N deep ls")), "");
}
