//! Results of rendered manifests, from a simulated API server that serves pods and their logs.

use iosonde_cluster::{
    ClusterOptions, CollectedOutput, CollectedResult, SetupEvent, SetupObserver, collect,
};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::TargetUri;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::pod_failure::{AwaitedStep, FailureCondition};
use iosonde_result::run_error::{ClusterObstacle, RunError, UnsupportedFeature};
use iosonde_result::session::Session;
use iosonde_result::wire::{LOG_END_MARK, NOT_KEPT_STATUS, render_cut_short, render_outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use tungstenite::Message;
use tungstenite::accept_hdr;
use tungstenite::handshake::server::{Request, Response};

/// An API server that answers requests for the list of pods and for their logs.
struct Server {
    pods: Vec<Value>,
    /// Number of requests that receive an empty list of pods.
    early: u32,
    logs: BTreeMap<String, String>,
    /// Log of a pod, which appears after this number of requests.
    later: Option<(u32, String, String)>,
    /// Result file of a pod.
    kept: String,
    /// Outcome of each read of the result file.
    reads: Vec<Read>,
}

/// Outcome of reading the result file of a pod.
enum Read {
    /// The connection breaks after this number of bytes.
    Break(usize),
    /// The rest of the file, in two parts.
    Whole,
    /// The pod has no such file.
    NotKept,
}

impl Server {
    /// Serves until the test ends. Returns the address.
    fn serve(mut self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = self.answer(stream);
            }
        });
        format!("http://{address}")
    }

    fn answer(&mut self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = [0; 4096];
        let length = stream.peek(&mut head)?;
        if String::from_utf8_lossy(&head[..length]).contains("/exec?") {
            self.execute(stream);
            return Ok(());
        }
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (status, body) = match path.strip_prefix("/api/v1/namespaces/bench/pods") {
            Some("") => {
                let pods = match self.early {
                    0 => self.pods.as_slice(),
                    _ => &[],
                };
                let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {},
                    "items": pods});
                self.early = self.early.saturating_sub(1);
                ("200 OK", list.to_string())
            }
            Some(log) => {
                let name = log.trim_start_matches('/').trim_end_matches("/log");
                if let Some((left, pod, text)) = &mut self.later
                    && pod == name
                {
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        self.logs.insert(pod.clone(), text.clone());
                    }
                }
                let whole = self.logs.get(name).cloned().unwrap_or_default();
                match query.contains("tailLines=1") {
                    true => (
                        "200 OK",
                        whole.lines().last().unwrap_or_default().to_owned(),
                    ),
                    false => ("200 OK", whole),
                }
            }
            None => (
                "403 Forbidden",
                json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                     "message": "not allowed",
                })
                .to_string(),
            ),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

impl Server {
    /// Runs `iosonde-agent result`: standard output is channel 1 of a WebSocket, the end of the
    /// command channel 3.
    // tungstenite defines the type that its callback returns.
    #[allow(clippy::result_large_err)]
    fn execute(&mut self, stream: TcpStream) {
        const OUTPUT: u8 = 1;
        const STATUS: u8 = 3;
        let mut query = String::new();
        let mut socket = accept_hdr(stream, |request: &Request, mut response: Response| {
            query = request.uri().query().unwrap_or_default().to_owned();
            let protocol = "v5.channel.k8s.io".parse().unwrap();
            response
                .headers_mut()
                .insert("Sec-WebSocket-Protocol", protocol);
            Ok(response)
        })
        .unwrap();
        let from = query.split_once("command=--from&command=");
        let from = from.map(|(_, rest)| rest.split('&').next().unwrap());
        let from: usize = from.map_or(0, |from| from.parse().unwrap());
        let mut send = |channel: u8, bytes: &[u8]| {
            let message = [&[channel][..], bytes].concat();
            socket.send(Message::binary(message)).unwrap();
        };
        let left = &self.kept.as_bytes()[from..];
        let status = match self.reads.remove(0) {
            Read::Break(bytes) => return send(OUTPUT, &left[..bytes]),
            Read::Whole => {
                let (first, second) = left.split_at(left.len() / 2);
                send(OUTPUT, first);
                send(OUTPUT, second);
                json!({"status": "Success"})
            }
            Read::NotKept => json!({
                "status": "Failure", "reason": "NonZeroExitCode", "message": "exit code 4",
                "details": {"causes": [{"reason": "ExitCode",
                 "message": NOT_KEPT_STATUS.to_string()}]},
            }),
        };
        send(STATUS, status.to_string().as_bytes());
        let _ = socket.close(None);
        let _ = socket.flush();
    }
}

