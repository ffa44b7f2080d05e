//! The words of each variant.

use super::describe_access_remedy;
use super::error_checks::{check, on_path};
use crate::run_error::{
    AccessPurpose, BufferMemory, CephAction, FileHarm, NumberedUnit, PathAction, RefusedEngine,
    RunError, SystemFailure, TargetProblem, UnsupportedFeature,
};
use iosonde_job::errno;
use iosonde_job::outside_access::AccessKind;
use iosonde_job::plan::Engine;

const DENIED: SystemFailure = SystemFailure::Errno(errno::EACCES);

fn job() -> String {
    "a".to_owned()
}

#[test]
fn access_error_has_errno_and_remedy() {
    let refused = |action, errno, is_root| RunError::PathAccess {
        path: "/t".to_owned(),
        action,
        failure: SystemFailure::Errno(errno),
        is_root,
    };
    check(&[
        (
            RunError::DirectRefused {
                path: "/t".to_owned(),
                errno: errno::EINVAL,
            },
            "/t: it cannot be opened with O_DIRECT (EINVAL)",
            "use direct=0: this target does not accept O_DIRECT",
        ),
        (
            refused(PathAction::Open, errno::ENOENT, false),
            "/t: cannot open it: No such file or directory (ENOENT)",
            "check the path: iosonde creates no directories",
        ),
        (
            refused(PathAction::Write, errno::EACCES, false),
            "/t: cannot write it: Permission denied (EACCES)",
            "check its permissions, or run as a user with access",
        ),
        (
            refused(PathAction::Create, errno::EROFS, false),
            "/t: cannot make it: Read-only file system (EROFS)",
            "the file system is mounted read-only; use another target",
        ),
        (
            refused(PathAction::DropCache, errno::EINVAL, false),
            "/t: cannot drop the cache of it: Invalid argument (EINVAL)",
            "use direct=0: this target does not accept O_DIRECT",
        ),
        (
            refused(PathAction::Inspect, errno::EBUSY, false),
            "/t: cannot look at it: Device or resource busy (EBUSY)",
            "another program or device uses it; see `lsblk` and `findmnt`",
        ),
        (
            refused(PathAction::Reserve, errno::ENOSPC, false),
            "/t: cannot reserve space for it: No space left on device (ENOSPC)",
            "the target is full; free some space or use a smaller size=",
        ),
        (
            refused(PathAction::Read, errno::ENOTCONN, false),
            "/t: cannot read it: Transport endpoint is not connected (ENOTCONN)",
            "the program that serves this file system has ended; start it again, or unmount the \
             file system (`findmnt` shows it)",
        ),
        (
            refused(PathAction::Open, errno::EMFILE, false),
            "/t: cannot open it: Too many open files (EMFILE)",
            "raise the limit on open files (ulimit -n), or use openfiles=",
        ),
        (
            RunError::PathAccess {
                path: "/t".to_owned(),
                action: PathAction::PreRead,
                failure: SystemFailure::Text("no pages".to_owned()),
                is_root: true,
            },
            "/t: cannot read it ahead of the job: no pages",
            "see errno(3)",
        ),
    ]);
}

#[test]
fn path_actions_follow_the_word_cannot() {
    let words = [
        (PathAction::Use, "use it"),
        (PathAction::Measure, "measure it"),
        (
            PathAction::MeasureFileSystem,
            "measure the file system of it",
        ),
        (PathAction::Flush, "flush it"),
        (PathAction::SetWriteHint, "set write_hint of it"),
        (PathAction::AllocateFillBuffers, "find memory to fill it"),
        (PathAction::Resize, "size it"),
        (PathAction::Remove, "remove it"),
    ];
    for (action, expected) in words {
        assert_eq!(action.to_string(), expected);
    }
}

#[test]
fn eperm_remedy_for_root_names_no_other_user() {
    assert!(describe_access_remedy(false).contains("run as a user"));
    let of_root = describe_access_remedy(true);
    assert!(!of_root.contains("run as") && of_root.contains("read-only"));
    assert!(of_root.contains("CONFIG_BLK_DEV_WRITE_MOUNTED"));
}

