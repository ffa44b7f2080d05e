//! The program that goes into pods, as it lies in the image that carries it.

use iosonde_e2e::program::{Program, iosonde};
use iosonde_e2e::{Scratch, ours};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What every pod of a run is sent. Builds of one source differ by a few per cent, as other functions are inlined.
const MOST_BYTES: u64 = 4_500_000;

#[test]
fn the_agent_is_small_and_speaks_as_fio_when_called_so() {
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
    // Nothing of this machine's is needed: no loader, no library, no environment.
    let output = Command::new(&agent)
        .arg0("fio")
        .args(line.split(' '))
        .current_dir(scratch.work())
        .env_clear()
        .output()
        .expect("the agent starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("fio's JSON");
    let write = |document: &Value| {
        let write = &document["jobs"][0]["write"];
        (write["total_ios"].clone(), write["io_bytes"].clone())
    };
    assert_eq!(
        write(&theirs),
        write(&Program::subject().line(&scratch, line).json()),
        "{told}"
    );
    assert!(theirs["jobs"][0]["write"]["clat_ns"]["percentile"].is_object());
}
