//! Selects the cluster like kubectl: `--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, or in-cluster.

mod proxy;

use crate::api::chain;
use crate::options::ClusterOptions;
use http::HeaderValue;
use iosonde_result::run_error::{ClusterObstacle, RunError, SystemFailure};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::time::Duration;
use tokio::runtime::Runtime;
use tower::timeout::TimeoutLayer;

/// Timeout for the first byte of an answer. A connection to a vanished server reports no error.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for further bytes of an answer. It is longer than the upload of an agent, during which
/// the pod sends nothing.
pub(crate) const SILENT_BODY: Duration = Duration::from_secs(240);

/// Name of this program in each request. Audit logs of the server have it.
const USER_AGENT: &str = concat!("iosonde/", env!("CARGO_PKG_VERSION"));

/// A connection to an API server.
#[derive(Clone)]
pub(crate) struct KubeCluster {
    pub(crate) client: Client,
    /// The namespace in use.
    pub(crate) namespace: String,
    /// Name of the context, if there is one.
    pub(crate) context: Option<String>,
    /// Address of the API server.
    pub(crate) server: String,
}

impl KubeCluster {
    /// Reads the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// If there is no configuration, or it is not usable.
    pub(crate) async fn connect(options: &ClusterOptions) -> Result<KubeCluster, RunError> {
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
                refuse_unknown_context(&file, options.context.as_deref())?;
                let context = options.context.clone().or(file.current_context.clone());
                let said = proxy::proxy_url(&file, options.context.as_deref());
                let config = Config::from_custom_kubeconfig(file, &wanted).await;
                let config = config.map_err(|error| {
                    let is_proxy_invalid = is_proxy_invalid_in_config(&error);
                    unusable(&error, is_proxy_invalid)
                });
                (config?, context, said)
            }
            Err(error) => match Config::incluster() {
                Ok(config) if options.kubeconfig.is_none() && options.context.is_none() => {
                    (config, None, None)
                }
                _ => return Err(unusable(&error, false)),
            },
        };
        // Not determined by kube, which compares NO_PROXY with the proxy's own name.
        let variable = |name: &str| std::env::var(name).ok();
        config.proxy_url = proxy::proxy(&config.cluster_url, said.as_deref(), variable)
            .map_err(|problem| ClusterObstacle::InvalidProxy { problem })?;
        config.connect_timeout = Some(Duration::from_secs(10));
        omit_unused_certificates(&mut config);
        let namespace = options
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let client = client(config, ANSWER_TIMEOUT, SILENT_BODY)
            .map_err(|error| unusable(&error, is_proxy_invalid_in_client(&error)))?;
        Ok(KubeCluster {
            client,
            namespace,
            context,
            server,
        })
    }
}

/// Sets no root certificates where none are verified: without TLS, or on request. kube would load
/// those of the system, and fail where there are none, as in a container from scratch.
fn omit_unused_certificates(config: &mut Config) {
    let is_plain = config.cluster_url.scheme_str() == Some("http");
    if (is_plain || config.accept_invalid_certs) && config.root_cert.is_none() {
        config.root_cert = Some(Vec::new());
    }
}

/// Builds a client with a timeout for each request: `answer` until its first byte, then
/// `silent_body` without a byte.
fn client(mut config: Config, answer: Duration, silent_body: Duration) -> kube::Result<Client> {
    config.read_timeout = Some(silent_body);
    let agent = HeaderValue::from_static(USER_AGENT);
    config.headers.push((http::header::USER_AGENT, agent));
    // The time counts from the last request, not from the end of the one before.
    config.reset_reader_on_write = true;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&TimeoutLayer::new(answer)).build())
}

/// Creates the runtime of a cluster's connections: one thread.
pub(crate) fn runtime() -> Result<Runtime, RunError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| {
            let failure = SystemFailure::from(&error);
            ClusterObstacle::NoConnectionThread { failure }.into()
        })
}

/// Fails if the kubeconfig does not have the requested or its current context.
fn refuse_unknown_context(file: &Kubeconfig, wanted: Option<&str>) -> Result<(), RunError> {
    let Some(wanted) = wanted.or(file.current_context.as_deref()) else {
        return Ok(());
    };
    if file.contexts.iter().any(|known| known.name == wanted) {
        return Ok(());
    }
    let obstacle = ClusterObstacle::NoSuchContext {
        context: wanted.to_owned(),
        known: file
            .contexts
            .iter()
            .map(|known| known.name.clone())
            .collect(),
    };
    Err(obstacle.into())
}

fn unusable(error: &dyn std::error::Error, is_proxy_invalid: bool) -> RunError {
    let error = chain(error);
    // A word of webpki, which has no kind for it.
    if error.contains("UnsupportedCertVersion") {
        return ClusterObstacle::OldClientCertificate.into();
    }
    // A word of rustls-platform-verifier, for which kube has no kind either.
    if error.contains("No CA certificates were loaded") {
        return ClusterObstacle::NoRootCertificates.into();
    }
    // kube quotes paths twice.
    let error = error.replace("'\"", "'").replace("\"'", "'");
    let obstacle = ClusterObstacle::NotReachable {
        error,
        is_proxy_invalid,
    };
    obstacle.into()
}

/// Whether the address of a proxy, or `NO_PROXY`, cannot be parsed.
fn is_proxy_invalid_in_config(error: &KubeconfigError) -> bool {
    matches!(
        error,
        KubeconfigError::ParseProxyUrl(_) | KubeconfigError::ParseNoProxy(_)
    )
}

