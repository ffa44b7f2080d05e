//! Access to pools and images of Ceph in user space: connecting to a cluster, placement of data,
//! and checks before data are read or written.
//!
//! The backends are in [`crate::io`], the calls of the libraries in [`crate::sys`].

mod access;
mod backend;
mod error;
mod estate;
mod fill;
mod image;
mod image_users;
mod look;
mod places;
mod pool;
mod ranges;
mod side;
pub mod stripes;
mod watch;

pub use crate::sys::rados::{Cluster, IoCtx, Lending, ObjectStat, Piece, Requests, version};
pub use crate::sys::rbd::{Image, ImageRequests, version as rbd_version};
pub use access::connect;
pub(crate) use backend::{CephBackend, backend_of, file_name, image_bytes};
pub use backend::{open_image, share};
pub use error::CephError;
pub(crate) use estate::{Estate, Terms};
pub use look::{Found, look};
pub use pool::{Removal, remove_objects};
pub use watch::Watch;
