//! Words of errors of studies and benchmarks, and of targets that are not written.

use super::error_checks::{check, on_path, text};
use crate::run_error::{
    CephProblem, DeviceVolume, FileHarm, IdentityChange, ImageContent, ImageUser, MapProblem,
    RunError, SystemFailure, TargetProblem, UnsupportedFeature, WriteObstacle, WriteRefusal,
};
use iosonde_job::errno;
use iosonde_job::outside_access::AccessKind;
use iosonde_job::plan::Engine;

fn refused(cause: WriteRefusal) -> RunError {
    RunError::write_refused("/dev/x", cause)
}

#[test]
fn study_target_errors_name_the_cause() {
    check(&[
        (
            on_path(TargetProblem::NoDataStored {
                fs_type: text("proc"),
            }),
            "/t: proc is a pseudo file system and stores no data",
            "name a directory on a disk, e.g. /var/tmp",
        ),
        (
            on_path(TargetProblem::CharacterDevice),
            "/t: a character device cannot be measured",
            "name a directory, a file or a block device",
        ),
        (
            on_path(TargetProblem::OtherFileType),
            "/t: not a directory, file or block device",
            "name a directory, a file or a block device",
        ),
        (
            on_path(TargetProblem::EngineOfOtherTarget {
                job: text("a"),
                engine: Engine::Rbd,
            }),
            "/t: the job a has ioengine=rbd, which cannot access this target",
            "leave ioengine= out, or name rados://POOL, rbd://POOL/IMAGE or sim:MODEL",
        ),
        (
            on_path(TargetProblem::JobAfterTarget {
                job: text("a"),
                start_bytes: 9,
                target_bytes: 7,
            }),
            "/t: the job a begins at byte 9, but the target has 7 bytes",
            "use a smaller offset=",
        ),
    ]);
}

#[test]
fn object_errors_name_objects_and_command() {
    let not_removed = |others| {
        on_path(TargetProblem::ObjectsNotRemoved {
            first: text("o1"),
            others,
            errno: errno::ETIMEDOUT,
            clean_up: text("clean up"),
        })
    };
    let once = "once the cluster answers again, run: clean up";
    check(&[
        (
            on_path(TargetProblem::NoObjectNames {
                names: 32,
                clean_up: text("clean up"),
            }),
            "/t: no free object names: 32 names of this host are in use",
            "remove the objects of benchmarks that have ended: clean up",
        ),
        (
            not_removed(0),
            "/t: o1 could not be removed (ETIMEDOUT)",
            once,
        ),
        (
            not_removed(1),
            "/t: o1 and one more could not be removed (ETIMEDOUT)",
            once,
        ),
        (
            not_removed(2),
            "/t: o1 and 2 more could not be removed (ETIMEDOUT)",
            once,
        ),
    ]);
}

#[test]
fn pod_and_load_errors_name_the_job_or_target() {
    check(&[
        (
            UnsupportedFeature::NoEmbeddedAgent.into(),
            "this build of iosonde contains no agent for pods",
            "build it with `cargo build --release` where the static C library is installed \
             (Debian: libc6-dev, Fedora: glibc-static), or set IOSONDE_AGENT to the agent's \
             executable",
        ),
        (
            UnsupportedFeature::ReplayInPod { job: text("a") }.into(),
            "a: a pod cannot read the trace of read_iolog",
            "replay the trace on this machine, or describe it with rw=, bssplit= and rate=",
        ),
        (
            UnsupportedFeature::LogsInPod { job: text("a") }.into(),
            "a: logs (write_bw_log, write_lat_log, ...) would stay in the pod",
            "leave out the logs; --output-format=json contains the intervals",
        ),
        (
            UnsupportedFeature::OutsideAccessInPod {
                job: text("a"),
                option: text("write_bw_log"),
                value: text("/x"),
                kind: AccessKind::Log,
            }
            .into(),
            "job `a` writes a log outside of its target: write_bw_log=/x: jobs in a pod access \
             only their volume",
            "leave out the option, and use kubectl before and after the I/O",
        ),
        (
            UnsupportedFeature::TooSlowForLoads {
                target: text("/t"),
                iops_hundredths: 305,
            }
            .into(),
            "/t: the target reaches at most 3.05 IOPS, too few for a load study",
            "use probe, or a smaller --bs",
        ),
    ]);
}

