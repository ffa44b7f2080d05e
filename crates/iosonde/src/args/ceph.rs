//! How a Ceph cluster is reached.

use clap::Args;
use iosonde_job::plan::{CEPH_TIMEOUT_S, CephAccess};

/// Options of targets in a Ceph cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets in a Ceph cluster (rados://POOL, rbd://POOL/IMAGE)")]
pub(crate) struct CephArgs {
    /// Its configuration file [default: CEPH_CONF, else /etc/ceph/ceph.conf]
    #[arg(long, value_name = "FILE")]
    pub(crate) ceph_conf: Option<String>,
    /// The client, e.g. bench or client.bench [default: that of CEPH_ARGS, else client.admin]
    #[arg(long, visible_alias = "ceph-name", value_name = "NAME")]
    pub(crate) ceph_client: Option<String>,
    /// File of the client's key [default: where the configuration says]
    #[arg(long, value_name = "FILE")]
    pub(crate) ceph_keyring: Option<String>,
    /// Seconds after which what the cluster does not answer is an error [default: 60]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=86_400), value_name = "SECONDS")]
    pub(crate) ceph_timeout: Option<u32>,
}

impl CephArgs {
    /// These, for the engine.
    pub(crate) fn access(&self) -> CephAccess {
        CephAccess {
            conf: self.ceph_conf.clone(),
            cluster: None,
            client: self.ceph_client.clone(),
            keyring: self.ceph_keyring.clone(),
            timeout_s: self.ceph_timeout.unwrap_or(CEPH_TIMEOUT_S),
        }
    }
}
