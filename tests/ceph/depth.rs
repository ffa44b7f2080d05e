//! The deepest queue: 1024 in flight, which is what librados lets through at once.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

/// I/Os in flight on the mean, by Little's law.
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

/// At a depth of 1024 the first 1024 find half of that in line, on the mean. Half of what is expected is more than a limit of 256 lets
/// through.
fn assert_deep(mean: f64, ios: u64, told: &Value) {
    let expected = 1024.0 - 512.0 * 1024.0 / ios as f64;
    eprintln!("{mean:.0} of {ios} in flight on the mean");
    assert!(mean > expected / 2.0, "{mean} {expected}: {told:#}");
}

/// So many I/Os of one direction, without an error, and as many in flight as there may be.
fn completed(result: &Value, direction: &str, ios: u64) {
    let job = &result["jobs"][0];
    assert_eq!(job["error"], 0, "{job:#}");
    assert_eq!(job["total_err"].as_u64().unwrap_or(0), 0, "{job:#}");
    assert_eq!(job[direction]["total_ios"], ios, "{job:#}");
    // Of these, all but the first 63 come to a queue of 64 or more.
    if ios > 1024 {
        let deep = job["iodepth_level"][">=64"].as_f64();
        assert!(deep > Some(90.0), "{job:#}");
        assert_deep(in_flight(job, direction), ios, job);
    }
}

#[test]
#[ignore = "needs Ceph"]
fn a_thousand_ios_are_in_flight_on_a_pool_and_on_an_image() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/thousand --size 64M"));
    let image = format!("rbd://{POOL}/thousand");
    let pool = format!("rados://{POOL}/thousand");
    for (target, bs, mib, ios) in [
        (&pool, "4k", 16, 4096),
        (&pool, "1m", 64, 64),
        (&image, "4k", 16, 4096),
        (&image, "1m", 64, 64),
    ] {
        for direction in ["write", "read"] {
            let line = format!(
                "fio --target={target} --allow-overwrite={image} --name=thousand --rw=rand{direction} --bs={bs} --size={mib}m \
                 --iodepth=1024 --output-format=json"
            );
            completed(&ok(&cluster, &line), direction, ios);
        }
    }
    // More large ones than librados lets through (100 MiB): it holds back who asks for more, and goes on.
    let line = format!(
        "fio --target={pool} --name=thousand --rw=randrw --rwmixread=50 --bs=1m --size=128m --io_size=256m --iodepth=1024 \
         --output-format=json"
    );
    let mixed = ok(&cluster, &line);
    let of = |direction: &str| mixed["jobs"][0][direction]["total_ios"].as_u64();
    assert_eq!(of("read").zip(of("write")).map(|(r, w)| r + w), Some(256));
    // What is verified after it was written with as many in flight is what was written.
    let line = format!(
        "fio --target={pool} --name=thousand --rw=randwrite --bs=4k --size=8m --iodepth=1024 --verify=crc32c --output-format=json"
    );
    let verified = ok(&cluster, &line);
    completed(&verified, "write", 2048);
    assert_eq!(cluster.rados(&format!("-p {POOL} -N thousand ls")), "");
    cluster.rbd(&format!("rm --no-progress {POOL}/thousand"));
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_has_a_thousand_in_flight() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let bench = |line: &str| {
        ok(
            &cluster,
            &format!("rados -p {POOL} -N deep bench 60 {line} -t 1024 -f json"),
        )
    };
    let count = |result: &Value, name: &str| result[name].as_u64();
    let small = bench("write -b 4k --max-objects 2000");
    assert_eq!(count(&small, "total_writes_made"), Some(2000));
    assert_eq!(count(&small, "concurrent_ios"), Some(1024));
    let figure = |name: &str| small[name].as_f64().expect("a figure");
    let mean = figure("average_iops") * figure("average_latency");
    assert_deep(mean, 2000, &small);
    let large = bench("write -b 1m --max-objects 128 --no-cleanup");
    assert_eq!(count(&large, "total_writes_made"), Some(128));
    let read = bench("seq");
    assert_eq!(count(&read, "total_reads_made"), Some(128));
    assert_eq!(count(&read, "damaged_reads"), Some(0));
    let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} -N deep cleanup"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(cluster.rados(&format!("-p {POOL} -N deep ls")), "");
}
