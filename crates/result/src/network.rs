//! Traffic of network interfaces, of TCP and of storage protocols in a span of time.
//!
//! The figures are those of one network namespace: in a pod those of the pod, on a host those of
//! the host. Rates are per second and rounded to hundredths.

use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Smallest share of a run's bytes that an interface moves if it carries the run.
const LEAST_SHARE: f64 = 0.1;
/// Interface of the traffic within the machine.
const LOOPBACK: &str = "lo";

/// Traffic in a span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NetworkRates {
    /// Interfaces by name. Interfaces without traffic are left out.
    #[serde(default)]
    pub interfaces: BTreeMap<String, InterfaceRates>,
    /// Segments of TCP. `None` if the kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpRates>,
    /// Storage protocols that have connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolRates>,
}

/// Traffic of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct InterfaceRates {
    /// Bytes received per second.
    pub received_bytes_s: f64,
    /// Bytes sent per second.
    pub sent_bytes_s: f64,
    /// Packets received per second.
    pub received_packets_s: f64,
    /// Packets sent per second.
    pub sent_packets_s: f64,
    /// Packets dropped per second in both directions.
    pub drops_s: f64,
    /// Erroneous packets per second in both directions.
    pub errors_s: f64,
    /// Speed of the link in Mbit/s. `None` for virtual interfaces, whose speed means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<u64>,
}

/// Segments of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TcpRates {
    /// Segments sent per second, without those that were sent again.
    pub sent_segments_s: f64,
    /// Segments sent again per second.
    pub retransmits_s: f64,
    /// Retransmission timeouts per second.
    pub timeouts_s: f64,
}

/// A protocol of network storage, known by its TCP port.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StorageProtocol {
    /// NFS, port 2049.
    Nfs,
    /// iSCSI, port 3260.
    Iscsi,
    /// NVMe/TCP, port 4420.
    NvmeTcp,
    /// Ceph: monitors at 3300 and 6789, daemons at 6800 to 7300.
    Ceph,
}

/// Traffic of the connections of one storage protocol.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolRates {
    /// The protocol.
    pub protocol: StorageProtocol,
    /// Established connections at the end of the span.
    pub connections: u64,
    /// Bytes received per second.
    pub received_bytes_s: f64,
    /// Bytes sent and acknowledged per second.
    pub sent_bytes_s: f64,
    /// Segments sent again per second.
    pub retransmits_s: f64,
}

/// The busiest interface of a run with the counters that explain waits for the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLoad {
    /// Name of the interface.
    pub interface: String,
    /// Its traffic.
    pub rates: InterfaceRates,
    /// Segments of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpRates>,
    /// Storage protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolRates>,
}

impl StorageProtocol {
    /// Returns the protocol of a TCP port of a server.
    pub fn of_port(port: u16) -> Option<StorageProtocol> {
        match port {
            2049 => Some(StorageProtocol::Nfs),
            3260 => Some(StorageProtocol::Iscsi),
            4420 => Some(StorageProtocol::NvmeTcp),
            3300 | 6789 | 6800..=7300 => Some(StorageProtocol::Ceph),
            _ => None,
        }
    }

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            StorageProtocol::Nfs => "NFS",
            StorageProtocol::Iscsi => "iSCSI",
            StorageProtocol::NvmeTcp => "NVMe/TCP",
            StorageProtocol::Ceph => "Ceph",
        }
    }
}

impl InterfaceRates {
    /// Returns the bytes per second in both directions.
    pub(crate) fn bytes_s(&self) -> f64 {
        self.received_bytes_s + self.sent_bytes_s
    }

    /// Returns the use of the link in its busier direction, in per cent, as `%ifutil` of sar.
    pub fn util_percent(&self) -> Option<f64> {
        let bits_s = self.received_bytes_s.max(self.sent_bytes_s) * 8.0;
        let speed = self.speed_mbit_s.filter(|speed| *speed > 0)?;
        Some(bits_s / (speed as f64 * 1e6) * 100.0)
    }
}

impl NetworkRates {
    /// Returns the interface with the most bytes, with the other counters. `None` without traffic.
    /// The loopback interface is returned only if no other had traffic.
    pub fn busiest(&self) -> Option<NetworkLoad> {
        let mut others = self.interfaces.iter();
        match others.any(|(name, _)| name != LOOPBACK) {
            true => self.busiest_of(|name| name != LOOPBACK),
            false => self.busiest_of(|_| true),
        }
    }

