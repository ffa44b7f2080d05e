//! Finds the nodes to sample: those that the user names, or the server of the pods' volumes, by the
//! address in the volume.

use crate::options::ClusterOptions;
use crate::run_objects::RunObjects;
use iosonde_job::TargetUri;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, ListParams};
use std::collections::BTreeSet;

/// Maximum number of claims whose volumes are inspected.
const PODS: usize = 8;

/// A node to sample, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchedNode {
    pub(crate) node: String,
    pub(crate) why: String,
    /// Whether the node is known to serve the volume.
    pub(crate) serves: bool,
}

/// Returns the nodes to sample: those named by the user, or the servers of the volumes. `claims`
/// are those of the run that were seen when its pods ran.
pub(crate) async fn nodes_to_watch(
    options: &ClusterOptions,
    objects: &RunObjects,
    claims: Vec<PersistentVolumeClaim>,
) -> Vec<WatchedNode> {
    let Some(named) = &options.watch_nodes else {
        return serving_nodes(&options.target, objects, claims).await;
    };
    let mut named = named.clone();
    named.sort_unstable();
    named.dedup();
    named.into_iter().map(WatchedNode::asked_for).collect()
}

impl WatchedNode {
    /// Returns a node that the user names.
    pub(crate) fn asked_for(node: String) -> WatchedNode {
        WatchedNode {
            node,
            why: "named with --watch-node".to_owned(),
            serves: false,
        }
    }
}

/// Returns the nodes that serve the volumes of the pods, if this user may read the objects.
async fn serving_nodes(
    target: &TargetUri,
    objects: &RunObjects,
    claims: Vec<PersistentVolumeClaim>,
) -> Vec<WatchedNode> {
    let claims = used_claims(target, objects, claims)
        .await
        .unwrap_or_default();
    match claims.is_empty() {
        true => Vec::new(),
        false => found(objects, claims).await.unwrap_or_default(),
    }
}

/// Returns the claims of the pods: those that belong to the run, or the one that the user names.
async fn used_claims(
    target: &TargetUri,
    objects: &RunObjects,
    known: Vec<PersistentVolumeClaim>,
) -> Result<Vec<PersistentVolumeClaim>, kube::Error> {
    let (client, namespace) = (&objects.cluster.client, &objects.cluster.namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let is_bound = |claim: &PersistentVolumeClaim| {
        let spec = claim.spec.as_ref();
        spec.is_some_and(|spec| spec.volume_name.is_some())
    };
    match target {
        TargetUri::StorageClass(_) | TargetUri::Ephemeral(_)
            if !known.is_empty() && known.iter().all(is_bound) =>
        {
            Ok(known)
        }
        TargetUri::StorageClass(_) | TargetUri::Ephemeral(_) => {
            let ours = ListParams::default().labels(&objects.label());
            claims.list(&ours).await.map(|list| list.items)
        }
        TargetUri::Claim { name, .. } => {
            let claim = claims.get_opt(name).await?;
            Ok(claim.into_iter().collect())
        }
        _ => Ok(Vec::new()),
    }
}

async fn found(
    objects: &RunObjects,
    claims: Vec<PersistentVolumeClaim>,
) -> Result<Vec<WatchedNode>, kube::Error> {
    let client = &objects.cluster.client;
    let claims = claims.into_iter().take(PODS);
    let bound = claims.filter_map(|claim| claim.spec?.volume_name);
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let mut servers = BTreeSet::new();
    for name in bound {
        servers.extend(server(&volumes.get(&name).await?));
    }
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes.list(&ListParams::default()).await?;
    let served = |server: &String| {
        let node = nodes.items.iter().find(|node| has_address(node, server))?;
        Some(WatchedNode {
            node: node.metadata.name.clone()?,
            why: format!("serves the volume from {server}"),
            serves: true,
        })
    };
    let mut served: Vec<WatchedNode> = servers.iter().filter_map(served).collect();
    served.dedup_by(|a, b| a.node == b.node);
    Ok(served)
}

/// Returns the server of a volume, without a port.
fn server(volume: &PersistentVolume) -> Option<String> {
    let spec = volume.spec.as_ref()?;
    let of_nfs = spec.nfs.as_ref().map(|nfs| nfs.server.clone());
    let of_iscsi = || Some(spec.iscsi.as_ref()?.target_portal.clone());
    let of_csi = || {
        let attributes = spec.csi.as_ref()?.volume_attributes.as_ref()?;
        let keys = ["server", "targetPortal", "portal", "source"];
        let found = keys.iter().find_map(|key| attributes.get(*key))?;
        // SMB writes the server as //server/share.
        let found = found.trim_start_matches('/');
        found.split('/').next().map(str::to_owned)
    };
    let server = of_nfs.or_else(of_iscsi).or_else(of_csi)?;
    let plain = match server.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && is_a_host(host) => host,
        _ => &server,
    };
    let plain = plain
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    (!plain.is_empty()).then_some(plain)
}