/// A pod of a StatefulSet whose node has cut its log: only the reminder is left.
fn rotated(reads: Vec<Read>) -> Server {
    let name = "iosonde-0a1b2c3d-0";
    Server {
        kept: render_outcome(Ok(result(1000))),
        reads,
        ..server(&[(name, "Running", format!("{LOG_END_MARK}\n"))])
    }
}

fn pod(name: &str, phase: &str, pods: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"iosonde/rendered": "0a1b2c3d"},
            "annotations": {"iosonde/pods": pods.to_string(), "iosonde/target": "sc://fast"},
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "iosonde", "image": "iosonde-agent"}]},
        "status": {"phase": phase, "containerStatuses": [{
            "name": "iosonde", "image": "iosonde-agent", "imageID": "x", "ready": true,
             "restartCount": 0,
            "state": {"running": {}},
        }]},
    })
}

fn result(iops: u32) -> RunResult {
    let words = [
        "--name=t".to_owned(),
        "--rw=randread".to_owned(),
        "--size=1m".to_owned(),
        "--ioengine=sim".to_owned(),
        format!("--sim=cap_iops={iops}"),
    ];
    let words: Vec<_> = words.iter().map(Into::into).collect();
    let plan = iosonde_job::parse(&words, &SystemEnv::default())
        .unwrap()
        .plan;
    LocalRunner::default().open().run(&plan, &mut ()).unwrap()
}

fn collected(name: &str, server: Server, run: Option<&str>) -> Result<CollectedResult, RunError> {
    collected_within(name, server, run, Duration::from_secs(300))
}

fn collected_within(
    name: &str,
    server: Server,
    run: Option<&str>,
    timeout: Duration,
) -> Result<CollectedResult, RunError> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.serve()}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u",
         "namespace": "bench"}}],
        "current-context": "lab",
    });
    let path: PathBuf =
        std::env::temp_dir().join(format!("iosonde-collect-{name}-{}", std::process::id()));
    std::fs::write(&path, config.to_string()).unwrap();
    let options = ClusterOptions {
        kubeconfig: Some(path.clone()),
        timeout,
        ..ClusterOptions::new(TargetUri::EmptyDir)
    };
    let watch = SetupObserver {
        tell: &mut |_: SetupEvent<'_>| {},
        interrupts: &|| 0,
    };
    let collected = collect(&options, run, watch);
    std::fs::remove_file(path).unwrap();
    collected.map(|output| match output {
        CollectedOutput::Job(job) => *job,
        CollectedOutput::Documents(documents) => panic!("these are no jobs: {documents:?}"),
    })
}

fn server(pods: &[(&str, &str, String)]) -> Server {
    let count = pods.len() as u32;
    Server {
        early: 0,
        pods: pods
            .iter()
            .map(|(name, phase, _)| pod(name, phase, count))
            .collect(),
        logs: pods
            .iter()
            .map(|(name, _, log)| ((*name).to_owned(), log.clone()))
            .collect(),
        later: None,
        kept: String::new(),
        reads: Vec::new(),
    }
}

