//! Beside Ceph's own benchmarks and fio's engines on the same cluster: equal objects and sizes, and
//! rates within the spread of repeated runs.

use std::process::Command;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, ensure, one_good_try};
use serde_json::Value;

/// Runs of each program, interleaved, so that other load affects all of them.
const REPETITIONS: usize = 3;

/// Factor that widens the range of a peer's rates in both directions. Runs last about a second, so
/// other load affects single runs, by less than a factor of two. A wrong depth, reads of unwritten
/// blocks or cached answers differ by more.
const WIDENED: f64 = 2.0;

/// I/Os in flight on images and objects.
const DEPTH: f64 = 8.0;

/// MiB of each run; reads are faster.
const SHARES: [(&str, u64); 2] = [("write", 2), ("read", 4)];

/// Rates of one program, in I/Os per second.
struct Rates {
    who: &'static str,
    per_s: Vec<f64>,
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:.0?} I/Os a second", self.who, self.per_s)
    }
}

impl Rates {
    fn range(&self) -> (f64, f64) {
        let least = self.per_s.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.per_s.iter().copied().fold(0.0, f64::max);
        (least, most)
    }
}

/// Compares the range of the first program with the widened range of each peer.
fn alike(rates: &[Rates]) -> Result<(), String> {
    let [ours, theirs @ ..] = rates else {
        panic!("no rates");
    };
    let (least, most) = ours.range();
    for peer in theirs {
        let (low, high) = peer.range();
        ensure(most * WIDENED >= low && least <= high * WIDENED, || {
            format!("{ours} beside {peer}")
        })?;
    }
    Ok(())
}

/// Runs once; returns I/Os per second or the reason why the run is unusable.
type Run<'a> = &'a dyn Fn() -> Result<f64, String>;

/// Runs all programs in turn and compares the first with the others.
fn in_turn(runs: &[(&'static str, Run<'_>)]) -> Result<(), String> {
    let mut all: Vec<Rates> = (runs.iter())
        .map(|(who, _)| Rates {
            who,
            per_s: Vec::new(),
        })
        .collect();
    for _ in 0..REPETITIONS {
        for (rates, (_, run)) in all.iter_mut().zip(runs) {
            rates.per_s.push(run()?);
        }
    }
    all.iter().for_each(|rates| eprintln!("{rates}"));
    alike(&all)
}

/// I/Os per second of the only job, after checking its number of I/Os and errors.
fn iops_of_fio(mut command: Command, direction: &str, ios: u64) -> Result<f64, String> {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{said}");
    let from = text.find('{').unwrap_or(0);
    let result: Value = serde_json::from_str(&text[from..]).expect("JSON");
    let job = &result["jobs"][0];
    assert_eq!(job["error"], 0, "{command:?}");
    assert_eq!(job[direction]["total_ios"], ios, "{command:?}");
    let iops = job[direction]["iops"].as_f64().expect("a rate");
    let latency_ns = job[direction]["lat_ns"]["mean"].as_f64();
    is_deep(iops, latency_ns.expect("a latency") / 1e9, DEPTH)?;
    Ok(iops)
}

/// Checks by Little's law that half of the depth was in flight on average. Rates alone do not prove
/// the depth on a busy machine.
fn is_deep(iops: f64, latency_s: f64, depth: f64) -> Result<(), String> {
    let mean = iops * latency_s;
    ensure(mean > depth / 2.0 && mean < depth * 1.2, || {
        format!("{mean} of {depth} in flight")
    })
}

/// `elapsed: 0   ops: 1024   ops/sec: 3631.21   bytes/sec: 14 MiB/s`.
fn iops_of_rbd_bench(text: &str, ios: u64) -> f64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().rposition(|word| *word == name);
        at.and_then(|at| words.get(at + 1)).copied()
    };
    assert_eq!(after("ops:"), Some(&*ios.to_string()), "{text}");
    let rate = after("ops/sec:").and_then(|rate| rate.parse().ok());
    rate.unwrap_or_else(|| panic!("a rate: {text}"))
}

#[test]
#[ignore = "needs Ceph"]
fn image_rate_equals_rbd_bench_and_fio() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    // The programs flush the image once when they open it, after which the cache would take their
    // writes.
    const CACHE: &str = "--rbd-cache=false";
    let image = format!("rbd://{POOL}/beside");
    cluster.rbd(&format!("create {POOL}/beside --size 16M"));
    let fill = format!("fio --target={image} --name=fill --rw=write --bs=1m");
    let (status, stdout, stderr) = cluster.run(&fill);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(cluster.image_used_bytes("beside"), Some(16 << 20));
    for (direction, mib) in SHARES {
        let ios = mib * 256;
        let job = format!(
            "--name=a --rw=rand{direction} --bs=4k --iodepth=8 --io_size={mib}m \
             --output-format=json --thread"
        );
        let ours = || {
            let line = format!("fio --target={image} --allow-overwrite={image} {job}");
            let mut command = cluster.iosonde(&line);
            command.env("CEPH_ARGS", CACHE);
            iops_of_fio(command, direction, ios)
        };
        let rbd_bench = || {
            let line = format!(
                "bench {CACHE} --io-type {direction} --io-pattern rand --io-size 4K --io-threads 8 \
                 --io-total {mib}M {POOL}/beside"
            );
            Ok(iops_of_rbd_bench(&cluster.rbd(&line), ios))
        };
        let fio = || {
            let line =
                format!("--ioengine=rbd --pool={POOL} --rbdname=beside --clientname=admin {job}");
            let mut command = cluster.fio(&line);
            command.env("CEPH_ARGS", CACHE);
            iops_of_fio(command, direction, ios)
        };
        one_good_try(|| in_turn(&[("ours", &ours), ("rbd bench", &rbd_bench), ("fio", &fio)]));
    }
    // No program has enlarged the image.
    assert_eq!(cluster.image_used_bytes("beside"), Some(16 << 20));
    cluster.rbd(&format!("rm --no-progress {POOL}/beside"));
}