/// Whether the scheme of the proxy is not supported.
fn is_proxy_invalid_in_client(error: &kube::Error) -> bool {
    matches!(
        error,
        kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::{Api, ListParams};
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    #[test]
    fn client_connects_through_the_proxy() {
        let runtime = super::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let request_line = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line
        });
        let listed = runtime.block_on(async {
            let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
            config.proxy_url = Some(proxy.parse().unwrap());
            let client = client(config, Duration::from_secs(10), SILENT_BODY).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            pods.list(&ListParams::default()).await
        });
        assert!(listed.is_err());
        assert_eq!(
            request_line.join().unwrap().trim_end(),
            "CONNECT api.example.com:6443 HTTP/1.1"
        );
    }

    #[test]
    fn requests_name_the_program_and_its_version() {
        let runtime = super::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let agent = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream).lines().map(Result::unwrap);
            let mut head = lines.take_while(|line| !line.is_empty());
            let name = "user-agent: ";
            head.find_map(|line| Some(line.to_lowercase().strip_prefix(name)?.to_owned()))
        });
        let listed = runtime.block_on(async {
            let config = Config::new(format!("http://{address}").parse().unwrap());
            let client = client(config, Duration::from_secs(10), SILENT_BODY).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            pods.list(&ListParams::default()).await
        });
        assert!(listed.is_err(), "the server closes the connection");
        let expected = concat!("iosonde/", env!("CARGO_PKG_VERSION"));
        assert_eq!(agent.join().unwrap().as_deref(), Some(expected));
    }

    #[test]
    fn unverified_server_needs_no_root_certificates() {
        let runtime = super::runtime().unwrap();
        runtime.block_on(async {
            let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
            omit_unused_certificates(&mut config);
            assert_eq!(config.root_cert, None, "the server is verified");
            config.accept_invalid_certs = true;
            omit_unused_certificates(&mut config);
            assert_eq!(config.root_cert, Some(Vec::new()));
            assert!(client(config, ANSWER_TIMEOUT, SILENT_BODY).is_ok());
        });
    }

    #[test]
    fn unknown_context_is_refused_with_the_known_ones() {
        let file: Kubeconfig = serde_json::from_value(serde_json::json!({
            "current-context": "lab",
            "contexts": [
                {"name": "lab", "context": {"cluster": "c"}},
                {"name": "prod", "context": {"cluster": "c"}},
            ],
        }))
        .unwrap();
        assert_eq!(refuse_unknown_context(&file, None), Ok(()));
        assert_eq!(refuse_unknown_context(&file, Some("prod")), Ok(()));
        let refused = refuse_unknown_context(&file, Some("pord")).unwrap_err();
        let expected = ClusterObstacle::NoSuchContext {
            context: "pord".to_owned(),
            known: vec!["lab".to_owned(), "prod".to_owned()],
        };
        assert_eq!(refused, RunError::from(expected));
    }

    #[test]
    fn proxy_errors_are_separated_from_other_configuration_errors() {
        let invalid = || "http://a b".parse::<http::Uri>().unwrap_err();
        let of_proxy = [
            KubeconfigError::ParseProxyUrl(invalid()),
            KubeconfigError::ParseNoProxy(kube::config::NoProxyError::EmptyValue),
        ];
        assert!(of_proxy.iter().all(is_proxy_invalid_in_config));
        let of_server = KubeconfigError::ParseClusterUrl(invalid());
        assert!(!is_proxy_invalid_in_config(&of_server));

        // Builds the connections in a runtime, like `KubeCluster::connect`.
        let runtime = super::runtime().unwrap();
        let refused = runtime.block_on(async {
            let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
            config.proxy_url = Some("ftp://proxy:21".parse().unwrap());
            client(config, ANSWER_TIMEOUT, SILENT_BODY)
        });
        let error = refused.err().expect("no client supports FTP");
        assert!(is_proxy_invalid_in_client(&error));
        let other = kube::Error::TlsRequired;
        assert!(!is_proxy_invalid_in_client(&other));
    }

    #[test]
    fn silent_server_is_an_error_after_the_timeout() {
        let runtime = super::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let listed = runtime.block_on(async {
            let config = Config::new(address.parse().unwrap());
            let client = client(config, Duration::from_millis(50), SILENT_BODY).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            pods.list(&ListParams::default()).await
        });
        let problem = crate::api::chain(&listed.unwrap_err());
        assert!(problem.contains("timed out"), "{problem}");
    }

    #[test]
    fn body_that_stalls_is_an_error_after_the_timeout() {
        let runtime = super::runtime().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
            let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
            std::io::Write::write_all(&mut stream, half.as_bytes()).unwrap();
            stream
        });
        let listed = runtime.block_on(async {
            let config = Config::new(format!("http://{address}").parse().unwrap());
            let short = Duration::from_millis(200);
            let client = client(config, Duration::from_secs(10), short).unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "default");
            let list = ListParams::default();
            tokio::time::timeout(Duration::from_secs(5), pods.list(&list)).await
        });
        drop(server.join().unwrap());
        let listed = listed.expect("the timeout of the client is earlier");
        let problem = crate::api::chain(&listed.unwrap_err());
        assert!(problem.contains("timed out"), "{problem}");
    }
}
