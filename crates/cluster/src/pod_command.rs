//! Runs a command in a pod over exec, and reads its output.

use crate::connection::{BUFFER_BYTES, SILENCE};
use iosonde_result::wire::LONGEST_MESSAGE_BYTES;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Api, AttachParams};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Output of a command in a pod, as far as it was received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) bytes: Vec<u8>,
    /// Exit of the command. `None`: the connection broke earlier, and output may be missing.
    pub(crate) end: Option<CommandEnd>,
}

/// Exit of a command, as the kubelet reports it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// Exit status 0.
    Success,
    /// Another exit status, or the command was not started.
    Failure {
        /// The exit status, if there is one.
        status: Option<i32>,
        /// Message of the kubelet.
        message: String,
    },
}

/// Runs a command in a container of a pod, given by their names, and reads its output without a
/// time limit. Only silence ends the connection.
pub(crate) async fn output_of(
    pods: &Api<Pod>,
    (pod, container): (&str, &str),
    command: &[&str],
) -> Result<Printed, kube::Error> {
    let params = AttachParams::default()
        .container(container)
        .stdin(false)
        .stdout(true)
        .stderr(false)
        .max_stdout_buf_size(BUFFER_BYTES);
    let mut process = pods.exec(pod, command.to_vec(), &params).await?;
    let (Some(stdout), Some(status)) = (process.stdout(), process.take_status()) else {
        return Ok(Printed::default());
    };
    let stdout = stdout.take(LONGEST_MESSAGE_BYTES as u64);
    let printed = read_output(stdout, status, SILENCE).await;
    process.abort();
    debug_assert!(printed.bytes.len() <= LONGEST_MESSAGE_BYTES);
    Ok(printed)
}

/// Reads until the command or the connection ends, or no bytes arrive for `silence`.
async fn read_output(
    mut from: impl AsyncRead + Unpin,
    status: impl Future<Output = Option<Status>>,
    silence: Duration,
) -> Printed {
    let mut status = pin!(status);
    let mut bytes = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    // The status may arrive before the last bytes of the output.
    let mut seen: Option<Status> = None;
    let end = loop {
        let next = async {
            tokio::select! {
                biased;
                count = from.read(&mut buffer) => Ok(count.unwrap_or(0)),
                status = &mut status, if seen.is_none() => Err(status),
            }
        };
        match timeout(silence, next).await {
            Ok(Ok(count @ 1..)) => bytes.extend_from_slice(&buffer[..count]),
            Ok(Err(Some(status))) => seen = Some(status),
            // The connection broke. The output stream may never end.
            Ok(Err(None)) => break None,
            Ok(Ok(0)) if seen.is_none() => {
                break timeout(silence, &mut status).await.ok().flatten();
            }
            Ok(Ok(0)) | Err(_) => break seen,
        }
    };
    Printed {
        bytes,
        end: end.map(|status| end_of(&status)),
    }
}

fn end_of(status: &Status) -> CommandEnd {
    if status.status.as_deref() == Some("Success") {
        return CommandEnd::Success;
    }
    let details = status.details.as_ref();
    let mut causes = details
        .into_iter()
        .flat_map(|details| details.causes.iter().flatten());
    let exit = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    CommandEnd::Failure {
        status: exit.and_then(|cause| cause.message.as_ref()?.parse().ok()),
        message: status.message.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};
    use std::future::{pending, ready};
    use tokio::io::AsyncWriteExt;
    use tokio::time::sleep;

    const SILENCE: Duration = Duration::from_millis(400);

    fn success() -> Status {
        from_value(json!({"status": "Success"})).unwrap()
    }

    fn read_all<S: Future<Output = Option<Status>>>(from: &[u8], status: S) -> Printed {
        let runtime = crate::connect::runtime().unwrap();
        runtime.block_on(read_output(from, status, SILENCE))
    }

    #[test]
    fn command_end_is_known_only_with_a_status() {
        let whole = read_all(b"all of it", ready(Some(success())));
        assert_eq!(whole.bytes, b"all of it");
        assert_eq!(whole.end, Some(CommandEnd::Success));
        let missing = json!({"status": "Failure", "message": "exit 4", "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "4"}]}});
        let failed = read_all(b"", ready(Some(from_value(missing).unwrap())));
        let expected = CommandEnd::Failure {
            status: Some(4),
            message: "exit 4".to_owned(),
        };
        assert_eq!(failed.end, Some(expected));
        // The connection broke: after the output, and without an end of the output.
        let half = read_all(b"half", ready(None));
        assert_eq!((half.bytes, half.end), (b"half".to_vec(), None));
        let silent = read_all(b"half", pending());
        assert_eq!((silent.bytes, silent.end), (b"half".to_vec(), None));
    }

    #[test]
    fn slow_output_in_pieces_does_not_time_out() {
        let runtime = crate::connect::runtime().unwrap();
        let (mut pod, from) = tokio::io::duplex(1024);
        let printed = runtime.block_on(async {
            let print = async move {
                for _ in 0..8 {
                    sleep(SILENCE / 4).await;
                    pod.write_all(b"piece").await.unwrap();
                }
            };
            tokio::join!(
                print,
                read_output(from, ready_after(SILENCE * 5 / 2), SILENCE)
            )
            .1
        });
        assert_eq!(printed.bytes.len(), 8 * 5);
        assert_eq!(printed.end, Some(CommandEnd::Success));
    }

    #[test]
    fn output_after_the_status_is_read() {
        let runtime = crate::connect::runtime().unwrap();
        let (mut pod, from) = tokio::io::duplex(1024);
        let printed = runtime.block_on(async {
            let print = async move {
                sleep(SILENCE / 4).await;
                pod.write_all(b"late").await.unwrap();
            };
            tokio::join!(print, read_output(from, ready(Some(success())), SILENCE)).1
        });
        assert_eq!(printed.bytes, b"late");
        assert_eq!(printed.end, Some(CommandEnd::Success));
    }

    async fn ready_after(delay: Duration) -> Option<Status> {
        sleep(delay).await;
        Some(success())
    }
}
