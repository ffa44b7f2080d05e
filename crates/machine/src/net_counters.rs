//! Counters of network interfaces (`/proc/net/dev`), of TCP (`/proc/net/snmp`, `/proc/net/netstat`)
//! and of storage connections, in the network namespace of this process.

use super::proc_root::System;
use super::storage_sockets::{SocketCounters, StorageSockets};
use iosonde_result::machine::hundredths;
use iosonde_result::network::{
    InterfaceRates, NetworkRates, ProtocolRates, StorageProtocol, TcpRates,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of interfaces of a span: those with the most bytes. A node has one per pod.
const MOST_INTERFACES: usize = 8;

/// Counters of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct InterfaceCounters {
    received_bytes: u64,
    received_packets: u64,
    sent_bytes: u64,
    sent_packets: u64,
    drops: u64,
    errors: u64,
}

/// Counters of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TcpCounters {
    sent_segments: u64,
    retransmits: u64,
    timeouts: u64,
}

/// Link speeds in Mbit/s by interface, for interfaces that have a meaningful one.
#[derive(Debug, Clone, Default)]
pub struct LinkSpeeds(BTreeMap<String, u64>);

/// The counters of the network at one moment.
#[derive(Debug, Clone, Default)]
pub struct NetworkSnapshot {
    interfaces: BTreeMap<String, InterfaceCounters>,
    tcp: Option<TcpCounters>,
    /// Storage connections. `None` if they were not listed.
    sockets: Option<StorageSockets>,
}

/// Increments of the network counters in a span of time.
#[derive(Debug, Clone, Default)]
pub struct NetworkDeltas {
    interfaces: BTreeMap<String, InterfaceCounters>,
    tcp: Option<TcpCounters>,
    protocols: BTreeMap<StorageProtocol, SocketCounters>,
}

impl LinkSpeeds {
    /// Reads the speeds. Drivers of virtual interfaces report invented ones, which are skipped.
    pub fn read(system: &System) -> LinkSpeeds {
        let names = system.names("/sys/class/net").into_iter();
        let speed = |name: String| {
            let dir = format!("/sys/class/net/{name}");
            let is_real = ["device", "bonding"]
                .iter()
                .any(|entry| system.exists(format!("{dir}/{entry}")));
            let speed: i64 = system.value(format!("{dir}/speed")).filter(|_| is_real)?;
            // Without a link the kernel reports -1.
            let speed = u64::try_from(speed).ok().filter(|speed| *speed > 0)?;
            Some((name, speed))
        };
        LinkSpeeds(names.filter_map(speed).collect())
    }

    /// Speed of an interface in Mbit/s. `None` if it has no meaningful one.
    pub fn mbit_per_s(&self, interface: &str) -> Option<u64> {
        self.0.get(interface).copied()
    }
}

impl NetworkSnapshot {
    /// Reads the counters, and on request those of the storage connections.
    pub fn take(system: &System, lists_sockets: bool) -> NetworkSnapshot {
        let text = |path: &str| system.text(path).unwrap_or_default();
        NetworkSnapshot {
            interfaces: parse_interfaces(&text("/proc/net/dev")),
            tcp: parse_tcp(&text("/proc/net/snmp"), &text("/proc/net/netstat")),
            sockets: match lists_sockets {
                true => StorageSockets::read(system),
                false => None,
            },
        }
    }

    /// Increments of the counters since an earlier snapshot. `None` without `/proc/net/dev`.
    pub fn since(&self, before: &NetworkSnapshot) -> Option<NetworkDeltas> {
        if self.interfaces.is_empty() || before.interfaces.is_empty() {
            return None;
        }
        let moved = |(name, now): (&String, &InterfaceCounters)| {
            // An interface that was added meanwhile counts from zero.
            let then = before.interfaces.get(name).copied().unwrap_or_default();
            (name.clone(), now.since(&then))
        };
        Some(NetworkDeltas {
            interfaces: self.interfaces.iter().map(moved).collect(),
            tcp: self
                .tcp
                .zip(before.tcp)
                .map(|(now, before)| now.since(&before)),
            protocols: (self.sockets.as_ref())
                .zip(before.sockets.as_ref())
                .map_or_else(BTreeMap::new, |(now, before)| now.since(before)),
        })
    }
}

