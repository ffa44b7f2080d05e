//! The argument `--cold` of commands that measure.

use super::WITHOUT_CEPH;
use clap::{Args, ValueEnum};
use iosonde_result::cache_state::{CacheLayer, ColdLayers};

/// Caches that are dropped between runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ColdArgs {
    /// Drop the caches of these layers before the jobs of each run: client (all caches of this
    /// machine as root, else the pages of the files; in pods the pages of the files), node (nodes
    /// of the pods and of the volume, by privileged pods), osd (all OSDs of the Ceph cluster)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LAYER")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Drop the caches of these layers before the jobs of each run: client (all \
                    caches of this machine as root, else the pages of the files; in pods the pages \
                    of the files), node (nodes of the pods and of the volume, by privileged pods)"
        )
    )]
    pub(crate) cold: Vec<ColdLayerArg>,
}

/// A layer of `--cold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColdLayerArg {
    /// Page cache of the machine on which the jobs run
    Client,
    /// Page caches of the Kubernetes nodes of the pods and of the volume
    Node,
    /// Caches of all OSDs of the Ceph cluster
    #[value(hide = WITHOUT_CEPH)]
    Osd,
}

impl ColdLayerArg {
    fn layer(self) -> CacheLayer {
        match self {
            ColdLayerArg::Client => CacheLayer::Client,
            ColdLayerArg::Node => CacheLayer::Node,
            ColdLayerArg::Osd => CacheLayer::Osd,
        }
    }
}

impl ColdArgs {
    /// Returns the layers.
    pub(crate) fn layers(&self) -> ColdLayers {
        let layers: Vec<CacheLayer> = self.cold.iter().map(|arg| arg.layer()).collect();
        ColdLayers::from_layers(&layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        cold: ColdArgs,
    }

    #[test]
    fn cold_layers_are_parsed_by_their_names() {
        let parsed = |words: &[&str]| Program::try_parse_from(words);
        let layers = parsed(&["x", "--cold", "client,osd"])
            .unwrap()
            .cold
            .layers();
        assert!(layers.client && !layers.node && layers.osd);
        assert!(parsed(&["x"]).unwrap().cold.layers().is_empty());
        assert!(parsed(&["x", "--cold", "disk"]).is_err());
        for arg in ColdLayerArg::value_variants() {
            let typed = arg.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), arg.layer().name());
        }
    }
}
