//! Targets: the paths and URIs that every command takes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A path or URI that names the storage to measure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Target {
    /// A directory, file or block device of this machine.
    Path(String),
    /// `rados://POOL[/NAMESPACE]`: a Ceph pool.
    Rados {
        /// The pool.
        pool: String,
        /// The namespace in the pool.
        namespace: Option<String>,
    },
    /// `rbd://POOL/IMAGE`: a Ceph image.
    Rbd {
        /// The pool.
        pool: String,
        /// The image.
        image: String,
    },
    /// `sc://CLASS`: a Kubernetes storage class.
    StorageClass(String),
    /// `pvc://[NAMESPACE/]NAME`: an existing claim.
    Claim {
        /// The namespace; `None` is the default one (`--namespace`, or the kubeconfig's).
        namespace: Option<String>,
        /// The claim.
        name: String,
    },
    /// `emptydir://`: an emptyDir volume of the pod.
    EmptyDir,
    /// `hostpath:///PATH`: a directory of the node; the path is absolute.
    HostPath(String),
    /// `ephemeral://CLASS`: a generic ephemeral volume, which lives as long as its pod.
    Ephemeral(String),
}

/// The reason why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is empty.
    #[error("the target is empty; name a directory, a file, a device or a URI")]
    Empty,
    /// The scheme before `://` is unknown.
    #[error("there is no kind of target `{scheme}://`{}", meant(scheme))]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The part after `://` does not fit the scheme.
    #[error("`{text}` is not a target of its kind: write {expected}")]
    Form {
        /// The whole text.
        text: String,
        /// The form of a target with this scheme.
        expected: &'static str,
    },
}

const SCHEMES: [&str; 7] = [
    "rados",
    "rbd",
    "sc",
    "pvc",
    "emptydir",
    "hostpath",
    "ephemeral",
];

fn meant(scheme: &str) -> String {
    match crate::diagnostic::nearest(scheme, SCHEMES) {
        Some(meant) => format!("; did you mean `{meant}://`?"),
        None => format!("; there are {}", SCHEMES.join(", ")),
    }
}

impl Target {
    /// Whether the target is reached through pods of a Kubernetes cluster.
    pub fn is_in_cluster(&self) -> bool {
        !matches!(
            self,
            Target::Path(_) | Target::Rados { .. } | Target::Rbd { .. }
        )
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Target::Path(text.to_owned()));
        };
        if scheme.contains(['/', '.']) {
            return Ok(Target::Path(text.to_owned()));
        }
        let form = |expected| TargetError::Form {
            text: text.to_owned(),
            expected,
        };
        match scheme {
            "rados" => rados(rest).ok_or_else(|| form("rados://POOL or rados://POOL/NAMESPACE")),
            "rbd" => rbd(rest).ok_or_else(|| form("rbd://POOL/IMAGE")),
            "sc" => name(rest)
                .map(Target::StorageClass)
                .ok_or_else(|| form("sc://CLASS")),
            "pvc" => claim(rest).ok_or_else(|| form("pvc://NAME or pvc://NAMESPACE/NAME")),
            "emptydir" if rest.is_empty() => Ok(Target::EmptyDir),
            "emptydir" => Err(form("emptydir:// with nothing behind it")),
            "hostpath" if rest.starts_with('/') => Ok(Target::HostPath(rest.to_owned())),
            "hostpath" => Err(form("hostpath:///PATH, an absolute path of the node")),
            "ephemeral" => name(rest)
                .map(Target::Ephemeral)
                .ok_or_else(|| form("ephemeral://CLASS")),
            _ => Err(TargetError::Scheme {
                scheme: scheme.to_owned(),
            }),
        }
    }
}

fn name(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains('/')).then(|| text.to_owned())
}

fn rados(rest: &str) -> Option<Target> {
    let (pool, namespace) = match rest.split_once('/') {
        Some((pool, namespace)) => (pool, Some(name(namespace)?)),
        None => (rest, None),
    };
    Some(Target::Rados {
        pool: name(pool)?,
        namespace,
    })
}

fn rbd(rest: &str) -> Option<Target> {
    let (pool, image) = rest.split_once('/')?;
    Some(Target::Rbd {
        pool: name(pool)?,
        image: name(image)?,
    })
}

fn claim(rest: &str) -> Option<Target> {
    let (namespace, claim) = match rest.split_once('/') {
        Some((namespace, claim)) => (Some(name(namespace)?), claim),
        None => (None, rest),
    };
    Some(Target::Claim {
        namespace,
        name: name(claim)?,
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash =
            |part: &Option<String>| part.as_ref().map_or(String::new(), |p| format!("/{p}"));
        match self {
            Target::Path(path) => f.write_str(path),
            Target::Rados { pool, namespace } => write!(f, "rados://{pool}{}", slash(namespace)),
            Target::Rbd { pool, image } => write!(f, "rbd://{pool}/{image}"),
            Target::StorageClass(class) => write!(f, "sc://{class}"),
            Target::Claim { namespace, name } => match namespace {
                Some(namespace) => write!(f, "pvc://{namespace}/{name}"),
                None => write!(f, "pvc://{name}"),
            },
            Target::EmptyDir => f.write_str("emptydir://"),
            Target::HostPath(path) => write!(f, "hostpath://{path}"),
            Target::Ephemeral(class) => write!(f, "ephemeral://{class}"),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_is_read_and_written() {
        for text in [
            ".",
            "/dev/nvme0n1",
            "./odd://name",
            "rados://pool",
            "rados://pool/ns",
            "rbd://pool/image",
            "sc://fast",
            "pvc://data",
            "pvc://prod/data",
            "emptydir://",
            "hostpath:///mnt/ssd",
            "ephemeral://fast",
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
        }
        assert!("sc://x".parse::<Target>().unwrap().is_in_cluster());
        assert!(!"/x".parse::<Target>().unwrap().is_in_cluster());
    }

    #[test]
    fn wrong_ones_say_what_is_right() {
        for (text, words) in [
            ("", "empty"),
            ("rbd://pool", "rbd://POOL/IMAGE"),
            ("sc://", "sc://CLASS"),
            ("hostpath://mnt", "absolute"),
            ("emptydir://x", "nothing behind"),
            ("emtydir://", "did you mean `emptydir://`"),
            ("s3://bucket", "there"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_alike(text in "[a-z]{0,9}(://)?[a-z/]{0,9}|\\PC{0,12}") {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.to_string(), text);
            }
        }
    }
}
