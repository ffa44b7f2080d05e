//! Name of an image in a cluster.

use std::fmt;

/// Name of an image, with its pool and namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// The pool.
    pub pool: String,
    /// The namespace in the pool.
    pub namespace: Option<String>,
    /// The image.
    pub image: String,
}

impl ImageName {
    /// Returns the image as a target.
    pub fn uri(&self) -> String {
        format!("rbd://{self}")
    }
}

/// Writes the name as `rbd` takes it: `POOL/IMAGE` or `POOL/NAMESPACE/IMAGE`.
impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImageName {
            pool,
            namespace,
            image,
        } = self;
        match namespace {
            Some(namespace) => write!(formatter, "{pool}/{namespace}/{image}"),
            None => write!(formatter, "{pool}/{image}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_name_has_its_namespace_in_the_middle() {
        let mut name = ImageName {
            pool: "p".to_owned(),
            namespace: None,
            image: "i".to_owned(),
        };
        assert_eq!(name.uri(), "rbd://p/i");
        name.namespace = Some("ns".to_owned());
        assert_eq!(name.to_string(), "p/ns/i");
    }
}
