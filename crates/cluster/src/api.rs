//! Converts errors of the Kubernetes API into errors of a run.

use iosonde_result::run_error::pod_failure::FailureCondition;
use iosonde_result::run_error::{ApiFailure, ClusterObstacle, ClusterRequest, RunError};
use kube::client::UpgradeConnectionError;

/// Converts the error of a request into a [`RunError`].
pub(crate) fn failed(request: ClusterRequest, error: &kube::Error) -> RunError {
    let failure = match error {
        kube::Error::Api(status) => ApiFailure::Refused {
            code: status.code,
            message: status.message.clone(),
        },
        kube::Error::Auth(error) => ApiFailure::Authentication {
            error: error.to_string(),
        },
        other => ApiFailure::NoAnswer {
            error: chain(other),
        },
    };
    ClusterObstacle::RequestFailed { request, failure }.into()
}

/// Converts the error of the first request to a cluster. Without an answer, it names the server.
pub(crate) fn failed_at(server: &str, request: ClusterRequest, error: &kube::Error) -> RunError {
    match error {
        kube::Error::Api(_) | kube::Error::Auth(_) => failed(request, error),
        other => {
            let failure = ApiFailure::NoAnswer {
                error: format!("{server}: {}", chain(other)),
            };
            ClusterObstacle::RequestFailed { request, failure }.into()
        }
    }
}

/// Error of a request, with the request.
#[derive(Debug)]
pub(crate) struct RequestError {
    /// The request: `get`, `list`, `delete`.
    pub(crate) verb: &'static str,
    /// The requested resource, in the plural.
    pub(crate) resource: &'static str,
    pub(crate) error: kube::Error,
}

impl RequestError {
    /// Returns the condition of an object whose removal needs this request.
    pub(crate) fn condition(&self) -> FailureCondition {
        FailureCondition::ApiFailed {
            verb: self.verb.to_owned(),
            resource: self.resource.to_owned(),
            code: match &self.error {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            message: match &self.error {
                // The text of the error has the whole status in the notation of Rust.
                kube::Error::Api(status) if !status.message.trim().is_empty() => {
                    status.message.clone()
                }
                kube::Error::Api(status) => format!("HTTP status {}", status.code),
                other => chain(other),
            },
        }
    }
}

/// Whether the API server is unavailable or overloaded, so that a retry may succeed.
pub(crate) fn is_away(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => is_away_with(status.code),
        // Answer to the exec request.
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => {
            is_away_with(status.as_u16())
        }
        _ => true,
    }
}

fn is_away_with(code: u16) -> bool {
    code >= 500 || code == 429
}

/// Whether the API server refuses this user.
pub(crate) fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Whether the object was changed since it was read.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the object does not exist.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the object already exists.
pub(crate) fn is_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.is_already_exists())
}

/// Formats an error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        let described = match cause.downcast_ref::<std::io::Error>() {
            Some(error) => iosonde_job::errno::describe(error),
            None => words.clone(),
        };
        // Some errors repeat the words of their cause.
        text = match text.contains(&words) {
            true => text.replace(&words, &described),
            false => format!("{text}: {described}"),
        };
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn chain_names_the_errno_of_its_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("no connection")]
        struct Outer(#[source] std::io::Error);

        let error = Outer(std::io::Error::from_raw_os_error(111));
        assert_eq!(
            chain(&error),
            "no connection: Connection refused (ECONNREFUSED)"
        );
    }

    #[test]
    fn refused_request_is_a_condition_with_verb_resource_and_code() {
        let error = kube::Error::Api(Status::failure("x", "y").with_code(403).boxed());
        let refused = RequestError {
            verb: "delete",
            resource: "jobs",
            error,
        };
        let condition = refused.condition();
        let FailureCondition::ApiFailed {
            verb,
            resource,
            code,
            ..
        } = condition
        else {
            panic!("{condition:?}");
        };
        assert_eq!(
            (verb.as_str(), resource.as_str(), code),
            ("delete", "jobs", Some(403))
        );
    }

    #[test]
    fn busy_server_is_away_but_refusing_server_is_not() {
        let said = |code| kube::Error::Api(Status::failure("x", "y").with_code(code).boxed());
        assert!(is_away(&said(503)) && is_away(&said(429)));
        assert!(!is_away(&said(403)) && !is_away(&said(404)));
    }
}
