use super::FailureCondition as Cause;
use super::*;
use crate::run_error::{SystemFailure, VolumeProblem};
use serde_json::{Value, json};

fn message() -> String {
    "no room".to_owned()
}

fn reason() -> String {
    "Reason".to_owned()
}

fn job() -> String {
    "iosonde-1a2b".to_owned()
}

/// Returns the error of an agent whose user may not write to the root of the volume.
fn not_writable() -> RunError {
    RunError::unusable_target(
        "/data/.iosonde-1a2b",
        VolumeProblem::NoScratchDirectory {
            failure: SystemFailure::Errno(13),
        }
        .into(),
    )
}

#[test]
fn volume_of_another_user_is_named_with_user_path_and_remedy() {
    let refused = |error: &RunError| {
        let condition = Cause::VolumeRefused {
            user: Some(65532),
            error: Box::new(error.clone()),
        };
        PodFailure::new(FailedObject::only_pod(), condition)
    };
    let denied = refused(&not_writable());
    assert_eq!(
        denied.cause(),
        "the user 65532 of the pod may not write to the volume: /data/.iosonde-1a2b: it cannot be \
         made in the volume: Permission denied (EACCES)"
    );
    assert_eq!(
        denied.remedy(),
        "name a user that may write there with --run-as UID (0 is root), or change the owner of \
         the volume's root directory"
    );
    let full = RunError::unusable_target(
        "/data/.iosonde-1a2b",
        VolumeProblem::NoScratchDirectory {
            failure: SystemFailure::Errno(28),
        }
        .into(),
    );
    assert_eq!(refused(&full).cause(), full.to_string());
}

#[test]
fn pod_that_a_policy_refuses_has_an_option_as_remedy() {
    let refused = Cause::PodRefused {
        reason: PodRefusal::Other,
        message: "admission webhook \"policy\" denied the request".to_owned(),
    };
    let failure = PodFailure::new(FailedObject::only_pod(), refused);
    assert_eq!(
        failure.remedy(),
        "use a namespace whose policies allow the pod, with --namespace"
    );
}

#[test]
fn killed_container_names_its_signal() {
    let ended = Cause::ContainerEnded {
        exit_code: 137,
        reason: "Error".to_owned(),
        message: String::new(),
    };
    assert_eq!(
        ended.to_string(),
        "the container ended with status 137, killed by SIGKILL (Error)"
    );
}

#[test]
fn kept_objects_are_part_of_the_remedy_once() {
    let kept = KeptObjects {
        namespace: "lab".to_owned(),
        job: job(),
    };
    let failure = PodFailure::new(FailedObject::only_pod(), FailureCondition::Deleted);
    let remedy = failure.remedy().to_owned();
    let failure = failure.with_kept(kept.clone());
    let expected = format!(
        "{remedy}; --keep has kept it: see kubectl -n lab describe job,pod -l \
         job-name=iosonde-1a2b, and then remove it: kubectl -n lab delete job iosonde-1a2b"
    );
    assert_eq!(failure.remedy(), expected);
    assert_eq!(failure.clone().with_kept(kept), failure);
}

#[test]
fn remedy_names_keep_only_where_it_is_offered() {
    let failure = |condition| PodFailure::new(FailedObject::only_pod(), condition);
    for condition in conditions() {
        let failure = failure(condition);
        assert!(!failure.remedy().contains("--keep"), "{failure:?}");
        let offered = failure.clone().with_keep_offer();
        let is_same = offered == failure;
        assert_ne!(is_same, offered.remedy().contains("--keep"), "{offered:?}");
    }
    let offered = failure(Cause::NoOutput).with_keep_offer();
    assert_eq!(
        offered.remedy(),
        "run it again; --run-as chooses the user that may write to the volume; --keep keeps the \
         pod for `kubectl logs`"
    );
    let offered = failure(Cause::Terminated).with_keep_offer();
    assert_eq!(
        offered.remedy(),
        "run it again; --keep keeps the pod for `kubectl describe pod`"
    );
    let text = PodFailure::from_texts("the pod", "it is gone", "run it again");
    assert_eq!(text.clone().with_keep_offer(), text);
}

/// Returns one condition of each kind.
fn conditions() -> Vec<FailureCondition> {
    let mut all = cluster_conditions();
    all.extend(container_conditions());
    all.extend(agent_conditions());
    all
}

