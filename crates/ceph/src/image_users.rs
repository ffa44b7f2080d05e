//! Finds other users of an image: clients that have it open for writing, and locks.
//!
//! A client that opens an image for writing watches its header until it closes the image; a
//! read-only client does not. The watch of a killed client ends after 30 s. The automatic lock of
//! librbd and the kernel (feature `exclusive-lock`) outlives a killed owner, and the next writing
//! client takes it over, so it is ignored. A user's lock (`rbd lock add`) stays until removed.

use crate::clients::own_client_ids;
use crate::error::CephError;
use crate::sys::rbd::Image;
use iosonde_result::run_error::ImageUser;

/// Prefix of the ids of automatic locks.
const AUTOMATIC_LOCK: &str = "auto ";

/// All users of an image except this process.
pub(crate) fn other_users(image: &Image) -> Result<Vec<ImageUser>, CephError> {
    let own = own_client_ids();
    let watchers = image.watchers()?.into_iter();
    let clients = watchers.filter(|watcher| !own.contains(&watcher.client));
    let mut users: Vec<ImageUser> = clients
        .map(|watcher| ImageUser::Client {
            address: watcher.address,
        })
        .collect();
    let locks = image.locks()?.into_iter();
    let set = locks.filter(|lock| !lock.id.starts_with(AUTOMATIC_LOCK));
    users.extend(set.map(|lock| ImageUser::Lock {
        client: lock.client,
        id: lock.id,
    }));
    Ok(users)
}
