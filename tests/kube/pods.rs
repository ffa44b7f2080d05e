//! Runs of several pods.

use super::{ENDLESS, JOB, TestNamespace, begun, on_terminal, run, signal, status_and_output};
use iosonde_e2e::Scratch;
use iosonde_e2e::{ensure, one_good_try};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

fn json(stdout: &str) -> Value {
    serde_json::from_str(stdout).expect("fio's JSON")
}

fn ios(shares: &Value) -> f64 {
    shares[0]["iops"].as_f64().expect("a rate")
}

#[test]
#[ignore = "needs a cluster"]
fn pods_start_together_and_give_one_result() {
    let namespace = TestNamespace::new("pods");
    for (target, words) in [
        (
            "sc://local-path",
            "--pods 4 --claim-size 50m --placement spread",
        ),
        (
            "sc://loop-ext4",
            "--pods 2 --claim-size 50m --shared --access-mode rwo --placement pack",
        ),
        ("emptydir://", "--per-node --claim-size 50m"),
    ] {
        let (status, stdout, stderr) = run(namespace.fio(target, &format!("{words} {JOB}")));
        assert_eq!(status, Some(0), "{target}: {stderr}");
        let json = json(&stdout);
        assert_eq!(
            json["jobs"].as_array().map(Vec::len),
            Some(1),
            "one job, as in its file"
        );
        let pods = &json["iosonde"]["pods"];
        let each = pods["each"].as_array().expect("pods");
        let expected = if words.contains("--pods 4") { 4 } else { 2 };
        assert_eq!(each.len(), expected, "{target}: {pods}");
        let sum: f64 = each.iter().map(|pod| ios(&pod["shares"])).sum();
        assert!((ios(&pods["all"]) - sum).abs() < 1e-6 * sum, "{pods}");
        assert!(pods["start_skew_ns"].is_u64() && each[0]["clock_error_ns"].as_u64() > Some(0));
        let nodes = pods["nodes"].as_array().expect("nodes");
        let packed = words.contains("pack");
        assert_eq!(nodes.len(), if packed { 1 } else { 2 }, "{target}: {pods}");
        namespace.assert_clean();
    }
    let (status, stdout, stderr) = run(namespace.command(&format!(
        "fio --target emptydir:// --pods 2 --image {} --namespace {} --claim-size 50m --name=t \
         --rw=randread --bs=4k --size=4m",
        super::IMAGE,
        namespace.name
    )));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("Pods: 2 on ") && stdout.contains("started within"),
        "{stdout}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn pods_check_a_shared_file_before_their_jobs() {
    let namespace = TestNamespace::new("shared-file");
    let words = "--pods 2 --claim-size 50m --shared=file --access-mode rwo --placement pack";
    let (status, stdout, stderr) = run(namespace.fio("sc://loop-ext4", &format!("{words} {JOB}")));
    assert_eq!(status, Some(0), "{stderr}");
    let checked = &json(&stdout)["iosonde"]["shared_file"];
    assert_eq!(checked["pods"], 2, "{checked}");
    let checks = checked["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), 4, "two promises, two assignments: {checked}");
    let is_verified = |check: &Value| check["verified_bytes"].as_u64() > Some(0);
    assert!(checks.iter().all(is_verified), "{checked}");
    let locks = checked["locks"].as_array().expect("locks");
    assert_eq!(locks.len(), 4, "two kinds, alone and contended: {checked}");
    assert!(
        locks
            .iter()
            .all(|lock| lock["lock_latency"]["p50_ns"].is_u64())
    );
    namespace.assert_clean();
    for refused in ["--pods 1", "--pods 2 --volume-mode block"] {
        let words = format!("{refused} --shared=file {JOB}");
        let (status, _, stderr) = run(namespace.fio("sc://loop-ext4", &words));
        assert_eq!(status, Some(2), "{refused}: {stderr}");
    }
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn pods_on_eight_claims_start_together() {
    let namespace = TestNamespace::new("eight");
    let words = format!("--pods 8 --claim-size 30m {JOB}");
    // The pods share one clock here, but other load on the CPUs can delay a start.
    one_good_try(|| {
        let (status, stdout, stderr) = run(namespace.fio("sc://local-path", &words));
        assert_eq!(status, Some(0), "{stderr}");
        let pods = &json(&stdout)["iosonde"]["pods"];
        let each = pods["each"].as_array().expect("pods");
        assert_eq!(each.len(), 8, "{pods}");
        let began = each.iter().map(|pod| pod["started_ns"].as_u64());
        let began: Vec<u64> = began.map(|ns| ns.expect("a time")).collect();
        let (first, last) = (began.iter().min(), began.iter().max());
        let skew_ns = last.zip(first).map(|(last, first)| last - first);
        assert_eq!(skew_ns, pods["start_skew_ns"].as_u64());
        namespace.assert_clean();
        ensure(skew_ns < Some(5_000_000), || {
            format!("eight pods started within {skew_ns:?} ns")
        })
    });
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn status_interval_prints_partial_results() {
    let namespace = TestNamespace::new("status");
    for pods in ["", "--pods 2"] {
        let words = format!(
            "{pods} --claim-size 30m --name=t --rw=randread --bs=4k --size=8m --runtime=5 \
             --time_based --status-interval=1 --output-format=json"
        );
        let (status, stdout, stderr) = run(namespace.fio("sc://local-path", &words));
        assert_eq!(status, Some(0), "{stderr}");
        let documents = serde_json::Deserializer::from_str(&stdout).into_iter::<Value>();
        let documents: Vec<Value> = documents.map(|document| document.expect("JSON")).collect();
        let counts = documents
            .iter()
            .map(|document| document["jobs"][0]["read"]["total_ios"].as_u64());
        let counts: Vec<u64> = counts.map(|count| count.expect("a count")).collect();
        // The last document is the result. The number of earlier ones depends on other load.
        assert!(
            counts.len() >= 3 && counts.is_sorted(),
            "{pods}: {counts:?}"
        );
        // The first document may precede the start of some pods.
        assert!(counts[counts.len() - 2] > 0, "{pods}: {counts:?}");
    }
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn terminal_shows_line_per_pod() {
    let namespace = TestNamespace::new("lines");
    let words = "--per-node --claim-size 100m --name=t --rw=randread --bs=4k --size=16m \
                 --runtime=6 --time_based";
    let scratch = Scratch::shared();
    let mut terminal = on_terminal(&scratch, &namespace.fio("sc://local-path", words));
    let drawn = terminal.until(|screen| {
        ["   0 n", "   1 n", "bandwidth", "p99"]
            .iter()
            .all(|words| screen.contains(words))
            && screen.lines().filter(|row| row.contains(" runs ")).count() == 2
    });
    assert!(drawn, "{terminal:?}");
    let status = terminal.wait();
    assert!(status.success(), "{terminal:?}");
    assert!(!terminal.screen().contains(" runs "), "{terminal:?}");
    assert!(terminal.has_cursor(), "{terminal:?}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn probe_of_several_pods_sums_their_figures() {
    let namespace = TestNamespace::new("probes");
    let line = format!(
        "probe sc://local-path --pods 2 --image {} -n {} --claim-size 100m --quick --runtime 0.5 \
         --details",
        super::IMAGE,
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let words = "all figures combine 2 pods, each on a volume of its own";
    let unwrapped: Vec<&str> = stdout.split_whitespace().collect();
    assert!(unwrapped.join(" ").contains(words), "{stdout}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn fault_of_one_pod_is_reported_and_all_are_removed() {
    let namespace = TestNamespace::new("podfaults");
    let words = format!("--pods 2 --claim-size 50m {ENDLESS}");
    let child = begun(&namespace, namespace.fio("sc://local-path", &words));
    // While the other pod lays out files there is no partial result.
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, Signal::INT);
    let (status, stdout, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(
        stdout.contains("Pods: 2"),
        "what is known is printed: {stdout}"
    );
    namespace.assert_clean();
    let child = begun(&namespace, namespace.fio("sc://local-path", &words));
    let pods = namespace.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
    let one = pods.lines().next().expect("a pod");
    namespace.kubectl(&["delete", one, "--wait=false"]);
    let (status, _, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    let name = one.trim_start_matches("pod/");
    assert!(
        stderr.contains(name) && stderr.contains("was lost"),
        "{stderr}"
    );
    namespace.assert_clean();
    // A quota admits one pod: the error names the pods that cannot start, and all are removed.
    let quota =
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n";
    super::kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], quota);
    let status = "--for=jsonpath={.status.hard}";
    namespace.kubectl(&["wait", status, "resourcequota/few", "--timeout=30s"]);
    let (status, _, stderr) =
        run(namespace.fio("emptydir://", &format!("--pods 2 --claim-size 50m {JOB}")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("exceeded quota"), "{stderr}");
    namespace.assert_clean();
}
