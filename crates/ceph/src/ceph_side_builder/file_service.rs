//! Servers of mounted file systems: metadata servers and NFS-Ganesha. Pure.

use super::{count, value_text};
use iosonde_result::ceph::MetadataServer;
use serde_json::Value;

/// Active metadata servers, from the answer to `fs status`.
pub(crate) fn metadata_servers(answer: &Value) -> Vec<MetadataServer> {
    let servers = answer["mdsmap"].as_array().into_iter().flatten();
    let active = servers.filter(|server| server["state"] == "active");
    active
        .map(|server| MetadataServer {
            name: value_text(&server["name"]),
            rank: count(&server["rank"]),
            requests_per_s: server["rate"].as_u64().unwrap_or(0),
            cached_inodes: server["inos"].as_u64().unwrap_or(0),
            caps: server["caps"].as_u64().unwrap_or(0),
        })
        .collect()
}

/// Whether the answer to `service dump` has an NFS-Ganesha on one of these servers, which are host
/// names or addresses.
pub(crate) fn has_ganesha(answer: &Value, servers: &[String]) -> bool {
    let services = answer["services"].as_object().into_iter().flatten();
    let ganesha = services.filter(|(name, _)| name.contains("ganesha") || name.as_str() == "nfs");
    let mut daemons = ganesha.flat_map(|(_, service)| {
        let daemons = service["daemons"].as_object().into_iter().flatten();
        daemons.map(|(_, daemon)| daemon)
    });
    let bare = |server: &str| server.trim_matches(['[', ']']).to_owned();
    let servers: Vec<String> = servers.iter().map(|server| bare(server)).collect();
    daemons.any(|daemon| {
        // An address is followed by the port and a number: `10.0.0.1:0/123`, `[::1]:0/123`.
        let address = daemon["addr"].as_str().unwrap_or_default();
        let address = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = value_text(&daemon["metadata"]["hostname"]);
        let address = bare(address);
        servers.iter().any(|server| {
            (!address.is_empty() && *server == address) || (!host.is_empty() && *server == host)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn active_metadata_servers_are_read() {
        // As Ceph 16 answers `fs status`.
        let answer = json!({
            "clients": [{"clients": 2, "fs": "cephfs"}],
            "mds_version": [],
            "mdsmap": [
                {"caps": 41, "dirs": 12, "dns": 60, "inos": 63, "name": "a", "rank": 0,
                 "rate": 120, "state": "active"},
                {"name": "b", "state": "standby"}
            ],
            "pools": [{"avail": 1, "id": 2, "name": "cephfs_metadata", "type": "metadata",
                       "used": 0}]
        });
        let servers = metadata_servers(&answer);
        assert_eq!(servers.len(), 1);
        assert_eq!((servers[0].name.as_str(), servers[0].rank), ("a", 0));
        let figures = (servers[0].requests_per_s, servers[0].cached_inodes);
        assert_eq!((figures, servers[0].caps), ((120, 63), 41));
        assert!(metadata_servers(&Value::Null).is_empty());
    }

    #[test]
    fn ganesha_is_found_by_address_or_host() {
        let answer = json!({"epoch": 4, "services": {
            "rgw": {"daemons": {"summary": "", "0": {"addr": "10.0.0.8:0/1"}}},
            "nfs-ganesha": {"daemons": {
                "summary": "",
                "nfs.0": {"gid": 4121, "addr": "10.0.0.9:0/2028575351",
                          "metadata": {"hostname": "store-1"}},
                "nfs.1": {"gid": 4122, "addr": "[fd00::9]:0/77", "metadata": {}}
            }}
        }});
        let has = |server: &str| has_ganesha(&answer, &[server.to_owned()]);
        assert!(has("10.0.0.9") && has("store-1") && has("[fd00::9]") && has("fd00::9"));
        assert!(!has("10.0.0.8"), "no NFS server");
        assert!(!has("") && !has("10.0.0.10"));
        assert!(!has_ganesha(&Value::Null, &["10.0.0.9".to_owned()]));
    }
}
