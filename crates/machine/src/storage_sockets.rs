//! TCP connections of storage protocols with their bytes, from the kernel's `sock_diag` (netlink).
//!
//! A connection belongs to a protocol by the port of its server: NFS, iSCSI, NVMe/TCP or Ceph. The
//! connections of the kernel's own clients are among them, in the network namespace of the mount.
//! Kernels without `inet_diag` and sandboxes that forbid netlink give none.

use super::proc_root::System;
use crate::sys::linux;
use iosonde_result::network::StorageProtocol;
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, recv, send, sockopt};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A list that takes longer would disturb the run. The kernel walks its whole hash table.
const MOST_LISTING_TIME: Duration = Duration::from_millis(2);
/// More TCP connections than this are not listed.
const MOST_CONNECTIONS: u64 = 4096;
/// Messages of the kernel per list, as a bound: each has at least one connection.
const MOST_MESSAGES: usize = MOST_CONNECTIONS as usize;
/// Timeout for an answer of the kernel, which answers at once.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);
/// Size of the receive buffer. The kernel splits longer lists.
const BUFFER_BYTES: usize = 32 << 10;

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Length of `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// Length of `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const LAST_TYPES: [u16; 2] = [2, 3];
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `INET_DIAG_INFO`, the attribute with `struct tcp_info`.
const INFO: u16 = 2;
/// Bit of the state `TCP_ESTABLISHED`.
const ESTABLISHED: u32 = 1 << 1;
/// Offsets in `struct tcp_info`.
const TOTAL_RETRANS_AT: usize = 100;
const BYTES_ACKED_AT: usize = 120;
const BYTES_RECEIVED_AT: usize = 128;

const _: () = assert!(BUFFER_BYTES > HEADER_BYTES + MESSAGE_BYTES);

/// Counters of the connections of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SocketCounters {
    /// Established connections.
    pub(crate) connections: u64,
    /// Bytes received.
    pub(crate) received_bytes: u64,
    /// Bytes sent and acknowledged.
    pub(crate) sent_bytes: u64,
    /// Segments sent again.
    pub(crate) retransmits: u64,
}

/// The storage connections at one moment, by the kernel's cookie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StorageSockets(BTreeMap<u64, (StorageProtocol, SocketCounters)>);

