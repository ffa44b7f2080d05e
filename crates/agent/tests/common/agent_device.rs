//! Loop devices for the tests of the agent, as root.

// The tests of the engine use the rest of it.
#[allow(dead_code)]
#[path = "../../../engine/tests/common/loop_device.rs"]
mod loop_device;

pub(crate) use loop_device::{Loop, run};

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

/// As open(2) of Linux has it.
const O_EXCL: i32 = 0o200;

/// Opens a device exclusively, as a mount does, so that it is in use.
pub(crate) fn open_exclusively(device: &Loop) -> File {
    File::options()
        .read(true)
        .custom_flags(O_EXCL)
        .open(&device.device)
        .unwrap()
}
