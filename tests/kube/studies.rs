//! Studies and suites on storage classes.

use super::{IMAGE, TestNamespace, run};
use serde_json::Value;

#[test]
#[ignore = "needs a cluster"]
fn sweep_and_load_run_on_classes() {
    let namespace = TestNamespace::new("studies");
    let place = format!(
        "--claim-size 100m --image {IMAGE} -n {} --format json",
        namespace.name
    );
    let line = format!(
        "sweep sc://local-path sc://loop-ext4 emptydir:// --bs 4k --iodepth 1,4 --exhaustive \
         --runtime 1 {place}"
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    for name in ["sc://local-path", "sc://loop-ext4", "emptydir://"] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    let curves = result["sweep"]["curves"].as_array().expect("curves");
    assert!(
        curves.len() == 3 && curves.iter().all(|curve| curve["state"] == "complete"),
        "{stdout}"
    );
    assert!(
        stdout.contains("cannot see whether others use it"),
        "{stdout}"
    );
    namespace.assert_clean();
    let line = format!("load sc://local-path --rates 100,200 --runtime 1 {place}");
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("sc://local-path"), "{stdout}");
    namespace.assert_clean();
    // Pods share the offered rate, and the result names their number. Each has a neighbour.
    let line = format!(
        "load sc://local-path --pods 2 --rates 200 --runtime 2 --beside rw=randread {place}"
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    let point = &result["load"]["points"][0]["read"];
    assert_eq!(point["offered_per_s"], 200.0, "{point}");
    let achieved = point["achieved_per_s"].as_f64().expect("a rate");
    assert!((100.0..300.0).contains(&achieved), "{point}");
    assert!(stdout.contains("combine 2 pods"), "{stdout}");
    let neighbour = "measured beside a neighbour (rw=randread)";
    assert!(stdout.contains(neighbour), "{stdout}");
    namespace.assert_clean();
    let line = format!(
        "sweep sc://local-path --pods 2 --bs 4k --iodepth 1,4 --exhaustive --runtime 1 {place}"
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("combine 2 pods"), "{stdout}");
    namespace.assert_clean();
    // A class that does not exist is an error, and the pod of the first target is removed.
    let line = format!("sweep emptydir:// sc://none --bs 4k --iodepth 1 {place}");
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("there is no such storage class"),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn suite_on_classes_runs_and_leaves_nothing() {
    let namespace = TestNamespace::new("suites");
    let path = std::env::temp_dir().join(format!("iosonde-kube-suite-{}.toml", std::process::id()));
    let text = "targets = [{ path = \"sc://local-path\", labels = { class = \"local\" } }, \
                \"emptydir://\"]\n\
                [[workload]]\nname = \"log\"\nexpect = [\"log.sync.p99 <= 60s\"]\n\
                options = { rw = \"write\", bs = \"4k\", size = \"8m\", fdatasync = 1 }\n\
                [[workload]]\nname = \"disk\"\naxes = { iodepth = [1, 4] }\n\
                sweep = { runtime = 2, size = \"16m\" }\n\
                options = { rw = \"randread\", bs = \"4k\", direct = 1, ioengine = \"libaio\" }\n\
                [[workload]]\nname = \"open\"\nload = { rates = [50], runtime = 1, size = \"16m\" \
                }\n";
    std::fs::write(&path, text).expect("a suite");
    let place = format!("--claim-size 64m --image {IMAGE} -n {}", namespace.name);
    let suite = path.display();
    let (status, stdout, stderr) = run(namespace.command(&format!("run {suite} --check {place}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("no problems found"), "{stdout}");
    namespace.assert_clean();
    // All errors are reported together, before any object is created.
    let wrong = format!("run {suite} sc://none pvc://lost emptydir:// {place}");
    for line in [format!("{wrong} --check"), wrong] {
        let (status, _, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(3), "{stderr}");
        for words in ["there is no such storage class", "lost"] {
            assert!(stderr.contains(words), "{words}: {stderr}");
        }
        namespace.assert_clean();
    }
    let (status, stdout, stderr) = run(namespace.command(&format!(
        "run {suite} --format json \
                                                                   {place}"
    )));
    assert_eq!(status, Some(0), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).expect("JSON");
    let suites = document["suites"].as_array().expect("suites");
    let names: Vec<&str> = suites
        .iter()
        .filter_map(|one| one["target"].as_str())
        .collect();
    assert_eq!(names, ["sc://local-path", "emptydir://"]);
    for one in suites {
        assert_eq!(one["judged"][0]["verdict"], "met", "{stdout}");
        assert!(
            one["steps"]
                .as_array()
                .is_some_and(|steps| steps.len() == 3),
            "{stdout}"
        );
    }
    namespace.assert_clean();
    std::fs::remove_file(&path).expect("the suite");
}

#[test]
#[ignore = "needs a cluster"]
fn suite_step_larger_than_its_claim_is_refused_before_creation() {
    let namespace = TestNamespace::new("suite-room");
    let scratch = tempfile::tempdir().expect("a directory");
    let suite = scratch.path().join("suite.toml");
    let text = "[[workload]]\nname = \"small\"\noptions = { rw = \"write\", size = \"8m\" }\n\
                [[workload]]\nname = \"large\"\noptions = { rw = \"write\", size = \"1g\" }\n";
    std::fs::write(&suite, text).expect("a suite");
    let line = format!(
        "run {} sc://csi-loop --claim-size 64m --image {IMAGE} -n {}",
        suite.display(),
        namespace.name
    );
    for line in [format!("{line} --check"), line] {
        let (status, _, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(4), "{stderr}");
        assert!(stderr.contains("--claim-size 2g"), "{stderr}");
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn studies_of_two_pods_have_figures_of_each_pod_and_node() {
    let namespace = TestNamespace::new("pod-studies");
    let scratch = tempfile::tempdir().expect("a directory");
    let store = scratch.path().join("history.db").display().to_string();
    let place = format!(
        "--pods 2 --placement spread --claim-size 64m --image {IMAGE} -n {} --store {store}",
        namespace.name
    );
    let suite = scratch.path().join("suite.toml");
    let text = "targets = [\"sc://local-path\"]\n[[workload]]\nname = \"read\"\n\
                options = { rw = \"randread\", bs = \"4k\", size = \"8m\", runtime = 2, \
                time_based = 1 }\n";
    std::fs::write(&suite, text).expect("a suite");
    let line = format!("run {} --format json {place}", suite.display());
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).expect("JSON");
    let rows = &document["suites"][0]["steps"][0]["pods"];
    let rows = rows.as_array().expect("rows of pods");
    let pods = rows.iter().filter(|row| row["pod"].is_string());
    assert_eq!(pods.count(), 2, "{stdout}");
    assert!(rows.iter().any(|row| row["node"].is_null()), "{stdout}");
    namespace.assert_clean();
    for line in [
        "pts throughput sc://local-path --time-scale 0.001 --rounds 5 --size 16m",
        "sweep sc://local-path --bs 4k --iodepth 1,2 --exhaustive --runtime 1 --size 16m",
        "load sc://local-path --rates 100 --runtime 1 --size 16m --details",
    ] {
        let (status, stdout, stderr) = run(namespace.command(&format!("{line} {place}")));
        assert_eq!(status, Some(0), "{line}: {stderr}");
        let means = "mean rates, percentiles of all I/Os";
        assert!(
            stdout.contains(means) || line.starts_with("sweep"),
            "{stdout}"
        );
        let (status, stdout, stderr) = run(namespace.command(&format!("show --store {store}")));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stdout.contains(means), "{line}: {stdout}");
        namespace.assert_clean();
    }
}
