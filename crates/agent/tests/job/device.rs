//! A job on the pod's block device, as root: where a pod has it is a link to a loop device here.

// The tests of the engine use the rest of it.
#[allow(dead_code)]
#[path = "../../../engine/tests/common/loop_device.rs"]
mod loop_device;

use super::{AGENT, outcome};
use iosonde_job::place::DEVICE;
use iosonde_result::session::RunError;
use loop_device::Loop;
use std::fs::{self, File};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::process::Command;

/// As open(2) of Linux has it.
const O_EXCL: i32 = 0o200;

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

#[test]
#[ignore = "needs root and loop devices"]
fn device_that_carries_something_is_written_by_consent_in_the_manifest() {
    let device = PodDevice::new();
    assert_eq!(written(&[]), Ok(1 << 20), "it is new");
    loop_device::run("mkswap", &[device.0.path()]);
    let before = fs::read(&device.0.device).unwrap();
    let error = written(&[]).unwrap_err();
    assert!(error.to_string().contains("carries swap"), "{error}");
    assert!(error.remedy().contains("--allow-overwrite="), "{error:?}");
    assert!(fs::read(&device.0.device).unwrap() == before);
    let overwrite = ["--allow-overwrite", DEVICE];
    assert_eq!(written(&overwrite), Ok(1 << 20));

    // Consent to overwrite does not reach what is in use.
    let exclusively = File::options()
        .read(true)
        .custom_flags(O_EXCL)
        .open(&device.0.device)
        .unwrap();
    for more in [&[][..], &overwrite] {
        let error = written(more).unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
        assert!(!error.remedy().contains("--allow"), "{error:?}");
    }
    // Pods of one run write to it side by side.
    let shared = ["--allow-in-use", DEVICE];
    assert_eq!(written(&shared), Ok(1 << 20));
    drop(exclusively);
    loop_device::run("mkswap", &[device.0.path()]);
    assert!(
        written(&shared).is_err(),
        "that is no consent to lose what it carries"
    );
}
