//! Words of a [`ClusterObstacle`].

use super::describe_quantity;
use super::quota_text::{full_share_text, quota_amount_remedy};
use super::rights_text::{clean_up_remedy, missing_rights_remedy};
use crate::run_error::pod_failure::removal_command;
use crate::run_error::{ApiFailure, ClusterObstacle, ClusterRequest};
use std::fmt;

const RENEW_CREDENTIALS: &str = "renew the credentials of this context, and try `kubectl get pods`";

impl fmt::Display for ClusterObstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterObstacle::RequestFailed { request, failure } => {
                write!(formatter, "{request}: {failure}")
            }
            ClusterObstacle::NotReachable { error, .. } => {
                write!(formatter, "no cluster can be reached: {error}")
            }
            ClusterObstacle::NoSuchContext { context, .. } => {
                write!(formatter, "the kubeconfig has no context {context}")
            }
            ClusterObstacle::OldClientCertificate => formatter.write_str(
                "the client certificate of the kubeconfig has X.509 version 1, but TLS needs \
                 version 3",
            ),
            ClusterObstacle::NoRootCertificates => formatter.write_str(
                "the kubeconfig has no certificate authority, and this system has no root \
                 certificates",
            ),
            ClusterObstacle::InvalidProxy { problem } => formatter.write_str(problem),
            ClusterObstacle::NoConnectionThread { failure } => {
                write!(formatter, "no thread can be made: {failure}")
            }
            ClusterObstacle::NoNamespace { namespace } => {
                write!(formatter, "the namespace {namespace} does not exist")
            }
            ClusterObstacle::NamespaceTerminating { namespace } => {
                write!(formatter, "the namespace {namespace} is being removed")
            }
            ClusterObstacle::NamespaceForbidden {
                namespace, rights, ..
            } => write!(
                formatter,
                "the namespace {namespace} does not exist, and this user lacks rights to make and \
                 remove it: {}",
                rights.join(", ")
            ),
            ClusterObstacle::MissingRights { rights, .. } => write!(
                formatter,
                "this user lacks rights that a run needs: {}",
                rights.join(", ")
            ),
            ClusterObstacle::CleanUpForbidden { rights, .. } => write!(
                formatter,
                "this user lacks rights that --clean needs: {}",
                rights.join(", ")
            ),
            ClusterObstacle::InvalidPodPatch { error } => {
                write!(formatter, "--pod-patch cannot be used: {error}")
            }
            ClusterObstacle::UnknownPodField { field } => {
                write!(
                    formatter,
                    "--pod-patch cannot be used: a pod has no {field}"
                )
            }
            ClusterObstacle::AgentBusy { problem } => {
                write!(formatter, "the agent refuses: {problem}")
            }
            other => describe_node_or_claim(other, formatter),
        }
    }
}

/// Describes an obstacle of the nodes or of the claims.
fn describe_node_or_claim(
    obstacle: &ClusterObstacle,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match obstacle {
        ClusterObstacle::NodesNotListed => {
            formatter.write_str("this user may not list nodes, so their number is not known")
        }
        ClusterObstacle::NoLabelledNode { labels } => {
            let selector = labels.join(",");
            write!(formatter, "no node matches the selector {selector}")
        }
        ClusterObstacle::OtherArchitecture { nodes, agent } => write!(
            formatter,
            "the nodes are {}, but this iosonde has an agent for {agent}",
            nodes.join(" and ")
        ),
        ClusterObstacle::NoUsableNode(nodes) => write!(formatter, "{nodes}"),
        ClusterObstacle::NoSuchNode { node, .. } => write!(formatter, "there is no node {node}"),
        ClusterObstacle::ClaimOutsideLimits {
            limit_range,
            bound,
            claim_bytes,
        } => write!(
            formatter,
            "the claim of {} is {}",
            describe_quantity(*claim_bytes),
            bound.problem(limit_range)
        ),
        ClusterObstacle::QuotaExceeded {
            quota,
            resource,
            shortage,
        } => write!(
            formatter,
            "the quota {quota} ({resource}) is too small: {shortage}"
        ),
        ClusterObstacle::QuotaNeedsAmount { quota, resource } => write!(
            formatter,
            "the quota {quota} counts {resource}, of which the pod states no amount"
        ),
        ClusterObstacle::VolumeTooSmall {
            volume_bytes,
            needed_bytes,
            ..
        } => write!(
            formatter,
            "the files of the jobs need {}, but the volume has {}",
            describe_quantity(*needed_bytes),
            describe_quantity(*volume_bytes)
        ),
        ClusterObstacle::EphemeralStorageTooSmall {
            requested_bytes,
            largest_bytes,
            node,
        } => write!(
            formatter,
            "a pod requests {} of ephemeral storage, but no suitable node allocates more than {} \
             ({node})",
            describe_quantity(*requested_bytes),
            describe_quantity(whole_mib(*largest_bytes))
        ),
        other => describe_share_run_or_manifest(other, formatter),
    }
}

