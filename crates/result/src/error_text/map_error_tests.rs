//! Words of the errors of `--map`.

use super::error_checks::{check_problems, text};
use crate::run_error::{MapProblem, ProgramEnding};
use iosonde_job::errno;

#[test]
fn machines_that_cannot_map_get_a_remedy() {
    let module = MapProblem::NoKernelModule {
        ending: ProgramEnding::Status(1),
        said: text("FATAL: Module rbd not found"),
    };
    let program = MapProblem::NoProgram {
        program: text("rbd"),
        package: text("ceph-common"),
    };
    let cases = [
        (
            MapProblem::NotRoot,
            "--map needs root: it mounts a file system",
            "run the command with sudo, or leave out --map to measure the image through librbd",
        ),
        (
            module,
            "this kernel has no rbd module: `modprobe rbd` failed with status 1: FATAL: Module rbd \
             not found",
            "leave out --map to measure the image through librbd",
        ),
        (
            program,
            "--map needs rbd, which is not installed",
            "install its package (Debian, Ubuntu: apt-get install ceph-common)",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn images_that_are_not_mapped_get_a_remedy() {
    let mapped = MapProblem::AlreadyMapped {
        device: text("/dev/rbd0"),
    };
    let unknown = MapProblem::UnknownContents {
        consent_name: text("rbd://p/i"),
    };
    let cases = [
        (
            mapped,
            "the image is mapped on this machine already, as /dev/rbd0",
            "measure the directory where it is mounted, or unmap the image: rbd unmap /dev/rbd0",
        ),
        (
            MapProblem::Snapshot,
            "--map makes files on the image, and a snapshot is read-only",
            "leave out --map to read the snapshot",
        ),
        (
            unknown,
            "the image holds data, but no file system that is known",
            "to format the image, which destroys its data, use --allow-overwrite=rbd://p/i",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn failed_steps_name_command_ending_and_message() {
    let failed = |ending| MapProblem::StepFailed {
        command: text("mount /dev/rbd0 /m"),
        ending,
        said: String::new(),
    };
    let remedy = "see the kernel's messages with `dmesg | tail`, or leave out --map to measure the \
                  image through librbd";
    let not_undone = MapProblem::NotUndone {
        command: text("umount /m"),
        ending: ProgramEnding::Status(32),
        said: text("target is busy"),
        remaining: vec![text("umount /m"), text("rbd unmap /dev/rbd0")],
    };
    let cases = [
        (
            MapProblem::NoDevice { said: text("?") },
            "`rbd map` printed \"?\", which is no device of this image",
            "see the mapped images with `rbd device list`, and unmap this one",
        ),
        (
            failed(ProgramEnding::NotStarted {
                errno: errno::EACCES,
            }),
            "`mount /dev/rbd0 /m` cannot be started: Permission denied (EACCES)",
            remedy,
        ),
        (
            failed(ProgramEnding::Signal(9)),
            "`mount /dev/rbd0 /m` was ended by signal 9",
            remedy,
        ),
        (
            failed(ProgramEnding::TimedOut { limit_s: 120 }),
            "`mount /dev/rbd0 /m` did not end within 120 s",
            remedy,
        ),
        (
            not_undone,
            "the image is still mapped: `umount /m` failed with status 32: target is busy",
            "stop the programs that use the image, then run: umount /m && rbd unmap /dev/rbd0",
        ),
    ];
    check_problems("rbd://p/i", cases);
}
