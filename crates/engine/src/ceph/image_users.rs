//! Who else uses an image: clients that have it open for writing, and locks.
//!
//! A client that opens an image for writing watches its header until it closes it; a client that only reads does not. The
//! watch of a client that was killed ends after half a minute. The lock that librbd and the kernel take of themselves (feature
//! `exclusive-lock`) stays when its owner is killed, and the next client that writes takes it over: it says nothing that the
//! watches do not. A lock that a user has set (`rbd lock add`) stays until it is removed.

use super::backend::own_clients;
use super::{CephError, Image};
use std::fmt;

/// How the ids of locks begin that clients take of themselves.
const AUTOMATIC_LOCK: &str = "auto ";

/// Another user of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageUser {
    /// A client has it open for writing.
    Client {
        /// Where the client is.
        address: String,
    },
    /// A lock of a user.
    Lock {
        /// Whose it is, e.g. `client.4123`.
        client: String,
        /// Its name.
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

/// All users of an image but this process.
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
