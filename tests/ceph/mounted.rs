//! A mounted CephFS: its description in the result, and the state of the client's caches.
//!
//! ceph-fuse works on every kernel. Kernels that run these tests may lack CephFS, NFS and rbd:
//! tests of crates/machine parse captured text of those.

use iosonde_e2e::ceph::Cluster;
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ok(cluster: &Cluster, line: &str) -> (String, String) {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Joins lines, which are wrapped at 80 columns.
pub(crate) fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "needs Ceph"]
fn mounted_cephfs_is_described_without_key() {
    require!(Root, Fuse);
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mount = cluster.mount("mounted");
    let dir = mount.dir().display();
    let store = scratch.out().join("history.db");
    let store = store.display();
    let fsid = cluster.ceph("fsid").trim().to_owned();

    let line = format!(
        "--store {store} fio --directory={dir} --name=files --rw=randread --bs=16k --size=1m \
         --direct=0 --unlink=1 --output-format=normal"
    );
    let mut kept = cluster.iosonde(&line);
    let done = kept.env("IOSONDE_NO_SAVE", "0").output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    assert!(done.stderr.is_empty(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        said.contains("page cache and cache of ceph-fuse on"),
        "{said}"
    );
    // The monitor's address from the configuration, and the file system's address of the cluster.
    let conf = std::fs::read_to_string(cluster.conf()).expect("a configuration");
    let monitor = conf
        .lines()
        .find_map(|line| line.strip_prefix("mon host = [v2:"));
    let monitor = monitor.expect("a monitor").trim_end_matches(']');
    let (shown, _) = ok(&cluster, &format!("show --store {store}"));
    let shown = flowing(&shown);
    let served =
        format!("CephFS (ceph-fuse), monitors {monitor}, path /, cluster {fsid}, client.admin");
    assert!(shown.contains(&served), "{served}: {shown}");
    assert!(shown.contains("fuse.ceph-fuse on"), "{shown}");
    assert!(shown.contains("allow_other"), "its options: {shown}");

    // The stored result holds no part of the key.
    let keys = std::fs::read_to_string(cluster.conf().with_file_name("keyring"));
    let keys = keys.expect("a keyring");
    let key = keys
        .lines()
        .find_map(|line| line.trim().strip_prefix("key = "));
    let key = key.expect("a key").as_bytes();
    let kept = std::fs::read(scratch.out().join("history.db")).expect("a history");
    assert!(!kept.windows(key.len()).any(|window| window == key));

    let (probed, _) = ok(
        &cluster,
        &format!("probe {dir} --quick --size 16m --runtime 1 --details"),
    );
    let probed = flowing(&probed);
    for words in [
        &served[..],
        "page cache and cache of ceph-fuse off (O_DIRECT)",
    ] {
        assert!(probed.contains(words), "{words}: {probed}");
    }
    let left = std::fs::read_dir(mount.dir()).expect("a directory").count();
    assert_eq!(left, 0, "files are left");
}

/// Load and cache of the metadata server are part of the result of a mount.
#[test]
#[ignore = "needs Ceph"]
fn metadata_server_of_a_mount_is_in_the_result() {
    require!(Root, Fuse);
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mount = cluster.mount("metadata");
    let line = format!(
        "fio --directory={} --name=files --rw=randwrite --bs=16k --size=1m --nrfiles=16 \
         --time_based --runtime=4 --unlink=1 --output-format=json",
        mount.dir().display()
    );
    let (stdout, _) = ok(&cluster, &line);
    let side = &json(&stdout)["iosonde"]["ceph"];
    let servers = side["metadata_servers"].as_array();
    let servers = servers.unwrap_or_else(|| panic!("{side:#}"));
    assert_eq!(servers[0]["rank"], 0, "{side:#}");
    assert!(servers[0]["cached_inodes"].as_u64() > Some(0), "{side:#}");
    assert_eq!(side["cache_tier"], Value::Null);
}

/// Mean latencies of the curves of a sweep over the page cache: those with it, those without it.
fn latencies_by_cache(sweep: &Value) -> Result<[Vec<f64>; 2], String> {
    let curves = sweep["curves"].as_array().expect("curves");
    assert_eq!(curves.len(), 4, "{sweep:#}");
    let direct = sweep["axes"].as_array().expect("axes");
    let direct = direct.iter().position(|axis| axis["name"] == "direct");
    let direct = direct.expect("an axis");
    let mut mean_ns = [Vec::new(), Vec::new()];
    for curve in curves {
        let is_direct = curve["values"][direct] == "1";
        let cache = curve["storage"]["caches"][0].as_str().expect("a cache");
        let expected = match is_direct {
            true => "page cache and cache of ceph-fuse off (O_DIRECT)",
            false => "page cache and cache of ceph-fuse on",
        };
        assert_eq!(cache, expected, "{curve:#}");
        assert_eq!(curve["storage"]["way"], "ceph_fuse");
        let ns = curve["cells"][0]["mean_latency_ns"].as_f64();
        // A cluster without CPU time may complete no I/O within one second.
        let ns = ns.ok_or_else(|| format!("no latency: {curve:#}"))?;
        mean_ns[usize::from(is_direct)].push(ns);
    }
    Ok(mean_ns)
}

/// Cached reads and reads from the cluster differ by far more than noise. Other such tests slow the
/// cluster more than the cache, which only makes the difference larger.
#[test]
#[ignore = "needs Ceph"]
fn working_set_is_swept_with_and_without_client_cache() {
    require!(Root, Fuse);
    let _scratch = Scratch::calm();
    let cluster = Cluster::shared();
    let mount = cluster.mount("swept");
    let line = format!(
        "sweep {} --working-set 1m,4m --direct 0,1 --bs 64k --runtime 1 --warm-up 2 --format json",
        mount.dir().display()
    );
    one_good_try(|| {
        let (stdout, _) = ok(&cluster, &line);
        let mean_ns = latencies_by_cache(&json(&stdout)["sweep"])?;
        let most = mean_ns[0].iter().copied().fold(0.0, f64::max);
        let least = mean_ns[1].iter().copied().fold(f64::MAX, f64::min);
        ensure(most * 2.0 < least, || format!("{mean_ns:?}"))
    });
}
