//! Checks the agents of both architectures: each serves a client by its protocol.

use super::architecture::{Architecture, Flavour};
use super::build::{agent_program, output};
use super::check_log::{CheckLog, UncheckedReason};
use super::release::Release;
use super::release_runner::ReleaseRunner;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of the start and of each answer. qemu takes about a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A running agent. It ends with this value.
struct ServingAgent(Child);

impl Drop for ServingAgent {
    fn drop(&mut self) {
        // An agent that has ended by itself cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks the agents that all clients of the build contain.
///
/// # Errors
/// If an agent does not run, or answers a request wrongly.
pub(crate) fn check(release: &Release, log: &mut CheckLog) -> Result<()> {
    for architecture in Architecture::ALL {
        let name = format!("agent for {}", architecture.rust());
        let agent = agent_program(release, architecture);
        if !agent.is_file() {
            log.add_unchecked(name, UncheckedReason::NoAgents);
            continue;
        }
        match ReleaseRunner::new(architecture, Flavour::Static) {
            Ok(runner) => {
                check_agent(&runner, &agent, &release.version)
                    .with_context(|| format!("{}", agent.display()))?;
                log.add_checked(name);
            }
            Err(reason) => log.add_unchecked(name, reason),
        }
    }
    Ok(())
}

/// Asks for the version, then for the answers to the first and the last request of each client.
fn check_agent(runner: &ReleaseRunner, agent: &Path, version: &str) -> Result<()> {
    let program = format!("iosonde {version}");
    let printed = output(runner.command(agent).arg("--version"))?;
    let printed = String::from_utf8_lossy(&printed);
    ensure!(
        printed.trim() == program,
        "--version prints {printed:?}, not {program:?}"
    );
    // The path of a socket has at most 107 bytes, so it is not below the directory of the release.
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("socket");
    let mut serve = runner.command(agent);
    serve
        .arg("serve")
        .arg("--socket")
        .arg(&socket)
        .arg("--scratch")
        .arg(directory.path().join("scratch"))
        .current_dir(directory.path())
        .stdin(Stdio::null());
    let _agent = ServingAgent(serve.spawn().context("the agent does not start")?);
    let mut stream = connect(&socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let hello = next_answer(&mut answers)?;
    ensure!(
        hello["hello"]["program"] == program.as_str(),
        "the agent begins with {hello}"
    );
    stream.write_all(b"\"alive\"\n")?;
    let alive = next_answer(&mut answers)?;
    ensure!(alive == "alive", "the agent answers alive with {alive}");
    stream.write_all(b"\"close\"\n")?;
    Ok(())
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Err(_) if begun.elapsed() < ANSWER_TIMEOUT => thread::sleep(Duration::from_millis(20)),
            connected => return connected.context("the agent does not serve"),
        }
    }
}

fn next_answer(answers: &mut impl BufRead) -> Result<Value> {
    let mut line = String::new();
    let read = answers.read_line(&mut line);
    read.context("the agent does not answer")?;
    serde_json::from_str(&line).with_context(|| format!("the agent answers {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_is_no_json_is_refused() {
        let mut answers = "\"alive\"\nnothing\n".as_bytes();
        assert_eq!(next_answer(&mut answers).unwrap(), "alive");
        let error = next_answer(&mut answers).unwrap_err().to_string();
        assert_eq!(error, "the agent answers \"nothing\\n\"");
        let error = next_answer(&mut answers).unwrap_err().to_string();
        assert_eq!(error, "the agent answers \"\"");
    }

    #[test]
    fn agent_of_another_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("agent");
        // A shell writes the script: a program that this process wrote could not be run while
        // another thread forks.
        let text = format!(
            "printf '#!/bin/sh\\necho iosonde 0.0.9\\n' >{0}; chmod 755 {0}",
            script.display()
        );
        output(std::process::Command::new("sh").args(["-c", &text])).unwrap();
        let native = Architecture::native().unwrap();
        let runner = ReleaseRunner::new(native, Flavour::Static).unwrap();
        let error = check_agent(&runner, &script, "0.1.0").unwrap_err();
        assert!(error.to_string().contains("0.0.9"), "{error}");
    }
}