/// Returns the condition of a pod that failed.
fn condition(error: &RunError) -> &FailureCondition {
    match error {
        RunError::NotReady(failure) | RunError::Lost(failure) => {
            failure.condition().expect("errors of this version have it")
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the reason why a cluster cannot serve a request.
fn obstacle(error: &RunError) -> &ClusterObstacle {
    let RunError::NoFeature { cause } = error else {
        panic!("{error:?}");
    };
    match &**cause {
        UnsupportedFeature::Cluster(obstacle) => obstacle,
        other => panic!("{other:?}"),
    }
}

#[test]
fn results_of_ended_and_staying_pods_are_merged() {
    let log = |iops| format!("what fio prints\n{}", render_outcome(Ok(result(iops))));
    let server = server(&[
        ("iosonde-0a1b2c3d-0", "Succeeded", log(1000)),
        ("iosonde-0a1b2c3d-1", "Running", log(500)),
    ]);
    let collected = collected("both", server, None).unwrap();
    assert_eq!(collected.target, "sc://fast");
    let result = collected.result;
    assert_eq!(result.pods.len(), 2);
    assert_eq!(result.workers[0].directions.read.total_ios, 512);
    assert_eq!(result.labels["context"], "lab");
    assert_eq!(result.labels["rendered"], "0a1b2c3d");
    assert_eq!(result.labels["pods"], "2");
    assert!(
        collected.notes.is_empty(),
        "simulated pods start at the same time: {:?}",
        collected.notes
    );
}

/// A pod with a result does not end the wait, however long the other pods take.
#[test]
fn ended_pod_does_not_end_the_wait_for_other_pods() {
    let log = |iops| render_outcome(Ok(result(iops)));
    let mut server = server(&[
        ("iosonde-0a1b2c3d-0", "Succeeded", log(1000)),
        ("iosonde-0a1b2c3d-1", "Running", String::new()),
    ]);
    server.pods[0]["status"]["containerStatuses"][0]["state"] =
        json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    server.later = Some((2, "iosonde-0a1b2c3d-1".to_owned(), log(500)));
    let collected = collected_within("late", server, None, Duration::ZERO).unwrap();
    assert_eq!(collected.result.pods.len(), 2);
}

#[test]
fn result_of_one_pod_is_not_merged() {
    let server = server(&[(
        "iosonde-0a1b2c3d-0-x7k2p",
        "Succeeded",
        render_outcome(Ok(result(1000))),
    )]);
    let collected = collected("one", server, Some("iosonde-0a1b2c3d")).unwrap();
    assert!(collected.result.pods.is_empty());
    assert_eq!(collected.result.labels["node"], "n1");
}

#[test]
fn interrupted_run_is_reported_and_its_result_kept() {
    let log = format!(
        "{}interrupted\n{}",
        render_cut_short(),
        render_outcome(Ok(result(1000)))
    );
    let one = server(&[("iosonde-0a1b2c3d-0", "Failed", log)]);
    let collected = collected("half", one, None).unwrap();
    assert!(collected.result.workers[0].directions.read.total_ios > 0);
    let cut = collected.cut.expect("the job was longer");
    assert_eq!(condition(&cut), &FailureCondition::TerminatedEarly);
}

#[test]
fn missing_pods_are_an_error_after_the_timeout() {
    let mut server = server(&[(
        "iosonde-0a1b2c3d-0",
        "Succeeded",
        render_outcome(Ok(result(1))),
    )]);
    server.pods[0]["metadata"]["annotations"]["iosonde/pods"] = json!("2");
    let error = collected_within("few", server, None, Duration::ZERO).unwrap_err();
    let awaits_others = matches!(
        condition(&error),
        FailureCondition::StartTimedOut { awaits, .. } if awaits.step == AwaitedStep::OtherPods
    );
    assert!(awaits_others, "{error:?}");
}

#[test]
fn collect_errors_state_the_cause() {
    let refused = RunError::Unsupported {
        problem: "no space".to_owned(),
        remedy: "make some".to_owned(),
    };
    let one = |phase, log: String| server(&[("iosonde-0a1b2c3d-0", phase, log)]);
    let error = collected(
        "refused",
        one("Failed", render_outcome(Err(refused.clone()))),
        None,
    )
    .unwrap_err();
    let job_refused = FailureCondition::JobRefused {
        error: Box::new(refused),
    };
    assert_eq!(condition(&error), &job_refused);
    assert_eq!(error.remedy(), "make some");
    let cut = one("Failed", "fio-3.33\nkilled in the middle\n".to_owned());
    let error = collected("cut", cut, None).unwrap_err();
    let has_last_line = matches!(
        condition(&error),
        FailureCondition::NoResult { last_line, .. }
            if last_line.as_deref() == Some("killed in the middle")
    );
    assert!(has_last_line, "{error:?}");
    let other = one("Succeeded", String::new());
    let error = collected_within("other", other, Some("ffffffff"), Duration::ZERO).unwrap_err();
    let other_known = matches!(
        obstacle(&error),
        ClusterObstacle::NoPodsOfRendered { known, .. } if *known == ["0a1b2c3d"]
    );
    assert!(other_known, "{error:?}");
    let error = collected_within("none", server(&[]), None, Duration::ZERO).unwrap_err();
    let none = matches!(obstacle(&error), ClusterObstacle::NoRenderedRun { .. });
    assert!(none, "{error:?}");
}

#[test]
fn applied_run_without_pods_is_waited_for() {
    let there = server(&[(
        "iosonde-0a1b2c3d-0",
        "Succeeded",
        render_outcome(Ok(result(7))),
    )]);
    let early = Server { early: 2, ..there };
    assert!(collected("early", early, None).is_ok());
}

#[test]
fn kept_result_is_resumed_after_a_broken_connection() {
    let reads = vec![
        Read::Break(0),
        Read::Break(500),
        Read::Break(700),
        Read::Whole,
    ];
    let collected = collected("broken", rotated(reads), None).unwrap();
    assert_eq!(
        collected.result.workers[0].directions.read.total_ios,
        result(1000).workers[0].directions.read.total_ios
    );
}

#[test]
fn missing_kept_result_is_an_error() {
    let reads = vec![Read::Break(0), Read::NotKept];
    let error = collected("notkept", rotated(reads), None).unwrap_err();
    assert_eq!(condition(&error), &FailureCondition::ResultNotKept);
}