#[test]
fn path_kind_errors_name_the_option() {
    check(&[
        (
            on_path(TargetProblem::NoSize),
            "/t: the job has no size=, and its files do not exist or are empty",
            "add size=, e.g. size=1g, or set filename= to an existing file or device",
        ),
        (
            on_path(TargetProblem::FileAsDirectory),
            "/t: directory= names a file, not a directory",
            "use filename= for a file or device",
        ),
        (
            on_path(TargetProblem::DirectoryAsFile),
            "/t: the path is a directory, not a file",
            "use directory= for a directory, filename= for a file or device",
        ),
        (
            on_path(TargetProblem::StandardStream),
            "/t: standard input and output have neither a size nor offsets",
            "use a file or a device; /dev/null and /dev/zero work with size=",
        ),
        (
            on_path(TargetProblem::PipeOrSocket),
            "/t: a pipe or socket has neither a size nor offsets",
            "use a file or a device; /dev/null and /dev/zero work with size=",
        ),
        (
            on_path(TargetProblem::FillOfRamfs),
            "/t: fill_device would use all memory: a ramfs has no size limit",
            "add size=, or use a tmpfs",
        ),
    ]);
}

#[test]
fn offset_and_layout_errors_name_the_bytes() {
    check(&[
        (
            on_path(TargetProblem::OffsetAfterFile {
                offset: 8192,
                file_bytes: 4096,
            }),
            "/t: offset 8192 is not below its size, 4096 bytes",
            "use a smaller offset=, or give size= to make the file larger",
        ),
        (
            on_path(TargetProblem::OffsetAfterFilesize {
                offset: 8192,
                filesize: 4096,
            }),
            "/t: offset 8192 is not below filesize=4096",
            "use a smaller offset=, or a larger filesize=",
        ),
        (
            on_path(TargetProblem::OffsetOverMaximum {
                offset: 2,
                size_bytes: 1,
                limit_bytes: 3,
            }),
            "/t: 1 bytes from offset 2 exceed the maximum offset of 3 bytes (8 EiB)",
            "use a smaller size=, offset= or offset_increment=",
        ),
        (
            on_path(TargetProblem::LayoutForbidden {
                job: job(),
                file_bytes: Some(7),
                needed_bytes: 9,
            }),
            "/t: the file has 7 bytes, but job a needs 9 bytes, and --readonly forbids the layout",
            "use size= of at most the size of the file, use another file, or omit --readonly",
        ),
        (
            on_path(TargetProblem::LayoutForbidden {
                job: job(),
                file_bytes: None,
                needed_bytes: 9,
            }),
            "/t: the file does not exist, but job a needs 9 bytes, and --readonly forbids the \
             layout",
            "use size= of at most the size of the file, use another file, or omit --readonly",
        ),
    ]);
}

#[test]
fn layout_errors_name_the_cause() {
    check(&[
        (
            on_path(TargetProblem::CreationForbidden),
            "/t: the file does not exist, and allow_file_create=0 forbids creating it",
            "use an existing file, or omit allow_file_create",
        ),
        (
            on_path(TargetProblem::PseudoFileSystem {
                fs_type: "proc".to_owned(),
            }),
            "/t: proc is a pseudo file system and stores no data",
            "use a directory on a disk, e.g. directory=/var/tmp",
        ),
        (
            on_path(TargetProblem::ChangedByOthers {
                before_bytes: 1,
                now_bytes: 2,
            }),
            "/t: the file had 1 bytes at the start of the run and has 2 bytes now, so another \
             program uses it; the file is left unchanged",
            "use another file, or run the job again after that program has ended",
        ),
        (
            on_path(TargetProblem::CreatedByOthers),
            "/t: another program created a file of this name during the run; the file is left \
             unchanged",
            "use another file; or run the job again after that program has ended, to use the file",
        ),
    ]);
}