fn image_without_agent_text(image: &str) -> String {
    match image {
        "" => "a manifest needs an image that carries the agent".to_owned(),
        image => format!("the image {image} does not carry the agent, by its name"),
    }
}

/// Rounds the size of a node's disk down: it is rarely round, and has to be readable.
fn whole_mib(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

/// Describes an obstacle of a share, of a known run or of a rendered manifest. The functions above
/// describe the last variants. They are listed so that the compiler reports a variant without a
/// text.
fn describe_share_run_or_manifest(
    obstacle: &ClusterObstacle,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match obstacle {
        ClusterObstacle::ShareFull {
            free_bytes,
            needed_bytes,
        } => formatter.write_str(&full_share_text(*free_bytes, *needed_bytes)),
        ClusterObstacle::NotFollowable { job, .. } => {
            write!(formatter, "{job} is not the run of a single job")
        }
        ClusterObstacle::NoSuchRun {
            run,
            hidden_outside: Some(namespace),
            ..
        } => write!(formatter, "no run {run} in the namespace {namespace}"),
        ClusterObstacle::NoSuchRun { run, .. } => {
            write!(formatter, "there is no run {run} in this cluster")
        }
        ClusterObstacle::NoPodsOfRendered { run, namespace, .. } => {
            write!(formatter, "no pod of {run} is in the namespace {namespace}")
        }
        ClusterObstacle::NoRenderedRun { namespace } => {
            write!(formatter, "no rendered run is in the namespace {namespace}")
        }
        ClusterObstacle::SeveralRenderedRuns { .. } => {
            formatter.write_str("several rendered runs are in this namespace")
        }
        ClusterObstacle::RenderedPodsRemoved { run } => {
            write!(formatter, "{run} has no pods any more")
        }
        ClusterObstacle::ImageWithoutAgent { image } => {
            formatter.write_str(&image_without_agent_text(image))
        }
        ClusterObstacle::NotRenderable(limit) => formatter.write_str(&limit.problem()),
        ClusterObstacle::ManifestNotWritten { error } => {
            write!(formatter, "a manifest cannot be written: {error}")
        }
        ClusterObstacle::InvalidJobFile { message } => formatter.write_str(message),
        ClusterObstacle::UnusablePods(problem) => write!(formatter, "{problem}"),
        ClusterObstacle::RequestFailed { .. }
        | ClusterObstacle::NotReachable { .. }
        | ClusterObstacle::InvalidProxy { .. }
        | ClusterObstacle::NoConnectionThread { .. }
        | ClusterObstacle::NoNamespace { .. }
        | ClusterObstacle::NamespaceTerminating { .. }
        | ClusterObstacle::NamespaceForbidden { .. }
        | ClusterObstacle::MissingRights { .. }
        | ClusterObstacle::InvalidPodPatch { .. }
        | ClusterObstacle::UnknownPodField { .. }
        | ClusterObstacle::AgentBusy { .. }
        | ClusterObstacle::NodesNotListed
        | ClusterObstacle::NoLabelledNode { .. }
        | ClusterObstacle::OtherArchitecture { .. }
        | ClusterObstacle::NoUsableNode(_)
        | ClusterObstacle::NoSuchNode { .. }
        | ClusterObstacle::ClaimOutsideLimits { .. }
        | ClusterObstacle::NoSuchContext { .. }
        | ClusterObstacle::OldClientCertificate
        | ClusterObstacle::NoRootCertificates
        | ClusterObstacle::CleanUpForbidden { .. }
        | ClusterObstacle::QuotaNeedsAmount { .. }
        | ClusterObstacle::VolumeTooSmall { .. }
        | ClusterObstacle::EphemeralStorageTooSmall { .. }
        | ClusterObstacle::QuotaExceeded { .. } => write!(formatter, "{obstacle:?}"),
    }
}

impl ClusterObstacle {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        let remedy = match self {
            ClusterObstacle::RequestFailed {
                request:
                    ClusterRequest::CheckRights
                    | ClusterRequest::ReadVersion
                    | ClusterRequest::FindPods
                    | ClusterRequest::ListJobs,
                failure: ApiFailure::Refused { code: 404, .. },
            } => {
                "no API server answers there: check `server` and `proxy-url` of the context in \
                 the kubeconfig"
            }
            ClusterObstacle::RequestFailed { failure, .. } => failure.remedy(),
            ClusterObstacle::NoSuchContext { known, .. } => {
                return match known.as_slice() {
                    [] => "it has none; name another with --kubeconfig".to_owned(),
                    known => format!("name one of its contexts: {}", known.join(", ")),
                };
            }
            ClusterObstacle::OldClientCertificate => {
                "sign it again with an extension, e.g. `openssl x509 -req -extfile` with \
                 basicConstraints=CA:FALSE, or use a token"
            }
            ClusterObstacle::NoRootCertificates => {
                "add certificate-authority-data to the kubeconfig, or set SSL_CERT_FILE to a file \
                 with root certificates"
            }
            ClusterObstacle::NotReachable {
                is_proxy_invalid: true,
                ..
            } => {
                "correct the proxy's address, or NO_PROXY: names and addresses between commas, \
                 without a comma at the end"
            }
            ClusterObstacle::NotReachable { .. } => {
                "set KUBECONFIG or --kubeconfig, and --context if it has several; `kubectl get \
                 nodes` must work"
            }
            ClusterObstacle::InvalidProxy { .. } => {
                "correct proxy-url in the kubeconfig, or HTTPS_PROXY"
            }
            ClusterObstacle::NoConnectionThread { .. } => "allow more threads (ulimit -u)",
            ClusterObstacle::NoNamespace { namespace } => {
                return format!(
                    "choose another with -n, make it (kubectl create namespace {namespace}), or \
                     add --create-namespace: it is made for the run, and removed after it"
                );
            }
            ClusterObstacle::NamespaceForbidden { .. } => {
                "choose one that exists with -n, or have an administrator grant these rights"
            }
            ClusterObstacle::MissingRights {
                is_bound_to_namespace,
                ..
            } => missing_rights_remedy(*is_bound_to_namespace),
            ClusterObstacle::CleanUpForbidden {
                suggests_namespace, ..
            } => clean_up_remedy(*suggests_namespace),
            ClusterObstacle::InvalidPodPatch { .. } | ClusterObstacle::UnknownPodField { .. } => {
                "write the parts of a pod's manifest as JSON, e.g. \
                 '{\"spec\":{\"schedulerName\":\"mine\"}}'; the container's name is iosonde"
            }
            ClusterObstacle::AgentBusy { .. } => "wait for the other run to end",
            _ => return self.node_or_claim_remedy(),
        };
        remedy.to_owned()
    }

    /// Returns the action for an obstacle of the nodes or of the claims.
    fn node_or_claim_remedy(&self) -> String {
        let remedy = match self {
            ClusterObstacle::NamespaceTerminating { .. } => {
                "wait until it is gone, or choose another with -n"
            }
            ClusterObstacle::NodesNotListed => "give the number of pods with --pods",
            ClusterObstacle::NoLabelledNode { .. } => {
                "see `kubectl get nodes --show-labels`; nodes that an autoscaler has yet to make \
                 are chosen with --pod-patch"
            }
            ClusterObstacle::OtherArchitecture { .. } => {
                "use a released iosonde: a build from source has its own agent only"
            }
            ClusterObstacle::NoUsableNode(nodes) => return nodes.remedy(),
            ClusterObstacle::NoSuchNode { similar: None, .. } => "see `kubectl get nodes`",
            ClusterObstacle::NoSuchNode {
                similar: Some(similar),
                ..
            } => return format!("did you mean {similar}?"),
            ClusterObstacle::ClaimOutsideLimits { .. } => {
                "use another --claim-size, or a namespace with other limits"
            }
            ClusterObstacle::QuotaExceeded { shortage, .. } => shortage.remedy(),
            ClusterObstacle::QuotaNeedsAmount { resource, .. } => {
                return quota_amount_remedy(resource);
            }
            ClusterObstacle::VolumeTooSmall {
                option: Some(option),
                ..
            } => return format!("use {option}, a smaller size=, or fewer jobs"),
            ClusterObstacle::VolumeTooSmall { option: None, .. } => {
                "use a smaller size=, fewer jobs, or a larger claim"
            }
            ClusterObstacle::ShareFull { .. } => {
                "free room on it (removed volumes may be there as archived-*), or use a smaller \
                 size= or fewer jobs"
            }
            ClusterObstacle::EphemeralStorageTooSmall { .. } => {
                "request less with --ephemeral-storage (emptydir:// also with --claim-size), or \
                 use nodes with more local disk: `iosonde doctor --cluster` lists it"
            }
            _ => return self.run_or_manifest_remedy(),
        };
        remedy.to_owned()
    }

    /// Returns the action for an obstacle of a known run or of a rendered manifest. The functions
    /// above know the action of the last variants, as with the description.
    fn run_or_manifest_remedy(&self) -> String {
        let remedy = match self {
            ClusterObstacle::NotFollowable { namespace, job } => {
                return format!(
                    "only `iosonde fio` can be taken up; if it is yours, remove it: {}",
                    removal_command(namespace, job)
                );
            }
            ClusterObstacle::NoSuchRun {
                hidden_outside: Some(_),
                ..
            } => "name its namespace with -n",
            ClusterObstacle::NoSuchRun { known, .. } => match known.as_slice() {
                [] => "there are none; one that has ended is removed after some minutes",
                known => return format!("there are {}", known.join(", ")),
            },
            ClusterObstacle::NoPodsOfRendered { known, .. }
            | ClusterObstacle::SeveralRenderedRuns { known }
                if !known.is_empty() =>
            {
                return format!("name one: {}", known.join(", "));
            }
            ClusterObstacle::NoPodsOfRendered { .. }
            | ClusterObstacle::SeveralRenderedRuns { .. }
            | ClusterObstacle::NoRenderedRun { .. } => {
                "choose its namespace with -n; pods that were removed took their results with them"
            }
            ClusterObstacle::RenderedPodsRemoved { .. } => "apply its manifest again",
            ClusterObstacle::ImageWithoutAgent { .. } => {
                "make one with `iosonde k8s image`, put it into your registry, and name it: \
                 --image REGISTRY/iosonde-agent:TAG"
            }
            ClusterObstacle::NotRenderable(limit) => limit.remedy(),
            ClusterObstacle::ManifestNotWritten { .. } => {
                "use other words in the job or in --pod-patch"
            }
            ClusterObstacle::InvalidJobFile { .. } => {
                "mend the job file, and render its manifest again"
            }
            ClusterObstacle::UnusablePods(problem) => problem.remedy(),
            ClusterObstacle::RequestFailed { .. }
            | ClusterObstacle::NotReachable { .. }
            | ClusterObstacle::InvalidProxy { .. }
            | ClusterObstacle::NoConnectionThread { .. }
            | ClusterObstacle::NoNamespace { .. }
            | ClusterObstacle::NamespaceTerminating { .. }
            | ClusterObstacle::NamespaceForbidden { .. }
            | ClusterObstacle::MissingRights { .. }
            | ClusterObstacle::InvalidPodPatch { .. }
            | ClusterObstacle::UnknownPodField { .. }
            | ClusterObstacle::AgentBusy { .. }
            | ClusterObstacle::NodesNotListed
            | ClusterObstacle::NoLabelledNode { .. }
            | ClusterObstacle::OtherArchitecture { .. }
            | ClusterObstacle::NoUsableNode(_)
            | ClusterObstacle::NoSuchNode { .. }
            | ClusterObstacle::ClaimOutsideLimits { .. }
            | ClusterObstacle::NoSuchContext { .. }
            | ClusterObstacle::OldClientCertificate
            | ClusterObstacle::NoRootCertificates
            | ClusterObstacle::CleanUpForbidden { .. }
            | ClusterObstacle::QuotaNeedsAmount { .. }
            | ClusterObstacle::EphemeralStorageTooSmall { .. }
            | ClusterObstacle::VolumeTooSmall { .. }
            | ClusterObstacle::ShareFull { .. }
            | ClusterObstacle::QuotaExceeded { .. } => "see `kubectl get events`",
        };
        remedy.to_owned()
    }
}

