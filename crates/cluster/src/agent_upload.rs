//! Uploads the agent into a pod whose image has none.

use crate::api;
use crate::connection::{BUFFER_BYTES, SILENCE, UPLOAD, exec_in_pod, read_to_end};
use crate::node_readiness::{NodeReadiness, node_not_ready};
use crate::options::{AgentProgram, arch_of_machine};
use crate::pod_command::{Printed, output_of};
use crate::refusal::refuse;
use crate::run_objects::RunObjects;
use iosonde_job::lowercase_hex;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Timeout for the answer of the pod, which receives the last bytes and checks them all.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before the upload is repeated after a broken connection.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Bytes of the agent per write.
const PIECE_BYTES: usize = 64 << 10;

const _: () = assert!(PIECE_BYTES <= BUFFER_BYTES);

/// Attempts to ask a pod for its architecture, if connections break.
const ARCH_ATTEMPTS: u32 = 5;

/// Returns the agent for the processors of the pod's node. The pod reports its architecture, since
/// many users may not read nodes.
pub(crate) async fn select_agent<'a>(
    objects: &RunObjects,
    pod: &str,
    agents: &'a [AgentProgram<'a>],
) -> Result<&'a AgentProgram<'a>, RunError> {
    let mut attempt = 1;
    loop {
        let place = (pod, objects.container(pod));
        match output_of(&objects.pods(), place, &["uname", "-m"]).await {
            Ok(Printed {
                bytes,
                end: Some(_),
            }) => {
                return find_agent(String::from_utf8_lossy(&bytes).trim(), agents);
            }
            Ok(_) if attempt == ARCH_ATTEMPTS => return find_agent("", agents),
            Err(error) if attempt == ARCH_ATTEMPTS || !api::is_away(&error) => {
                return Err(api::failed(ClusterRequest::SendAgent, &error));
            }
            Ok(_) | Err(_) => sleep(RETRY_DELAY).await,
        }
        attempt += 1;
    }
}

/// Returns the agent for a machine that `uname -m` names. An image without `uname` gets the first,
/// that of this program's architecture.
fn find_agent<'a>(
    machine: &str,
    agents: &'a [AgentProgram<'a>],
) -> Result<&'a AgentProgram<'a>, RunError> {
    let arch = arch_of_machine(machine);
    let mut fitting = agents.iter();
    match (fitting.find(|agent| agent.arch == arch), agents.first()) {
        (Some(agent), _) => Ok(agent),
        (None, Some(first)) if machine.is_empty() => Ok(first),
        (None, _) => refuse(ClusterObstacle::OtherArchitecture {
            nodes: vec![arch.to_owned()],
            agent: agents
                .iter()
                .map(|agent| agent.arch)
                .collect::<Vec<_>>()
                .join(" and "),
        }),
    }
}

/// Uploads the agent into the pod, whose container waits for it. The pod verifies the checksum. The
/// upload is repeated if the connection breaks or makes no progress.
pub(crate) async fn send_agent(
    objects: &RunObjects,
    pod: &str,
    agent: &AgentProgram<'_>,
) -> Result<(), RunError> {
    let sha256 = lowercase_hex(&Sha256::digest(agent.bytes));
    let deadline = Instant::now() + UPLOAD;
    let mut last = None;
    let mut nodes = NodeReadiness::default();
    for attempt in 0.. {
        let directory = objects.agent_directory(pod);
        let script = receive(directory, agent.bytes.len(), &sha256, attempt);
        match timeout_at(deadline, send_bytes(objects, pod, &script, agent.bytes)).await {
            Ok(Ok(Some(said))) if said.trim() == "sent" => return Ok(()),
            Ok(Ok(Some(said))) => return Err(not_sent(said.trim())),
            Ok(Ok(None)) => last = None,
            Ok(Err(error)) => {
                let failure = api::failed(ClusterRequest::SendAgent, &error);
                if !api::is_away(&error) {
                    return Err(failure);
                }
                last = Some(failure);
            }
            Err(_) => break,
        }
        if let Some(dead) = nodes.find_dead_node(objects, pod).await {
            return Err(not_ready(node_not_ready(dead)));
        }
        sleep(RETRY_DELAY).await;
    }
    Err(last.unwrap_or_else(too_slow))
}

fn not_ready(condition: FailureCondition) -> RunError {
    RunError::not_ready(FailedObject::only_pod(), condition)
}

fn too_slow() -> RunError {
    let seconds = UPLOAD.as_secs();
    not_ready(FailureCondition::UploadTimedOut { seconds })
}

fn not_sent(message: &str) -> RunError {
    not_ready(FailureCondition::UploadFailed {
        message: message.to_owned(),
    })
}

/// Returns the script that receives the agent. It counts bytes, since some runtimes never pass on
/// the end of input. `head` must not be the last command: the shell would exec it, and containerd
/// then truncates its input. An earlier attempt may still write, so each has its own file.
fn receive(directory: &str, bytes: usize, sha256: &str, attempt: u32) -> String {
    debug_assert_eq!(sha256.len(), 64, "hex digits");
    let part = format!("{directory}/agent.part{attempt}");
    format!(
        "head -c {bytes} > {part}; rc=$?; [ $rc = 0 ] || exit $rc; \
         if echo '{sha256}  {part}' | sha256sum -c > /dev/null 2>&1; \
         then chmod 755 {part} && mv {part} {directory}/agent && echo sent; \
         else echo \"its checksum differs: $(wc -c < {part}) of {bytes} bytes are there\"; \
         exit 1; fi"
    )
}

