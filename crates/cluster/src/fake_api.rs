//! A small API server for tests. It answers each request with what the test returns for its path.

use crate::connect::KubeCluster;
use crate::event_signal::EventSignal;
use crate::run_objects::RunObjects;
use serde_json::{Value, json};
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
pub(crate) struct ReceivedRequests(Arc<Mutex<Vec<String>>>);

impl ReceivedRequests {
    /// Returns how many requests contain all these words.
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        let all = self.0.lock().unwrap();
        let has_all = |request: &&String| words.iter().all(|word| request.contains(word));
        all.iter().filter(has_all).count()
    }

    /// Returns all requests.
    pub(crate) fn list_all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
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
                let request = read_request(&stream);
                let before = received.count(&[&request]);
                received.0.lock().unwrap().push(request.clone());
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
        keeps_failed: false,
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

fn read_request(stream: &TcpStream) -> String {
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
    let path = first.split(' ').nth(1).unwrap_or_default();
    path.replace("%3D", "=").replace("%2F", "/")
}

fn send(mut stream: TcpStream, answer: ApiAnswer) -> std::io::Result<()> {
    let head = |status: u16| format!("HTTP/1.1 {status} x\r\nConnection: close\r\n\r\n");
    match answer {
        ApiAnswer::Document(document) => write!(stream, "{}{document}", head(200)),
        ApiAnswer::Status(code) => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": "x", "code": code});
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
