//! Options for access to a Ceph cluster.

use super::WITHOUT_CEPH;
use clap::{Args, ValueEnum};
use iosonde_ceph::PoolKind;
use iosonde_job::plan::{CEPH_TIMEOUT_S, CephAccess};

/// Options of targets in a Ceph cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets in a Ceph cluster (rados://POOL, rbd://POOL/IMAGE)")]
pub(crate) struct CephArgs {
    /// Configuration file of Ceph [default: CEPH_CONF, else /etc/ceph/ceph.conf]
    #[arg(long, hide = WITHOUT_CEPH, value_name = "FILE")]
    pub(crate) ceph_conf: Option<String>,
    /// Name of the Ceph client, e.g. bench or client.bench [default: the client in CEPH_ARGS, else
    /// client.admin]
    #[arg(long, visible_alias = "ceph-name", hide = WITHOUT_CEPH, value_name = "NAME")]
    pub(crate) ceph_client: Option<String>,
    /// File with the client's key [default: the keyring in the configuration]
    #[arg(long, hide = WITHOUT_CEPH, value_name = "FILE")]
    pub(crate) ceph_keyring: Option<String>,
    /// Timeout of a request to the cluster, in seconds; a request that times out is an error
    /// [default: 60]
    #[arg(
        long,
        hide = WITHOUT_CEPH,
        value_parser = clap::value_parser!(u32).range(1..=86_400),
        value_name = "SECONDS"
    )]
    pub(crate) ceph_timeout: Option<u32>,
    #[command(flatten)]
    pub(crate) made_pool: MadePoolArgs,
    /// Measure the image rbd://POOL/IMAGE or rbd://POOL/?size=SIZE with a file system on this
    /// machine: map it through the kernel (krbd), format it if it holds no file system, and mount
    /// it; all of this is undone at the end. Needs root [default without a TYPE: auto]
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        hide = WITHOUT_CEPH,
        value_name = "TYPE"
    )]
    pub(crate) map: Option<MapFormat>,
}

/// File system of an image that is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapFormat {
    /// The file system on the image, or ext4 on an image without one
    Auto,
    /// ext4 instead of no file system or, with --allow-overwrite, of another one
    Ext4,
    /// XFS instead of no file system or, with --allow-overwrite, of another one
    Xfs,
}

/// A pool that is made for the command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MadePoolArgs {
    /// Make the pool of the target, which must not exist, and remove it at the end: replicated,
    /// erasure, or erasure:PROFILE [default without a KIND: replicated]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "replicated",
        hide = WITHOUT_CEPH,
        value_parser = pool_kind,
        value_name = "KIND"
    )]
    pub(crate) make_pool: Option<PoolKind>,
}

fn pool_kind(text: &str) -> Result<PoolKind, String> {
    match text.split_once(':') {
        None if text == "replicated" => Ok(PoolKind::Replicated),
        None if text == "erasure" => Ok(PoolKind::Erasure { profile: None }),
        Some(("erasure", profile)) if !profile.is_empty() => Ok(PoolKind::Erasure {
            profile: Some(profile.to_owned()),
        }),
        _ => Err("use replicated, erasure or erasure:PROFILE".to_owned()),
    }
}

impl CephArgs {
    /// Converts the options for the engine.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_takes_a_type_after_an_equals_sign_only() {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            ceph: CephArgs,
            rest: Vec<String>,
        }
        let parse = |line: &str| {
            let line = <Line as clap::Parser>::try_parse_from(line.split(' ')).ok()?;
            Some((line.ceph.map, line.rest))
        };
        let rest = vec!["xfs".to_owned()];
        assert_eq!(parse("xfs"), Some((None, rest.clone())));
        assert_eq!(parse("--map xfs"), Some((Some(MapFormat::Auto), rest)));
        assert_eq!(parse("--map=xfs"), Some((Some(MapFormat::Xfs), Vec::new())));
        assert_eq!(parse("--map=ntfs"), None);
    }

    #[test]
    fn pool_kinds_are_parsed() {
        assert_eq!(pool_kind("replicated"), Ok(PoolKind::Replicated));
        let erasure = |profile: Option<&str>| PoolKind::Erasure {
            profile: profile.map(str::to_owned),
        };
        assert_eq!(pool_kind("erasure"), Ok(erasure(None)));
        assert_eq!(pool_kind("erasure:k2m1"), Ok(erasure(Some("k2m1"))));
        for wrong in ["", "erasure:", "replicated:3", "ec"] {
            assert!(pool_kind(wrong).is_err(), "{wrong}");
        }
    }
}
