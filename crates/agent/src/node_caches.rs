//! Drops the caches of the machine for clients.

use iosonde_machine::drop_caches::drop_all_caches;
use iosonde_result::wire::AgentMessage;

/// Drops all caches of the kernel, which other pods of the node share.
pub(crate) fn drop_caches() -> AgentMessage {
    AgentMessage::CachesDropped(drop_all_caches().map_err(|error| (&error).into()))
}