/// An IPv6 address has several colons, and is in brackets if a port follows.
fn is_a_host(host: &str) -> bool {
    !host.contains(':') || (host.starts_with('[') && host.ends_with(']'))
}

fn has_address(node: &Node, server: &str) -> bool {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let mut addresses = addresses.into_iter().flatten();
    node.metadata.name.as_deref() == Some(server)
        || addresses.any(|address| address.address == server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume_origin::claim_of;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, from_value, json};

    fn server_of(spec: Value) -> Option<String> {
        server(&from_value(json!({"spec": spec})).unwrap())
    }

    #[test]
    fn volumes_of_several_kinds_name_their_server() {
        let nfs = json!({"nfs": {"server": "10.0.0.5", "path": "/export"}});
        assert_eq!(server_of(nfs).as_deref(), Some("10.0.0.5"));
        let csi = |key: &str, value: &str| {
            json!({"csi": {"driver": "d", "volumeHandle": "h",
            "volumeAttributes": {key: value}}})
        };
        assert_eq!(
            server_of(csi("server", "nfs.example.com")).as_deref(),
            Some("nfs.example.com")
        );
        assert_eq!(
            server_of(csi("targetPortal", "10.0.0.7:3260")).as_deref(),
            Some("10.0.0.7")
        );
        assert_eq!(
            server_of(csi("targetPortal", "[fd00::5]:3260")).as_deref(),
            Some("fd00::5")
        );
        assert_eq!(server_of(csi("source", "//n1/data")).as_deref(), Some("n1"));
        assert_eq!(
            server_of(csi("server", "fd00::5")).as_deref(),
            Some("fd00::5")
        );
        assert_eq!(server_of(csi("type", "gp3")), None);
        assert_eq!(server_of(json!({"local": {"path": "/mnt"}})), None);
    }

    #[test]
    fn bound_claims_that_were_seen_are_not_listed_again() {
        use crate::fake_api::{ApiAnswer, list, serve};
        let runtime = crate::connect::runtime().unwrap();
        let (objects, requests) = serve(&runtime, |request, _| match request {
            _ if request.contains("/persistentvolumes/pv-1") => {
                ApiAnswer::Document(json!({"spec": {"nfs": {"server": "n1", "path": "/"}}}))
            }
            _ if request.contains("/nodes") => list(&[json!({"metadata": {"name": "n1"}})]),
            _ => list(&[]),
        });
        let options = ClusterOptions::new("sc://fast".parse().unwrap());
        let claim = |spec: Value| -> PersistentVolumeClaim {
            from_value(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap()
        };
        let bound = vec![claim(json!({"volumeName": "pv-1"}))];
        let nodes = runtime.block_on(nodes_to_watch(&options, &objects, bound));
        assert_eq!(nodes[0].node, "n1");
        assert_eq!(requests.count(&["/persistentvolumeclaims"]), 0);
        let unbound = vec![claim(json!({}))];
        assert!(
            runtime
                .block_on(nodes_to_watch(&options, &objects, unbound))
                .is_empty()
        );
        assert_eq!(requests.count(&["/persistentvolumeclaims"]), 1);
    }

    #[test]
    fn named_node_has_its_option_as_reason() {
        let named = WatchedNode::asked_for("n1".to_owned());
        assert_eq!(named.why, "named with --watch-node");
        assert!(!named.serves);
    }

    #[test]
    fn claim_of_pod_and_addresses_of_node_are_found() {
        let pod = |data: Value| -> Pod {
            let mut volume = data;
            volume["name"] = json!("data");
            from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": [],
                "volumes": [{"name": "agent"}, volume]}}))
            .unwrap()
        };
        let named = pod(json!({"persistentVolumeClaim": {"claimName": "c"}}));
        assert_eq!(claim_of(&named).as_deref(), Some("c"));
        let made = pod(json!({"ephemeral": {}}));
        assert_eq!(claim_of(&made).as_deref(), Some("p-data"));
        assert_eq!(claim_of(&pod(json!({"emptyDir": {}}))), None);
        let node: Node = from_value(json!({"metadata": {"name": "n1"}, "status": {"addresses": [
            {"type": "InternalIP", "address": "10.0.0.5"}]}}))
        .unwrap();
        assert!(
            has_address(&node, "10.0.0.5")
                && has_address(&node, "n1")
                && !has_address(&node, "10.0.0.6")
        );
    }
}
