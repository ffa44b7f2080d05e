//! Hardware of a Ceph cluster, as its daemons report it.

use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hardware of a Ceph cluster: devices and networks of its OSDs, and hosts with other daemons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CephHardware {
    /// Number of OSDs by the device class in the CRUSH map.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device_classes: BTreeMap<String, u32>,
    /// Number of OSDs that use BlueStore.
    #[serde(default)]
    pub bluestore_osds: u32,
    /// Devices that hold DB or WAL of BlueStore apart from the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub separate_devices: Vec<SeparateOsdDevice>,
    /// Hosts of OSDs that also run monitors, managers or metadata servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_hosts: Vec<SharedOsdHost>,
    /// Networks of the OSDs: the public one, and the cluster network if it differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<OsdNetwork>,
}

/// Devices of one kind that hold the DB or the WAL of OSDs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeparateOsdDevice {
    /// Content of the devices.
    pub content: OsdDeviceContent,
    /// Kind of the devices: `hdd`, `ssd` or `nvme`.
    pub kind: String,
    /// Number of OSDs with such a device.
    pub osds: u32,
    /// Smallest size, as a share of the data device's size. `None` if sizes are not reported.
    pub data_share: Option<f64>,
    /// Largest number of OSDs that share a device.
    pub osds_per_device: u32,
}

/// Content of a device apart from the data.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OsdDeviceContent {
    /// The database of BlueStore.
    Db,
    /// The write-ahead log of BlueStore.
    Wal,
}

/// A host of OSDs that also runs other daemons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedOsdHost {
    /// Name of the host.
    pub host: String,
    /// Numbers of its OSDs.
    pub osds: Vec<u32>,
    /// Names of the other daemons, e.g. `mon.a`.
    pub daemons: Vec<String>,
}

/// A network of the OSDs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OsdNetwork {
    /// Use of the network.
    pub role: OsdNetworkRole,
    /// Names of the interfaces on the hosts. Empty if OSDs do not report them.
    pub interfaces: Vec<String>,
    /// Lowest link speed in Mbit/s. Only known for OSDs on this machine: Ceph reports no speeds.
    pub link_mbit_per_s: Option<u64>,
}

/// Use of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OsdNetworkRole {
    /// Clients, and replication unless there is a cluster network.
    Public,
    /// Replication and recovery.
    Cluster,
}

impl CephHardware {
    /// Returns the devices of the OSDs in one line. `None` if they are not known.
    pub fn devices_text(&self) -> Option<String> {
        let classes = self.device_classes.iter();
        let classes: Vec<String> = classes
            .map(|(class, osds)| format!("{osds} {class}"))
            .collect();
        let mut clauses = Vec::new();
        if !classes.is_empty() {
            clauses.push(classes.join(", "));
        }
        clauses.extend(self.separate_devices.iter().map(SeparateOsdDevice::text));
        if self.separate_devices.is_empty() && self.bluestore_osds > 0 {
            clauses.push("DB and WAL on the data devices".to_owned());
        }
        (!clauses.is_empty()).then(|| clauses.join("; "))
    }

    /// Returns the hosts that OSDs share with other daemons. `None` if there are none.
    pub fn shared_hosts_text(&self) -> Option<String> {
        let host = |shared: &SharedOsdHost| {
            let osds = words::counted(shared.osds.len(), "OSD");
            format!("{}: {osds} with {}", shared.host, shared.daemons.join(", "))
        };
        let hosts: Vec<String> = self.shared_hosts.iter().map(host).collect();
        (!hosts.is_empty()).then(|| hosts.join("; "))
    }

    /// Returns the networks of the OSDs. `None` if they are not known.
    pub fn networks_text(&self) -> Option<String> {
        let is_one = self.networks.len() == 1;
        let network = |network: &OsdNetwork| {
            let role = match network.role {
                OsdNetworkRole::Public if is_one => "public and cluster",
                OsdNetworkRole::Public => "public",
                OsdNetworkRole::Cluster => "cluster",
            };
            let interfaces = match network.interfaces.as_slice() {
                [] => String::new(),
                names => format!(" {}", names.join(", ")),
            };
            match network.link_mbit_per_s {
                Some(speed) => format!("{role}{interfaces} ({speed} Mbit/s)"),
                None => format!("{role}{interfaces} (speed not reported)"),
            }
        };
        let networks: Vec<String> = self.networks.iter().map(network).collect();
        (!networks.is_empty()).then(|| networks.join("; "))
    }
}

impl SeparateOsdDevice {
    fn text(&self) -> String {
        let content = match self.content {
            OsdDeviceContent::Db => "DB",
            OsdDeviceContent::Wal => "WAL",
        };
        let osds = words::counted(self.osds as usize, "OSD");
        let share = self.data_share.map_or_else(String::new, |share| {
            format!(", {:.1} % of the data device", share * 100.0)
        });
        let shared = match self.osds_per_device {
            0 | 1 => String::new(),
            osds => format!(", {osds} OSDs per device"),
        };
        format!("{content} of {osds} on {}{share}{shared}", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_lines_name_devices_hosts_and_networks() {
        let mut hardware = CephHardware {
            device_classes: BTreeMap::from([("hdd".to_owned(), 4), ("ssd".to_owned(), 1)]),
            bluestore_osds: 5,
            ..CephHardware::default()
        };
        assert_eq!(
            hardware.devices_text().as_deref(),
            Some("4 hdd, 1 ssd; DB and WAL on the data devices")
        );
        hardware.separate_devices = vec![SeparateOsdDevice {
            content: OsdDeviceContent::Db,
            kind: "nvme".to_owned(),
            osds: 4,
            data_share: Some(0.041),
            osds_per_device: 2,
        }];
        assert_eq!(
            hardware.devices_text().as_deref(),
            Some("4 hdd, 1 ssd; DB of 4 OSDs on nvme, 4.1 % of the data device, 2 OSDs per device")
        );
        assert_eq!(hardware.shared_hosts_text(), None);
        hardware.shared_hosts = vec![SharedOsdHost {
            host: "n1".to_owned(),
            osds: vec![0, 1],
            daemons: vec!["mon.a".to_owned(), "mgr.x".to_owned()],
        }];
        assert_eq!(
            hardware.shared_hosts_text().as_deref(),
            Some("n1: 2 OSDs with mon.a, mgr.x")
        );
        let network = |role, speed| OsdNetwork {
            role,
            interfaces: vec!["eth0".to_owned()],
            link_mbit_per_s: speed,
        };
        hardware.networks = vec![network(OsdNetworkRole::Public, None)];
        assert_eq!(
            hardware.networks_text().as_deref(),
            Some("public and cluster eth0 (speed not reported)")
        );
        let cluster = network(OsdNetworkRole::Cluster, Some(10_000));
        hardware.networks.push(cluster);
        assert_eq!(
            hardware.networks_text().as_deref(),
            Some("public eth0 (speed not reported); cluster eth0 (10000 Mbit/s)")
        );
        assert_eq!(CephHardware::default().devices_text(), None);
    }
}