#[test]
fn trace_errors_name_the_cause() {
    check(&[
        (
            on_path(TargetProblem::TraceAfterDevice {
                trace_bytes: 2,
                device_bytes: 1,
            }),
            "/t: the trace extends to byte 2, but the device has 1 bytes",
            "replay it on a larger device, or reduce the offsets with replay_scale= and \
             replay_align=",
        ),
        (
            on_path(TargetProblem::NoReplayDevice {
                errno: errno::ENOENT,
            }),
            "/t: cannot open it: No such file or directory (ENOENT)",
            "set replay_redirect= to the device or file for the replay",
        ),
        (
            on_path(TargetProblem::NoTracedDevice { major: 8, minor: 1 }),
            "/t: this machine has no block device 8:1",
            "set replay_redirect= to the device for the replay",
        ),
        (
            on_path(TargetProblem::EmptyTrace { readonly: true }),
            "/t: the trace contains no I/O that may be replayed",
            "omit --readonly, or replay a trace of reads",
        ),
        (
            on_path(TargetProblem::EmptyTrace { readonly: false }),
            "/t: the trace contains no I/O that may be replayed",
            "record the trace again, or check replay_skip=",
        ),
        (
            on_path(TargetProblem::InvalidTrace {
                place: "line 7".to_owned(),
                problem: "no offset".to_owned(),
            }),
            "/t: line 7: no offset",
            "use a file recorded with write_iolog=FILE, or written by `blkparse -d FILE`",
        ),
        (
            on_path(TargetProblem::TraceTooLarge {
                limit_bytes: 16 << 20,
            }),
            "/t: cannot read the trace: it is larger than 16 MiB, the maximum that iosonde reads",
            "a trace is loaded into memory: use a file recorded with write_iolog=FILE, or a \
             shorter part of it",
        ),
        (
            on_path(TargetProblem::TraceFromDevice),
            "/t: cannot read the trace: it is a device, not a regular file",
            "a trace is loaded into memory: use a file recorded with write_iolog=FILE, or a \
             shorter part of it",
        ),
    ]);
}

#[test]
fn permission_errors_name_the_target() {
    let read_only = |harm| {
        on_path(TargetProblem::ReadOnly {
            job: job(),
            harm,
            consent_name: "/dev/disk/by-id/x".to_owned(),
        })
    };
    let consent = "let the job only read the existing data, or consent to overwriting it with \
                   --allow-overwrite /dev/disk/by-id/x";
    let outside = "use a file in the target, or run the job with `iosonde fio`, which accepts any \
                   file";
    check(&[
        (
            read_only(FileHarm::Write),
            "/t: job a would write to this file, which is read-only without consent",
            consent,
        ),
        (
            read_only(FileHarm::Remove),
            "/t: job a would remove this file, which is read-only without consent",
            consent,
        ),
        (
            read_only(FileHarm::Extend {
                needed_bytes: 2,
                file_bytes: 1,
            }),
            "/t: job a needs 2 bytes of this file of 1 bytes, which is read-only without consent",
            consent,
        ),
        (
            on_path(TargetProblem::OutsideTargets {
                job: job(),
                targets: vec!["/x".to_owned(), "/y".to_owned()],
            }),
            "/t: job a uses this file, which is outside of /x, /y",
            outside,
        ),
        (
            on_path(TargetProblem::OutsideTargets {
                job: job(),
                targets: Vec::new(),
            }),
            "/t: job a uses this file, which is outside of the simulated device",
            outside,
        ),
        (
            on_path(TargetProblem::CephCall {
                action: CephAction::OpenPool("x".to_owned()),
                errno: errno::ENOENT,
                said: "no pool ".to_owned(),
            }),
            "/t: cannot open the pool x: No such file or directory (ENOENT); the cluster \
             reported: no pool",
            "use an existing pool: `ceph osd pool ls` lists them",
        ),
    ]);
}

#[test]
fn inaccessible_path_remedy_depends_on_its_use() {
    let refused = |errno, purpose| {
        on_path(TargetProblem::NotAccessible {
            failure: SystemFailure::Errno(errno),
            purpose,
        })
    };
    let measure = AccessPurpose::Measure { is_root: false };
    let denied = "/t: Permission denied (EACCES)";
    check(&[
        (
            refused(errno::ENOENT, measure),
            "/t: No such file or directory (ENOENT)",
            "name an existing directory, file or block device",
        ),
        (
            refused(errno::EACCES, measure),
            denied,
            "check its permissions, or run as a user with access",
        ),
        (
            refused(errno::EROFS, measure),
            "/t: Read-only file system (EROFS)",
            "name a writable directory, or a file on this file system",
        ),
        (
            refused(errno::ENOTCONN, measure),
            "/t: Transport endpoint is not connected (ENOTCONN)",
            "choose another target",
        ),
        (
            refused(errno::EACCES, AccessPurpose::Examine),
            denied,
            "name an existing, reachable directory, file or block device",
        ),
        (
            refused(errno::EACCES, AccessPurpose::ScratchDirectory),
            denied,
            "name a writable directory",
        ),
        (
            refused(errno::EACCES, AccessPurpose::Overwrite),
            denied,
            "name a writable target",
        ),
        (
            refused(errno::EACCES, AccessPurpose::Volume),
            denied,
            "check that the volume is mounted there, and that the pod's user may write to it",
        ),
        (
            refused(errno::EACCES, AccessPurpose::AgentProgram),
            denied,
            "set IOSONDE_AGENT to the agent's executable, or unset it",
        ),
    ]);
}

