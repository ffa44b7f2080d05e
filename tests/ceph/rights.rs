//! A client that may do no more than a benchmark needs.

use std::path::PathBuf;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

/// A client of its own, which goes at the end.
struct Client<'a> {
    cluster: &'a Cluster,
    name: &'static str,
    keyring: PathBuf,
}

impl<'a> Client<'a> {
    /// `may` is what it may do in the pool.
    fn new(cluster: &'a Cluster, scratch: &Scratch, name: &'static str, may: &str) -> Client<'a> {
        let keyring = scratch.out().join("keyring");
        let caps = format!("mon allow_r osd allow_{may}_pool={POOL}");
        let made = std::process::Command::new("timeout")
            .args(["60", "ceph", "auth", "get-or-create", name, "-o"])
            .arg(&keyring)
            .args(caps.split(' ').map(|word| word.replace('_', " ")))
            .env("CEPH_CONF", cluster.conf())
            .status();
        assert!(made.expect("ceph starts").success());
        Client {
            cluster,
            name,
            keyring,
        }
    }

    /// Exit status, standard output, standard error.
    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let access = format!(
            "--ceph-client={} --ceph-keyring={}",
            self.name,
            self.keyring.display()
        );
        self.cluster.run(&line.replace("AS_CLIENT", &access))
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let gone = std::process::Command::new("timeout")
            .args(["60", "ceph", "auth", "rm", self.name])
            .env("CEPH_CONF", self.cluster.conf())
            .output();
        if !gone.is_ok_and(|gone| gone.status.success()) {
            eprintln!("{} could not be removed", self.name);
        }
    }
}

#[test]
#[ignore = "needs Ceph"]
fn a_client_of_few_rights_measures_and_is_told_what_it_could_not_learn() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let client = Client::new(&cluster, &scratch, "client.bench", "rwx");
    let pool = format!("rados://{POOL}/rights");
    cluster.rbd(&format!("create {POOL}/rights --size 16M"));
    let image = format!("rbd://{POOL}/rights");
    let ok = |line: &str| {
        let (status, stdout, stderr) = client.run(line);
        assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
        (stdout, stderr)
    };
    let json = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    // Monitors answer it, storage daemons do not tell it how long they took.
    const NOT_KNOWN: &str = "the storage daemons' latencies could not be asked for: cannot ask osd.0: Permission denied (EACCES)";
    let works = "--name=rights --rw=randrw --bs=4k --size=1m --io_size=1m --iodepth=4";
    for target in [&pool, &image] {
        let line = format!("fio --target={target} AS_CLIENT {works}");
        let (stdout, said) = ok(&format!("{line} --output-format=json"));
        let result = json(&stdout);
        let job = &result["jobs"][0];
        let of = |direction: &str| job[direction]["total_ios"].as_u64().unwrap_or(0);
        assert_eq!(of("read") + of("write"), 256, "{stdout}");
        assert_eq!(said, "", "JSON says it itself");
        let side = &result["iosonde"]["ceph"];
        assert_eq!(side["health"].as_str().map(|_| ()), Some(()), "{side:#}");
        assert_eq!(side["osds"]["up"], 3, "{side:#}");
        assert_eq!(side["pool"]["name"], POOL, "{side:#}");
        let notes = side["notes"].as_array().expect("notes");
        assert_eq!(notes.len(), 3, "one for each of them: {side:#}");
        assert_eq!(notes[0], NOT_KNOWN);
        let (report, said) = ok(&line);
        assert_eq!(said, "", "notes stand below the report");
        let told = format!("note: not known: {NOT_KNOWN} (and 2 more)");
        assert!(report.contains(&told), "{report}");
    }
    let bench = format!("rados bench -p {POOL} -N rights 30 write -b 4k --max-objects 200");
    let (text, _) = ok(&format!("{bench} AS_CLIENT"));
    assert!(text.contains("Total writes made:      200"), "{text}");
    let told = text.lines().find(|line| line.starts_with("Not known:"));
    assert!(told.is_some_and(|told| told.contains(NOT_KNOWN)), "{text}");
    // To the administrator there is nothing to tell.
    let (status, text, _) = cluster.run(&bench);
    assert_eq!(status, Some(0));
    assert!(!text.contains("Not known:"), "{text}");
    // What it may not do is refused with a remedy, before there is anything in the pool.
    let (status, _, said) = client.run(&format!(
        "fio --target=rados://cephfs_data AS_CLIENT {works}"
    ));
    assert_eq!(status, Some(3), "{said}");
    for words in ["EPERM", "the cluster refuses this client", "ceph auth get"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(cluster.rados(&format!("-p {POOL} -N rights ls")), "");
    cluster.rbd(&format!("rm --no-progress {POOL}/rights"));
}

#[test]
#[ignore = "needs Ceph"]
fn what_a_client_may_not_write_is_not_said_to_be_left() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let client = Client::new(&cluster, &scratch, "client.reader", "r");
    let (status, _, said) = client.run(&format!(
        "rados bench -p {POOL} -N reader 2 write -b 4k AS_CLIENT"
    ));
    assert_eq!(status, Some(3), "{said}");
    assert!(
        said.contains("EPERM") && said.contains("ceph auth get"),
        "{said}"
    );
    assert!(!said.contains("removed"), "{said}");
    assert_eq!(cluster.rados(&format!("-p {POOL} -N reader ls")), "");
}
