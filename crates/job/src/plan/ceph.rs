//! What a job needs to know of a Ceph cluster, for the engines `rados` and `rbd`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds that an I/O or a call to the cluster may take unless the job says otherwise.
pub const CEPH_TIMEOUT_S: u32 = 60;

/// How a Ceph cluster is reached. What is not given is as Ceph's own programs have it: `CEPH_CONF`, `CEPH_ARGS`,
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
    /// `ceph_timeout`: seconds after which what the cluster does not answer is an error; at least 1.
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
    /// How the cluster is reached.
    pub access: CephAccess,
    /// `pool`.
    pub pool: String,
    /// `ceph_namespace`: the namespace of the pool's objects.
    pub namespace: Option<String>,
    /// `rbdname`: the image, for `rbd`.
    pub image: Option<String>,
    /// `busy_poll`: look for completions without sleeping.
    pub busy_poll: bool,
    /// `touch_objects`: make the objects before the first I/O.
    pub touch_objects: bool,
    /// `ceph_object_size`: a file is spread over objects of so many bytes; `None` keeps each file in one object, as fio
    /// does.
    pub object_bytes: Option<u64>,
    /// How the objects of a file are named, and whose they are.
    #[serde(default)]
    pub object_names: ObjectNames,
}

/// How the objects that a file is spread over are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectNames {
    /// The file's name, a dot, and the number in 16 hexadecimal digits.
    #[default]
    Numbered,
    /// As `rados bench` has it: the file's name, `_object`, and the number. Who makes such a plan sees to it that objects
    /// which are read are there, and removes those that are written.
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
        }
    }
}
