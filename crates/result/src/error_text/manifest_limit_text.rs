//! Words of a [`ManifestLimit`].

use crate::run_error::ManifestLimit;
use crate::words;
use std::borrow::Cow;

impl ManifestLimit {
    /// Returns what the manifest cannot hold, and why.
    pub(super) fn problem(self) -> Cow<'static, str> {
        let text = match self {
            ManifestLimit::FilesTooLarge { bytes } => {
                let size = words::bytes(bytes);
                let text = format!("the job file or suite has {size}, and a ConfigMap holds 1 MiB");
                return text.into();
            }
            ManifestLimit::ExistingBlockClaim => {
                "no program would check whether another pod uses this block device before it is \
                 written"
            }
            ManifestLimit::SharedStatefulSet => "the pods of a StatefulSet have a claim each",
            ManifestLimit::SharedFileCheck => {
                "the check of a shared file needs iosonde beside the pods"
            }
            ManifestLimit::StatefulSetOnOneVolume => {
                "the pods of this StatefulSet would use the same directory"
            }
            ManifestLimit::UnknownPodCount => "a manifest does not know the number of nodes",
        };
        text.into()
    }

    /// Returns the action to take.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            ManifestLimit::ExistingBlockClaim => {
                "run it with iosonde, which does, or name a storage class"
            }
            ManifestLimit::SharedStatefulSet => "leave out --shared, or render a Job",
            ManifestLimit::SharedFileCheck => "leave out --render, or use --shared without =file",
            ManifestLimit::StatefulSetOnOneVolume => "render a Job, or name a storage class",
            ManifestLimit::UnknownPodCount => {
                "give the number of pods, and spread them: --pods N --placement spread"
            }
            ManifestLimit::FilesTooLarge { .. } => {
                "leave out --render to run it with iosonde, or split the file into smaller ones"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_too_large_keep_their_words() {
        let limit = ManifestLimit::FilesTooLarge { bytes: 2 << 20 };
        assert_eq!(
            limit.problem(),
            "the job file or suite has 2 MiB, and a ConfigMap holds 1 MiB"
        );
        assert_eq!(
            limit.remedy(),
            "leave out --render to run it with iosonde, or split the file into smaller ones"
        );
    }
}