    /// Returns the busiest interface that moved enough bytes to carry a run of this bandwidth, with
    /// the other counters. The loopback interface is returned only if no other carries the run.
    pub fn carrying(&self, run_bytes_per_s: f64) -> Option<NetworkLoad> {
        let is_enough = |load: &NetworkLoad| load.carries(run_bytes_per_s);
        let outside = self.busiest().filter(is_enough);
        outside.or_else(|| self.busiest_of(|_| true).filter(is_enough))
    }

    fn busiest_of(&self, is_meant: impl Fn(&str) -> bool) -> Option<NetworkLoad> {
        let most = |a: &(&String, &InterfaceRates), b: &(&String, &InterfaceRates)| {
            a.1.bytes_s().total_cmp(&b.1.bytes_s())
        };
        let all = self.interfaces.iter();
        let (interface, rates) = all.filter(|(name, _)| is_meant(name)).max_by(most)?;
        Some(NetworkLoad {
            interface: interface.clone(),
            rates: *rates,
            tcp: self.tcp,
            protocols: self.protocols.clone(),
        })
    }

    /// Returns the mean of several spans, weighted by their lengths. `None` without any.
    pub fn mean<R: Borrow<NetworkRates>>(
        spans: impl Iterator<Item = (u64, R)>,
    ) -> Option<NetworkRates> {
        let mut sum = NetworkRates::default();
        let mut all_ns = 0;
        for (length_ns, rates) in spans {
            all_ns += length_ns;
            sum.add_weighted(rates.borrow(), length_ns as f64);
        }
        (all_ns > 0).then(|| sum.scaled(1.0 / all_ns as f64))
    }

    fn add_weighted(&mut self, other: &NetworkRates, weight: f64) {
        for (name, rates) in &other.interfaces {
            let sum = self.interfaces.entry(name.clone()).or_default();
            sum.received_bytes_s += rates.received_bytes_s * weight;
            sum.sent_bytes_s += rates.sent_bytes_s * weight;
            sum.received_packets_s += rates.received_packets_s * weight;
            sum.sent_packets_s += rates.sent_packets_s * weight;
            sum.drops_s += rates.drops_s * weight;
            sum.errors_s += rates.errors_s * weight;
            sum.speed_mbit_s = rates.speed_mbit_s.or(sum.speed_mbit_s);
        }
        if let Some(tcp) = &other.tcp {
            let sum = self.tcp.get_or_insert_default();
            sum.sent_segments_s += tcp.sent_segments_s * weight;
            sum.retransmits_s += tcp.retransmits_s * weight;
            sum.timeouts_s += tcp.timeouts_s * weight;
        }
        for rates in &other.protocols {
            let weighted = rates.scaled(weight);
            let mut known = self.protocols.iter_mut();
            match known.find(|known| known.protocol == rates.protocol) {
                Some(sum) => {
                    sum.connections = sum.connections.max(rates.connections);
                    sum.received_bytes_s += weighted.received_bytes_s;
                    sum.sent_bytes_s += weighted.sent_bytes_s;
                    sum.retransmits_s += weighted.retransmits_s;
                }
                None => self.protocols.push(weighted),
            }
        }
    }

    fn scaled(mut self, factor: f64) -> NetworkRates {
        debug_assert!(factor.is_finite() && factor >= 0.0, "{factor}");
        for rates in self.interfaces.values_mut() {
            rates.received_bytes_s *= factor;
            rates.sent_bytes_s *= factor;
            rates.received_packets_s *= factor;
            rates.sent_packets_s *= factor;
            rates.drops_s *= factor;
            rates.errors_s *= factor;
        }
        if let Some(tcp) = &mut self.tcp {
            tcp.sent_segments_s *= factor;
            tcp.retransmits_s *= factor;
            tcp.timeouts_s *= factor;
        }
        for rates in &mut self.protocols {
            *rates = rates.scaled(factor);
        }
        self
    }
}

impl ProtocolRates {
    /// Whether the connections moved enough bytes to carry a run of this bandwidth.
    pub fn carries(&self, run_bytes_per_s: f64) -> bool {
        self.received_bytes_s + self.sent_bytes_s >= LEAST_SHARE * run_bytes_per_s
    }

    fn scaled(&self, factor: f64) -> ProtocolRates {
        debug_assert!(factor.is_finite() && factor >= 0.0, "{factor}");
        ProtocolRates {
            received_bytes_s: self.received_bytes_s * factor,
            sent_bytes_s: self.sent_bytes_s * factor,
            retransmits_s: self.retransmits_s * factor,
            ..*self
        }
    }
}

impl NetworkLoad {
    /// Whether the interface moved enough bytes to carry a run of this bandwidth. The volumes of a
    /// pod may use the interfaces of the node instead.
    fn carries(&self, run_bytes_per_s: f64) -> bool {
        self.rates.bytes_s() >= LEAST_SHARE * run_bytes_per_s
    }

