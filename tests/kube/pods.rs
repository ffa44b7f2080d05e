//! Several pods at once.

use super::{ENDLESS, JOB, Lab, begun, ended, on_terminal, run, signal};
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
fn pods_start_together_and_are_one_result() {
    let lab = Lab::new("pods");
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
        let (status, stdout, stderr) = run(lab.fio(target, &format!("{words} {JOB}")));
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
        lab.assert_clean();
    }
    let (status, stdout, stderr) = run(lab.command(&format!(
        "fio --target emptydir:// --pods 2 --image {} --namespace {} --claim-size 50m --name=t --rw=randread --bs=4k --size=4m",
        super::IMAGE, lab.namespace
    )));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("Pods: 2 on ") && stdout.contains("started within"),
        "{stdout}"
    );
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn eight_pods_on_a_claim_each_start_together() {
    let lab = Lab::new("eight");
    let words = format!("--pods 8 --claim-size 30m {JOB}");
    // The clocks of all pods are one here, but processors have other work, too.
    one_good_try(|| {
        let (status, stdout, stderr) = run(lab.fio("sc://local-path", &words));
        assert_eq!(status, Some(0), "{stderr}");
        let pods = &json(&stdout)["iosonde"]["pods"];
        let each = pods["each"].as_array().expect("pods");
        assert_eq!(each.len(), 8, "{pods}");
        let began = each.iter().map(|pod| pod["started_ns"].as_u64());
        let began: Vec<u64> = began.map(|ns| ns.expect("a time")).collect();
        let (first, last) = (began.iter().min(), began.iter().max());
        let skew_ns = last.zip(first).map(|(last, first)| last - first);
        assert_eq!(skew_ns, pods["start_skew_ns"].as_u64());
        lab.assert_clean();
        ensure(skew_ns < Some(5_000_000), || {
            format!("eight pods started within {skew_ns:?} ns")
        })
    });
    lab.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn what_was_measured_by_now_is_told_on_the_way() {
    let lab = Lab::new("status");
    for pods in ["", "--pods 2"] {
        let words = format!(
            "{pods} --claim-size 30m --name=t --rw=randread --bs=4k --size=8m --runtime=5 --time_based --status-interval=1 \
             --output-format=json"
        );
        let (status, stdout, stderr) = run(lab.fio("sc://local-path", &words));
        assert_eq!(status, Some(0), "{stderr}");
        let documents = serde_json::Deserializer::from_str(&stdout).into_iter::<Value>();
        let documents: Vec<Value> = documents.map(|document| document.expect("JSON")).collect();
        let counts = documents
            .iter()
            .map(|document| document["jobs"][0]["read"]["total_ios"].as_u64());
        let counts: Vec<u64> = counts.map(|count| count.expect("a count")).collect();
        // The last one is the result. How many come before depends on what else the machine does.
        assert!(
            counts.len() >= 3 && counts.is_sorted(),
            "{pods}: {counts:?}"
        );
        // The first may come before all pods have begun.
        assert!(counts[counts.len() - 2] > 0, "{pods}: {counts:?}");
    }
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn on_a_terminal_every_pod_has_a_line() {
    let lab = Lab::new("lines");
    let words = "--per-node --claim-size 100m --name=t --rw=randread --bs=4k --size=16m --runtime=6 --time_based";
    let scratch = Scratch::shared();
    let mut terminal = on_terminal(&scratch, &lab.fio("sc://local-path", words));
    // The terminal takes lines that fill it for one.
    let drawn = terminal.until(|screen| {
        ["   0 n", "   1 n", "bandwidth", "p99"]
            .iter()
            .all(|words| screen.contains(words))
            && screen.matches(" runs ").count() == 2
    });
    assert!(drawn, "{terminal:?}");
    let status = terminal.wait();
    assert!(status.success(), "{terminal:?}");
    assert!(!terminal.screen().contains(" runs "), "{terminal:?}");
    assert!(terminal.has_cursor(), "{terminal:?}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_probe_of_several_pods_says_that_the_figures_are_those_of_all() {
    let lab = Lab::new("probes");
    let line = format!(
        "probe sc://local-path --pods 2 --image {} -n {} --claim-size 100m --quick --runtime 0.5",
        super::IMAGE,
        lab.namespace
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let words = "all figures are those of 2 pods together, each on a volume of its own";
    let unwrapped: Vec<&str> = stdout.split_whitespace().collect();
    assert!(unwrapped.join(" ").contains(words), "{stdout}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn what_happens_to_one_pod_is_said_and_all_are_removed() {
    let lab = Lab::new("podfaults");
    let words = format!("--pods 2 --claim-size 50m {ENDLESS}");
    let child = begun(&lab, lab.fio("sc://local-path", &words));
    // The other pod may still lay out, and then nothing is known.
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, Signal::INT);
    let (status, stdout, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(
        stdout.contains("Pods: 2"),
        "what is known is printed: {stdout}"
    );
    lab.assert_clean();
    let child = begun(&lab, lab.fio("sc://local-path", &words));
    let pods = lab.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
    let one = pods.lines().next().expect("a pod");
    lab.kubectl(&["delete", one, "--wait=false"]);
    let (status, _, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    let name = one.trim_start_matches("pod/");
    assert!(
        stderr.contains(name) && stderr.contains("was lost"),
        "{stderr}"
    );
    lab.assert_clean();
    // Not enough room for all of them: the pods that cannot be are named, and none is left.
    let quota =
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n";
    super::kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], quota);
    let status = "--for=jsonpath={.status.hard}";
    lab.kubectl(&["wait", status, "resourcequota/few", "--timeout=30s"]);
    let (status, _, stderr) =
        run(lab.fio("emptydir://", &format!("--pods 2 --claim-size 50m {JOB}")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("exceeded quota"), "{stderr}");
    lab.assert_clean();
}