#[test]
fn engine_errors_name_the_cause() {
    let unavailable = |engine, errno| {
        RunError::from(UnsupportedFeature::EngineUnavailable {
            engine,
            failure: SystemFailure::Errno(errno),
        })
    };
    check(&[
        (
            UnsupportedFeature::IodepthOverMaximum {
                job: job(),
                iodepth: 40_000,
                limit: 32_768,
            }
            .into(),
            "job a: iodepth=40000 exceeds the maximum of io_uring, 32768 I/Os in flight",
            "use a smaller iodepth and more jobs (numjobs=)",
        ),
        (
            unavailable(Engine::IoUring, errno::EPERM),
            "ioengine=io_uring is not available: EPERM",
            "use ioengine=libaio: io_uring is disabled (kernel.io_uring_disabled, or a \
             container's seccomp profile)",
        ),
        (
            unavailable(Engine::IoUring, errno::ENOMEM),
            "ioengine=io_uring is not available: ENOMEM",
            "raise the limit on locked memory (ulimit -l), or use a smaller iodepth",
        ),
        (
            unavailable(Engine::Libaio, errno::EAGAIN),
            "ioengine=libaio is not available: EAGAIN",
            "raise fs.aio-max-nr, or use fewer jobs or a smaller iodepth",
        ),
        (
            unavailable(Engine::Mmap, errno::ENOMEM),
            "ioengine=mmap is not available: ENOMEM",
            "use another ioengine: the file cannot be mapped",
        ),
        (
            UnsupportedFeature::NoEngine {
                refused: vec![
                    RefusedEngine {
                        engine: Engine::IoUring,
                        failure: SystemFailure::Errno(errno::ENOSYS),
                    },
                    RefusedEngine {
                        engine: Engine::Libaio,
                        failure: SystemFailure::Text("no ring".to_owned()),
                    },
                ],
            }
            .into(),
            "io_uring is not available: ENOSYS; libaio is not available: no ring",
            "run on a kernel or in a container that allows io_uring or native AIO",
        ),
        (
            UnsupportedFeature::EngineNotBuilt {
                job: job(),
                engine: Engine::Rados,
            }
            .into(),
            "job a: this build has no ioengine=rados",
            "run iosonde on a machine that can reach the Ceph cluster",
        ),
    ]);
}

#[test]
fn memory_errors_name_the_bytes() {
    let no_buffers = |memory| {
        RunError::from(UnsupportedFeature::NoBufferMemory {
            job: job(),
            slots: 4,
            buffer_bytes: 4096,
            memory,
            failure: SystemFailure::Errno(errno::ENOMEM),
        })
    };
    let no_buffers_text = "job a: no memory for 4 buffers of 4096 bytes: ENOMEM";
    check(&[
        (
            UnsupportedFeature::BuffersOverMemory {
                needed_bytes: 8 << 20,
                available_bytes: 4 << 20,
            }
            .into(),
            "the buffers of concurrent jobs need 8 MiB (iodepth x block size x numjobs), but 4 \
             MiB of memory are available",
            "use a smaller iodepth, block size or number of jobs",
        ),
        (
            no_buffers(BufferMemory::Ordinary),
            no_buffers_text,
            "use a smaller iodepth, block size or number of jobs",
        ),
        (
            no_buffers(BufferMemory::HugePages),
            no_buffers_text,
            "reserve huge pages of hugepage-size (sysctl vm.nr_hugepages), or omit mem=",
        ),
        (
            no_buffers(BufferMemory::File),
            no_buffers_text,
            "use a file on a file system with free space, or omit mem=",
        ),
        (
            UnsupportedFeature::NoLockedMemory {
                bytes: 4096,
                failure: SystemFailure::Errno(errno::ENOMEM),
            }
            .into(),
            "lockmem=4096: Cannot allocate memory (ENOMEM)",
            "raise the limit on locked memory (ulimit -l), or use a smaller lockmem=",
        ),
    ]);
}