impl StorageSockets {
    /// Reads the storage connections of this network namespace. `None` if the kernel does not list
    /// its connections, or has too many.
    pub(crate) fn read(system: &System) -> Option<StorageSockets> {
        let mut sockets = StorageSockets::default();
        let count = |path: &str| tcp_in_use(&system.text(path).unwrap_or_default());
        let open = count("/proc/net/sockstat") + count("/proc/net/sockstat6");
        if open > MOST_CONNECTIONS {
            return None;
        }
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            sockets.list(family).ok()?;
        }
        Some(sockets)
    }

    /// Whether a list takes so little time that it can be made for every interval.
    pub(crate) fn is_quick(system: &System) -> bool {
        if !system.is_live() {
            return false;
        }
        let begun = Instant::now();
        StorageSockets::read(system).is_some() && begun.elapsed() <= MOST_LISTING_TIME
    }

    fn list(&mut self, family: AddressFamily) -> rustix::io::Result<()> {
        let socket = linux::open_sock_diag()?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        send(&socket, &request(family), SendFlags::empty())?;
        let mut buffer = vec![0u8; BUFFER_BYTES];
        for _ in 0..MOST_MESSAGES {
            let receive = || recv(&socket, &mut buffer[..], RecvFlags::empty());
            let (length, _) = retry_on_intr(receive)?;
            if self.keep_messages(&buffer[..length]) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps the storage connections of a datagram. `true`: it was the last one.
    fn keep_messages(&mut self, mut datagram: &[u8]) -> bool {
        if datagram.is_empty() {
            return true;
        }
        while let Some(length) = u32_at(datagram, 0).map(|length| length as usize) {
            let Some(kind) = u16_at(datagram, 4) else {
                return true;
            };
            if LAST_TYPES.contains(&kind) {
                return true;
            }
            let Some(message) = datagram.get(HEADER_BYTES..length) else {
                return true;
            };
            if kind == BY_FAMILY {
                self.keep(message);
            }
            datagram = datagram.get(aligned(length)..).unwrap_or_default();
        }
        false
    }

    /// Keeps a connection, if it belongs to a storage protocol.
    fn keep(&mut self, message: &[u8]) -> Option<()> {
        let (local, remote) = (port_at(message, 4)?, port_at(message, 6)?);
        let is_local = message.get(8..24)? == message.get(24..40)?;
        // Of a connection within this machine only the client's end counts.
        let protocol = StorageProtocol::of_port(remote).or_else(|| {
            let served = StorageProtocol::of_port(local);
            served.filter(|_| !is_local)
        })?;
        let cookie = u64_at(message, 44)?;
        let info = attribute(message.get(MESSAGE_BYTES..)?, INFO)?;
        let counters = SocketCounters {
            connections: 1,
            received_bytes: u64_at(info, BYTES_RECEIVED_AT)?,
            sent_bytes: u64_at(info, BYTES_ACKED_AT)?,
            retransmits: u64::from(u32_at(info, TOTAL_RETRANS_AT)?),
        };
        self.0.insert(cookie, (protocol, counters));
        Some(())
    }

    /// Increments of the counters of each protocol since an earlier moment.
    pub(crate) fn since(
        &self,
        before: &StorageSockets,
    ) -> BTreeMap<StorageProtocol, SocketCounters> {
        let mut sums: BTreeMap<StorageProtocol, SocketCounters> = BTreeMap::new();
        for (cookie, (protocol, now)) in &self.0 {
            // A connection that was opened meanwhile counts from zero.
            let then = before
                .0
                .get(cookie)
                .map_or_else(Default::default, |known| known.1);
            let sum = sums.entry(*protocol).or_default();
            sum.connections += 1;
            sum.received_bytes += now.received_bytes.saturating_sub(then.received_bytes);
            sum.sent_bytes += now.sent_bytes.saturating_sub(then.sent_bytes);
            sum.retransmits += now.retransmits.saturating_sub(then.retransmits);
        }
        sums
    }
}

impl SocketCounters {
    /// Adds those of a following span.
    pub(crate) fn add(&mut self, later: &SocketCounters) {
        self.connections = later.connections;
        self.received_bytes += later.received_bytes;
        self.sent_bytes += later.sent_bytes;
        self.retransmits += later.retransmits;
    }
}

/// Parses the number of sockets in `TCP: inuse 5 orphan 0` or `TCP6: inuse 5`. 0 without it.
fn tcp_in_use(sockstat: &str) -> u64 {
    let mut lines = sockstat.lines();
    let count = lines.find_map(|line| {
        let (name, counts) = line.split_once(": inuse ")?;
        let count = counts.split_whitespace().next()?;
        matches!(name, "TCP" | "TCP6").then(|| count.parse().ok())?
    });
    count.unwrap_or(0)
}

/// Returns the request for all established TCP connections of a family.
fn request(family: AddressFamily) -> Vec<u8> {
    let length = (HEADER_BYTES + REQUEST_BYTES) as u32;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    // Sequence number and port of the sender: one request per socket needs none.
    bytes.extend([0; 8]);
    let extension = 1u8 << (INFO - 1);
    bytes.extend([family.as_raw() as u8, TCP, extension, 0]);
    bytes.extend(ESTABLISHED.to_ne_bytes());
    bytes.resize(HEADER_BYTES + REQUEST_BYTES, 0);
    bytes
}

/// Finds an attribute (`struct rtattr`) by its type.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        let payload = bytes.get(4..length)?;
        if u16_at(bytes, 2)? == wanted {
            return Some(payload);
        }
        bytes = bytes.get(aligned(length)..)?;
    }
}

/// Rounds up to the alignment of netlink. At least one header, so that each loop advances.
fn aligned(length: usize) -> usize {
    length.max(4).next_multiple_of(4)
}

