//! Finds other users of an image: clients that have it open for writing, and locks.
//!
//! A client that opens an image for writing watches its header until it closes the image; a
//! read-only client does not. The watch of a killed client ends after 30 s. The automatic lock of
//! librbd and the kernel (feature `exclusive-lock`) outlives a killed owner, and the next writing
//! client takes it over, so it is ignored. A user's lock (`rbd lock add`) stays until removed.

use super::backend::own_clients;
use super::{CephError, Image};
use std::fmt;

/// Prefix of the ids of automatic locks.
const AUTOMATIC_LOCK: &str = "auto ";

/// Another user of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageUser {
    /// A client that has the image open for writing.
    Client {
        /// Address of the client.
        address: String,
    },
    /// A lock set by a user.
    Lock {
        /// Owner, e.g. `client.4123`.
        client: String,
        /// Name of the lock.
        id: String,
    },
}

impl fmt::Display for ImageUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client { address } => {
                write!(f, "the client at {address} has it open for writing")
            }
            Self::Lock { client, id } => write!(f, "{client} holds the lock {id:?} on it"),
        }
    }
}

/// All users of an image except this process.
pub(super) fn other_users(image: &Image) -> Result<Vec<ImageUser>, CephError> {
    let own = own_clients();
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
