//! Schemes of targets: how a target's name begins.

use std::fmt;

/// The beginning of a target's name that tells what kind of storage it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetScheme<'a> {
    /// `sim:`, which has no slashes: a simulated device.
    Simulated,
    /// `rados://`: a Ceph pool.
    Rados,
    /// `rbd://`: a Ceph image.
    Rbd,
    /// `sc://`: a Kubernetes storage class.
    StorageClass,
    /// `pvc://`: an existing claim.
    Claim,
    /// `emptydir://`: an emptyDir volume.
    EmptyDir,
    /// `hostpath://`: a directory of a node.
    HostPath,
    /// `ephemeral://`: a generic ephemeral volume.
    Ephemeral,
    /// `pods://`: a directory of running pods.
    Pods,
    /// A scheme before `://` that no target has.
    Unknown(&'a str),
}

/// Schemes before `://`, in the order of error messages.
const SCHEMES: [(TargetScheme<'static>, &str); 8] = [
    (TargetScheme::Rados, "rados"),
    (TargetScheme::Rbd, "rbd"),
    (TargetScheme::StorageClass, "sc"),
    (TargetScheme::Claim, "pvc"),
    (TargetScheme::EmptyDir, "emptydir"),
    (TargetScheme::HostPath, "hostpath"),
    (TargetScheme::Ephemeral, "ephemeral"),
    (TargetScheme::Pods, "pods"),
];

/// Text between a scheme and the rest of a URI.
const SEPARATOR: &str = "://";

/// Prefix of the name of a simulated device.
const SIMULATED_PREFIX: &str = "sim:";

/// Splits a URI at `://` into the text of its scheme and the rest. `None` for a path, also for one
/// that contains `://` behind a slash or a dot: `./odd://name`.
pub(crate) fn split_uri(name: &str) -> Option<(&str, &str)> {
    let parts = name.split_once(SEPARATOR);
    parts.filter(|(scheme, _)| !scheme.contains(['/', '.']))
}

/// Returns the texts of all schemes before `://`.
pub(crate) fn scheme_names() -> [&'static str; SCHEMES.len()] {
    SCHEMES.map(|(_, name)| name)
}

impl<'a> TargetScheme<'a> {
    /// Returns the scheme of a target's name. `None`: the name is a path.
    pub fn of_name(name: &'a str) -> Option<TargetScheme<'a>> {
        if name.starts_with(SIMULATED_PREFIX) {
            return Some(TargetScheme::Simulated);
        }
        split_uri(name).map(|(scheme, _)| TargetScheme::named(scheme))
    }

    /// Returns the scheme with this text.
    pub(crate) fn named(text: &'a str) -> TargetScheme<'a> {
        let known = SCHEMES.iter().find(|(_, name)| *name == text);
        known.map_or(TargetScheme::Unknown(text), |(scheme, _)| *scheme)
    }

    /// The text of the scheme: `rbd`.
    pub fn name(self) -> &'a str {
        match self {
            TargetScheme::Simulated => "sim",
            TargetScheme::Unknown(name) => name,
            known => {
                let row = SCHEMES.iter().find(|(scheme, _)| *scheme == known);
                row.map_or("", |row| row.1)
            }
        }
    }

    /// Removes the scheme from the name of a target: `pool/image` of `rbd://pool/image`. `None`:
    /// the name has another scheme or none.
    pub fn strip(self, name: &str) -> Option<&str> {
        match self {
            TargetScheme::Simulated => name.strip_prefix(SIMULATED_PREFIX),
            scheme => {
                let rest = name.strip_prefix(scheme.name())?;
                rest.strip_prefix(SEPARATOR)
            }
        }
    }

    /// Whether the scheme is that of a Ceph pool or image.
    pub fn is_ceph(self) -> bool {
        matches!(self, TargetScheme::Rados | TargetScheme::Rbd)
    }
}

/// Writes the scheme as names begin with it: `rbd://`, `sim:`.
impl fmt::Display for TargetScheme<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetScheme::Simulated => f.write_str(SIMULATED_PREFIX),
            scheme => write!(f, "{}{SEPARATOR}", scheme.name()),
        }
    }
}

/// Whether a name is that of a Ceph pool or image.
pub fn is_ceph_name(name: &str) -> bool {
    TargetScheme::of_name(name).is_some_and(TargetScheme::is_ceph)
}

/// Whether a name is that of a Ceph image.
pub fn is_image_name(name: &str) -> bool {
    TargetScheme::of_name(name) == Some(TargetScheme::Rbd)
}

/// Whether a name is that of a simulated device.
pub fn is_simulated_name(name: &str) -> bool {
    TargetScheme::of_name(name) == Some(TargetScheme::Simulated)
}

/// Whether a name is a path of this machine, without any scheme.
pub fn is_path_name(name: &str) -> bool {
    TargetScheme::of_name(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_is_the_beginning_of_a_target_name() {
        for (name, scheme) in [
            ("", None),
            ("/dev/nvme0n1", None),
            ("rbd", None),
            ("rbd:/p/i", None),
            ("./odd://name", None),
            ("/mnt/rbd://p/i", None),
            ("sim", None),
            ("sim:", Some(TargetScheme::Simulated)),
            ("sim:nvme,seed=1", Some(TargetScheme::Simulated)),
            ("sim://nvme", Some(TargetScheme::Simulated)),
            ("rados://pool", Some(TargetScheme::Rados)),
            ("rbd://pool/?size=1g", Some(TargetScheme::Rbd)),
            ("sc://fast@context", Some(TargetScheme::StorageClass)),
            ("pvc://data", Some(TargetScheme::Claim)),
            ("emptydir://", Some(TargetScheme::EmptyDir)),
            ("hostpath:///mnt", Some(TargetScheme::HostPath)),
            ("ephemeral://fast", Some(TargetScheme::Ephemeral)),
            ("pods://app=fio", Some(TargetScheme::Pods)),
            ("s3://bucket", Some(TargetScheme::Unknown("s3"))),
        ] {
            assert_eq!(TargetScheme::of_name(name), scheme, "{name}");
            let beginning = scheme.map_or(String::new(), |scheme| scheme.to_string());
            assert!(name.starts_with(&beginning), "{name}: {beginning}");
        }
    }

    #[test]
    fn schemes_are_stripped_from_their_names_only() {
        assert_eq!(TargetScheme::Rbd.strip("rbd://p/i"), Some("p/i"));
        assert_eq!(TargetScheme::Rbd.strip("rados://p"), None);
        assert_eq!(TargetScheme::Rados.strip("rados:/p"), None);
        assert_eq!(TargetScheme::Simulated.strip("sim:nvme"), Some("nvme"));
        assert_eq!(TargetScheme::Unknown("s3").strip("s3://b"), Some("b"));
    }

    #[test]
    fn name_predicates_follow_the_scheme() {
        assert!(is_ceph_name("rados://p") && is_ceph_name("rbd://p/i") && !is_ceph_name("sc://p"));
        assert!(is_image_name("rbd://p/i") && !is_image_name("rados://p"));
        assert!(is_simulated_name("sim:nvme") && !is_simulated_name("simulated"));
        assert!(is_path_name("/mnt") && !is_path_name("sim:nvme") && !is_path_name("sc://x"));
    }
}
