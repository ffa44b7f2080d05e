//! Commands for a cluster without one: the error names the server, and what is wrong with it.

use crate::common::{Scratch, error};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Writes a kubeconfig for a server at this address.
fn kubeconfig(scratch: &Scratch, address: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
         clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
         users: [{{name: u, user: {{token: x}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: c, user: u}}}}]\n"
    );
    scratch.file("kubeconfig", &text);
}

/// Answers a request with a status and no message, as a proxy does.
fn refuse(mut connection: TcpStream) {
    let answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    if connection.read(&mut [0; 4096]).is_ok() && connection.write_all(answer).is_ok() {
        let _ = connection.shutdown(Shutdown::Write);
        // A socket that closes with unread bytes resets the connection, and the answer is lost.
        let _ = io::copy(&mut connection, &mut io::sink());
    }
}

const COMMANDS: [&[&str]; 4] = [
    &["doctor", "--cluster"],
    &["k8s", "lifecycle", "sc://fast"],
    &["k8s", "collect"],
    &["k8s", "attach", "0123456789"],
];

#[test]
fn unreachable_server_is_named_by_its_address() {
    let scratch = Scratch::new("closed-port");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    kubeconfig(&scratch, &address);
    for words in COMMANDS {
        let refused = scratch.run(&[words, &["--kubeconfig", "kubeconfig"]].concat());
        let said = error(&refused);
        assert_eq!(refused.status.code(), Some(3), "{words:?}: {said}");
        for text in [address.as_str(), "ECONNREFUSED"] {
            assert!(said.contains(text), "{words:?}: {said}");
        }
    }
}

#[test]
fn server_that_is_no_api_server_is_named_as_such() {
    let scratch = Scratch::new("no-api-server");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    kubeconfig(&scratch, &listener.local_addr().unwrap().to_string());
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || refuse(connection));
        }
    });
    for words in COMMANDS {
        let refused = scratch.run(&[words, &["--kubeconfig", "kubeconfig"]].concat());
        let said = error(&refused);
        assert_eq!(refused.status.code(), Some(3), "{words:?}: {said}");
        let cause = "no API server answers there";
        assert!(said.contains(cause), "{words:?}: {said}");
    }
}