impl fmt::Display for ClusterRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterRequest::ReadVersion => {
                formatter.write_str("asking the cluster for its version")
            }
            ClusterRequest::CheckRights => formatter.write_str("asking for this user's rights"),
            ClusterRequest::CreateNamespace { name } => {
                write!(formatter, "making the namespace {name}")
            }
            ClusterRequest::ListNamespaces => formatter.write_str("looking for namespaces"),
            ClusterRequest::CreateJob { name } => write!(formatter, "creating the job {name}"),
            ClusterRequest::ListJobs => formatter.write_str("listing jobs"),
            ClusterRequest::DeleteJob { name } => write!(formatter, "deleting {name}"),
            ClusterRequest::FindRun => formatter.write_str("looking for the run"),
            ClusterRequest::ReadClaim { name } => write!(formatter, "reading the claim {name}"),
            ClusterRequest::CreateClaim => formatter.write_str("creating the claim"),
            ClusterRequest::FindClaimUsers => {
                formatter.write_str("looking for other pods that use the claim")
            }
            ClusterRequest::ListVolumes => formatter.write_str("listing volumes"),
            ClusterRequest::ListSnapshotClasses => formatter.write_str("listing snapshot classes"),
            ClusterRequest::RemoveSnapshots => formatter.write_str("removing snapshots"),
            ClusterRequest::RemoveVolume { name } => {
                write!(formatter, "removing the volume {name}")
            }
            ClusterRequest::FindPods => formatter.write_str("looking for pods"),
            ClusterRequest::ListPods => formatter.write_str("looking at the pods"),
            ClusterRequest::FindRunPods => formatter.write_str("looking for the run's pods"),
            ClusterRequest::WatchPod => formatter.write_str("watching the pod"),
            ClusterRequest::SendAgent => formatter.write_str("sending the agent into the pod"),
            ClusterRequest::ConnectAgent => formatter.write_str("connecting with the agent"),
            ClusterRequest::ReadLog { pod } => {
                write!(formatter, "reading what {pod} has written")
            }
            ClusterRequest::ReadKeptResult { pod } => {
                write!(formatter, "reading the result of {pod}")
            }
        }
    }
}

impl fmt::Display for ApiFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiFailure::Refused { code, message } if message.trim().is_empty() => {
                write!(formatter, "HTTP status {code} without a message")
            }
            ApiFailure::Refused { message, .. } => formatter.write_str(message),
            ApiFailure::Authentication { error } => write!(formatter, "authentication: {error}"),
            ApiFailure::NoAnswer { error } => formatter.write_str(error),
        }
    }
}

impl ApiFailure {
    fn remedy(&self) -> &'static str {
        match self {
            ApiFailure::Refused { code, .. } => match code {
                401 => RENEW_CREDENTIALS,
                403 => {
                    "ask for a role with these rights (docs/kubernetes.md has the least one), or \
                     check quotas and policies"
                }
                404 => "check its name and the namespace (-n)",
                400 | 422 => "change the option whose value the message names",
                409 | 429 => "try again",
                _ => "look for a check that fails: `kubectl get --raw '/readyz?verbose'`",
            },
            ApiFailure::Authentication { .. } => RENEW_CREDENTIALS,
            ApiFailure::NoAnswer { .. } => {
                "check that the cluster can be reached: `kubectl get nodes` with the same context"
            }
        }
    }
}