impl NetworkDeltas {
    /// Adds those of a following span.
    pub fn add(&mut self, other: &NetworkDeltas) {
        for (name, counters) in &other.interfaces {
            self.interfaces
                .entry(name.clone())
                .or_default()
                .add(counters);
        }
        if let Some(tcp) = &other.tcp {
            let sum = self.tcp.get_or_insert_default();
            sum.sent_segments += tcp.sent_segments;
            sum.retransmits += tcp.retransmits;
            sum.timeouts += tcp.timeouts;
        }
        for (protocol, counters) in &other.protocols {
            self.protocols.entry(*protocol).or_default().add(counters);
        }
    }

    /// The rates over `elapsed`. Interfaces without traffic are left out.
    pub fn rates(&self, elapsed: Duration, speeds: &LinkSpeeds) -> Option<NetworkRates> {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let per_s = |count: u64| hundredths(count as f64 / seconds);
        let mut used: Vec<(&String, &InterfaceCounters)> = self
            .interfaces
            .iter()
            .filter(|(_, counters)| **counters != InterfaceCounters::default())
            .collect();
        used.sort_by_key(|(_, counters)| {
            std::cmp::Reverse(counters.received_bytes.saturating_add(counters.sent_bytes))
        });
        used.truncate(MOST_INTERFACES);
        let interface = |(name, counters): (&String, &InterfaceCounters)| {
            let rates = InterfaceRates {
                received_bytes_s: per_s(counters.received_bytes),
                sent_bytes_s: per_s(counters.sent_bytes),
                received_packets_s: per_s(counters.received_packets),
                sent_packets_s: per_s(counters.sent_packets),
                drops_s: per_s(counters.drops),
                errors_s: per_s(counters.errors),
                speed_mbit_s: speeds.0.get(name).copied(),
            };
            (name.clone(), rates)
        };
        let protocol = |(protocol, counters): (&StorageProtocol, &SocketCounters)| ProtocolRates {
            protocol: *protocol,
            connections: counters.connections,
            received_bytes_s: per_s(counters.received_bytes),
            sent_bytes_s: per_s(counters.sent_bytes),
            retransmits_s: per_s(counters.retransmits),
        };
        Some(NetworkRates {
            interfaces: used.into_iter().map(interface).collect(),
            tcp: self.tcp.map(|tcp| TcpRates {
                sent_segments_s: per_s(tcp.sent_segments),
                retransmits_s: per_s(tcp.retransmits),
                timeouts_s: per_s(tcp.timeouts),
            }),
            protocols: self.protocols.iter().map(protocol).collect(),
        })
    }
}

impl InterfaceCounters {
    fn columns(&mut self) -> [&mut u64; 6] {
        [
            &mut self.received_bytes,
            &mut self.received_packets,
            &mut self.sent_bytes,
            &mut self.sent_packets,
            &mut self.drops,
            &mut self.errors,
        ]
    }

    fn since(&self, before: &InterfaceCounters) -> InterfaceCounters {
        let (mut now, mut before) = (*self, *before);
        for (now, then) in now.columns().into_iter().zip(before.columns()) {
            // The counters of an interface that was made anew start at zero.
            *now = now.checked_sub(*then).unwrap_or(*now);
        }
        now
    }

    fn add(&mut self, other: &InterfaceCounters) {
        let mut other = *other;
        for (sum, more) in self.columns().into_iter().zip(other.columns()) {
            *sum = sum.saturating_add(*more);
        }
    }
}

impl TcpCounters {
    fn since(&self, before: &TcpCounters) -> TcpCounters {
        TcpCounters {
            sent_segments: self.sent_segments.saturating_sub(before.sent_segments),
            retransmits: self.retransmits.saturating_sub(before.retransmits),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
        }
    }
}

/// Parses `/proc/net/dev`. Lines of another form are skipped.
fn parse_interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    text.lines().filter_map(interface).collect()
}

/// Parses `eth0: bytes packets errs drop fifo frame compressed multicast bytes packets errs drop`.
fn interface(line: &str) -> Option<(String, InterfaceCounters)> {
    let (name, counts) = line.split_once(':')?;
    let counts: Vec<u64> = counts
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [
        received_bytes,
        received_packets,
        receive_errors,
        receive_drops,
        _,
        _,
        _,
        _,
        sent_bytes,
        sent_packets,
        send_errors,
        send_drops,
        ..,
    ] = counts[..]
    else {
        return None;
    };
    let counters = InterfaceCounters {
        received_bytes,
        received_packets,
        sent_bytes,
        sent_packets,
        drops: receive_drops.saturating_add(send_drops),
        errors: receive_errors.saturating_add(send_errors),
    };
    Some((name.trim().to_owned(), counters))
}