/// Returns the conditions that the cluster reports of a pod or a Job.
fn cluster_conditions() -> Vec<FailureCondition> {
    vec![
        Cause::PodRefused {
            reason: PodRefusal::Quota,
            message: message(),
        },
        Cause::DeadlinePassed {
            seconds: Some(600),
            is_measured: true,
        },
        Cause::JobFailed {
            reason: reason(),
            message: message(),
        },
        Cause::JobDeleted { job: job() },
        Cause::Evicted { message: message() },
        Cause::NodeLost {
            reason: reason(),
            message: message(),
        },
        Cause::NodeNotReady {
            node: "n1".to_owned(),
        },
        Cause::NodesNotReady {
            pods: vec![PodOnNode {
                pod: "p1".to_owned(),
                node: "n1".to_owned(),
            }],
        },
        Cause::PodFailed {
            reason: reason(),
            message: message(),
        },
        Cause::ImageNotPulled {
            image: "busy:1".to_owned(),
            reason: "ErrImagePull".to_owned(),
            message: "not found".to_owned(),
        },
    ]
}

/// Returns the conditions of containers, volumes and waits.
fn container_conditions() -> Vec<FailureCondition> {
    vec![
        Cause::ContainerNotCreated {
            reason: reason(),
            message: message(),
        },
        Cause::OutOfMemory,
        Cause::ShellMissing {
            exit_code: 127,
            message: String::new(),
        },
        Cause::ArgumentsRefused { message: message() },
        Cause::NoRequests,
        Cause::ContainerEnded {
            exit_code: 3,
            reason: reason(),
            message: message(),
        },
        Cause::ContainerStopped {
            awaits: AwaitedStep::ImagePull.into(),
        },
        Cause::VolumeNotMounted {
            reason: MountFailure::MultiAttach,
            message: message(),
        },
        Cause::ClaimLost { claim: None },
        Cause::ProvisionerSilent {
            claim: Some("data".to_owned()),
            message: "Waiting for a volume to be created".to_owned(),
        },
        Cause::VolumeRefused {
            user: Some(65532),
            error: Box::new(not_writable()),
        },
        Cause::AgentImageNotPulled {
            image: "iosonde-agent:1".to_owned(),
            reason: "ErrImagePull".to_owned(),
            message: "not found".to_owned(),
        },
        Cause::AgentEnded {
            namespace: "lab".to_owned(),
            job: job(),
        },
        Cause::ClaimNotProvisioned {
            claim: Some("data".to_owned()),
            message: message(),
        },
        Cause::Unschedulable {
            reason: SchedulingObstacle::Taint,
            is_node_coming: false,
            message: message(),
            tolerations: Vec::new(),
        },
        Cause::StartTimedOut {
            seconds: 30,
            awaits: PodWait {
                step: AwaitedStep::Node,
                running: Some(RunningPods {
                    running: 1,
                    pods: 2,
                }),
            },
        },
        Cause::NotRunning {
            namespace: "lab".to_owned(),
            selector: "iosonde/run=1a2b".to_owned(),
        },
    ]
}

/// Returns the conditions of agents, results and removals.
fn agent_conditions() -> Vec<FailureCondition> {
    vec![
        Cause::Deleted,
        Cause::Disrupted {
            reason: "EvictionByEvictionAPI".to_owned(),
            message: "Eviction API: evicting".to_owned(),
        },
        Cause::NoGreetingButLog {
            last_line: "no room".to_owned(),
        },
        Cause::Terminated,
        Cause::TerminatedEarly,
        Cause::OtherBuild {
            program: "iosonde 0".to_owned(),
        },
        Cause::NoOutput,
        Cause::NoGreeting,
        Cause::NoAnswer,
        Cause::Unreachable {
            seconds: 120,
            error: Box::new(RunError::Interrupted),
            run: "1a2b".to_owned(),
        },
        Cause::MessageUnreadable { problem: message() },
        Cause::UploadTimedOut { seconds: 60 },
        Cause::UploadFailed { message: message() },
        Cause::JobRefused {
            error: Box::new(RunError::NoCompletions),
        },
        Cause::NoResult {
            reason: None,
            exit_code: None,
            last_line: None,
        },
        Cause::ResultNotKept,
        Cause::KeptResultInvalid,
        Cause::KeptResultUnreadable {
            problem: KeptResultProblem::NoProgress { seconds: 60 },
        },
        Cause::ApiFailed {
            verb: "delete".to_owned(),
            resource: "jobs".to_owned(),
            code: Some(403),
            message: "forbidden".to_owned(),
        },
        Cause::StillThere {
            object: RemainingObject::Claim,
            seconds: None,
        },
        Cause::RemovalInterrupted {
            object: RemainingObject::Job { name: job() },
        },
        Cause::NamespaceTerminating { seconds: 60 },
        Cause::ForeignObject {
            kind: "pod".to_owned(),
            name: "web".to_owned(),
        },
        Cause::OtherRun,
    ]
}

