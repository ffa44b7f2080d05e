//! A client with only the capabilities that a benchmark needs.

use std::path::PathBuf;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, ensure, one_good_try};
use serde_json::Value;

/// A client of one test, removed on drop.
struct Client<'a> {
    cluster: &'a Cluster,
    name: &'static str,
    keyring: PathBuf,
}

impl<'a> Client<'a> {
    /// `may` is its access to the pool.
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
fn restricted_client_measures_and_notes_missing_data() {
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
    // Monitors answer this client; OSDs refuse to report latencies to it.
    const NOT_KNOWN: &str = "the cluster did not report the latencies of the OSDs: cannot query \
                             osd.0: Permission denied (EACCES)";
    let works = "--name=rights --rw=randrw --bs=4k --size=1m --io_size=1m --iodepth=4";
    for target in [&pool, &image] {
        one_good_try(|| {
            let line = format!("fio --target={target} AS_CLIENT {works}");
            let (stdout, said) = ok(&format!("{line} --output-format=json"));
            let result = json(&stdout);
            let job = &result["jobs"][0];
            let count_ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap_or(0);
            assert_eq!(count_ios("read") + count_ios("write"), 256, "{stdout}");
            assert_eq!(said, "", "JSON says it itself");
            let side = &result["iosonde"]["ceph"];
            assert_eq!(side["health"].as_str().map(|_| ()), Some(()), "{side:#}");
            assert_eq!(side["osds"]["up"], 3, "{side:#}");
            assert_eq!(side["pool"]["name"], POOL, "{side:#}");
            let notes = side["notes"].as_array().expect("notes");
            // One for each OSD, unless a daemon without CPU time answers too late.
            ensure(notes.len() == 3, || format!("{side:#}"))?;
            assert_eq!(notes[0], NOT_KNOWN);
            let (report, said) = ok(&line);
            assert_eq!(said, "", "notes stand below the report");
            let note = format!("note: not known: {NOT_KNOWN} (and 2 more)");
            ensure(report.contains(&note), || report.clone())
        });
    }
    let bench = format!("rados bench -p {POOL} -N rights 30 write -b 4k --max-objects 200");
    let (text, _) = ok(&format!("{bench} AS_CLIENT"));
    assert!(text.contains("Total writes made:      200"), "{text}");
    let line = text.lines().find(|line| line.starts_with("Not known:"));
    assert!(line.is_some_and(|line| line.contains(NOT_KNOWN)), "{text}");
    // The administrator gets no such note.
    let (status, text, _) = cluster.run(&bench);
    assert_eq!(status, Some(0));
    assert!(!text.contains(NOT_KNOWN), "{text}");
    // A pool without access is refused with advice, and no object is created.
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
fn read_only_client_reports_no_leftovers() {
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
