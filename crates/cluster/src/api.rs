//! Converts errors of the Kubernetes API into errors of a run.

use iosonde_result::session::RunError;
use kube::client::UpgradeConnectionError;

/// Converts an API error into a [`RunError`] with a remedy.
pub(crate) fn failed(doing: &str, error: &kube::Error) -> RunError {
    let (problem, remedy) = match error {
        kube::Error::Api(status) => (status.message.clone(), remedy(status.code)),
        kube::Error::Auth(error) => (
            format!("authentication: {error}"),
            "renew the credentials of this context, and try `kubectl get pods`",
        ),
        other => (
            chain(other),
            "check that the cluster can be reached: `kubectl get nodes` with the same context",
        ),
    };
    RunError::Unsupported {
        problem: format!("{doing}: {problem}"),
        remedy: remedy.to_owned(),
    }
}

fn remedy(code: u16) -> &'static str {
    match code {
        401 => "renew the credentials of this context, and try `kubectl get pods`",
        403 => {
            "ask for a role with these rights (docs/kubernetes.md has the least one), or check quotas and policies"
        }
        404 => "check its name and the namespace (-n)",
        409 => "try again",
        _ => "see the message of the API server",
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
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn a_server_that_is_too_busy_is_away_and_one_that_refuses_is_not() {
        let said = |code| kube::Error::Api(Status::failure("x", "y").with_code(code).boxed());
        assert!(is_away(&said(503)) && is_away(&said(429)));
        assert!(!is_away(&said(403)) && !is_away(&said(404)));
    }
}
