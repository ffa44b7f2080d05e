//! CephFS as it is mounted: what a result says of it, and which caches were on.
//!
//! The kernels that run these tests need have neither CephFS nor NFS nor mapped images: those are parsed from captured text in the
//! engine's tests (`device_identify`, `mountstats`). ceph-fuse can be mounted anywhere.

use iosonde_e2e::ceph::Cluster;
use iosonde_e2e::{Scratch, require};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ok(cluster: &Cluster, line: &str) -> (String, String) {
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Text without line breaks, as lines are cut at 80 columns.
pub(crate) fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "needs Ceph"]
fn a_mounted_file_system_says_what_it_is_and_keeps_no_secret() {
    require!(Root, Fuse);
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mount = cluster.mount("mounted");
    let dir = mount.dir().display();
    let store = scratch.out().join("history.db");
    let store = store.display();
    let fsid = cluster.ceph("fsid").trim().to_owned();

    let line = format!(
        "--store {store} fio --directory={dir} --name=files --rw=randread --bs=16k --size=1m --direct=0 --unlink=1 \
         --output-format=normal"
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
    // The monitor as the configuration has it, and the cluster as the file system has it.
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

    // Nothing of the key is in what is kept.
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
        &format!("probe {dir} --quick --size 16m --runtime 1"),
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

/// One sweep with both: what is in memory, and what is asked of the cluster, differ by far more than any noise.
#[test]
#[ignore = "needs Ceph"]
fn the_working_set_is_swept_with_and_without_the_clients_caches() {
    require!(Root, Fuse);
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mount = cluster.mount("swept");
    let line = format!(
        "sweep {} --working-set 1m,4m --direct 0,1 --bs 64k --runtime 1 --warm-up 2 --format json",
        mount.dir().display()
    );
    let (stdout, _) = ok(&cluster, &line);
    let sweep = &json(&stdout)["sweep"];
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
        mean_ns[usize::from(is_direct)].push(ns.expect("a latency"));
    }
    let most = mean_ns[0].iter().copied().fold(0.0, f64::max);
    let least = mean_ns[1].iter().copied().fold(f64::MAX, f64::min);
    assert!(most * 2.0 < least, "{mean_ns:?}");
}
