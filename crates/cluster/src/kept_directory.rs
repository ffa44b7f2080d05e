//! Storage classes of shares whose provisioner keeps the directory of a removed volume.
//!
//! Such volumes have the reclaim policy `Delete`, and leave all their data on the share.

use k8s_openapi::api::storage::v1::StorageClass;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name of nfs-client-provisioner, the predecessor of nfs-subdir-external-provisioner.
const NFS_CLIENT_PROVISIONER: &str = "fuseim.pri/ifs";

/// Action of a provisioner on the directory of a removed volume, other than removing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptDirectory {
    /// It is renamed to `archived-NAME`.
    Archived {
        /// Parameter of the class that says so.
        parameter: String,
    },
    /// It stays as it is.
    Retained {
        /// Parameter of the class that says so.
        parameter: String,
    },
}

impl KeptDirectory {
    /// Returns what the provisioner of a class keeps. `None` if it removes the directory, or if the
    /// class has no known parameter of this kind.
    pub(crate) fn of_class(class: &StorageClass) -> Option<KeptDirectory> {
        let none = BTreeMap::new();
        let parameters = class.parameters.as_ref().unwrap_or(&none);
        let provisioner = class.provisioner.as_str();
        let on_delete = parameters.get("onDelete").map(|value| value.to_lowercase());
        match on_delete.as_deref() {
            Some("retain") => {
                let parameter = "onDelete: retain".to_owned();
                return Some(KeptDirectory::Retained { parameter });
            }
            Some("archive") => {
                let parameter = "onDelete: archive".to_owned();
                return Some(KeptDirectory::Archived { parameter });
            }
            Some("delete") => return None,
            _ => {}
        }
        let parameter = match parameters.get("archiveOnDelete") {
            Some(value) if is_false(value) => return None,
            Some(value) => format!("archiveOnDelete: {value}"),
            // Both archive unless the class says otherwise.
            None if provisioner.ends_with("nfs-subdir-external-provisioner")
                || provisioner == NFS_CLIENT_PROVISIONER =>
            {
                "archiveOnDelete, which is true by default".to_owned()
            }
            None => return None,
        };
        Some(KeptDirectory::Archived { parameter })
    }

    /// Returns the parameter of the class.
    pub fn parameter(&self) -> &str {
        match self {
            KeptDirectory::Archived { parameter } | KeptDirectory::Retained { parameter } => {
                parameter
            }
        }
    }

    /// Returns what stays on the share, for people.
    pub fn remainder(&self) -> &'static str {
        match self {
            KeptDirectory::Archived { .. } => "a directory archived-* with all its data",
            KeptDirectory::Retained { .. } => "its directory with all its data",
        }
    }
}

/// Whether Go's `strconv.ParseBool`, which the provisioners use, reads the value as false.
fn is_false(value: &str) -> bool {
    matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(provisioner: &str, name: &str, value: &str) -> Option<KeptDirectory> {
        let class = json!({
            "metadata": {"name": "nfs"},
            "provisioner": provisioner,
            "parameters": {name: value},
        });
        KeptDirectory::of_class(&serde_json::from_value(class).unwrap())
    }

    #[test]
    fn classes_that_archive_or_retain_are_known_by_parameter() {
        let archived = |parameter: &str| {
            let parameter = parameter.to_owned();
            Some(KeptDirectory::Archived { parameter })
        };
        let subdir = "cluster.local/nfs-subdir-external-provisioner";
        assert_eq!(
            kept(subdir, "archiveOnDelete", "true"),
            archived("archiveOnDelete: true")
        );
        assert_eq!(kept(subdir, "archiveOnDelete", "false"), None);
        assert_eq!(kept(subdir, "onDelete", "delete"), None);
        assert_eq!(
            kept(subdir, "pathPattern", "x"),
            archived("archiveOnDelete, which is true by default")
        );
        assert_eq!(
            kept("fuseim.pri/ifs", "pathPattern", "x"),
            archived("archiveOnDelete, which is true by default")
        );
        assert_eq!(
            kept("nfs.csi.k8s.io", "onDelete", "archive"),
            archived("onDelete: archive")
        );
        let retained = kept("nfs.csi.k8s.io", "onDelete", "retain").unwrap();
        assert_eq!(retained.parameter(), "onDelete: retain");
        assert_eq!(kept("nfs.csi.k8s.io", "server", "filer"), None);
        assert_eq!(kept("rancher.io/local-path", "nodePath", "/x"), None);
    }
}
