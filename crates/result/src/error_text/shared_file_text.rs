//! Words of a [`SharedFileProblem`].

use crate::doctor::ways_to_share;
use crate::run_error::SharedFileProblem;
use crate::shared_file::{SharedFileAction, WrongByte, WrongByteOrigin};
use std::fmt;

impl fmt::Display for SharedFileProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedFileProblem::WrongByte {
                writer,
                reader,
                wrong,
                consistency,
            } => write!(
                formatter,
                "pod {reader} read {} at offset {} of the shared file, where pod {writer} had \
                 written {:#04x} ({} consistency)",
                describe_found(wrong),
                wrong.offset_bytes,
                wrong.expected,
                consistency.title(),
            ),
            SharedFileProblem::StepFailed {
                pod,
                action,
                failure,
            } => write!(
                formatter,
                "pod {pod} cannot {} the shared file: {failure}",
                action.verb()
            ),
            SharedFileProblem::PodCount { pods } => write!(
                formatter,
                "a shared file needs 2 to {} pods, but {pods} would run",
                crate::shared_file::MEMBERS_MAX
            ),
            SharedFileProblem::OneNodeDriver { driver, .. } => write!(
                formatter,
                "volumes of its driver {driver} cannot be written by several nodes (ReadWriteMany)"
            ),
        }
    }
}

fn describe_found(wrong: &WrongByte) -> String {
    let Some(found) = wrong.found else {
        return "the end of the file".to_owned();
    };
    match wrong.origin {
        WrongByteOrigin::EarlierWrite { .. } => format!("the stale byte {found:#04x}"),
        WrongByteOrigin::Unwritten => format!("the unwritten byte {found:#04x}"),
        WrongByteOrigin::EndOfFile | WrongByteOrigin::Unknown => {
            format!("the wrong byte {found:#04x}")
        }
    }
}

impl SharedFileProblem {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        let remedy = match self {
            SharedFileProblem::WrongByte { .. } => {
                "do not let several pods write one file of this class; check its mount options \
                 and its server"
            }
            SharedFileProblem::StepFailed { .. } => {
                "let the pod's user write to the volume: --run-as; or leave out --shared=file"
            }
            SharedFileProblem::PodCount { .. } => {
                "give the number of pods with --pods, or use --shared without =file"
            }
            SharedFileProblem::OneNodeDriver { drivers, .. } => {
                return format!(
                    "name another class; {}; on one node use --access-mode rwo --placement pack",
                    ways_to_share(drivers)
                );
            }
        };
        remedy.to_owned()
    }
}

impl SharedFileAction {
    fn verb(self) -> &'static str {
        match self {
            SharedFileAction::Create => "create",
            SharedFileAction::Open => "open",
            SharedFileAction::Write => "write",
            SharedFileAction::Read => "read",
            SharedFileAction::Lock => "lock",
            SharedFileAction::Remove => "remove",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_error::SystemFailure;
    use crate::shared_file::FileConsistency;

    fn wrong_byte(found: Option<u8>, origin: WrongByteOrigin) -> SharedFileProblem {
        SharedFileProblem::WrongByte {
            writer: "a".to_owned(),
            reader: "b".to_owned(),
            wrong: WrongByte {
                offset_bytes: 4102,
                writer: 0,
                generation: 3,
                expected: 3,
                found,
                origin,
            },
            consistency: FileConsistency::CloseToOpen,
        }
    }

    #[test]
    fn wrong_byte_words_name_offset_and_both_pods() {
        let earlier = WrongByteOrigin::EarlierWrite {
            writer: 1,
            generation: 2,
        };
        assert_eq!(
            wrong_byte(Some(2), earlier).to_string(),
            "pod b read the stale byte 0x02 at offset 4102 of the shared file, where pod a had \
             written 0x03 (close-to-open consistency)"
        );
        assert_eq!(
            wrong_byte(None, WrongByteOrigin::EndOfFile).to_string(),
            "pod b read the end of the file at offset 4102 of the shared file, where pod a had \
             written 0x03 (close-to-open consistency)"
        );
        assert_eq!(
            wrong_byte(Some(0), WrongByteOrigin::Unwritten).remedy(),
            "do not let several pods write one file of this class; check its mount options and \
             its server"
        );
    }

    #[test]
    fn shared_file_problems_keep_their_words() {
        let failed = SharedFileProblem::StepFailed {
            pod: "a".to_owned(),
            action: SharedFileAction::Create,
            failure: SystemFailure::Text("no".to_owned()),
        };
        assert_eq!(
            failed.to_string(),
            "pod a cannot create the shared file: no"
        );
        let one = SharedFileProblem::PodCount { pods: 1 };
        assert_eq!(
            one.to_string(),
            "a shared file needs 2 to 4096 pods, but 1 would run"
        );
        assert_eq!(
            one.remedy(),
            "give the number of pods with --pods, or use --shared without =file"
        );
        let driver = SharedFileProblem::OneNodeDriver {
            driver: "ebs.csi.aws.com".to_owned(),
            drivers: vec!["ebs.csi.aws.com".to_owned()],
        };
        assert_eq!(
            driver.to_string(),
            "volumes of its driver ebs.csi.aws.com cannot be written by several nodes \
             (ReadWriteMany)"
        );
        assert_eq!(
            driver.remedy(),
            "name another class; make one with Amazon EFS (efs.csi.aws.com), an NFS server and \
             nfs.csi.k8s.io or nfs-subdir-external-provisioner, CephFS (cephfs.csi.ceph.com, e.g. \
             by Rook), or Longhorn; on one node use --access-mode rwo --placement pack"
        );
    }
}
