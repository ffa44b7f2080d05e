//! The agent, the program that runs in pods, taken from the image that contains it.

use iosonde_e2e::program::{Program, iosonde};
use iosonde_e2e::{Scratch, ours};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Maximum size of the agent. Builds of one source differ by a few percent through inlining.
const MOST_BYTES: u64 = 4_500_000;

// Builds with debug assertions contain no agent.
#[test]
#[ignore = "long"]
fn agent_is_small_and_answers_as_fio() {
    ours!();
    let scratch = Scratch::shared();
    let image = scratch.out().join("agent.tar");
    let made = Command::new(iosonde())
        .args(["k8s", "image", "-o"])
        .arg(&image)
        .status()
        .expect("iosonde starts");
    assert!(made.success());
    let unpack = |archive: &str| {
        let done = Command::new("tar")
            .args(["-xf", archive])
            .current_dir(scratch.out())
            .status()
            .expect("tar starts");
        assert!(done.success(), "{archive}");
    };
    unpack("agent.tar");
    unpack("layer.tar");
    let agent = scratch.out().join("iosonde-agent");
    let bytes = agent.metadata().expect("the agent").len();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
    let line = "--name=t --rw=write --bs=4k --size=64k --output-format=json";
    // The agent needs no loader, library or environment of this machine.
    let output = Command::new(&agent)
        .arg0("fio")
        .args(line.split(' '))
        .current_dir(scratch.work())
        .env_clear()
        .output()
        .expect("the agent starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("fio's JSON");
    let write = |document: &Value| {
        let write = &document["jobs"][0]["write"];
        (write["total_ios"].clone(), write["io_bytes"].clone())
    };
    assert_eq!(
        write(&theirs),
        write(&Program::subject().line(&scratch, line).json()),
        "{stderr}"
    );
    assert!(theirs["jobs"][0]["write"]["clat_ns"]["percentile"].is_object());
}
