//! Caches of nodes that are dropped before the jobs start.

use super::{IMAGE, JOB, TestNamespace, run};
use iosonde_e2e::Scratch;
use serde_json::Value;

#[test]
#[ignore = "needs a cluster"]
fn privileged_pods_drop_the_caches_of_nodes() {
    let namespace = TestNamespace::new("cold");
    for pods in ["", "--pods 2"] {
        let words = format!("--cold client,node --claim-size 50m {pods} {JOB}");
        let (status, stdout, stderr) = run(namespace.fio("sc://local-path", &words));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains("privileged"), "{stderr}");
        let result: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        let caches = &result["iosonde"]["caches"];
        for (index, layer) in ["client", "node"].into_iter().enumerate() {
            assert_eq!(caches[index]["layer"], layer, "{caches}");
            assert_eq!(caches[index]["state"], "cold", "{caches}");
        }
        assert!(
            caches[1]["evidence"]["dropped"]["count"].as_u64() > Some(0),
            "{caches}"
        );
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn restricted_namespace_refuses_to_drop_caches_of_nodes() {
    let namespace = TestNamespace::new("cold-restricted");
    let level = "pod-security.kubernetes.io/enforce=baseline";
    namespace.kubectl(&["label", "namespace", &namespace.name, level, "--overwrite"]);
    let words = format!("--cold node --claim-size 50m {JOB}");
    let (status, stdout, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_ne!(status, Some(0), "{stdout}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn k8s_fio_drops_the_caches_of_nodes() {
    let namespace = TestNamespace::new("cold-classes");
    let job = "[t]\nrw=randread\nbs=4k\nsize=16m\nruntime=1\ntime_based\n";
    let scratch = Scratch::shared();
    let file = scratch.write("job.fio", job);
    let line = format!(
        "k8s fio -s local-path -z 50Mi -f {} -i {IMAGE} -n {} --cold node -o json",
        file.display(),
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("privileged"), "{stderr}");
    let result: Value = serde_json::from_str(&stdout).expect("a document of each class");
    let caches = &result[0]["fio"]["iosonde"]["caches"];
    assert_eq!(caches[1]["layer"], "node", "{caches}");
    assert_eq!(caches[1]["state"], "cold", "{caches}");
    let verdicts = result[0]["verdicts"].to_string();
    assert!(verdicts.contains("caches: "), "{verdicts}");
    namespace.assert_clean();
}