#[test]
fn write_refusals_name_cause_and_consent() {
    let consent_name = text("/dev/y");
    check(&[
        (
            refused(WriteRefusal::UnreadableContents {
                failure: SystemFailure::Errno(errno::EACCES),
                consent_name: consent_name.clone(),
            }),
            "refusing to write to /dev/x: the device cannot be read to check whether it carries \
             data: Permission denied (EACCES)",
            "to overwrite its data, use --allow-overwrite=/dev/y",
        ),
        (
            refused(WriteRefusal::OtherDisk {
                change: IdentityChange::Size { was: 1, now: 2 },
                consent_name: consent_name.clone(),
            }),
            "refusing to write to /dev/x: this may not be the disk for which --allow-overwrite was \
             given: its size was 1 bytes, now 2",
            "make sure that this is the right disk, then start again with --allow-overwrite=/dev/y",
        ),
        (
            refused(WriteRefusal::OtherDisk {
                change: IdentityChange::Start,
                consent_name: text("/dev/my disk"),
            }),
            "refusing to write to /dev/x: this may not be the disk for which --allow-overwrite was \
             given: the partition starts at another offset of its disk",
            "make sure that this is the right disk, then start again with \
             '--allow-overwrite=/dev/my disk'",
        ),
        (
            refused(WriteRefusal::ResumedOnOtherDisk {
                change: IdentityChange::Serial {
                    was: text("a"),
                    now: None,
                },
                study: text("sweep"),
            }),
            "refusing to write to /dev/x: this may not be the disk for which --allow-overwrite was \
             given: its serial number was \"a\", now none",
            "check that this is the right disk, then start the sweep without --resume",
        ),
        (
            refused(WriteRefusal::DeviceRenamed),
            "refusing to write to /dev/x: the name refers to another device than when it was \
             checked",
            "find the program that renames devices, then run the job again",
        ),
        (
            refused(WriteRefusal::NoConsent {
                rw: text("randwrite"),
                consent_name,
            }),
            "refusing to write to /dev/x: randwrite would overwrite its data",
            "name a directory, or permit overwriting its data with --allow-overwrite /dev/y",
        ),
        (
            refused(WriteRefusal::RootPod {
                reason: text("the volume needs it"),
            }),
            "refusing to write to /dev/x: its pod would run as root: the volume needs it",
            "answer y, permit root with --run-as 0, or name another user with --run-as UID",
        ),
    ]);
}

/// A person copies the option into a shell.
#[test]
fn consent_to_target_with_blank_is_quoted() {
    let consent_name = text("/my disk");
    let (job, missing_bytes, needed_bytes) = (text("a"), 1, 2);
    let errors = [
        refused(WriteRefusal::NoConsent {
            rw: text("write"),
            consent_name: consent_name.clone(),
        }),
        refused(WriteRefusal::ObjectExists {
            consent_name: consent_name.clone(),
        }),
        refused(WriteRefusal::ImageInUse {
            image: text("p/i"),
            users: Vec::new(),
            contents: Vec::new(),
            consent_name: consent_name.clone(),
        }),
        refused(WriteRefusal::PodDevice {
            found: text("the volume carries data"),
            volume: DeviceVolume::OfClass,
            consent_name: Some(consent_name.clone()),
        }),
        on_path(TargetProblem::ReadOnly {
            job: job.clone(),
            harm: FileHarm::Write,
            consent_name: consent_name.clone(),
        }),
        on_path(TargetProblem::Map(MapProblem::UnknownContents {
            consent_name: consent_name.clone(),
        })),
        on_path(TargetProblem::Ceph(CephProblem::UnwrittenImageRange {
            job: job.clone(),
            missing_bytes,
            needed_bytes,
            consent_name: consent_name.clone(),
        })),
        on_path(TargetProblem::Ceph(CephProblem::DiscardedObjectRange {
            missing_bytes,
            needed_bytes,
            job,
            consent_name,
        })),
    ];
    for error in errors {
        let remedy = error.remedy();
        let is_quoted = remedy.contains("--allow-overwrite '/my disk'")
            || remedy.contains("'--allow-overwrite=/my disk'");
        assert!(is_quoted, "{remedy}");
    }
}

