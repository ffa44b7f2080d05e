//! Access to a Ceph cluster, and the options of the engines `rados` and `rbd`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default of `ceph_timeout`: seconds that an I/O or a call to the cluster may take.
pub const CEPH_TIMEOUT_S: u32 = 60;

/// Access to a Ceph cluster. Unset fields take Ceph's own defaults: `CEPH_CONF`, `CEPH_ARGS`,
/// /etc/ceph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CephAccess {
    /// `conf`: the configuration file.
    pub conf: Option<String>,
    /// `clustername`.
    pub cluster: Option<String>,
    /// `clientname`, with or without its type: `admin`, `client.admin`.
    pub client: Option<String>,
    /// `ceph_keyring`: the file of the client's key.
    pub keyring: Option<String>,
    /// `ceph_timeout`: seconds after which an I/O or a call without an answer fails; at least 1.
    pub timeout_s: u32,
}

impl Default for CephAccess {
    fn default() -> Self {
        CephAccess {
            conf: None,
            cluster: None,
            client: None,
            keyring: None,
            timeout_s: CEPH_TIMEOUT_S,
        }
    }
}

/// Options of the engines `rados` and `rbd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ceph {
    /// Access to the cluster.
    pub access: CephAccess,
    /// `pool`.
    pub pool: String,
    /// `ceph_namespace`: the namespace of the pool's objects.
    pub namespace: Option<String>,
    /// `rbdname`: the image, for `rbd`.
    pub image: Option<String>,
    /// `busy_poll`: poll for completions without sleeping.
    pub busy_poll: bool,
    /// `touch_objects`: create the objects before the first I/O.
    pub touch_objects: bool,
    /// `ceph_object_size`: the bytes of each object over which a file is striped. `None` keeps each
    /// file in one object, as fio does.
    pub object_bytes: Option<u64>,
    /// Names of a file's objects, and the rules for making and removing them.
    #[serde(default)]
    pub object_names: ObjectNames,
    /// Parts of an object that a write changes.
    #[serde(default, skip_serializing_if = "WrittenParts::is_data_only")]
    pub written_parts: WrittenParts,
}

/// Parts of an object that a write changes, each with the same bytes: `rados bench --write-object`,
/// `--write-omap` and `--write-xattr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WrittenParts {
    /// The data.
    pub data: bool,
    /// A value of the object map, whose key has the offset.
    pub omap: bool,
    /// An extended attribute, whose name has the offset.
    pub xattr: bool,
}

impl WrittenParts {
    /// Whether writes change the data and nothing else.
    pub fn is_data_only(&self) -> bool {
        *self == WrittenParts::default()
    }
}

impl Default for WrittenParts {
    fn default() -> Self {
        WrittenParts {
            data: true,
            omap: false,
            xattr: false,
        }
    }
}

/// Names of the objects over which a file is striped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectNames {
    /// The file's name, a dot, and the number in 16 hexadecimal digits.
    #[default]
    Numbered,
    /// The names of `rados bench`: the file's name, `_object`, and the number. The maker of such a
    /// plan ensures that objects to read exist, and removes objects that were written.
    RadosBench,
}

impl Default for Ceph {
    fn default() -> Self {
        Ceph {
            access: CephAccess::default(),
            pool: String::new(),
            namespace: None,
            image: None,
            busy_poll: false,
            touch_objects: true,
            object_bytes: None,
            object_names: ObjectNames::Numbered,
            written_parts: WrittenParts::default(),
        }
    }
}