/// Returns the answer of the pod to the upload, or `None` if the connection broke before it.
async fn send_bytes(
    objects: &RunObjects,
    pod: &str,
    script: &str,
    bytes: &[u8],
) -> Result<Option<String>, kube::Error> {
    let mut process = exec_in_pod(objects, pod, &["sh", "-c", script], true).await?;
    let (stdin, stdout) = (process.stdin(), process.stdout());
    let said = match stdin {
        Some(stdin) => answer(stdin, bytes, stdout, (SILENCE, ANSWER_TIMEOUT)).await,
        None => None,
    };
    let Some(mut said) = said else {
        process.abort();
        return Ok(None);
    };
    if said.trim().is_empty() {
        read_to_end(process.stderr(), &mut said).await;
    }
    Ok(Some(said).filter(|said| !said.trim().is_empty()))
}

/// Writes the bytes and returns the answer. `None`: a write or the answer timed out.
async fn answer(
    mut stdin: impl AsyncWrite + Unpin,
    bytes: &[u8],
    stdout: Option<impl AsyncRead + Unpin>,
    (silence, answer_timeout): (Duration, Duration),
) -> Option<String> {
    let mut said = String::new();
    let write = async {
        for piece in bytes.chunks(PIECE_BYTES) {
            match timeout(silence, stdin.write_all(piece)).await {
                Ok(Ok(())) => {}
                // The pod decides whether all bytes have arrived.
                Ok(Err(_)) => break,
                Err(_) => return,
            }
        }
        let _ = timeout(silence, stdin.flush()).await;
        sleep(answer_timeout).await;
    };
    // An answer before the last byte ends the upload: the pod has given up.
    let is_answered = tokio::select! {
        () = write => false,
        () = read_to_end(stdout, &mut said) => true,
    };
    is_answered.then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use tokio::io::AsyncReadExt;

    #[test]
    fn agent_is_selected_by_the_machine_of_the_pod() {
        let agents = ["amd64", "arm64"].map(|arch| AgentProgram { bytes: b"", arch });
        let found = |machine| find_agent(machine, &agents).map(|agent| agent.arch);
        assert_eq!(found("aarch64"), Ok("arm64"));
        assert_eq!(found("x86_64"), Ok("amd64"));
        assert_eq!(found(""), Ok("amd64"), "an image without uname");
        let expected = ClusterObstacle::OtherArchitecture {
            nodes: vec!["s390x".to_owned()],
            agent: "amd64 and arm64".to_owned(),
        };
        assert_eq!(found("s390x"), Err(RunError::from(expected)));
    }

    #[test]
    fn upload_times_out_only_without_progress() {
        let runtime = crate::connect::runtime().unwrap();
        let short = Duration::from_millis(300);
        let bytes = vec![7; 8 * PIECE_BYTES];
        runtime.block_on(async {
            // No reader: the API server is gone, and its connection was never closed.
            let (client, _gone) = tokio::io::duplex(1024);
            let (_open, stdout) = tokio::io::duplex(1024);
            assert_eq!(
                answer(client, &bytes, Some(stdout), (short, short)).await,
                None
            );
            // Slow, but each write completes in time.
            let (client, mut pod) = tokio::io::duplex(PIECE_BYTES);
            let (mut says, stdout) = tokio::io::duplex(1024);
            let reading = async {
                let mut piece = vec![0; PIECE_BYTES];
                for _ in 0..8 {
                    sleep(short / 3).await;
                    pod.read_exact(&mut piece).await.unwrap();
                }
                says.write_all(b"sent\n").await.unwrap();
                drop(says);
            };
            let sending = answer(client, &bytes, Some(stdout), (short, short));
            let (said, ()) = tokio::join!(sending, reading);
            assert_eq!(said.as_deref(), Some("sent\n"));
        });
    }

    /// Returns the answer of the receiving script for these bytes, run in a local directory.
    fn received(announced: &[u8], sent: &[u8]) -> (String, bool) {
        let scratch = std::env::temp_dir().join(format!(
            "iosonde-receive-{}-{}",
            std::process::id(),
            sent.len()
        ));
        std::fs::create_dir_all(&scratch).unwrap();
        let script = receive(
            scratch.to_str().unwrap(),
            announced.len(),
            &lowercase_hex(&Sha256::digest(announced)),
            0,
        );
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(sent).unwrap();
        let output = shell.wait_with_output().unwrap();
        let arrived = std::fs::read(scratch.join("agent")).is_ok_and(|there| there == announced);
        std::fs::remove_dir_all(&scratch).unwrap();
        (String::from_utf8(output.stdout).unwrap(), arrived)
    }

    #[test]
    fn agent_upload_installs_only_a_complete_program() {
        let agent: Vec<u8> = (0..100_000u32).map(|n| (n * 7) as u8).collect();
        assert_eq!(received(&agent, &agent), ("sent\n".to_owned(), true));
        let (said, arrived) = received(&agent, &agent[..50_000]);
        assert!(said.contains("50000 of 100000 bytes") && !arrived, "{said}");
        let mut other = agent.clone();
        other[99_999] ^= 1;
        other.push(0);
        let (said, arrived) = received(&agent, &other);
        assert!(said.contains("checksum differs") && !arrived, "{said}");
    }
}