#[test]
fn obstacles_to_writing_name_the_device_and_its_use() {
    let obstacles = |obstacles: &[WriteObstacle]| {
        refused(WriteRefusal::Obstacles {
            obstacles: obstacles.to_vec(),
            consent_name: text("/dev/y"),
        })
    };
    let mounted = |mount_point| WriteObstacle::Mounted {
        device: text("/dev/x1"),
        mount_point: text(mount_point),
    };
    let carries = WriteObstacle::Carries {
        content: text("swap space"),
    };
    let consent = "to overwrite its data, use --allow-overwrite=/dev/y";
    let swap = WriteObstacle::Swap {
        device: text("/dev/x"),
    };
    check(&[
        (
            obstacles(&[carries.clone(), mounted("/data"), mounted("/")]),
            "refusing to write to /dev/x: the device carries swap space; /dev/x1 is mounted at \
             /data; /dev/x1 is mounted at /",
            "choose another device: the running system is on this one",
        ),
        (
            obstacles(&[carries]),
            "refusing to write to /dev/x: the device carries swap space",
            consent,
        ),
        (
            obstacles(&[WriteObstacle::CharacterDevice { name: None }]),
            "refusing to write to /dev/x: the target is a character device, not a disk",
            consent,
        ),
        (
            obstacles(&[swap]),
            "refusing to write to /dev/x: /dev/x is in use as swap space",
            "if the swap space is not needed, disable it: swapoff /dev/x",
        ),
        (
            obstacles(&[WriteObstacle::ReadOnly]),
            "refusing to write to /dev/x: the device is read-only",
            "choose a writable target",
        ),
    ]);
}

#[test]
fn image_refusals_name_users_and_contents() {
    let in_use = |users: &[ImageUser]| {
        RunError::write_refused(
            "rbd://p/i",
            WriteRefusal::ImageInUse {
                image: text("p/i"),
                users: users.to_vec(),
                contents: vec![ImageContent::Signature {
                    description: text("swap space"),
                }],
                consent_name: text("rbd://p/i"),
            },
        )
    };
    let lock = ImageUser::Lock {
        client: text("client.7"),
        id: text("x"),
    };
    check(&[
        (
            in_use(&[]),
            "refusing to write to rbd://p/i: the image carries swap space",
            "to overwrite its data, use --allow-overwrite=rbd://p/i (in a job: \
             allow_mounted_write=1)",
        ),
        (
            in_use(&[lock]),
            "refusing to write to rbd://p/i: client.7 holds the lock \"x\" on the image; the image \
             carries swap space",
            "stop the clients of the image: `rbd status p/i` lists them, `rbd lock ls p/i` lists \
             locks; a killed client is listed for 30 s",
        ),
    ]);
}

#[test]
fn rw_flag_errors_name_the_limits() {
    check(&[
        (
            on_path(TargetProblem::NoAtomicWrites { job: text("a") }),
            "/t: job a has atomic=1, but there are no atomic writes here",
            "omit atomic, or use a target for which `iosonde doctor` names atomic writes (Linux \
             6.13, ext4 or XFS on a device that has them)",
        ),
        (
            on_path(TargetProblem::AtomicBlockSize {
                job: text("a"),
                block_bytes: 512,
                min_bytes: 4096,
                max_bytes: 16384,
            }),
            "/t: job a has atomic=1 and blocks of 512 bytes; an atomic write has a power of two, \
             4096 to 16384 bytes",
            "use bs=16384",
        ),
        (
            on_path(TargetProblem::UncachedRefused {
                job: text("a"),
                errno: 95,
            }),
            "/t: job a has uncached=1, which is refused: EOPNOTSUPP",
            "omit uncached, or use a file on Linux 6.14 with ext4, XFS or btrfs",
        ),
    ]);
}
