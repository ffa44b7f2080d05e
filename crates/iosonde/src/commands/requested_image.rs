//! Image that a target asks to be made: `rbd://POOL/?size=SIZE`.

use crate::failure::CommandError;
use iosonde_job::TargetScheme;
use iosonde_job::value::{Bytes, bytes};

/// Pool and length of the image that a target asks for: `rbd://POOL/?size=SIZE`.
pub(super) fn requested_image(target: &str) -> Result<Option<(String, u64)>, CommandError> {
    let parts = TargetScheme::Rbd.strip(target);
    let Some((pool, query)) = parts.and_then(|parts| parts.split_once("/?")) else {
        return Ok(None);
    };
    let problem = match query.strip_prefix("size=") {
        None => format!("`?{query}` is not `?size=SIZE`"),
        Some(_) if pool.is_empty() => "the pool is missing".to_owned(),
        Some(_) if pool.contains('/') => "an image is made outside of namespaces".to_owned(),
        Some(size) => match bytes(size, Bytes::Binary) {
            Ok(0) => "the size must be more than 0".to_owned(),
            Ok(size) => return Ok(Some((pool.to_owned(), size))),
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
        assert_eq!(
            request("rbd://p/?size=10g"),
            Ok(Some(("p".to_owned(), 10 << 30)))
        );
        for other in ["rbd://p/i", "rados://p", "/mnt/?size=1g", "sc://x"] {
            assert_eq!(request(other), Ok(None), "{other}");
        }
        for wrong in [
            "rbd://p/?size=0",
            "rbd://p/?size=x",
            "rbd://p/?bytes=1",
            "rbd:///?size=1g",
            "rbd://p/ns/?size=1g",
        ] {
            let text = request(wrong).unwrap_err();
            assert!(text.contains(wrong) && text.contains("?size=10g"), "{text}");
        }
    }
}
