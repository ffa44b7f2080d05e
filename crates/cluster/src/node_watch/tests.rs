//! Tests of the node watchers.

use super::*;
use iosonde_result::wire::json_line;

#[test]
fn node_watcher_ignores_pod_options_of_the_run() {
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    options.pod_patch = Some(serde_json::json!({"spec": {"hostNetwork": true}}));
    options.pod.image_pull_secrets = vec!["registry".to_owned()];
    options.pod.limits = crate::options::pod::resource("cpu=2").into_iter().collect();
    options.volume_mode = VolumeMode::Block;
    let watcher = watcher(&options, "n1", Some("lab"));
    assert_eq!(watcher.namespace.as_deref(), Some("lab"));
    assert_eq!(watcher.target, TargetUri::EmptyDir);
    assert_eq!(watcher.pod.node.as_deref(), Some("n1"));
    assert_eq!(watcher.pod.image_pull_secrets, ["registry"]);
    assert!(watcher.node_selector.is_empty() && watcher.pod.requests.is_empty());
    assert_eq!(
        watcher.pod.limits["cpu"].0, "100m",
        "a quota may ask for it"
    );
    assert!(watcher.pod_patch.is_none() && watcher.pods.is_none());
    assert_eq!(
        watcher.watch_nodes,
        Some(Vec::new()),
        "watchers are not watched"
    );
    assert_eq!(watcher.tolerations[0].operator.as_deref(), Some("Exists"));
}

fn interval(second: u64, ramp: bool) -> Interval {
    Interval {
        start_ns: second * 1_000_000_000,
        length_ns: 1_000_000_000,
        ramp,
        ..Interval::default()
    }
}

fn slice(seconds: f64) -> MachineSlice {
    MachineSlice {
        length_ns: (seconds * 1e9) as u64,
        ..MachineSlice::default()
    }
}

#[test]
fn slices_before_the_measured_time_are_dropped() {
    let mut samples = NodeSamples::default();
    // Layout or activity between two runs, then a ramp, then a late answer.
    samples.keep(slice(60.0), &interval(0, false));
    samples.keep(slice(1.0), &interval(1, true));
    samples.keep(slice(1.0), &interval(2, false));
    samples.keep(slice(2.0), &interval(4, false));
    samples.keep(slice(0.0), &interval(5, false));
    let kept: Vec<(u64, u64)> = samples
        .series
        .slices
        .iter()
        .map(|slice| (slice.start_ns / 1_000_000, slice.length_ns / 1_000_000))
        .collect();
    assert_eq!(kept, [(2000, 1000), (3000, 2000)]);
}

#[test]
fn watcher_is_asked_once_and_other_messages_are_skipped() {
    let (connection, mut asked, sender) = Connection::fake();
    sender
        .send(AgentEvent::Message(AgentMessage::Clock { now_ns: 1 }))
        .unwrap();
    let answer = AgentMessage::Sample(Box::new(slice(1.0)));
    sender.send(AgentEvent::Message(answer)).unwrap();
    assert_eq!(
        sample_activity(&connection).unwrap().length_ns,
        1_000_000_000
    );
    assert_eq!(asked.try_recv().unwrap(), json_line(&AgentRequest::Sample));
    assert!(asked.try_recv().is_err());
    drop(sender);
    assert_eq!(sample_activity(&connection), None, "no agent answers");
}
