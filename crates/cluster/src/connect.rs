//! Selects the cluster like kubectl: `--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, or in-cluster.

mod proxy;

use crate::api::chain;
use crate::options::ClusterOptions;
use iosonde_result::session::RunError;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::time::Duration;
use tower::timeout::TimeoutLayer;

/// Timeout for the first byte of an answer. A connection to a vanished server reports no error.
const ANSWER: Duration = Duration::from_secs(20);

/// A connection to an API server.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    /// The namespace in use.
    pub namespace: String,
    /// Name of the context, if there is one.
    pub context: Option<String>,
}

impl Cluster {
    /// Reads the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// If there is no configuration, or it is not usable.
    pub(crate) async fn connect(options: &ClusterOptions) -> Result<Cluster, RunError> {
        let wanted = KubeConfigOptions {
            context: options.context.clone(),
            ..KubeConfigOptions::default()
        };
        let read = match &options.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let (mut config, context, said) = match read {
            Ok(file) => {
                let context = options.context.clone().or(file.current_context.clone());
                let said = proxy::said(&file, options.context.as_deref());
                let config = Config::from_custom_kubeconfig(file, &wanted).await;
                (config.map_err(|error| unusable(&error))?, context, said)
            }
            Err(error) => match Config::incluster() {
                Ok(config) if options.kubeconfig.is_none() && options.context.is_none() => {
                    (config, None, None)
                }
                _ => return Err(unusable(&error)),
            },
        };
        // Not determined by kube, which compares NO_PROXY with the proxy's own name.
        let variable = |name: &str| std::env::var(name).ok();
        config.proxy_url =
            proxy::proxy(&config.cluster_url, said.as_deref(), variable).map_err(|problem| {
                RunError::Unsupported {
                    problem,
                    remedy: "correct proxy-url in the kubeconfig, or HTTPS_PROXY".to_owned(),
                }
            })?;
        config.connect_timeout = Some(Duration::from_secs(10));
        let namespace = options
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = client(config, ANSWER).map_err(|error| unusable(&error))?;
        Ok(Cluster {
            client,
            namespace,
            context,
        })
    }
}

/// Builds a client with a timeout for each request.
fn client(config: Config, answer: Duration) -> kube::Result<Client> {
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&TimeoutLayer::new(answer)).build())
}

fn unusable(error: &dyn std::error::Error) -> RunError {
    let problem = chain(error);
    let remedy = match problem.contains("NO_PROXY") || problem.contains("proxy url") {
        true => {
            "correct the proxy's address, or NO_PROXY: names and addresses between commas, without a comma at the end"
        }
        false => {
            "set KUBECONFIG or --kubeconfig, and --context if it has several; `kubectl get nodes` must work"
        }
    };
    RunError::Unsupported {
        problem: format!("no cluster can be reached: {problem}"),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::{Api, ListParams};
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    #[test]
    fn a_proxy_is_asked_for_the_server() {
        let runtime = crate::runner::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line
        });
        let listed = runtime.block_on(async {
            let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
            config.proxy_url = Some(proxy.parse().unwrap());
            let client = client(config, Duration::from_secs(10)).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            pods.list(&ListParams::default()).await
        });
        assert!(listed.is_err());
        assert_eq!(
            heard.join().unwrap().trim_end(),
            "CONNECT api.example.com:6443 HTTP/1.1"
        );
    }

    #[test]
    fn a_server_that_accepts_and_says_nothing_is_an_error() {
        let runtime = crate::runner::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let listed = runtime.block_on(async {
            let config = Config::new(address.parse().unwrap());
            let client = client(config, Duration::from_millis(50)).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            pods.list(&ListParams::default()).await
        });
        let problem = crate::api::chain(&listed.unwrap_err());
        assert!(problem.contains("timed out"), "{problem}");
    }
}
