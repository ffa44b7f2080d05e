//! Words of the errors of a connection to a cluster.

use crate::run_error::{ApiFailure, ClusterObstacle, ClusterRequest, RunError};

#[test]
fn certificate_errors_keep_their_words() {
    for (obstacle, words, remedy) in [
        (
            ClusterObstacle::NoRootCertificates,
            "the kubeconfig has no certificate authority, and this system has no root certificates",
            "add certificate-authority-data to the kubeconfig, or set SSL_CERT_FILE to a file with \
             root certificates",
        ),
        (
            ClusterObstacle::OldClientCertificate,
            "the client certificate of the kubeconfig has X.509 version 1, but TLS needs version 3",
            "sign it again with an extension, e.g. `openssl x509 -req -extfile` with \
             basicConstraints=CA:FALSE, or use a token",
        ),
    ] {
        let error = RunError::from(obstacle);
        assert_eq!(error.to_string(), words);
        assert_eq!(error.remedy(), remedy);
    }
}

#[test]
fn server_without_lists_is_no_api_server() {
    for request in [
        ClusterRequest::CheckRights,
        ClusterRequest::ReadVersion,
        ClusterRequest::FindPods,
        ClusterRequest::ListJobs,
    ] {
        let failure = ApiFailure::Refused {
            code: 404,
            message: String::new(),
        };
        let error = RunError::from(ClusterObstacle::RequestFailed { request, failure });
        assert_eq!(
            error.remedy(),
            "no API server answers there: check `server` and `proxy-url` of the context in the \
             kubeconfig",
            "{error}"
        );
    }
}
