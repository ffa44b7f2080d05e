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
