//! Remedies of `--cold`, when a layer keeps its caches.

use crate::cache_state::CacheLayer;
use iosonde_job::errno;

/// Returns the right that a layer needs.
pub(super) fn cold_remedy(layer: CacheLayer, errno: Option<i32>) -> &'static str {
    match layer {
        CacheLayer::Client => "run as root, or leave out `client`",
        CacheLayer::Node => {
            "use a namespace that admits privileged pods \
             (pod-security.kubernetes.io/enforce=privileged), or leave out `node`"
        }
        CacheLayer::Osd if errno == Some(errno::ETIMEDOUT) => {
            "see `ceph health detail` for OSDs that are down or slow, or leave out `osd`"
        }
        CacheLayer::Osd => {
            "use a client with the capability osd 'allow *' (--ceph-client), or leave out `osd`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_text::error_checks::check_error;
    use crate::run_error::{RunError, SystemFailure, UnsupportedFeature};

    #[test]
    fn caches_that_are_not_dropped_keep_their_words() {
        let cases = [
            (
                CacheLayer::Client,
                "n1",
                errno::EACCES,
                "--cold client: n1 cannot drop its caches: Permission denied (EACCES)",
                "run as root, or leave out `client`",
            ),
            (
                CacheLayer::Node,
                "n1",
                errno::EACCES,
                "--cold node: n1 cannot drop its caches: Permission denied (EACCES)",
                "use a namespace that admits privileged pods \
                 (pod-security.kubernetes.io/enforce=privileged), or leave out `node`",
            ),
            (
                CacheLayer::Osd,
                "osd.4",
                errno::ETIMEDOUT,
                "--cold osd: osd.4 cannot drop its caches: Connection timed out (ETIMEDOUT)",
                "see `ceph health detail` for OSDs that are down or slow, or leave out `osd`",
            ),
            (
                CacheLayer::Osd,
                "osd.4",
                errno::EACCES,
                "--cold osd: osd.4 cannot drop its caches: Permission denied (EACCES)",
                "use a client with the capability osd 'allow *' (--ceph-client), or leave out \
                 `osd`",
            ),
        ];
        for (layer, place, errno, words, remedy) in cases {
            let error = RunError::from(UnsupportedFeature::CachesNotDropped {
                layer,
                place: place.to_owned(),
                failure: SystemFailure::Errno(errno),
            });
            check_error(&error, words, remedy);
        }
    }
}