    /// Returns the counters in words: traffic, use of the link, lost packets, storage protocols.
    pub fn evidence_text(&self) -> String {
        let rates = &self.rates;
        let link = match (rates.util_percent(), rates.speed_mbit_s) {
            (Some(util), Some(speed)) => format!(" ({util:.0} % of its {speed} Mbit/s)"),
            _ => " (no known link speed)".to_owned(),
        };
        let mut text = format!(
            "{} received {} and sent {}{link}, with {} drops/s and {} errors/s",
            self.interface,
            words::bandwidth(rates.received_bytes_s),
            words::bandwidth(rates.sent_bytes_s),
            words::three_digits(rates.drops_s),
            words::three_digits(rates.errors_s),
        );
        if let Some(tcp) = &self.tcp {
            let all = tcp.sent_segments_s + tcp.retransmits_s;
            text.push_str(&format!(
                "; TCP sent {:.2} % of its segments again",
                100.0 * tcp.retransmits_s / all.max(1e-9)
            ));
        }
        for rates in &self.protocols {
            text.push_str(&format!(
                "; {} ({}) received {} and sent {}",
                rates.protocol.name(),
                words::counted(rates.connections as usize, "connection"),
                words::bandwidth(rates.received_bytes_s),
                words::bandwidth(rates.sent_bytes_s),
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(received_bytes_s: f64, speed_mbit_s: Option<u64>) -> InterfaceRates {
        InterfaceRates {
            received_bytes_s,
            speed_mbit_s,
            ..InterfaceRates::default()
        }
    }

    fn network() -> NetworkRates {
        NetworkRates {
            interfaces: [
                ("eth0".to_owned(), rates(117_500_000.0, Some(1000))),
                ("lo".to_owned(), rates(1000.0, None)),
            ]
            .into(),
            tcp: Some(TcpRates {
                sent_segments_s: 990.0,
                retransmits_s: 10.0,
                timeouts_s: 0.0,
            }),
            protocols: vec![ProtocolRates {
                protocol: StorageProtocol::Nfs,
                connections: 1,
                received_bytes_s: 104_857_600.0,
                sent_bytes_s: 1024.0,
                retransmits_s: 10.0,
            }],
        }
    }

    #[test]
    fn network_evidence_names_busiest_interface_and_protocols() {
        let load = network().busiest().unwrap();
        assert_eq!(
            load.evidence_text(),
            "eth0 received 112 MiB/s and sent 0.00 B/s (94 % of its 1000 Mbit/s), with 0.00 \
             drops/s and 0.00 errors/s; TCP sent 1.00 % of its segments again; NFS (1 connection) \
             received 100 MiB/s and sent 1.00 KiB/s"
        );
        assert!(load.carries(100e6) && !load.carries(2e9));
        assert_eq!(NetworkRates::default().busiest(), None);
    }

    #[test]
    fn loopback_carries_a_run_only_if_no_other_interface_does() {
        let mut network = network();
        network.interfaces.insert("lo".to_owned(), rates(1e9, None));
        let name = |run_bytes_per_s| {
            let load = network.carrying(run_bytes_per_s);
            load.map(|load| load.interface)
        };
        assert_eq!(name(100e6).as_deref(), Some("eth0"));
        assert_eq!(name(5e9).as_deref(), Some("lo"));
        assert_eq!(name(1e12), None);
        assert_eq!(network.busiest().unwrap().interface, "eth0");
        network.interfaces.remove("eth0");
        assert_eq!(network.busiest().unwrap().interface, "lo");
    }

    #[test]
    fn network_mean_is_weighted_by_time() {
        let idle = NetworkRates {
            tcp: Some(TcpRates::default()),
            ..NetworkRates::default()
        };
        let all = network();
        let mean = NetworkRates::mean([(3, &idle), (1, &all)].into_iter()).unwrap();
        let eth0 = mean.interfaces["eth0"];
        assert!((eth0.received_bytes_s - 29_375_000.0).abs() < 1.0);
        assert_eq!(eth0.speed_mbit_s, Some(1000));
        assert_eq!(mean.tcp.unwrap().retransmits_s, 2.5);
        assert_eq!(mean.protocols[0].sent_bytes_s, 256.0);
        let none = std::iter::empty::<(u64, NetworkRates)>();
        assert_eq!(NetworkRates::mean(none), None);
    }

    #[test]
    fn storage_ports_name_their_protocol() {
        let named = [2049, 3260, 4420, 3300, 6789, 6800, 7300].map(StorageProtocol::of_port);
        assert!(named.iter().all(Option::is_some));
        assert_eq!([22, 6799, 7301].map(StorageProtocol::of_port), [None; 3]);
    }
}