fn parse_tcp(snmp: &str, netstat: &str) -> Option<TcpCounters> {
    Some(TcpCounters {
        // The kernel counts OutSegs without segments that were sent again.
        sent_segments: named_count(snmp, "Tcp:", "OutSegs")?,
        retransmits: named_count(snmp, "Tcp:", "RetransSegs")?,
        timeouts: named_count(netstat, "TcpExt:", "TCPTimeouts").unwrap_or(0),
    })
}

/// Finds a count in pairs of lines, of which the first has the names and the second the counts.
fn named_count(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, counts) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(counts.split_whitespace());
    pairs.find(|(known, _)| *known == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth0: 5000 50 1 2 0 0 0 0 7000 70 3 4 0 0 0 0
 broken: 1 2 3
";
    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 100 5\n";
    const NETSTAT: &str = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n";

    fn machine(dev: &str, snmp: &str) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for dir in [
            "proc/net",
            "sys/class/net/eth0/device",
            "sys/class/net/veth1",
        ] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let write = |path: &str, text: &str| {
            std::fs::write(root.path().join(path), text).unwrap();
        };
        write("proc/net/dev", dev);
        write("proc/net/snmp", snmp);
        write("proc/net/netstat", NETSTAT);
        write("sys/class/net/eth0/speed", "1000\n");
        write("sys/class/net/veth1/speed", "10000\n");
        let system = System::captured(root.path());
        (root, system)
    }

    #[test]
    fn network_rates_are_differences_of_proc_counters() {
        let (root, system) = machine(DEV, SNMP);
        let before = NetworkSnapshot::take(&system, false);
        let later = DEV.replace("5000 50 1 2", "25000 60 1 6");
        std::fs::write(root.path().join("proc/net/dev"), later).unwrap();
        let snmp = SNMP.replace("1 100 5", "1 120 7");
        std::fs::write(root.path().join("proc/net/snmp"), snmp).unwrap();
        let moved = NetworkSnapshot::take(&system, false)
            .since(&before)
            .unwrap();
        let speeds = LinkSpeeds::read(&system);
        let rates = moved.rates(Duration::from_secs(2), &speeds).unwrap();
        let names: Vec<&String> = rates.interfaces.keys().collect();
        assert_eq!(names, ["eth0"], "lo had no traffic");
        let eth0 = rates.interfaces["eth0"];
        assert_eq!(
            (
                eth0.received_bytes_s,
                eth0.received_packets_s,
                eth0.drops_s,
                eth0.errors_s
            ),
            (10_000.0, 5.0, 2.0, 0.0)
        );
        assert_eq!(eth0.speed_mbit_s, Some(1000));
        let tcp = rates.tcp.unwrap();
        assert_eq!((tcp.sent_segments_s, tcp.retransmits_s), (10.0, 1.0));
        assert!(rates.protocols.is_empty());
        let mut twice = moved.clone();
        twice.add(&moved);
        let mean = twice.rates(Duration::from_secs(4), &speeds).unwrap();
        assert_eq!(mean.interfaces, rates.interfaces);
    }

    #[test]
    fn virtual_interfaces_have_no_link_speed() {
        let (_root, system) = machine(DEV, SNMP);
        assert_eq!(
            LinkSpeeds::read(&system).0,
            [("eth0".to_owned(), 1000)].into()
        );
    }

    #[test]
    fn machine_without_proc_net_has_no_network_rates() {
        let nowhere = NetworkSnapshot::take(&System::captured("/nonexistent"), false);
        assert!(nowhere.since(&nowhere).is_none());
        assert_eq!(parse_tcp("Tcp: OutSegs\nTcp:\n", ""), None);
    }

    #[test]
    fn interface_made_anew_counts_from_zero() {
        let now = InterfaceCounters {
            received_bytes: 7,
            ..InterfaceCounters::default()
        };
        let then = InterfaceCounters {
            received_bytes: 100,
            ..InterfaceCounters::default()
        };
        assert_eq!(now.since(&then).received_bytes, 7);
    }
}
