//! Image that a target asks to be made: `rbd://POOL/[NAMESPACE/]?size=SIZE`.

use crate::failure::CommandError;
use iosonde_job::TargetScheme;
use iosonde_job::value::{Bytes, bytes};

/// An image to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestedImage {
    pub(super) pool: String,
    /// A namespace of the pool, which must exist.
    pub(super) namespace: Option<String>,
    /// Length of the image.
    pub(super) bytes: u64,
}

/// The image that a target asks for: `rbd://POOL/[NAMESPACE/]?size=SIZE`.
pub(super) fn requested_image(target: &str) -> Result<Option<RequestedImage>, CommandError> {
    let parts = TargetScheme::Rbd.strip(target);
    let Some((place, query)) = parts.and_then(|parts| parts.split_once("/?")) else {
        return Ok(None);
    };
    let (pool, namespace) = match place.split_once('/') {
        Some((pool, namespace)) => (pool, Some(namespace)),
        None => (place, None),
    };
    let is_invalid = |name: &str| name.is_empty() || name.contains('/');
    let problem = match query.strip_prefix("size=") {
        None => format!("`?{query}` is not `?size=SIZE`"),
        Some(_) if pool.is_empty() => "the pool is missing".to_owned(),
        Some(_) if namespace.is_some_and(is_invalid) => "the namespace is invalid".to_owned(),
        Some(size) => match bytes(size, Bytes::Binary) {
            Ok(0) => "the size must be more than 0".to_owned(),
            Ok(bytes) => {
                return Ok(Some(RequestedImage {
                    pool: pool.to_owned(),
                    namespace: namespace.map(str::to_owned),
                    bytes,
                }));
            }
            Err(error) => error.message,
        },
    };
    Err(CommandError::usage(
        format!("{target}: {problem}"),
        "name the pool and the size of the image to make, e.g. rbd://POOL/?size=10g",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_images_have_pool_and_size() {
        let request = |target: &str| requested_image(target).map_err(|error| error.text(false));
        let of_pool = |namespace: Option<&str>| RequestedImage {
            pool: "p".to_owned(),
            namespace: namespace.map(str::to_owned),
            bytes: 10 << 30,
        };
        assert_eq!(request("rbd://p/?size=10g"), Ok(Some(of_pool(None))));
        assert_eq!(
            request("rbd://p/ns/?size=10g"),
            Ok(Some(of_pool(Some("ns"))))
        );
        for other in ["rbd://p/i", "rados://p", "/mnt/?size=1g", "sc://x"] {
            assert_eq!(request(other), Ok(None), "{other}");
        }
        for wrong in [
            "rbd://p/?size=0",
            "rbd://p/?size=x",
            "rbd://p/?bytes=1",
            "rbd:///?size=1g",
            "rbd://p//?size=1g",
            "rbd://p/a/b/?size=1g",
        ] {
            let error = requested_image(wrong).unwrap_err();
            let (problem, help) = error.usage_parts();
            assert!(problem.starts_with(&format!("{wrong}: ")), "{problem}");
            let example = "name the pool and the size of the image to make, e.g. \
                           rbd://POOL/?size=10g";
            assert_eq!(help, example);
        }
    }
}
