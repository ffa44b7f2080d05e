//! Parses the hardware of a cluster from the metadata of its daemons. Pure.

use iosonde_result::ceph_hardware::{
    CephHardware, OsdDeviceContent, OsdNetwork, OsdNetworkRole, SeparateOsdDevice, SharedOsdHost,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Answers of the monitors. Null: the cluster did not answer.
#[derive(Debug, Default)]
pub(crate) struct DaemonMetadata {
    /// Answer to `osd metadata`.
    pub(crate) osds: Value,
    /// Answer to `osd tree`.
    pub(crate) tree: Value,
    /// Kinds of other daemons, e.g. `mon`, each with the answer to `mon metadata`.
    pub(crate) others: Vec<(&'static str, Value)>,
}

impl DaemonMetadata {
    /// The hardware. `link_mbit_per_s` returns the speed of an interface of this host.
    pub(crate) fn hardware(
        &self,
        this_host: &str,
        link_mbit_per_s: impl Fn(&str) -> Option<u64>,
    ) -> CephHardware {
        let osds: Vec<&Value> = answer_list(&self.osds).collect();
        let is_bluestore = |osd: &&&Value| osd["osd_objectstore"] == "bluestore";
        let contents = [OsdDeviceContent::Db, OsdDeviceContent::Wal];
        CephHardware {
            device_classes: device_classes(&self.tree),
            bluestore_osds: number(osds.iter().filter(is_bluestore).count()),
            separate_devices: contents
                .into_iter()
                .flat_map(|content| separate_devices(&osds, content))
                .collect(),
            shared_hosts: shared_hosts(&osds, &self.others),
            networks: networks(&osds, this_host, link_mbit_per_s),
        }
    }
}

fn answer_list(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Number of OSDs by device class, from the answer to `osd tree`.
fn device_classes(tree: &Value) -> BTreeMap<String, u32> {
    let mut classes = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for node in answer_list(&tree["nodes"]).filter(|node| node["type"] == "osd") {
        // An OSD may lie below several roots.
        if seen.insert(node["id"].as_i64()) {
            let class = node["device_class"].as_str().filter(|it| !it.is_empty());
            let class = class.unwrap_or("without a device class");
            *classes.entry(class.to_owned()).or_insert(0) += 1;
        }
    }
    classes
}

/// Devices for this content apart from the data, by kind.
fn separate_devices(osds: &[&Value], content: OsdDeviceContent) -> Vec<SeparateOsdDevice> {
    let name = match content {
        OsdDeviceContent::Db => "db",
        OsdDeviceContent::Wal => "wal",
    };
    let mut kinds: BTreeMap<String, SeparateOsdDevice> = BTreeMap::new();
    let mut users: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for osd in osds {
        if osd[format!("bluefs_dedicated_{name}")] != "1" {
            continue;
        }
        let of_device = |key: &str| osd[format!("bluefs_{name}_{key}")].as_str();
        let kind = of_device("type").unwrap_or("unknown").to_owned();
        let size = of_device("size").and_then(|bytes| bytes.parse::<f64>().ok());
        let data = osd["bluestore_bdev_size"].as_str();
        let data = data.and_then(|bytes| bytes.parse::<f64>().ok());
        let share = size.zip(data).filter(|(_, data)| *data > 0.0);
        let share = share.map(|(size, data)| size / data);
        let found = kinds
            .entry(kind.clone())
            .or_insert_with(|| SeparateOsdDevice {
                content,
                kind: kind.clone(),
                osds: 0,
                data_share: share,
                osds_per_device: 1,
            });
        found.osds += 1;
        found.data_share = match (found.data_share, share) {
            (Some(known), Some(share)) => Some(known.min(share)),
            (known, share) => known.or(share),
        };
        if let Some(device) = of_device("devices").filter(|device| !device.is_empty()) {
            let host = osd["hostname"].as_str().unwrap_or_default();
            let key = (kind, host.to_owned(), device.to_owned());
            let sharing = users.entry(key).or_insert(0);
            *sharing += 1;
            found.osds_per_device = found.osds_per_device.max(*sharing);
        }
    }
    kinds.into_values().collect()
}

/// Hosts of OSDs with daemons of other kinds.
fn shared_hosts(osds: &[&Value], others: &[(&'static str, Value)]) -> Vec<SharedOsdHost> {
    let mut hosts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for osd in osds {
        let id = osd["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        if let (Some(host), Some(id)) = (osd["hostname"].as_str(), id) {
            hosts.entry(host).or_default().push(id);
        }
    }
    let of_host = |host: &str| -> Vec<String> {
        let daemons = others.iter().flat_map(|(kind, answer)| {
            let there = answer_list(answer).filter(move |daemon| daemon["hostname"] == *host);
            there.filter_map(move |daemon| Some(format!("{kind}.{}", daemon["name"].as_str()?)))
        });
        daemons.collect()
    };
    let shared = hosts.into_iter().map(|(host, osds)| SharedOsdHost {
        host: host.to_owned(),
        osds,
        daemons: of_host(host),
    });
    shared.filter(|host| !host.daemons.is_empty()).collect()
}

/// Networks of the OSDs. Empty if no OSD reports an address.
fn networks(
    osds: &[&Value],
    this_host: &str,
    link_mbit_per_s: impl Fn(&str) -> Option<u64>,
) -> Vec<OsdNetwork> {
    let has_address = |osd: &&Value| ip_address(&osd["front_addr"]).is_some();
    if !osds.iter().any(has_address) {
        return Vec::new();
    }
    let is_separate =
        |osd: &&Value| ip_address(&osd["front_addr"]) != ip_address(&osd["back_addr"]);
    let network = |role: OsdNetworkRole, key: &str| {
        let mut interfaces = BTreeSet::new();
        let mut speed: Option<u64> = None;
        for osd in osds {
            let Some(name) = osd[key].as_str().filter(|name| !name.is_empty()) else {
                continue;
            };
            interfaces.insert(name.to_owned());
            if osd["hostname"] == *this_host {
                let found = link_mbit_per_s(name);
                speed = speed.into_iter().chain(found).min();
            }
        }
        OsdNetwork {
            role,
            interfaces: interfaces.into_iter().collect(),
            link_mbit_per_s: speed,
        }
    };
    let mut networks = vec![network(OsdNetworkRole::Public, "front_iface")];
    if osds.iter().any(is_separate) {
        networks.push(network(OsdNetworkRole::Cluster, "back_iface"));
    }
    networks
}

/// IP address in a daemon's address, e.g. `[v2:10.0.0.1:6800/7,v1:10.0.0.1:6801/7]`.
fn ip_address(address: &Value) -> Option<&str> {
    let first = address
        .as_str()?
        .trim_start_matches('[')
        .split(',')
        .next()?;
    let first = first.trim_start_matches("v2:").trim_start_matches("v1:");
    let (ip, _) = first.rsplit_once(':')?;
    (!ip.is_empty()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An OSD as `osd metadata` of Ceph 16 describes it, shortened.
    fn osd(id: u32, host: &str, back: &str) -> Value {
        json!({
            "id": id, "hostname": host, "osd_objectstore": "bluestore",
            "front_addr": format!("[v2:10.0.0.{id}:6802/1,v1:10.0.0.{id}:6803/1]"),
            "back_addr": format!("[v2:{back}.{id}:6802/1,v1:{back}.{id}:6803/1]"),
            "front_iface": "eth0", "back_iface": "eth1",
            "bluefs_dedicated_db": "1", "bluefs_dedicated_wal": "0",
            "bluefs_db_type": "ssd", "bluefs_db_size": (id * 10).to_string(),
            "bluefs_db_devices": "nvme0n1", "bluestore_bdev_size": "1000"
        })
    }

    fn metadata(back: &str) -> DaemonMetadata {
        DaemonMetadata {
            osds: json!([osd(4, "n1", back), osd(5, "n1", back), osd(6, "n2", back)]),
            tree: json!({"nodes": [
                {"id": -1, "type": "root"},
                {"id": 4, "type": "osd", "device_class": "hdd"},
                {"id": 4, "type": "osd", "device_class": "hdd"},
                {"id": 5, "type": "osd", "device_class": "hdd"},
                {"id": 6, "type": "osd"}
            ]}),
            others: vec![
                (
                    "mon",
                    json!([{"name": "a", "hostname": "n1"}, {"name": "b", "hostname": "n9"}]),
                ),
                ("mds", Value::Null),
            ],
        }
    }

    #[test]
    fn daemon_metadata_become_hardware() {
        let found = metadata("10.1.0").hardware("n1", |name| (name == "eth1").then_some(10_000));
        assert_eq!(found.device_classes["hdd"], 2);
        assert_eq!(found.device_classes["without a device class"], 1);
        assert_eq!(found.bluestore_osds, 3);
        let db = SeparateOsdDevice {
            content: OsdDeviceContent::Db,
            kind: "ssd".to_owned(),
            osds: 3,
            data_share: Some(0.04),
            osds_per_device: 2,
        };
        assert_eq!(found.separate_devices, [db]);
        let shared = SharedOsdHost {
            host: "n1".to_owned(),
            osds: vec![4, 5],
            daemons: vec!["mon.a".to_owned()],
        };
        assert_eq!(found.shared_hosts, [shared]);
        let roles: Vec<_> = found
            .networks
            .iter()
            .map(|network| (network.role, network.link_mbit_per_s))
            .collect();
        assert_eq!(
            roles,
            [
                (OsdNetworkRole::Public, None),
                (OsdNetworkRole::Cluster, Some(10_000))
            ]
        );
    }

    #[test]
    fn hardware_with_one_network_and_missing_answers_is_no_error() {
        let one = metadata("10.0.0").hardware("n9", |_| Some(1));
        assert_eq!(one.networks.len(), 1);
        assert_eq!(one.networks[0].link_mbit_per_s, None);
        let none = DaemonMetadata::default().hardware("n1", |_| None);
        assert_eq!(none, CephHardware::default());
    }
}