fn port_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the kernel about a connection, laid out as `linux/inet_diag.h` and
    /// `linux/tcp.h` have it. No kernel here has NFS, iSCSI or NVMe/TCP.
    fn message(cookie: u64, ports: (u16, u16), bytes: (u64, u64), retransmits: u32) -> Vec<u8> {
        let mut info = vec![0u8; 136];
        info[TOTAL_RETRANS_AT..][..4].copy_from_slice(&retransmits.to_ne_bytes());
        info[BYTES_ACKED_AT..][..8].copy_from_slice(&bytes.1.to_ne_bytes());
        info[BYTES_RECEIVED_AT..][..8].copy_from_slice(&bytes.0.to_ne_bytes());
        let mut body = vec![2, 1, 0, 0];
        body.extend(ports.0.to_be_bytes());
        body.extend(ports.1.to_be_bytes());
        body.extend([10; 16]);
        body.extend([11; 16]);
        body.extend([0; 4]);
        body.extend(cookie.to_ne_bytes());
        body.resize(MESSAGE_BYTES, 0);
        // An attribute of another type comes first.
        body.extend(5u16.to_ne_bytes());
        body.extend(8u16.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(140u16.to_ne_bytes());
        body.extend(INFO.to_ne_bytes());
        body.extend(info);
        let mut whole = Vec::new();
        whole.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        whole.extend(BY_FAMILY.to_ne_bytes());
        whole.extend([0; 10]);
        whole.extend(body);
        whole
    }

    fn sockets(messages: &[Vec<u8>]) -> StorageSockets {
        let mut sockets = StorageSockets::default();
        assert!(!sockets.keep_messages(&messages.concat()), "more may come");
        sockets
    }

    #[test]
    fn storage_connections_are_distinguished_by_port() {
        let before = sockets(&[message(1, (700, 2049), (100, 10), 1)]);
        let after = sockets(&[
            message(1, (700, 2049), (1100, 30), 3),
            message(2, (800, 2049), (5, 6), 0),
            message(3, (41_000, 6805), (7, 8), 0),
            message(4, (4420, 50_000), (9, 1), 0),
            message(5, (50_000, 443), (9, 9), 9),
        ]);
        let moved = after.since(&before);
        let nfs = SocketCounters {
            connections: 2,
            received_bytes: 1005,
            sent_bytes: 26,
            retransmits: 2,
        };
        assert_eq!(moved[&StorageProtocol::Nfs], nfs);
        assert_eq!(moved[&StorageProtocol::Ceph].received_bytes, 7);
        assert_eq!(moved[&StorageProtocol::NvmeTcp].sent_bytes, 1, "a server");
        assert_eq!(moved.len(), 3);
    }

    #[test]
    fn servers_end_of_connection_within_machine_is_skipped() {
        let mut ends = message(4, (3300, 50_000), (9, 1), 0);
        let address = HEADER_BYTES + 8;
        ends.copy_within(address..address + 16, address + 16);
        assert_eq!(sockets(&[ends]), StorageSockets::default());
    }

    #[test]
    fn truncated_messages_end_the_list() {
        let whole = message(1, (700, 2049), (100, 10), 1);
        for length in 0..whole.len() {
            let mut sockets = StorageSockets::default();
            sockets.keep_messages(&whole[..length]);
            assert_eq!(sockets, StorageSockets::default(), "{length}");
        }
        let mut done = whole.clone();
        done[4..6].copy_from_slice(&LAST_TYPES[1].to_ne_bytes());
        assert!(StorageSockets::default().keep_messages(&done));
    }

    #[test]
    fn sockstat_counts_tcp_sockets() {
        let text = "sockets: used 9\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 1\nUDP: inuse 1";
        assert_eq!(tcp_in_use(text), 5);
        assert_eq!(tcp_in_use("TCP6: inuse 3\nUDP6: inuse 1"), 3);
        assert_eq!(tcp_in_use("TCP: inuse"), 0);
    }

    /// Ceph's port, on a connection of this test within the machine.
    #[test]
    fn own_connection_is_listed_with_its_bytes() {
        use std::io::{Read, Write};
        let Ok(listener) = std::net::TcpListener::bind("127.0.0.1:7299") else {
            return;
        };
        let address = listener.local_addr().unwrap();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let listed = || StorageSockets::read(&System::live()).unwrap_or_default();
        let before = listed();
        if before == StorageSockets::default() {
            eprintln!("skipped: this kernel has no inet_diag");
            return;
        }
        client.write_all(&[0; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        // The acknowledgement may be late.
        let is_counted = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let moved = listed().since(&before);
            moved
                .get(&StorageProtocol::Ceph)
                .is_some_and(|counters| counters.sent_bytes >= 5000)
        });
        assert!(is_counted);
    }
}
