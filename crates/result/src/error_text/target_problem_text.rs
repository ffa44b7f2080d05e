//! Words of a [`TargetProblem`].

use super::describe_access_remedy;
use crate::run_error::{AccessPurpose, FileHarm, TargetProblem};
use iosonde_job::errno::{self, describe_errno, errno_name};
use iosonde_job::quote_shell_word;
use std::fmt;

impl fmt::Display for FileHarm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileHarm::Write => formatter.write_str("would write to this file"),
            FileHarm::Remove => formatter.write_str("would remove this file"),
            FileHarm::Extend {
                needed_bytes,
                file_bytes,
            } => write!(
                formatter,
                "needs {needed_bytes} bytes of this file of {file_bytes} bytes"
            ),
        }
    }
}

impl fmt::Display for TargetProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = describe_file(self)
            .or_else(|| describe_rw_flag(self))
            .or_else(|| describe_trace(self))
            .or_else(|| describe_permission(self))
            .unwrap_or_else(|| describe_study_target(self));
        formatter.write_str(&text)
    }
}

/// Describes a problem with a file of a job. `None` for other problems.
fn describe_file(problem: &TargetProblem) -> Option<String> {
    let text = match problem {
        TargetProblem::NoSize => "the job has no size=, and its files do not exist or are empty",
        TargetProblem::FileAsDirectory => "directory= names a file, not a directory",
        TargetProblem::DirectoryAsFile => "the path is a directory, not a file",
        TargetProblem::StandardStream => {
            "standard input and output have neither a size nor offsets"
        }
        TargetProblem::PipeOrSocket => "a pipe or socket has neither a size nor offsets",
        TargetProblem::FillOfRamfs => "fill_device would use all memory: a ramfs has no size limit",
        TargetProblem::OffsetAfterFile { offset, file_bytes } => {
            return Some(format!(
                "offset {offset} is not below its size, {file_bytes} bytes"
            ));
        }
        TargetProblem::OffsetAfterFilesize { offset, filesize } => {
            return Some(format!("offset {offset} is not below filesize={filesize}"));
        }
        TargetProblem::OffsetOverMaximum {
            offset,
            size_bytes,
            limit_bytes,
        } => {
            return Some(format!(
                "{size_bytes} bytes from offset {offset} exceed the maximum offset of \
                 {limit_bytes} bytes (8 EiB)"
            ));
        }
        TargetProblem::LayoutForbidden {
            job,
            file_bytes,
            needed_bytes,
        } => {
            let file = describe_size(*file_bytes);
            return Some(format!(
                "{file}, but job {job} needs {needed_bytes} bytes, and --readonly forbids the \
                 layout"
            ));
        }
        TargetProblem::CreationForbidden => {
            "the file does not exist, and allow_file_create=0 forbids creating it"
        }
        TargetProblem::ChangedByOthers {
            before_bytes,
            now_bytes,
        } => {
            return Some(format!(
                "the file had {before_bytes} bytes at the start of the run and has {now_bytes} \
                 bytes now, so another program uses it; the file is left unchanged"
            ));
        }
        TargetProblem::CreatedByOthers => {
            "another program created a file of this name during the run; the file is left unchanged"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn describe_size(file_bytes: Option<u64>) -> String {
    match file_bytes {
        Some(bytes) => format!("the file has {bytes} bytes"),
        None => "the file does not exist".to_owned(),
    }
}

/// Describes a problem with `atomic` or `uncached`. `None` for other problems.
fn describe_rw_flag(problem: &TargetProblem) -> Option<String> {
    Some(match problem {
        TargetProblem::NoAtomicWrites { job } => {
            format!("job {job} has atomic=1, but there are no atomic writes here")
        }
        TargetProblem::AtomicBlockSize {
            job,
            block_bytes,
            min_bytes,
            max_bytes,
        } => format!(
            "job {job} has atomic=1 and blocks of {block_bytes} bytes; an atomic write has a power \
             of two, {min_bytes} to {max_bytes} bytes"
        ),
        TargetProblem::UncachedRefused { job, errno } => {
            format!(
                "job {job} has uncached=1, which is refused: {}",
                errno_name(*errno)
            )
        }
        _ => return None,
    })
}

/// Describes a problem with a trace. `None` for other problems.
fn describe_trace(problem: &TargetProblem) -> Option<String> {
    Some(match problem {
        TargetProblem::TraceAfterDevice {
            trace_bytes,
            device_bytes,
        } => format!(
            "the trace extends to byte {trace_bytes}, but the device has {device_bytes} bytes"
        ),
        TargetProblem::NoReplayDevice { errno } => {
            format!("cannot open it: {}", describe_errno(*errno))
        }
        TargetProblem::NoTracedDevice { major, minor } => {
            format!("this machine has no block device {major}:{minor}")
        }
        TargetProblem::EmptyTrace { .. } => {
            "the trace contains no I/O that may be replayed".to_owned()
        }
        TargetProblem::InvalidTrace { place, problem } => format!("{place}: {problem}"),
        TargetProblem::TraceTooLarge { limit_bytes } => format!(
            "cannot read the trace: it is larger than {} MiB, the maximum that iosonde reads",
            limit_bytes >> 20
        ),
        TargetProblem::TraceFromDevice => {
            "cannot read the trace: it is a device, not a regular file".to_owned()
        }
        _ => return None,
    })
}

/// Describes a problem with permission to use a target, with a Ceph cluster, or with a volume.
/// `None` for other problems.
fn describe_permission(problem: &TargetProblem) -> Option<String> {
    Some(match problem {
        TargetProblem::ReadOnly { job, harm, .. } => {
            format!("job {job} {harm}, which is read-only without consent")
        }
        TargetProblem::OutsideTargets { job, targets } => {
            let targets = match targets.as_slice() {
                [] => "the simulated device".to_owned(),
                targets => targets.join(", "),
            };
            format!("job {job} uses this file, which is outside of {targets}")
        }
        TargetProblem::NotAccessible { failure, .. } => failure.to_string(),
        TargetProblem::Ceph(problem) => problem.to_string(),
        TargetProblem::Map(problem) => problem.to_string(),
        TargetProblem::Volume(problem) => problem.to_string(),
        TargetProblem::CephCall {
            action,
            errno,
            said,
        } => {
            let failed = format!("cannot {action}: {}", describe_errno(*errno));
            match said.trim() {
                "" => failed,
                said => format!("{failed}; the cluster reported: {said}"),
            }
        }
        TargetProblem::ObjectsNotRemoved {
            first,
            others,
            errno,
            ..
        } => {
            let others = match others {
                0 => String::new(),
                1 => " and one more".to_owned(),
                more => format!(" and {more} more"),
            };
            let name = errno_name(*errno);
            format!("{first}{others} could not be removed ({name})")
        }
        _ => return None,
    })
}

/// Describes a problem with the target of a study or benchmark. The functions above describe the
/// last variants. They are listed so that the compiler reports a variant without a text.
fn describe_study_target(problem: &TargetProblem) -> String {
    match problem {
        TargetProblem::NoDataStored { fs_type } | TargetProblem::PseudoFileSystem { fs_type } => {
            format!("{fs_type} is a pseudo file system and stores no data")
        }
        TargetProblem::CharacterDevice => "a character device cannot be measured".to_owned(),
        TargetProblem::OtherFileType => "not a directory, file or block device".to_owned(),
        TargetProblem::EngineOfOtherTarget { job, engine } => format!(
            "the job {job} has ioengine={}, which cannot access this target",
            engine.name()
        ),
        TargetProblem::JobAfterTarget {
            job,
            start_bytes,
            target_bytes,
        } => format!(
            "the job {job} begins at byte {start_bytes}, but the target has {target_bytes} bytes"
        ),
        TargetProblem::NoObjectNames { names, .. } => {
            format!("no free object names: {names} names of this host are in use")
        }
        TargetProblem::NoSize
        | TargetProblem::FileAsDirectory
        | TargetProblem::DirectoryAsFile
        | TargetProblem::StandardStream
        | TargetProblem::PipeOrSocket
        | TargetProblem::FillOfRamfs
        | TargetProblem::OffsetAfterFile { .. }
        | TargetProblem::OffsetAfterFilesize { .. }
        | TargetProblem::OffsetOverMaximum { .. }
        | TargetProblem::LayoutForbidden { .. }
        | TargetProblem::NoAtomicWrites { .. }
        | TargetProblem::AtomicBlockSize { .. }
        | TargetProblem::UncachedRefused { .. }
        | TargetProblem::CreationForbidden
        | TargetProblem::ChangedByOthers { .. }
        | TargetProblem::CreatedByOthers
        | TargetProblem::TraceAfterDevice { .. }
        | TargetProblem::NoReplayDevice { .. }
        | TargetProblem::NoTracedDevice { .. }
        | TargetProblem::EmptyTrace { .. }
        | TargetProblem::InvalidTrace { .. }
        | TargetProblem::TraceTooLarge { .. }
        | TargetProblem::TraceFromDevice
        | TargetProblem::ReadOnly { .. }
        | TargetProblem::OutsideTargets { .. }
        | TargetProblem::NotAccessible { .. }
        | TargetProblem::Ceph(_)
        | TargetProblem::Map(_)
        | TargetProblem::Volume(_)
        | TargetProblem::CephCall { .. }
        | TargetProblem::ObjectsNotRemoved { .. } => format!("{problem:?}"),
    }
}

impl TargetProblem {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        self.file_remedy()
            .map(str::to_owned)
            .or_else(|| self.rw_flag_remedy())
            .or_else(|| self.trace_or_permission_remedy())
            .unwrap_or_else(|| self.study_target_remedy())
    }

    /// Returns the action for a problem with a file of a job. `None` for other problems.
    fn file_remedy(&self) -> Option<&'static str> {
        Some(match self {
            TargetProblem::NoSize => {
                "add size=, e.g. size=1g, or set filename= to an existing file or device"
            }
            TargetProblem::FileAsDirectory => "use filename= for a file or device",
            TargetProblem::DirectoryAsFile => {
                "use directory= for a directory, filename= for a file or device"
            }
            TargetProblem::StandardStream | TargetProblem::PipeOrSocket => {
                "use a file or a device; /dev/null and /dev/zero work with size="
            }
            TargetProblem::FillOfRamfs => "add size=, or use a tmpfs",
            TargetProblem::OffsetAfterFile { .. } => {
                "use a smaller offset=, or give size= to make the file larger"
            }
            TargetProblem::OffsetAfterFilesize { .. } => {
                "use a smaller offset=, or a larger filesize="
            }
            TargetProblem::OffsetOverMaximum { .. } => {
                "use a smaller size=, offset= or offset_increment="
            }
            TargetProblem::LayoutForbidden { .. } => {
                "use size= of at most the size of the file, use another file, or omit --readonly"
            }
            TargetProblem::CreationForbidden => "use an existing file, or omit allow_file_create",
            TargetProblem::PseudoFileSystem { .. } => {
                "use a directory on a disk, e.g. directory=/var/tmp"
            }
            TargetProblem::ChangedByOthers { .. } => {
                "use another file, or run the job again after that program has ended"
            }
            TargetProblem::CreatedByOthers => {
                "use another file; or run the job again after that program has ended, to use the \
                 file"
            }
            _ => return None,
        })
    }

    /// Returns the action for a problem with `atomic` or `uncached`. `None` for other problems.
    fn rw_flag_remedy(&self) -> Option<String> {
        Some(match self {
            TargetProblem::NoAtomicWrites { .. } => {
                "omit atomic, or use a target for which `iosonde doctor` names atomic writes \
                 (Linux 6.13, ext4 or XFS on a device that has them)"
                    .to_owned()
            }
            TargetProblem::AtomicBlockSize { max_bytes, .. } => format!("use bs={max_bytes}"),
            TargetProblem::UncachedRefused { .. } => {
                "omit uncached, or use a file on Linux 6.14 with ext4, XFS or btrfs".to_owned()
            }
            _ => return None,
        })
    }

    /// Returns the action for a problem with a trace, with permission, or with a Ceph cluster.
    /// `None` for other problems.
    fn trace_or_permission_remedy(&self) -> Option<String> {
        let remedy = match self {
            TargetProblem::TraceAfterDevice { .. } => {
                "replay it on a larger device, or reduce the offsets with replay_scale= and \
                 replay_align="
            }
            TargetProblem::NoReplayDevice { .. } => {
                "set replay_redirect= to the device or file for the replay"
            }
            TargetProblem::NoTracedDevice { .. } => {
                "set replay_redirect= to the device for the replay"
            }
            TargetProblem::EmptyTrace { readonly: true } => {
                "omit --readonly, or replay a trace of reads"
            }
            TargetProblem::EmptyTrace { readonly: false } => {
                "record the trace again, or check replay_skip="
            }
            TargetProblem::InvalidTrace { .. } => {
                "use a file recorded with write_iolog=FILE, or written by `blkparse -d FILE`"
            }
            TargetProblem::TraceTooLarge { .. } | TargetProblem::TraceFromDevice => {
                "a trace is loaded into memory: use a file recorded with write_iolog=FILE, or a \
                 shorter part of it"
            }
            TargetProblem::ReadOnly { consent_name, .. } => {
                return Some(format!(
                    "let the job only read the existing data, or consent to overwriting it with \
                     --allow-overwrite {}",
                    quote_shell_word(consent_name)
                ));
            }
            TargetProblem::OutsideTargets { .. } => {
                "use a file in the target, or run the job with `iosonde fio`, which accepts any \
                 file"
            }
            TargetProblem::NotAccessible { failure, purpose } => {
                describe_purpose_remedy(*purpose, failure.errno())
            }
            TargetProblem::CephCall { action, errno, .. } => return Some(action.remedy(*errno)),
            TargetProblem::Ceph(problem) => return Some(problem.remedy()),
            TargetProblem::Map(problem) => return Some(problem.remedy()),
            TargetProblem::Volume(problem) => return Some(problem.remedy()),
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Returns the action for a problem with the target of a study or benchmark. The functions
    /// above know the action of the last variants, as with the description.
    fn study_target_remedy(&self) -> String {
        let remedy = match self {
            TargetProblem::NoDataStored { .. } => "name a directory on a disk, e.g. /var/tmp",
            TargetProblem::CharacterDevice | TargetProblem::OtherFileType => {
                "name a directory, a file or a block device"
            }
            TargetProblem::EngineOfOtherTarget { .. } => {
                "leave ioengine= out, or name rados://POOL, rbd://POOL/IMAGE or sim:MODEL"
            }
            TargetProblem::JobAfterTarget { .. } => "use a smaller offset=",
            TargetProblem::NoObjectNames { clean_up, .. } => {
                return format!("remove the objects of benchmarks that have ended: {clean_up}");
            }
            TargetProblem::ObjectsNotRemoved { clean_up, .. } => {
                return format!("once the cluster answers again, run: {clean_up}");
            }
            TargetProblem::NoSize
            | TargetProblem::FileAsDirectory
            | TargetProblem::DirectoryAsFile
            | TargetProblem::StandardStream
            | TargetProblem::PipeOrSocket
            | TargetProblem::FillOfRamfs
            | TargetProblem::OffsetAfterFile { .. }
            | TargetProblem::OffsetAfterFilesize { .. }
            | TargetProblem::OffsetOverMaximum { .. }
            | TargetProblem::LayoutForbidden { .. }
            | TargetProblem::NoAtomicWrites { .. }
            | TargetProblem::AtomicBlockSize { .. }
            | TargetProblem::UncachedRefused { .. }
            | TargetProblem::CreationForbidden
            | TargetProblem::PseudoFileSystem { .. }
            | TargetProblem::ChangedByOthers { .. }
            | TargetProblem::CreatedByOthers
            | TargetProblem::TraceAfterDevice { .. }
            | TargetProblem::NoReplayDevice { .. }
            | TargetProblem::NoTracedDevice { .. }
            | TargetProblem::EmptyTrace { .. }
            | TargetProblem::InvalidTrace { .. }
            | TargetProblem::TraceTooLarge { .. }
            | TargetProblem::TraceFromDevice
            | TargetProblem::ReadOnly { .. }
            | TargetProblem::OutsideTargets { .. }
            | TargetProblem::NotAccessible { .. }
            | TargetProblem::CephCall { .. }
            | TargetProblem::Ceph(_)
            | TargetProblem::Map(_)
            | TargetProblem::Volume(_) => "use another target",
        };
        remedy.to_owned()
    }
}

fn describe_purpose_remedy(purpose: AccessPurpose, errno: Option<i32>) -> &'static str {
    match (purpose, errno) {
        (AccessPurpose::Measure { .. }, Some(errno::ENOENT)) => {
            "name an existing directory, file or block device"
        }
        (AccessPurpose::Measure { is_root }, Some(errno::EACCES | errno::EPERM)) => {
            describe_access_remedy(is_root)
        }
        (AccessPurpose::Measure { .. }, Some(errno::EROFS)) => {
            "name a writable directory, or a file on this file system"
        }
        (AccessPurpose::Measure { .. }, _) => "choose another target",
        (AccessPurpose::Examine, _) => {
            "name an existing, reachable directory, file or block device"
        }
        (AccessPurpose::ScratchDirectory, _) => "name a writable directory",
        (AccessPurpose::Overwrite, _) => "name a writable target",
        (AccessPurpose::Volume, _) => {
            "check that the volume is mounted there, and that the pod's user may write to it"
        }
        (AccessPurpose::AgentProgram, _) => {
            "set IOSONDE_AGENT to the agent's executable, or unset it"
        }
    }
}
