//! Columns of network interfaces, TCP and storage protocols. They are in CSV only.

use super::series_column::{Column, Quantity};
use iosonde_result::machine::MachineSlice;
use iosonde_result::network::{InterfaceRates, NetworkRates, StorageProtocol, TcpRates};
use iosonde_result::run::RunResult;
use std::collections::BTreeSet;

type OfInterface = fn(&InterfaceRates) -> Option<f64>;
type OfTcp = fn(&TcpRates) -> f64;

/// Returns the columns of the network for all interfaces and protocols of these runs.
pub(super) fn network_columns(results: &[&RunResult]) -> Vec<Column> {
    let mut interfaces: BTreeSet<String> = BTreeSet::new();
    let mut protocols: BTreeSet<StorageProtocol> = BTreeSet::new();
    let mut has_tcp = false;
    for slice in results.iter().flat_map(|result| &result.series.slices) {
        let Some(network) = &slice.network else {
            continue;
        };
        interfaces.extend(network.interfaces.keys().cloned());
        protocols.extend(network.protocols.iter().map(|rates| rates.protocol));
        has_tcp |= network.tcp.is_some();
    }
    let mut all = Vec::new();
    for name in &interfaces {
        all.extend(of_interface(name));
    }
    if has_tcp && !interfaces.is_empty() {
        all.extend(of_tcp());
    }
    for protocol in protocols {
        all.extend(of_protocol(protocol));
    }
    all
}

/// Creates a column that tables omit.
fn column(
    name: String,
    quantity: Quantity,
    value: impl Fn(&NetworkRates) -> Option<f64> + 'static,
) -> Column {
    Column {
        title: String::new(),
        name,
        quantity,
        shown: false,
        of_run: false,
        value: Box::new(move |_, slice: Option<&MachineSlice>| value(slice?.network.as_ref()?)),
    }
}

fn of_interface(interface: &str) -> Vec<Column> {
    let columns: [(&str, Quantity, OfInterface); 7] = [
        ("received_bytes_per_s", Quantity::BytesPerS, |rates| {
            Some(rates.received_bytes_s)
        }),
        ("sent_bytes_per_s", Quantity::BytesPerS, |rates| {
            Some(rates.sent_bytes_s)
        }),
        ("received_packets_per_s", Quantity::Count, |rates| {
            Some(rates.received_packets_s)
        }),
        ("sent_packets_per_s", Quantity::Count, |rates| {
            Some(rates.sent_packets_s)
        }),
        ("drops_per_s", Quantity::Count, |rates| Some(rates.drops_s)),
        ("errors_per_s", Quantity::Count, |rates| {
            Some(rates.errors_s)
        }),
        (
            "link_percent",
            Quantity::Percent,
            InterfaceRates::util_percent,
        ),
    ];
    let one = |(name, quantity, rate): (&str, Quantity, OfInterface)| {
        let interface = interface.to_owned();
        column(format!("{interface} {name}"), quantity, move |network| {
            rate(network.interfaces.get(&interface)?)
        })
    };
    columns.into_iter().map(one).collect()
}

fn of_tcp() -> Vec<Column> {
    let columns: [(&str, OfTcp); 3] = [
        ("tcp_sent_segments_per_s", |tcp| tcp.sent_segments_s),
        ("tcp_retransmits_per_s", |tcp| tcp.retransmits_s),
        ("tcp_timeouts_per_s", |tcp| tcp.timeouts_s),
    ];
    let one = |(name, rate): (&str, OfTcp)| {
        column(name.to_owned(), Quantity::Count, move |network| {
            network.tcp.as_ref().map(rate)
        })
    };
    columns.into_iter().map(one).collect()
}

fn of_protocol(protocol: StorageProtocol) -> Vec<Column> {
    let name = protocol.name();
    let find = move |network: &NetworkRates| {
        let mut known = network.protocols.iter();
        known.find(|rates| rates.protocol == protocol).copied()
    };
    vec![
        column(
            format!("{name} received_bytes_per_s"),
            Quantity::BytesPerS,
            move |network| Some(find(network)?.received_bytes_s),
        ),
        column(
            format!("{name} sent_bytes_per_s"),
            Quantity::BytesPerS,
            move |network| Some(find(network)?.sent_bytes_s),
        ),
        column(
            format!("{name} retransmits_per_s"),
            Quantity::Count,
            move |network| Some(find(network)?.retransmits_s),
        ),
    ]
}
