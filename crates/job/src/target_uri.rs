//! Targets: the paths and URIs that every command takes.

use super::target_scheme::{TargetScheme, scheme_names, split_uri};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A path or URI that names the storage to measure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TargetUri {
    /// A directory, file or block device of this machine.
    Path(String),
    /// `rados://POOL[/NAMESPACE]`: a Ceph pool.
    Rados {
        /// The pool.
        pool: String,
        /// The namespace in the pool.
        namespace: Option<String>,
    },
    /// `rbd://POOL/[NAMESPACE/]IMAGE[@SNAPSHOT]`: a Ceph image, or its snapshot, which is
    /// read-only.
    Rbd {
        /// The pool.
        pool: String,
        /// The namespace in the pool.
        namespace: Option<String>,
        /// The image, with `@SNAPSHOT` for a snapshot.
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
    /// `pods://SELECTOR[:/PATH]`: a directory of running pods that belong to the user.
    Pods {
        /// Label selector of the pods.
        selector: String,
        /// The directory; `None` is that of the pods' only volume.
        path: Option<String>,
    },
    /// `ephemeral://CLASS`: a generic ephemeral volume, which lives as long as its pod.
    Ephemeral(String),
}

/// The reason why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is empty.
    #[error("the target is empty; use a directory, a file, a device or a URI")]
    Empty,
    /// The scheme before `://` is unknown.
    #[error("unknown target scheme `{scheme}://`{}", meant(scheme))]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The part after `://` does not fit the scheme.
    #[error("invalid target `{text}`: use {expected}")]
    Form {
        /// The whole text.
        text: String,
        /// The form of a target with this scheme.
        expected: &'static str,
    },
}

const RBD_FORM: &str = "rbd://POOL/IMAGE or rbd://POOL/NAMESPACE/IMAGE";
const PODS_FORM: &str = "pods://SELECTOR or pods://SELECTOR:/PATH with a label selector: app=fio";

fn meant(scheme: &str) -> String {
    let simulated = TargetScheme::Simulated;
    if scheme == simulated.name() {
        return format!("; a simulated device is {simulated}NAME, without `//`");
    }
    // A scheme with a digit, such as s3, is no mistyped one.
    let has_digit = scheme.bytes().any(|letter| letter.is_ascii_digit());
    match crate::diagnostic::nearest(scheme, scheme_names()).filter(|_| !has_digit) {
        Some(meant) => format!("; did you mean `{meant}://`?"),
        None => format!(
            "; known schemes: {}, and {simulated}NAME for a simulated device",
            scheme_names().join(", ")
        ),
    }
}

impl TargetUri {
    /// Whether the target is reached through pods of a Kubernetes cluster.
    pub fn is_in_cluster(&self) -> bool {
        !matches!(
            self,
            TargetUri::Path(_) | TargetUri::Rados { .. } | TargetUri::Rbd { .. }
        )
    }
}

impl FromStr for TargetUri {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        let Some((scheme, rest)) = split_uri(text) else {
            return Ok(TargetUri::Path(text.to_owned()));
        };
        let form = |expected| TargetError::Form {
            text: text.to_owned(),
            expected,
        };
        match TargetScheme::named(scheme) {
            TargetScheme::Rados => {
                rados(rest).ok_or_else(|| form("rados://POOL or rados://POOL/NAMESPACE"))
            }
            TargetScheme::Rbd => parse_rbd(rest).ok_or_else(|| form(RBD_FORM)),
            TargetScheme::StorageClass => parse_name_part(rest)
                .map(TargetUri::StorageClass)
                .ok_or_else(|| form("sc://CLASS")),
            TargetScheme::Claim => {
                claim(rest).ok_or_else(|| form("pvc://NAME or pvc://NAMESPACE/NAME"))
            }
            TargetScheme::EmptyDir if rest.is_empty() => Ok(TargetUri::EmptyDir),
            TargetScheme::EmptyDir => Err(form("emptydir:// without a path")),
            TargetScheme::HostPath if rest.starts_with('/') => {
                Ok(TargetUri::HostPath(rest.to_owned()))
            }
            TargetScheme::HostPath => Err(form("hostpath:///PATH, an absolute path of the node")),
            TargetScheme::Ephemeral => parse_name_part(rest)
                .map(TargetUri::Ephemeral)
                .ok_or_else(|| form("ephemeral://CLASS")),
            TargetScheme::Pods => parse_pods(rest).ok_or_else(|| form(PODS_FORM)),
            TargetScheme::Simulated | TargetScheme::Unknown(_) => Err(TargetError::Scheme {
                scheme: scheme.to_owned(),
            }),
        }
    }
}

fn parse_name_part(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains('/')).then(|| text.to_owned())
}

fn rados(rest: &str) -> Option<TargetUri> {
    let (pool, namespace) = match rest.split_once('/') {
        Some((pool, namespace)) => (pool, Some(parse_name_part(namespace)?)),
        None => (rest, None),
    };
    Some(TargetUri::Rados {
        pool: parse_name_part(pool)?,
        namespace,
    })
}

fn parse_rbd(rest: &str) -> Option<TargetUri> {
    let (pool, image) = rest.split_once('/')?;
    let (namespace, image) = match image.split_once('/') {
        Some((namespace, image)) => (Some(parse_name_part(namespace)?), image),
        None => (None, image),
    };
    Some(TargetUri::Rbd {
        pool: parse_name_part(pool)?,
        namespace,
        image: parse_name_part(image)?,
    })
}

