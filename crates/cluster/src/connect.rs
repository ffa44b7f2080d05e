//! Which cluster is meant, as kubectl understands it: `--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, or the pod's own.

use crate::api::chain;
use crate::options::ClusterOptions;
use iosonde_result::session::RunError;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::time::Duration;

/// A connection to an API server.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    /// The namespace in use.
    pub namespace: String,
    /// The context's name, where there is one.
    pub context: Option<String>,
}

impl Cluster {
    /// Reads the configuration. Nothing is sent yet.
    ///
    /// # Errors
    /// When there is no configuration, or it cannot be used.
    pub(crate) async fn connect(options: &ClusterOptions) -> Result<Cluster, RunError> {
        let wanted = KubeConfigOptions {
            context: options.context.clone(),
            ..KubeConfigOptions::default()
        };
        let read = match &options.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let (mut config, context) = match read {
            Ok(file) => {
                let context = options.context.clone().or(file.current_context.clone());
                let config = Config::from_custom_kubeconfig(file, &wanted).await;
                (config.map_err(|error| unusable(&error))?, context)
            }
            Err(error) => match Config::incluster() {
                Ok(config) if options.kubeconfig.is_none() && options.context.is_none() => {
                    (config, None)
                }
                _ => return Err(unusable(&error)),
            },
        };
        config.connect_timeout = Some(Duration::from_secs(10));
        let namespace = options
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| unusable(&error))?;
        Ok(Cluster {
            client,
            namespace,
            context,
        })
    }
}

fn unusable(error: &dyn std::error::Error) -> RunError {
    RunError::Unsupported {
        problem: format!("no cluster can be reached: {}", chain(error)),
        remedy: "set KUBECONFIG or --kubeconfig, and --context if it has several; `kubectl get nodes` must work"
            .to_owned(),
    }
}