#[test]
fn failure_of_every_condition_has_words_and_round_trips() {
    let object = FailedObject::Job {
        namespace: "lab".to_owned(),
        name: "iosonde-1a2b".to_owned(),
    };
    let mut all = Vec::new();
    for condition in conditions() {
        let error = RunError::not_ready(object.clone(), condition.clone());
        let RunError::NotReady(failure) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(failure.condition(), Some(&condition));
        all.push(format!("{}\n  {}", failure.cause(), failure.remedy()));
        let document = serde_json::to_value(&error).unwrap();
        let read: RunError = serde_json::from_value(document).unwrap();
        assert_eq!(read, error);
    }
    insta::assert_snapshot!("condition_words", all.join("\n"));
}

#[test]
fn failure_of_an_earlier_version_is_read_and_written_unchanged() {
    for key in ["unready", "lost", "left"] {
        let row = json!({key: {
            "what": "the pod iosonde-1a2b-0",
            "cause": "its node n1 is not ready",
            "remedy": "run it again",
        }});
        let error: RunError = serde_json::from_value(row.clone()).unwrap();
        assert_eq!(error.remedy(), "run it again");
        let failure = match &error {
            RunError::NotReady(failure)
            | RunError::Lost(failure)
            | RunError::NotRemoved(failure) => failure,
            other => panic!("{other:?}"),
        };
        assert_eq!((failure.object(), failure.condition()), (None, None));
        assert_eq!(serde_json::to_value(&error).unwrap(), row);
    }
}

#[test]
fn failure_with_unknown_object_and_condition_is_read_as_text() {
    let row = |object: Value, condition: Value| {
        json!({"lost": {
            "what": "the pod p1",
            "cause": "its node melted",
            "remedy": "run it again",
            "object": object,
            "condition": condition,
        }})
    };
    let of_2030 = json!({"of_2030": {"heat": 7}});
    let known = (FailedObject::named_pod("p1"), FailureCondition::Deleted);
    let [object, condition] = [
        serde_json::to_value(&known.0).unwrap(),
        serde_json::to_value(&known.1).unwrap(),
    ];
    // A known kind without its fields is unknown too.
    let partial = json!({"node_not_ready": {}});
    for (row, object, condition) in [
        (row(object.clone(), of_2030.clone()), Some(&known.0), None),
        (row(object, partial), Some(&known.0), None),
        (row(of_2030, condition), None, Some(&known.1)),
    ] {
        let error: RunError = serde_json::from_value(row).unwrap();
        let RunError::Lost(failure) = &error else {
            panic!("{error:?}");
        };
        assert_eq!((failure.object(), failure.condition()), (object, condition));
        let texts = (failure.what(), failure.cause(), failure.remedy());
        assert_eq!(texts, ("the pod p1", "its node melted", "run it again"));
    }
}

#[test]
fn document_of_a_failure_has_its_texts_and_its_fields() {
    let error = RunError::not_ready(
        FailedObject::named_pod("p1"),
        FailureCondition::ImageNotPulled {
            image: "busy:1".to_owned(),
            reason: "ErrImagePull".to_owned(),
            message: "not found".to_owned(),
        },
    );
    let words = "the pod p1 did not become ready: ErrImagePull: the image busy:1 cannot be \
                 pulled: not found";
    assert_eq!(error.to_string(), words);
    let document: Value = serde_json::to_value(&error).unwrap();
    let fields = &document["unready"];
    assert_eq!(fields["what"], "the pod p1");
    assert_eq!(
        fields["cause"],
        "ErrImagePull: the image busy:1 cannot be pulled: not found"
    );
    assert!(fields["remedy"].is_string());
    assert_eq!(fields["object"], json!({"pod": {"name": "p1"}}));
    assert_eq!(
        fields["condition"],
        json!({"image_not_pulled": {
            "image": "busy:1",
            "reason": "ErrImagePull",
            "message": "not found",
        }})
    );
    assert_eq!(fields.get("leftovers"), None);
}

