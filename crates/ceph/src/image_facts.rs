//! Contents and users of an image, before the kernel maps it.

use crate::access::connect;
use crate::error::CephError;
use crate::image_name::ImageName;
use crate::image_users::other_users;
use crate::sys::rbd::Image;
use iosonde_job::plan::CephAccess;
use iosonde_machine::signature::{self, Signature};
use iosonde_result::run_error::{ImageContent, ImageUser, RunError, WriteRefusal};

/// Contents and users of an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageFacts {
    /// Identity of the cluster.
    pub fsid: String,
    /// Whether the image was never written.
    pub is_empty: bool,
    /// Marks of file systems and other formats.
    pub signatures: Vec<Signature>,
    /// Other clients that have the image open for writing, and locks of users.
    pub users: Vec<ImageUser>,
}

/// Reads the facts of an image through librbd.
///
/// # Errors
/// A cluster that cannot be reached, a missing pool or image, or an image that cannot be read.
pub fn read_image_facts(name: &ImageName, access: &CephAccess) -> Result<ImageFacts, RunError> {
    let uri = name.uri();
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect(access).map_err(failed)?;
    let fsid = cluster.fsid().map_err(failed)?;
    let objects = cluster.pool(&name.pool, name.namespace.as_deref());
    let objects = objects.map_err(failed)?;
    let opened = Image::open(&objects, &name.image, false).map_err(failed)?;
    let bytes = opened.size_bytes().map_err(failed)?;
    let written = opened.written(0..bytes).map_err(failed)?;
    let users = other_users(&opened).map_err(failed)?;
    let signatures = signature::probe(&opened, bytes).map_err(|error| {
        let cause = WriteRefusal::ImageInUse {
            image: name.to_string(),
            users: Vec::new(),
            contents: vec![ImageContent::Unreadable {
                error: error.to_string(),
            }],
            consent_name: uri.clone(),
        };
        RunError::write_refused(uri.clone(), cause)
    })?;
    Ok(ImageFacts {
        fsid,
        is_empty: written.is_empty(),
        signatures,
        users,
    })
}