#[test]
fn setting_errors_name_the_option() {
    check(&[
        (
            UnsupportedFeature::ThreadSettingRefused {
                setting: "nice=-5".to_owned(),
                failure: DENIED,
            }
            .into(),
            "nice=-5 is refused: Permission denied (EACCES)",
            "omit the option, or run with the required permission",
        ),
        (
            UnsupportedFeature::NoThread {
                purpose: "that lays out files".to_owned(),
                failure: SystemFailure::Errno(errno::EAGAIN),
            }
            .into(),
            "no thread that lays out files: Resource temporarily unavailable (EAGAIN)",
            "use a smaller numjobs=, or raise the limit on threads (ulimit -u, the control \
             group's pids.max) or memory",
        ),
        (
            UnsupportedFeature::NoSuchNumber {
                option: "cpus_allowed".to_owned(),
                unit: NumberedUnit::Cpu,
                number: 9,
                online: "0-3".to_owned(),
            }
            .into(),
            "cpus_allowed: CPU 9 does not exist; this machine has 0-3",
            "use numbers of 0-3",
        ),
        (
            UnsupportedFeature::NoSuchNumber {
                option: "numa_cpu_nodes".to_owned(),
                unit: NumberedUnit::NumaNode,
                number: 2,
                online: "0-1".to_owned(),
            }
            .into(),
            "numa_cpu_nodes: NUMA node 2 does not exist; this machine has 0-1",
            "use numbers of 0-1",
        ),
        (
            UnsupportedFeature::SchedulerRefused {
                job: job(),
                scheduler: "bfq".to_owned(),
                path: "/sys/q".to_owned(),
                failure: DENIED,
                offered: "[none] kyber".to_owned(),
            }
            .into(),
            "job a: ioscheduler=bfq: /sys/q cannot be set: Permission denied (EACCES)",
            "use a scheduler of the device ([none] kyber), as root, or omit ioscheduler",
        ),
        (
            UnsupportedFeature::NoShell {
                moment: "prerun".to_owned(),
                command: "true".to_owned(),
                failure: SystemFailure::Errno(errno::ENOENT),
            }
            .into(),
            "exec_prerun=true: sh cannot be started: No such file or directory (ENOENT)",
            "omit exec_prerun, or run the job on a system with a shell",
        ),
    ]);
}

#[test]
fn device_and_simulation_errors_name_the_job() {
    check(&[
        (
            UnsupportedFeature::OutsideAccess {
                job: job(),
                option: "write_bw_log".to_owned(),
                value: "/x".to_owned(),
                kind: AccessKind::Log,
            }
            .into(),
            "job `a` writes a log outside of its target: write_bw_log=/x",
            "omit the option, or run the job with `iosonde fio`",
        ),
        (
            UnsupportedFeature::SizesMismatch {
                job: job(),
                problem: "no block fits".to_owned(),
            }
            .into(),
            "job a: no block fits",
            "change the sizes in the job so that they fit together",
        ),
        (
            UnsupportedFeature::InvalidSimulation {
                job: job(),
                problem: "no key x".to_owned(),
            }
            .into(),
            "job a: no key x",
            "see docs/sim.md for the keys of a simulated device",
        ),
        (
            UnsupportedFeature::MixedSimulation.into(),
            "the run mixes simulated jobs with other jobs",
            "use ioengine=sim in all jobs or in none",
        ),
        (
            UnsupportedFeature::SimulatedDeviceTooSmall {
                job: job(),
                failure: SystemFailure::Errno(errno::ENOSPC),
            }
            .into(),
            "job a: its files do not fit on the simulated device: No space left on device (ENOSPC)",
            "use a smaller size=, or a larger capacity of the simulated device",
        ),
        (
            UnsupportedFeature::FileNotRegistered { failure: DENIED }.into(),
            "the engine cannot register a newly opened file: Permission denied (EACCES)",
            "omit openfiles= and unlink_each_loop, or use another ioengine",
        ),
        (
            UnsupportedFeature::MmapFixedSize { job: job() }.into(),
            "job a: fill_device needs files that grow, but ioengine=mmap maps files of a fixed \
             size",
            "use another ioengine, or add size=",
        ),
        (
            UnsupportedFeature::MmapKeepsFilesOpen { job: job() }.into(),
            "job a: ioengine=mmap maps all files for the whole run",
            "omit openfiles= and unlink_each_loop, or use another ioengine",
        ),
        (
            UnsupportedFeature::ReplayOnCeph { job: job() }.into(),
            "a: read_iolog opens the files named in its trace, which a Ceph target does not have",
            "map the image (rbd map) and set replay_redirect= to the device, e.g. /dev/rbd0",
        ),
    ]);
}
