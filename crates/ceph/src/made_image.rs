//! Images that a command makes for its measurement, and removes after it.

use crate::access::{connect, connect_to_remove};
use crate::error::CephError;
use crate::image_name::ImageName;
use crate::made_pool::refuse_errors_of_cluster;
use iosonde_job::plan::CephAccess;
use iosonde_result::run_error::{CephProblem, RunError};

/// Creates an image of this length, with the cluster's default features.
///
/// # Errors
/// A missing pool or namespace, a cluster that reports errors, or a client without the rights.
pub fn make_image(name: &ImageName, bytes: u64, access: &CephAccess) -> Result<(), RunError> {
    let (uri, image) = (name.uri(), &name.image);
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect(access).map_err(failed)?;
    refuse_errors_of_cluster(&cluster, &uri)?;
    let objects = cluster.pool(&name.pool, name.namespace.as_deref());
    let objects = objects.map_err(failed)?;
    objects.create_image(name, bytes).map_err(|error| {
        // A failure, e.g. a timeout, may leave parts of the image. An existing image stays.
        if error.errno() != Some(libc::EEXIST) {
            let _ = objects.remove_image(image);
        }
        failed(error)
    })
}

/// Removes an image with its data. A missing image is not an error.
///
/// # Errors
/// An image that another client has open, or a cluster that does not answer.
pub fn remove_image(name: &ImageName, access: &CephAccess) -> Result<(), RunError> {
    let uri = name.uri();
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect_to_remove(access).map_err(failed)?;
    let objects = cluster.pool(&name.pool, name.namespace.as_deref());
    match objects.map_err(failed)?.remove_image(&name.image) {
        Ok(()) => Ok(()),
        Err(error) => match error.errno() {
            Some(libc::ENOENT) => Ok(()),
            Some(errno) => {
                let cause = CephProblem::ImageNotRemoved {
                    image: name.to_string(),
                    errno,
                };
                Err(RunError::unusable_target(&uri, cause.into()))
            }
            None => Err(failed(error)),
        },
    }
}

/// Names of all images of a pool, or of a namespace in it, with this prefix.
///
/// # Errors
/// A missing library, a missing pool, or a client without the rights.
pub fn list_images(
    (pool, namespace): (&str, Option<&str>),
    prefix: &str,
    access: &CephAccess,
) -> Result<Vec<String>, RunError> {
    let failed = |error: CephError| error.on(&format!("rados://{pool}"));
    let cluster = connect(access).map_err(failed)?;
    let objects = cluster.pool(pool, namespace).map_err(failed)?;
    objects.images(prefix).map_err(failed)
}
