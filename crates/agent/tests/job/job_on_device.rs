//! A job on the pod's block device, as root: where a pod has it is a link to a loop device here.

#[path = "../common/agent_device.rs"]
mod agent_device;

use super::{AGENT, outcome};
use agent_device::{Loop, open_exclusively, run};
use iosonde_job::relocate::DEVICE;
use iosonde_result::run_error::{RunError, TargetProblem, VolumeProblem};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const WRITE: &str = "[t]\nrw=write\nbs=64k\nsize=1m\nioengine=psync\n";

/// The device of the pod; gone when it is dropped.
struct PodDevice(Loop);

impl PodDevice {
    fn new() -> PodDevice {
        let device = Loop::new(&[]);
        symlink(&device.device, DEVICE).expect("no other pod is simulated on this machine");
        PodDevice(device)
    }
}

impl Drop for PodDevice {
    fn drop(&mut self) {
        let _ = fs::remove_file(DEVICE);
    }
}

/// How many bytes the job wrote to the device, or why it was refused.
fn written(more: &[&str]) -> Result<u64, RunError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("job.fio");
    fs::write(&file, WRITE).unwrap();
    let output = Command::new(AGENT).arg("job").args(more).arg(file).output();
    let result = outcome(&output.unwrap())?;
    Ok(result.workers[0].directions.write.io_bytes)
}

/// Why the volume was refused.
fn volume_problem(error: RunError) -> VolumeProblem {
    match error {
        RunError::UnusableTarget { cause, .. } => match *cause {
            TargetProblem::Volume(problem) => problem,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_with_a_signature_is_written_only_with_consent() {
    let device = PodDevice::new();
    assert_eq!(written(&[]), Ok(1 << 20), "it is new");
    run("mkswap", &[device.0.path()]);
    let before = fs::read(&device.0.device).unwrap();
    let problem = volume_problem(written(&[]).unwrap_err());
    assert!(
        matches!(problem, VolumeProblem::RenderedDeviceHasData { .. }),
        "{problem:?}"
    );
    assert!(fs::read(&device.0.device).unwrap() == before);
    let overwrite = ["--allow-overwrite", DEVICE];
    assert_eq!(written(&overwrite), Ok(1 << 20));

    // Consent to overwrite does not reach what is in use.
    let exclusively = open_exclusively(&device.0);
    for more in [&[][..], &overwrite] {
        let problem = volume_problem(written(more).unwrap_err());
        assert!(
            matches!(problem, VolumeProblem::RenderedDeviceInUse { .. }),
            "{problem:?}"
        );
    }
    // Pods of one run write to it side by side.
    let shared = ["--allow-in-use", DEVICE];
    assert_eq!(written(&shared), Ok(1 << 20));
    drop(exclusively);
    run("mkswap", &[device.0.path()]);
    assert!(
        written(&shared).is_err(),
        "that is no consent to lose what it carries"
    );
}
