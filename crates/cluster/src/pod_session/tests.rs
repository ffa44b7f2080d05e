use super::*;
use crate::connection::{Connection, take_requests};
use crate::fake_api::unreachable;
use crate::options::KeepOption;
use crate::pod_set::StartedPod;
use crate::volume_origin::VolumeOrigin;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::interval::Interval;
use iosonde_result::run_error::pod_failure::{
    FailedObject, FailureCondition, KeptObjects, PodFailure,
};
use iosonde_result::run_error::{
    ClusterObstacle, SharedFileProblem, SystemFailure, UnsupportedFeature,
};
use iosonde_result::shared_file::{SharedFileAction, SharedFileReply, SharedFileStep};
use iosonde_result::wire::AgentMessage;
use std::sync::mpsc::SyncSender;

type SentRequests = tokio::sync::mpsc::UnboundedReceiver<String>;

/// Returns a pod, the requests sent to it, and a sender of its agent's messages.
fn fake_pod(name: &str) -> (StartedPod, SentRequests, SyncSender<AgentEvent>) {
    let (connection, requests, messages) = Connection::fake();
    let pod = StartedPod {
        name: name.to_owned(),
        labels: BTreeMap::new(),
        scratch: format!("/data/{name}"),
        connection,
    };
    (pod, requests, messages)
}

/// Returns the pods of a run in a cluster that does not answer.
fn pod_set(pods: Vec<StartedPod>) -> PodSet {
    let runtime = crate::connect::runtime().unwrap();
    PodSet {
        objects: unreachable(&runtime),
        runtime,
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        pods,
        is_block: false,
        origin: VolumeOrigin::Unknown,
        persistent_volume: None,
        wanted: Vec::new(),
        share: ShareFacts::default(),
    }
}

