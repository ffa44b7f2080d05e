//! A small API server for tests. It answers each request with what the test returns for its path.

use crate::connect::KubeCluster;
use crate::event_signal::EventSignal;
use crate::options::KeepOption;
use crate::run_objects::RunObjects;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answer to a request.
pub(crate) enum ApiAnswer {
    /// A document.
    Document(Value),
    /// An error with this status.
    Status(u16),
    /// Documents of a watch, sent after this time. The connection then stays open.
    Watch(Duration, Vec<Value>),
    /// A watch that ends at once.
    Ended,
}

/// Requests received so far: path and query, decoded.
#[derive(Clone, Default)]
pub(crate) struct ReceivedRequests {
    paths: Arc<Mutex<Vec<String>>>,
    rights: Arc<Mutex<BTreeSet<UsedRight>>>,
}

/// Right that a request needs, in the terms of a Role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsedRight {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// Resource with its subresource, e.g. `pods/exec`.
    pub(crate) resource: String,
}

impl UsedRight {
    /// Returns the right for a request on a resource. `None` for other requests.
    fn of_request(method: &str, request: &str) -> Option<UsedRight> {
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let (group, mut rest) = match *steps.first()? {
            "api" => ("", steps.get(2..)?),
            _ => (*steps.get(1)?, steps.get(3..)?),
        };
        if *rest.first()? == "namespaces" && rest.len() > 2 {
            rest = &rest[2..];
        }
        let verb = match (method, rest.len()) {
            ("GET", _) if query.contains("watch=true") => "watch",
            ("GET", 1) => "list",
            ("GET", _) => "get",
            ("POST", _) => "create",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            _ => return None,
        };
        let resource = match rest.get(2) {
            Some(sub) => format!("{}/{sub}", rest[0]),
            None => rest[0].to_owned(),
        };
        Some(UsedRight {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource,
        })
    }
}

impl ReceivedRequests {
    /// Returns how many requests contain all these words.
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        let all = self.paths.lock().unwrap();
        let has_all = |request: &&String| words.iter().all(|word| request.contains(word));
        all.iter().filter(has_all).count()
    }

    /// Returns all requests.
    pub(crate) fn list_all(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }

    /// Returns the rights that the requests need.
    pub(crate) fn used_rights(&self) -> BTreeSet<UsedRight> {
        self.rights.lock().unwrap().clone()
    }
}

/// Starts a server, and returns the objects of a run on it. `answer` gets the decoded request, and
/// how many equal ones came before.
pub(crate) fn serve(
    runtime: &tokio::runtime::Runtime,
    answer: impl Fn(&str, usize) -> ApiAnswer + Send + Sync + 'static,
) -> (RunObjects, ReceivedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, answer) = (ReceivedRequests::default(), Arc::new(answer));
    let received = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (received, answer) = (received.clone(), answer.clone());
            std::thread::spawn(move || {
                let (method, request) = read_request(&stream);
                let before = received.count(&[&request]);
                let right = UsedRight::of_request(&method, &request);
                received.rights.lock().unwrap().extend(right);
                received.paths.lock().unwrap().push(request.clone());
                // A client that has closed the connection needs no answer.
                let _ = send(stream, answer(&request, before));
            });
        }
    });
    (run_at(runtime, &format!("http://{address}")), requests)
}

/// Returns the objects of a run in a cluster that does not answer.
pub(crate) fn unreachable(runtime: &tokio::runtime::Runtime) -> RunObjects {
    // No program listens on this port.
    run_at(runtime, "http://127.0.0.1:1")
}

fn run_at(runtime: &tokio::runtime::Runtime, address: &str) -> RunObjects {
    let config = kube::Config::new(address.parse().unwrap());
    let _inside = runtime.enter();
    RunObjects {
        made_namespace: false,
        keep_failed: KeepOption::Unavailable,
        cluster: KubeCluster {
            client: kube::Client::try_from(config).unwrap(),
            namespace: "bench".to_owned(),
            context: None,
            server: address.to_owned(),
        },
        id: "0a1b2c3d".to_owned(),
        job: "iosonde-0a1b2c3d".to_owned(),
        agent: String::new(),
        event_signal: EventSignal::default(),
        selected: None,
    }
}

/// Returns method and path.
fn read_request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        let is_read = reader.read_line(&mut line).is_ok();
        if !is_read || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            body_bytes = value.trim().parse().unwrap_or(0);
        }
    }
    // A connection that is closed before the body is read may lose the answer.
    let _ = reader.take(body_bytes).read_to_end(&mut Vec::new());
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let path = path.replace("%3D", "=").replace("%2F", "/");
    (method.to_owned(), path)
}

fn send(mut stream: TcpStream, answer: ApiAnswer) -> std::io::Result<()> {
    let head = |status: u16| format!("HTTP/1.1 {status} x\r\nConnection: close\r\n\r\n");
    match answer {
        ApiAnswer::Document(document) => write!(stream, "{}{document}", head(200)),
        ApiAnswer::Status(code) => {
            let reason = if code == 404 { "NotFound" } else { "x" };
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": reason, "code": code});
            write!(stream, "{}{status}", head(code))
        }
        ApiAnswer::Ended => write!(stream, "{}", head(200)),
        ApiAnswer::Watch(delay, events) => {
            write!(stream, "{}", head(200))?;
            std::thread::sleep(delay);
            for event in events {
                writeln!(stream, "{event}")?;
            }
            // Until the client closes the connection.
            let _ = std::io::Read::read(&mut stream, &mut [0]);
            Ok(())
        }
    }
}

/// Returns a list of objects.
pub(crate) fn list(items: &[Value]) -> ApiAnswer {
    ApiAnswer::Document(json!({"kind": "List", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7"}, "items": items}))
}