fn claim(rest: &str) -> Option<TargetUri> {
    let (namespace, claim) = match rest.split_once('/') {
        Some((namespace, claim)) => (Some(parse_name_part(namespace)?), claim),
        None => (None, rest),
    };
    Some(TargetUri::Claim {
        namespace,
        name: parse_name_part(claim)?,
    })
}

fn parse_pods(rest: &str) -> Option<TargetUri> {
    let (selector, path) = match rest.split_once(':') {
        Some((selector, path)) => (selector, Some(path)),
        None => (rest, None),
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./=!,() ".contains(c);
    let is_selector = !selector.trim().is_empty() && selector.chars().all(is_part);
    let is_absolute = path.is_none_or(|path| path.starts_with('/'));
    (is_selector && is_absolute).then(|| TargetUri::Pods {
        selector: selector.to_owned(),
        path: path.map(str::to_owned),
    })
}

impl fmt::Display for TargetUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash =
            |part: &Option<String>| part.as_ref().map_or(String::new(), |p| format!("/{p}"));
        match self {
            TargetUri::Path(path) => f.write_str(path),
            TargetUri::Rados { pool, namespace } => write!(f, "rados://{pool}{}", slash(namespace)),
            TargetUri::Rbd {
                pool,
                namespace,
                image,
            } => write!(f, "rbd://{pool}{}/{image}", slash(namespace)),
            TargetUri::StorageClass(class) => write!(f, "sc://{class}"),
            TargetUri::Claim { namespace, name } => match namespace {
                Some(namespace) => write!(f, "pvc://{namespace}/{name}"),
                None => write!(f, "pvc://{name}"),
            },
            TargetUri::EmptyDir => f.write_str("emptydir://"),
            TargetUri::HostPath(path) => write!(f, "hostpath://{path}"),
            TargetUri::Ephemeral(class) => write!(f, "ephemeral://{class}"),
            TargetUri::Pods { selector, path } => {
                let path = path
                    .as_ref()
                    .map_or(String::new(), |path| format!(":{path}"));
                write!(f, "pods://{selector}{path}")
            }
        }
    }
}

impl From<TargetUri> for String {
    fn from(target: TargetUri) -> String {
        target.to_string()
    }
}

impl TryFrom<String> for TargetUri {
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
    fn target_kinds_round_trip_through_text() {
        for text in [
            ".",
            "/dev/nvme0n1",
            "./odd://name",
            "rados://pool",
            "rados://pool/ns",
            "rbd://pool/image",
            "rbd://pool/ns/image@snapshot",
            "rbd://pool/ns/?size=1g",
            "sc://fast",
            "pvc://data",
            "pvc://prod/data",
            "emptydir://",
            "hostpath:///mnt/ssd",
            "ephemeral://fast",
            "pods://app=fio",
            "pods://app.kubernetes.io/name=fio,tier in (a, b):/data",
        ] {
            let target: TargetUri = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
        }
        assert!("sc://x".parse::<TargetUri>().unwrap().is_in_cluster());
        assert!(!"/x".parse::<TargetUri>().unwrap().is_in_cluster());
    }

    #[test]
    fn invalid_target_error_names_the_correct_form() {
        let error = |text: &str| text.parse::<TargetUri>().unwrap_err();
        assert_eq!(error(""), TargetError::Empty);
        for (text, expected) in [
            ("rbd://pool", RBD_FORM),
            ("rbd://pool//image", RBD_FORM),
            ("rbd://pool/ns/", RBD_FORM),
            ("rbd://pool/a/b/c", RBD_FORM),
            ("sc://", "sc://CLASS"),
            (
                "hostpath://mnt",
                "hostpath:///PATH, an absolute path of the node",
            ),
            ("emptydir://x", "emptydir:// without a path"),
            ("pods://", PODS_FORM),
            ("pods://app=fio:data", PODS_FORM),
            ("pods://app=@x", PODS_FORM),
        ] {
            let text = text.to_owned();
            assert_eq!(error(&text), TargetError::Form { text, expected });
        }
        for (text, scheme) in [("emtydir://", "emtydir"), ("s3://bucket", "s3")] {
            let scheme = scheme.to_owned();
            assert_eq!(error(text), TargetError::Scheme { scheme });
        }
    }

    #[test]
    fn target_errors_keep_their_words() {
        let scheme = |scheme: &str| TargetError::Scheme {
            scheme: scheme.to_owned(),
        };
        let form = TargetError::Form {
            text: "sc://".to_owned(),
            expected: "sc://CLASS",
        };
        for (error, words) in [
            (
                TargetError::Empty,
                "the target is empty; use a directory, a file, a device or a URI",
            ),
            (form, "invalid target `sc://`: use sc://CLASS"),
            (
                scheme("emtydir"),
                "unknown target scheme `emtydir://`; did you mean `emptydir://`?",
            ),
            (
                scheme("ftp"),
                "unknown target scheme `ftp://`; known schemes: rados, rbd, sc, pvc, emptydir, \
                 hostpath, ephemeral, pods, and sim:NAME for a simulated device",
            ),
            (
                scheme("s3"),
                "unknown target scheme `s3://`; known schemes: rados, rbd, sc, pvc, emptydir, \
                 hostpath, ephemeral, pods, and sim:NAME for a simulated device",
            ),
            (
                scheme("sim"),
                "unknown target scheme `sim://`; a simulated device is sim:NAME, without `//`",
            ),
        ] {
            assert_eq!(error.to_string(), words);
        }
    }

    proptest! {
        #[test]
        fn parsed_target_prints_as_its_input(text in "[a-z]{0,9}(://)?[a-z/]{0,9}|\\PC{0,12}") {
            if let Ok(target) = text.parse::<TargetUri>() {
                prop_assert_eq!(target.to_string(), text);
            }
        }
    }
}