fn watch<'w>(tell: &'w mut dyn FnMut(SetupEvent<'_>)) -> SetupObserver<'w> {
    SetupObserver {
        tell,
        interrupts: &|| 0,
    }
}

#[test]
fn followed_run_is_requested_once_and_returns_its_result() {
    let (pod, mut requests, messages) = fake_pod("pod");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::of_existing_run(pod_set(vec![pod]), watch(&mut tell));
    let over = RunError::Interrupted;
    let done = AgentMessage::Done(Err(over.clone()));
    messages.send(AgentEvent::Message(done)).unwrap();
    let error = session.follow_existing_run(&mut ()).unwrap_err();
    assert_eq!(error, over);
    assert_eq!(
        take_requests(&mut requests),
        [AgentRequest::Follow { run: 1, have: 0 }]
    );
    session.is_closed = true;
}

#[test]
fn lost_run_is_kept_only_on_request() {
    for keep_failed in [
        KeepOption::Unavailable,
        KeepOption::NotGiven,
        KeepOption::Given,
    ] {
        let keeps = keep_failed == KeepOption::Given;
        let (pod, _requests, _messages) = fake_pod("pod");
        let mut tell = |_: SetupEvent<'_>| {};
        let mut set = pod_set(vec![pod]);
        set.objects.keep_failed = keep_failed;
        let mut session = PodSession::new(set, false, watch(&mut tell));
        let lost = PodFailure::new(FailedObject::only_pod(), FailureCondition::Terminated);
        let kept = KeptObjects {
            namespace: "bench".to_owned(),
            job: "iosonde-0a1b2c3d".to_owned(),
        };
        let expected = match keep_failed {
            KeepOption::Unavailable => lost.clone(),
            KeepOption::NotGiven => lost.clone().with_keep_offer(),
            KeepOption::Given => lost.clone().with_kept(kept),
        };
        let error = session.keep_if_lost(RunError::Lost(Box::new(lost)));
        assert_eq!(error, RunError::Lost(Box::new(expected)));
        assert_eq!(session.is_closed, keeps);
        session.is_closed = true;
    }
}

#[test]
fn lost_agent_remedy_names_leftovers_of_lasting_volumes() {
    let lost = RunError::lost(FailedObject::only_pod(), FailureCondition::Deleted);
    let reported = with_leftovers(lost.clone(), Some("the claim data"), "1a2b");
    let words = "run it again; files of the run may be left in the claim data: if so, remove \
                 .iosonde-1a2b* there";
    assert_eq!(reported.remedy(), words);
    assert_eq!(with_leftovers(lost.clone(), None, "1a2b"), lost);
    let other = RunError::Interrupted;
    assert_eq!(with_leftovers(other.clone(), Some("x"), "1a2b"), other);
}

#[test]
fn run_that_cannot_be_followed_is_not_stopped() {
    let (pod, mut requests, messages) = fake_pod("pod");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::of_existing_run(pod_set(vec![pod]), watch(&mut tell));
    drop(messages);
    let error = session.follow_existing_run(&mut ()).unwrap_err();
    let RunError::NoFeature { cause } = &error else {
        panic!("{error:?}");
    };
    assert!(matches!(
        **cause,
        UnsupportedFeature::Cluster(ClusterObstacle::NotFollowable { .. })
    ));
    Box::new(session).close().unwrap();
    assert_eq!(
        take_requests(&mut requests),
        [AgentRequest::Follow { run: 1, have: 0 }]
    );
}

fn plan() -> Plan {
    let words = ["--name=t", "--rw=read", "--size=1m"].map(Into::into);
    iosonde_job::parse(&words, &SystemEnv::default())
        .unwrap()
        .plan
}

/// Plan, hold and number of the first request, which starts a run.
fn begun(requests: &mut SentRequests) -> (Plan, bool, u64) {
    match take_requests(requests).into_iter().next() {
        Some(AgentRequest::Run {
            plan, hold, run, ..
        }) => (*plan, hold, run),
        other => panic!("{other:?}"),
    }
}

#[test]
fn single_pod_gets_its_plan_unchanged_and_starts_at_once() {
    let (pod, mut requests, messages) = fake_pod("pod");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::new(pod_set(vec![pod]), false, watch(&mut tell));
    let mut wanted = plan();
    session.relocate_plan(&mut wanted);
    assert_ne!(wanted, plan(), "it is moved for the caller");
    let interval = Box::new(Interval::default());
    let over = AgentMessage::Done(Err(RunError::Interrupted));
    for message in [AgentMessage::Ready, AgentMessage::Interval(interval), over] {
        messages.send(AgentEvent::Message(message)).unwrap();
    }
    let error = session.run(&wanted, &mut ()).unwrap_err();
    assert_eq!(error, RunError::Interrupted);
    assert_eq!(begun(&mut requests), (wanted, false, 1));
    assert_eq!(take_requests(&mut requests), [], "neither clock nor start");
    session.is_closed = true;
}

#[test]
fn several_pods_get_their_own_plans_and_are_held() {
    let (one, mut of_one, messages) = fake_pod("one");
    let (other, mut of_other, _quiet) = fake_pod("other");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::new(pod_set(vec![one, other]), true, watch(&mut tell));
    let mut wanted = plan();
    session.relocate_plan(&mut wanted);
    assert_eq!(wanted, plan(), "each pod has a path of its own");
    let over = AgentMessage::Done(Err(RunError::Interrupted));
    messages.send(AgentEvent::Message(over)).unwrap();
    let error = session.run(&wanted, &mut ()).unwrap_err();
    assert_eq!(error, RunError::Interrupted);
    let (plan_of_one, held, run) = begun(&mut of_one);
    assert!(held && run == 1);
    let (plan_of_other, held, _) = begun(&mut of_other);
    assert!(held && plan_of_one != plan_of_other);
    session.is_closed = true;
}

#[test]
fn pod_that_is_replaced_does_not_join_a_single_pod() {
    let (one, ..) = fake_pod("one");
    let (old, ..) = fake_pod("old");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::new(pod_set(vec![one, old]), false, watch(&mut tell));
    assert_eq!(session.pod_count(), 1);
    assert_eq!(session.location(), "pod one on a node");
    session.is_closed = true;
}

#[test]
fn shared_file_check_names_the_pod_whose_step_fails() {
    let (first, mut requests, messages) = fake_pod("a");
    let (second, _requests, _messages) = fake_pod("b");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::new(pod_set(vec![first, second]), true, watch(&mut tell));
    let failed = SharedFileReply::Failed {
        action: SharedFileAction::Create,
        failure: SystemFailure::Errno(28),
    };
    let reply = AgentMessage::SharedFile(failed);
    messages.send(AgentEvent::Message(reply)).unwrap();
    let options = ClusterOptions::new("sc://nfs".parse().unwrap());
    let error = session.check_shared_file(&options).unwrap_err();
    let problem = SharedFileProblem::StepFailed {
        pod: "a".to_owned(),
        action: SharedFileAction::Create,
        failure: SystemFailure::Errno(28),
    };
    assert_eq!(error, problem.into_run_error("sc://nfs"));
    let asked = AgentRequest::SharedFile {
        directory: "a".to_owned(),
        step: SharedFileStep::Create,
    };
    assert_eq!(take_requests(&mut requests), [asked]);
    session.is_closed = true;
}

#[test]
fn shared_file_of_one_pod_is_refused_without_a_request() {
    let (pod, mut requests, _messages) = fake_pod("a");
    let mut tell = |_: SetupEvent<'_>| {};
    let mut session = PodSession::new(pod_set(vec![pod]), true, watch(&mut tell));
    let options = ClusterOptions::new("sc://nfs".parse().unwrap());
    let error = session.check_shared_file(&options).unwrap_err();
    let problem = SharedFileProblem::PodCount { pods: 1 };
    assert_eq!(error, problem.into_run_error("sc://nfs"));
    assert!(take_requests(&mut requests).is_empty());
    session.is_closed = true;
}