#[test]
#[ignore = "needs Ceph"]
fn pool_rate_equals_fio() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let contents = scratch.write("contents", iosonde_e2e::scratch::incompressible(4 << 20, 1));
    for (direction, mib) in SHARES {
        // One object, fully written before the runs, which all programs overwrite and read.
        let object = format!("beside-{direction}");
        cluster.rados(&format!("-p {POOL} put {object} {}", contents.display()));
        let job = format!(
            "--ioengine=rados --pool={POOL} --clientname=admin --touch_objects=0 --name=a \
             --filename={object} --rw=rand{direction} --bs=4k --size=4m --io_size={mib}m \
             --iodepth=8 --output-format=json --thread"
        );
        let ours = || {
            let line = format!("fio {job} --allow_mounted_write=1");
            iops_of_fio(cluster.iosonde(&line), direction, mib * 256)
        };
        let fio = || {
            let line = format!("{job} --conf={}", cluster.conf().display());
            iops_of_fio(cluster.fio(&line), direction, mib * 256)
        };
        one_good_try(|| in_turn(&[("ours", &ours), ("fio", &fio)]));
        let stat = cluster.rados(&format!("-p {POOL} stat {object}"));
        assert!(stat.trim_end().ends_with("size 4194304"), "{stat}");
        cluster.rados(&format!("-p {POOL} rm {object}"));
    }
}

/// Sizes of all benchmark objects in a namespace, in order of their numbers.
fn sizes_in(cluster: &Cluster, namespace: &str) -> Vec<u64> {
    let listed = cluster.rados(&format!("-p {POOL} -N {namespace} ls"));
    let numbered = listed.lines().filter_map(|name| {
        let (_, number) = name.rsplit_once("_object")?;
        Some((number.parse::<u64>().ok()?, name))
    });
    let mut numbered: Vec<(u64, &str)> = numbered.collect();
    numbered.sort_unstable();
    let sized = numbered.iter().map(|(_, name)| {
        let text = cluster.rados(&format!("-p {POOL} -N {namespace} stat {name}"));
        let size = text.trim_end().rsplit_once("size ");
        size.and_then(|(_, size)| size.parse().ok())
            .expect("a size")
    });
    sized.collect()
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_objects_have_equal_count_and_sizes() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    // Objects of one operation, and objects of four operations.
    for (objects, shape) in [
        (20, "-b 65536 -t 8"),
        (6, "-b 65536 -O 262144 -t 3"),
        (5, "-b 4096 -O 16384 -t 16"),
    ] {
        let line = format!("bench 30 write {shape} --max-objects {objects} --no-cleanup");
        cluster.rados(&format!("-p {POOL} -N size-peer {line}"));
        let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} -N size-ours {line}"));
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        let theirs = sizes_in(&cluster, "size-peer");
        assert_eq!(theirs.len(), objects, "{shape}");
        assert_eq!(sizes_in(&cluster, "size-ours"), theirs, "{shape}");
        for namespace in ["size-peer", "size-ours"] {
            cluster.rados(&format!("-p {POOL} -N {namespace} cleanup"));
            let left = cluster.rados(&format!("-p {POOL} -N {namespace} ls"));
            assert_eq!(left, "", "{namespace} {shape}");
        }
    }
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_rate_equals_peer() {
    let _shared = Scratch::shared();
    let cluster = Cluster::shared();
    let line = "bench 30 write -b 4096 -t 16 --max-objects 1000";
    let rate = |text: &str| {
        let read_figure = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok());
            value.unwrap_or_else(|| panic!("{name} {text}"))
        };
        assert!(
            (read_figure("Total writes made") - 1000.0).abs() < 0.5,
            "{text}"
        );
        let iops = 1000.0 / read_figure("Total time run");
        is_deep(iops, read_figure("Average Latency(s)"), 16.0)?;
        Ok(iops)
    };
    let ours = || {
        let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} -N rate-ours {line}"));
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        rate(&stdout)
    };
    let theirs = || rate(&cluster.rados(&format!("-p {POOL} -N rate-peer {line}")));
    one_good_try(|| in_turn(&[("ours", &ours), ("rados bench", &theirs)]));
    for namespace in ["rate-ours", "rate-peer"] {
        let left = cluster.rados(&format!("-p {POOL} -N {namespace} ls"));
        assert_eq!(left, "", "{namespace}");
    }
}
