//! Images that a command makes for its measurement, and removes after it.

use crate::access::{connect, connect_to_remove};
use crate::error::CephError;
use crate::made_pool::refuse_errors_of_cluster;
use iosonde_job::plan::CephAccess;
use iosonde_result::run_error::{CephProblem, RunError};

/// Creates an image of this length, with the cluster's default features.
///
/// # Errors
/// A missing pool, a cluster that reports errors, or a client without the rights.
pub fn make_image(
    pool: &str,
    image: &str,
    bytes: u64,
    access: &CephAccess,
) -> Result<(), RunError> {
    let uri = format!("rbd://{pool}/{image}");
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect(access).map_err(failed)?;
    refuse_errors_of_cluster(&cluster, &uri)?;
    let objects = cluster.pool(pool, None).map_err(failed)?;
    objects.create_image(image, bytes).map_err(|error| {
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
pub fn remove_image(pool: &str, image: &str, access: &CephAccess) -> Result<(), RunError> {
    let uri = format!("rbd://{pool}/{image}");
    let failed = |error: CephError| error.on(&uri);
    let cluster = connect_to_remove(access).map_err(failed)?;
    let objects = cluster.pool(pool, None).map_err(failed)?;
    match objects.remove_image(image) {
        Ok(()) => Ok(()),
        Err(error) => match error.errno() {
            Some(libc::ENOENT) => Ok(()),
            Some(errno) => {
                let cause = CephProblem::ImageNotRemoved {
                    image: format!("{pool}/{image}"),
                    errno,
                };
                Err(RunError::unusable_target(&uri, cause.into()))
            }
            None => Err(failed(error)),
        },
    }
}

/// Names of all images of a pool with this prefix.
///
/// # Errors
/// A missing library, a missing pool, or a client without the rights.
pub fn list_images(pool: &str, prefix: &str, access: &CephAccess) -> Result<Vec<String>, RunError> {
    let failed = |error: CephError| error.on(&format!("rados://{pool}"));
    let cluster = connect(access).map_err(failed)?;
    let objects = cluster.pool(pool, None).map_err(failed)?;
    objects.images(prefix).map_err(failed)
}
