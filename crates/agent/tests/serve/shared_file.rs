//! Agents on one volume, which check a file that they share.

use super::{AGENT, Agent, SocketClient};
use iosonde_result::shared_file::{
    FileLock, MemberStep, SharedFileFailure, SharedFileReply, SharedFileResult, SharedFileStep,
    check_shared_file,
};
use iosonde_result::wire::{AgentMessage, AgentRequest};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Directory of the first agent in the volume.
const FIRST: &str = ".iosonde-agent-0";

fn agents_on(volume: &Path, count: usize) -> Vec<Agent> {
    let start = |number: usize| {
        let scratch = tempfile::tempdir().unwrap();
        let child = Command::new(AGENT)
            .args(["serve", "--idle", "60", "--socket"])
            .arg(scratch.path().join("socket"))
            .arg("--scratch")
            .arg(volume.join(format!(".iosonde-agent-{number}")))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Agent { scratch, child }
    };
    (0..count).map(start).collect()
}

/// Has the agents perform steps at the same time.
fn perform(clients: &mut [SocketClient], steps: &[MemberStep]) -> Vec<SharedFileReply> {
    for MemberStep { pod, step } in steps {
        let step = match step {
            // A test needs no second for each.
            SharedFileStep::Lock { lock, .. } => SharedFileStep::Lock {
                lock: *lock,
                duration_ms: 50,
            },
            other => other.clone(),
        };
        let directory = FIRST.to_owned();
        clients[usize::from(*pod)].ask(&AgentRequest::SharedFile { directory, step });
    }
    let reply = |step: &MemberStep| match clients[usize::from(step.pod)].next() {
        AgentMessage::SharedFile(reply) => reply,
        other => panic!("{other:?}"),
    };
    steps.iter().map(reply).collect()
}

/// Has agents check their file. `before` is called before each round.
fn check(
    agents: &[Agent],
    mut before: impl FnMut(&[MemberStep]),
) -> Result<SharedFileResult, SharedFileFailure> {
    let mut clients: Vec<SocketClient> = agents.iter().map(Agent::client).collect();
    let pods = u16::try_from(agents.len()).unwrap();
    check_shared_file(pods, &mut |steps| {
        before(steps);
        Ok(perform(&mut clients, steps))
    })
}

#[test]
fn agents_on_one_directory_see_writes_and_measure_locks() {
    let volume = tempfile::tempdir().unwrap();
    let agents = agents_on(volume.path(), 3);
    let result = check(&agents, |_| {}).unwrap();
    let locks: Vec<_> = (result.locks.iter())
        .map(|figures| (figures.lock, figures.pods))
        .collect();
    let expected = FileLock::ALL.map(|lock| [(lock, 1), (lock, 3)]);
    assert_eq!(locks, expected.concat());
    assert!(
        (result.locks.iter()).all(|figures| figures.locks_per_second > 0.0),
        "{result:?}"
    );
    assert!(!volume.path().join(FIRST).join("shared-file").exists());
}

#[test]
fn corrupted_byte_is_reported_with_offset_and_both_agents() {
    let volume = tempfile::tempdir().unwrap();
    let agents = agents_on(volume.path(), 2);
    let path = volume.path().join(FIRST).join("shared-file");
    let is_read = |step: &MemberStep| matches!(step.step, SharedFileStep::Verify { .. });
    let failed = check(&agents, |steps| {
        if steps.iter().any(is_read) {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(&[0xee], 12_345).unwrap();
        }
    });
    let error = failed.unwrap_err();
    let SharedFileFailure::Wrong { reader, wrong, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!((*reader, wrong.writer), (1, 0));
    assert_eq!((wrong.offset_bytes, wrong.found), (12_345, Some(0xee)));
    let names = ["writer-pod", "reader-pod"].map(str::to_owned);
    let text = error.into_run_error("sc://nfs", &names).to_string();
    for part in ["offset 12345", "pod reader-pod read", "pod writer-pod had"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn directory_outside_of_volume_is_refused() {
    let volume = tempfile::tempdir().unwrap();
    let agents = agents_on(volume.path(), 1);
    let mut client = agents[0].client();
    for directory in ["..", "of-the-user"] {
        client.ask(&AgentRequest::SharedFile {
            directory: directory.to_owned(),
            step: SharedFileStep::Create,
        });
        let answer = client.next();
        assert!(matches!(answer, AgentMessage::Refused(_)), "{answer:?}");
    }
}