#[test]
fn remedy_of_a_removal_names_the_command_for_its_object() {
    let remedy = |object, condition| RunError::not_removed(object, condition).remedy();
    let job = FailedObject::Job {
        namespace: "lab".to_owned(),
        name: "iosonde-1a2b".to_owned(),
    };
    let pods = ["p1", "p2"].map(|pod| PodOnNode {
        pod: pod.to_owned(),
        node: "n1".to_owned(),
    });
    let stranded = FailureCondition::NodesNotReady {
        pods: pods.to_vec(),
    };
    assert_eq!(
        remedy(job.clone(), stranded),
        "the cluster removes it when the node is back; if it is gone for good: kubectl -n lab \
         delete pod p1 p2 --force --grace-period=0"
    );
    let object = RemainingObject::Pod;
    assert_eq!(
        remedy(job, FailureCondition::RemovalInterrupted { object }),
        "the cluster goes on removing it; if it does not: kubectl -n lab delete job iosonde-1a2b"
    );
    let namespace = FailedObject::Namespace {
        name: "lab".to_owned(),
        is_made_for_runs: true,
    };
    let object = RemainingObject::Namespace;
    let interrupted = FailureCondition::RemovalInterrupted { object };
    assert_eq!(
        PodFailure::new(namespace.clone(), interrupted).cause(),
        "you interrupted the wait for it, and the namespace is still there"
    );
    assert_eq!(
        remedy(namespace, FailureCondition::OtherRun),
        "if it is not needed: kubectl delete namespace lab"
    );
}

#[test]
fn failure_keeps_its_remedy_on_another_object_and_with_leftovers() {
    let failure = PodFailure::new(FailedObject::only_pod(), FailureCondition::Deleted);
    let named = failure.with_object(FailedObject::named_pod("p1"));
    assert_eq!(
        (named.what(), named.remedy()),
        ("the pod p1", "run it again")
    );
    let leftovers = LeftoverFiles {
        volume: "the claim data".to_owned(),
        run: "1a2b".to_owned(),
    };
    let reported = named.with_leftovers(leftovers.clone());
    let again = LeftoverFiles {
        volume: "the claim other".to_owned(),
        run: "3c4d".to_owned(),
    };
    assert_eq!(reported.clone().with_leftovers(again), reported);
    assert_eq!(
        reported.remedy(),
        "run it again; files of the run may be left in the claim data: if so, remove \
         .iosonde-1a2b* there"
    );
    assert_eq!(reported.leftovers, Some(leftovers));
}

#[test]
fn missing_directory_is_answered_with_those_of_the_node() {
    let condition = Cause::VolumeNotMounted {
        reason: MountFailure::HostPath,
        message: "/mnt/ssd7 is not a directory".to_owned(),
    };
    let existing = ExistingDirectories {
        node: "n1".to_owned(),
        directories: vec!["/mnt/ssd0".to_owned(), "/mnt/ssd1".to_owned()],
        mounts: vec!["/".to_owned()],
    };
    assert!(!existing.is_empty());
    let failure = PodFailure::new(FailedObject::only_pod(), condition);
    let failure = failure.with_existing_directories(existing);
    assert_eq!(
        failure.remedy(),
        "nearby directories of the node n1: /mnt/ssd0, /mnt/ssd1; mounts of the node n1: /; name a \
         directory that exists on the node; --node-selector chooses the node"
    );
    let json = serde_json::to_value(&failure).unwrap();
    assert_eq!(json["existing"]["node"], "n1");
    assert_eq!(serde_json::from_value::<PodFailure>(json).unwrap(), failure);
}

#[test]
fn unschedulable_pod_is_answered_with_the_missing_tolerations() {
    let remedy = |tolerations: &[&str]| {
        let condition = Cause::Unschedulable {
            reason: SchedulingObstacle::Taint,
            is_node_coming: false,
            message: "2 node(s) had untolerated taint(s)".to_owned(),
            tolerations: tolerations.iter().map(|&one| one.to_owned()).collect(),
        };
        RunError::not_ready(FailedObject::only_pod(), condition).remedy()
    };
    assert_eq!(
        remedy(&["bench=alone:NoSchedule"]),
        "tolerate the taint with --toleration bench=alone:NoSchedule, or choose other nodes with \
         --node-selector"
    );
    assert_eq!(
        remedy(&["a:NoSchedule", "b:NoExecute,c=d:NoSchedule"]),
        "tolerate the taints of a node with --toleration a:NoSchedule or --toleration \
         b:NoExecute,c=d:NoSchedule, or choose other nodes with --node-selector"
    );
    assert!(remedy(&[]).starts_with("tolerate the taint with --toleration, or"));
}
