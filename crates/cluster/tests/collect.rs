//! Results of rendered manifests, as an API server hands them out: a small one that knows pods and their logs.

use iosonde_cluster::{ClusterOptions, Collected, Told, Watch, collect};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::Target;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::{LAST_WORD, NOT_KEPT_STATUS, cut_short, farewell};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use tungstenite::Message;
use tungstenite::accept_hdr;
use tungstenite::handshake::server::{Request, Response};

/// Answers what is asked of it: pods as a list, and what each has written.
struct Server {
    pods: Vec<Value>,
    /// So often it is asked for pods before there are any.
    early: u32,
    logs: BTreeMap<String, String>,
    /// What is written once it was asked for so often.
    later: Option<(u32, String, String)>,
    /// What a pod has kept.
    kept: String,
    /// How it is read, each time that it is.
    reads: Vec<Read>,
}

/// What comes of a wish to read what a pod has kept.
enum Read {
    /// So many bytes, until the connection breaks.
    Break(usize),
    /// All that is left, in two parts.
    Whole,
    /// The pod has no such file.
    NotKept,
}

impl Server {
    /// Serves for as long as the test lasts, and says where.
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
                let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods});
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
                    true => ("200 OK", whole.lines().last().unwrap_or_default().to_owned()),
                    false => ("200 OK", whole),
                }
            }
            None => ("403 Forbidden", json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "message": "not allowed",
            }).to_string()),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

impl Server {
    /// Runs `iosonde-agent result`: standard output is channel 1 of a WebSocket, the end of the command channel 3.
    // tungstenite says what its callback returns.
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
                "details": {"causes": [{"reason": "ExitCode", "message": NOT_KEPT_STATUS.to_string()}]},
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
        kept: farewell(Ok(result(1000))),
        reads,
        ..server(&[(name, "Running", format!("{LAST_WORD}\n"))])
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
            "name": "iosonde", "image": "iosonde-agent", "imageID": "x", "ready": true, "restartCount": 0,
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

fn collected(name: &str, server: Server, run: Option<&str>) -> Result<Collected, RunError> {
    collected_within(name, server, run, Duration::from_secs(300))
}

fn collected_within(
    name: &str,
    server: Server,
    run: Option<&str>,
    timeout: Duration,
) -> Result<Collected, RunError> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.serve()}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "bench"}}],
        "current-context": "lab",
    });
    let path: PathBuf =
        std::env::temp_dir().join(format!("iosonde-collect-{name}-{}", std::process::id()));
    std::fs::write(&path, config.to_string()).unwrap();
    let options = ClusterOptions {
        kubeconfig: Some(path.clone()),
        timeout,
        ..ClusterOptions::new(Target::EmptyDir)
    };
    let watch = Watch {
        tell: &mut |_: Told<'_>| {},
        interrupts: &|| 0,
    };
    let collected = collect(&options, run, watch);
    std::fs::remove_file(path).unwrap();
    collected
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

#[test]
fn pods_that_have_ended_and_pods_that_stay_are_one_result() {
    let log = |iops| format!("what fio prints\n{}", farewell(Ok(result(iops))));
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

/// A pod that has brought its result home hinders nobody, however long the others take.
#[test]
fn a_pod_that_has_ended_is_no_reason_to_give_up_the_others() {
    let log = |iops| farewell(Ok(result(iops)));
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
fn the_result_of_one_pod_is_its_own() {
    let server = server(&[(
        "iosonde-0a1b2c3d-0-x7k2p",
        "Succeeded",
        farewell(Ok(result(1000))),
    )]);
    let collected = collected("one", server, Some("iosonde-0a1b2c3d")).unwrap();
    assert!(collected.result.pods.is_empty());
    assert_eq!(collected.result.labels["node"], "n1");
}

#[test]
fn what_was_cut_short_is_told_and_kept() {
    let log = format!("{}interrupted\n{}", cut_short(), farewell(Ok(result(1000))));
    let one = server(&[("iosonde-0a1b2c3d-0", "Failed", log)]);
    let collected = collected("half", one, None).unwrap();
    assert!(collected.result.workers[0].directions.read.total_ios > 0);
    let cut = collected.cut.expect("the job was longer").to_string();
    assert!(cut.contains("told to end before its job was over"), "{cut}");
}

#[test]
fn pods_that_never_come_are_not_waited_for_for_ever() {
    let mut server = server(&[("iosonde-0a1b2c3d-0", "Succeeded", farewell(Ok(result(1))))]);
    server.pods[0]["metadata"]["annotations"]["iosonde/pods"] = json!("2");
    let error = collected_within("few", server, None, Duration::ZERO).unwrap_err();
    assert!(
        error.to_string().contains("the other pods to be made"),
        "{error}"
    );
}

#[test]
fn what_can_not_be_collected_is_explained() {
    let refused = RunError::Unsupported {
        problem: "no space".to_owned(),
        remedy: "make some".to_owned(),
    };
    let one = |phase, log: String| server(&[("iosonde-0a1b2c3d-0", phase, log)]);
    let error = collected("refused", one("Failed", farewell(Err(refused))), None).unwrap_err();
    assert!(error.to_string().contains("no space"), "{error}");
    assert_eq!(error.remedy(), "make some");
    let cut = one("Failed", "fio-3.33\nkilled in the middle\n".to_owned());
    let error = collected("cut", cut, None).unwrap_err();
    assert!(
        error.to_string().contains("killed in the middle"),
        "{error}"
    );
    let other = one("Succeeded", String::new());
    let error = collected_within("other", other, Some("ffffffff"), Duration::ZERO).unwrap_err();
    assert!(error.remedy().contains("0a1b2c3d"), "{}", error.remedy());
    let error = collected_within("none", server(&[]), None, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("no rendered run"), "{error}");
}

#[test]
fn what_has_just_been_applied_has_no_pods_yet() {
    let there = server(&[("iosonde-0a1b2c3d-0", "Succeeded", farewell(Ok(result(7))))]);
    let early = Server { early: 2, ..there };
    assert!(collected("early", early, None).is_ok());
}

#[test]
fn kept_result_is_read_on_where_a_connection_broke() {
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
fn result_is_not_kept_where_the_pod_says_so() {
    let reads = vec![Read::Break(0), Read::NotKept];
    let error = collected("notkept", rotated(reads), None).unwrap_err();
    assert!(error.to_string().contains("has not kept it"), "{error}");
}
