//! Time series of network interfaces and storage connections for the page.

use super::document::{PageUnit, Track};
use super::slice_groups::{Groups, track};
use iosonde_result::interval::Intervals;
use iosonde_result::machine::MachineSlice;
use iosonde_result::network::{
    InterfaceRates, NetworkRates, ProtocolRates, StorageProtocol, TcpRates,
};
use iosonde_result::spill_list::SpillList;
use std::borrow::Cow;

/// Bandwidth that is assumed of a run with less, so that idle interfaces are not drawn.
const LEAST_BYTES_PER_S: f64 = 655_360.0;

/// Returns the name and tracks of each series of the network. Empty if it carried none of the run.
pub(super) fn network_tracks(
    groups: &Groups<'_>,
    slices: &SpillList<MachineSlice>,
    intervals: &Intervals,
) -> Vec<(String, Vec<Track>)> {
    let Some(mean) = mean_of(slices) else {
        return Vec::new();
    };
    let mut series = Vec::new();
    let run_bytes_per_s = bytes_per_s(intervals).max(LEAST_BYTES_PER_S);
    if let Some(load) = mean.carrying(run_bytes_per_s) {
        let mut tracks = interface(groups, &load.interface);
        tracks.extend(retransmits(groups));
        series.push((load.interface, tracks));
    }
    for rates in &mean.protocols {
        if rates.carries(run_bytes_per_s) {
            let name = format!("{} connections", rates.protocol.name());
            series.push((name, protocol(groups, rates.protocol)));
        }
    }
    series
}

fn mean_of(slices: &SpillList<MachineSlice>) -> Option<NetworkRates> {
    let known = |slice: Cow<'_, MachineSlice>| {
        let rates = slice.network.clone()?;
        Some((slice.length_ns, rates))
    };
    NetworkRates::mean(slices.iter().filter_map(known))
}

fn bytes_per_s(intervals: &Intervals) -> f64 {
    let mut sums = (0, 0);
    for interval in intervals.iter() {
        let moved = interval.directions.iter().map(|(_, counts)| counts.bytes);
        sums = (sums.0 + moved.sum::<u64>(), sums.1 + interval.length_ns);
    }
    sums.0 as f64 * 1e9 / sums.1.max(1) as f64
}

/// Traffic and use of the link; lost packets if there were any.
fn interface(groups: &Groups<'_>, name: &str) -> Vec<Track> {
    type InterfaceRate = fn(&InterfaceRates) -> Option<f64>;
    let columns: [(&str, &str, PageUnit, InterfaceRate); 3] = [
        ("traffic", "received", PageUnit::BytesPerS, |rates| {
            Some(rates.received_bytes_s)
        }),
        ("traffic", "sent", PageUnit::BytesPerS, |rates| {
            Some(rates.sent_bytes_s)
        }),
        (
            "link",
            "busy",
            PageUnit::Percent,
            InterfaceRates::util_percent,
        ),
    ];
    let losses: [(&str, InterfaceRate); 2] = [
        ("drops", |rates| Some(rates.drops_s)),
        ("errors", |rates| Some(rates.errors_s)),
    ];
    let one = |(group, label, unit, rate): (&str, &str, PageUnit, InterfaceRate)| {
        track(groups, (group, label), unit, &|slice| {
            rate(slice.network.as_ref()?.interfaces.get(name)?)
        })
    };
    let lost = |(label, rate)| one(("lost packets/s", label, PageUnit::Count, rate));
    let losses = losses.into_iter().filter_map(lost).filter(has_any);
    columns.into_iter().filter_map(one).chain(losses).collect()
}

/// Segments that TCP sent again, if there were any.
fn retransmits(groups: &Groups<'_>) -> Option<Track> {
    let rate = |tcp: &TcpRates| tcp.retransmits_s;
    let name = ("retransmitted segments/s", "TCP");
    let drawn = track(groups, name, PageUnit::Count, &|slice| {
        slice.network.as_ref()?.tcp.as_ref().map(rate)
    })?;
    has_any(&drawn).then_some(drawn)
}

fn protocol(groups: &Groups<'_>, protocol: StorageProtocol) -> Vec<Track> {
    type ProtocolRate = fn(&ProtocolRates) -> f64;
    let columns: [(&str, ProtocolRate); 2] = [
        ("received", |rates| rates.received_bytes_s),
        ("sent", |rates| rates.sent_bytes_s),
    ];
    let one = |(name, rate): (&str, ProtocolRate)| {
        track(groups, ("traffic", name), PageUnit::BytesPerS, &|slice| {
            let mut known = slice.network.as_ref()?.protocols.iter();
            known.find(|known| known.protocol == protocol).map(rate)
        })
    };
    columns.into_iter().filter_map(one).collect()
}

fn has_any(drawn: &Track) -> bool {
    drawn.values.iter().flatten().any(|value| *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::page_machine::thin_machine_series;
    use iosonde_result::interval::{Interval, Intervals};
    use iosonde_result::machine::{MachineSeries, MachineSlice};
    use iosonde_result::network::{
        InterfaceRates, NetworkRates, ProtocolRates, StorageProtocol, TcpRates,
    };

    fn series(received_bytes_s: f64) -> MachineSeries {
        let rates = InterfaceRates {
            received_bytes_s,
            speed_mbit_s: Some(1000),
            ..InterfaceRates::default()
        };
        let network = NetworkRates {
            interfaces: [("eth0".to_owned(), rates)].into(),
            tcp: Some(TcpRates {
                sent_segments_s: 100.0,
                retransmits_s: 2.0,
                timeouts_s: 0.0,
            }),
            protocols: vec![ProtocolRates {
                protocol: StorageProtocol::Nfs,
                connections: 1,
                received_bytes_s,
                sent_bytes_s: 0.0,
                retransmits_s: 2.0,
            }],
        };
        let slice = MachineSlice {
            length_ns: 1_000_000_000,
            network: Some(network),
            ..MachineSlice::default()
        };
        MachineSeries {
            slices: vec![slice].into(),
            ..MachineSeries::default()
        }
    }

    fn intervals(bytes: u64) -> Intervals {
        let mut interval = Interval {
            length_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.directions.read.bytes = bytes;
        vec![interval].into()
    }

    #[test]
    fn page_draws_interface_and_protocol_that_carry_the_run() {
        let drawn = thin_machine_series(&series(100e6), &intervals(99_000_000));
        let names: Vec<&str> = drawn.iter().map(|series| series.of.as_str()).collect();
        assert_eq!(names, ["eth0", "NFS connections"]);
        let tracks: Vec<String> = drawn[0]
            .tracks
            .iter()
            .map(|track| format!("{} {}", track.group, track.name))
            .collect();
        assert_eq!(
            tracks,
            [
                "traffic received",
                "traffic sent",
                "link busy",
                "retransmitted segments/s TCP"
            ],
            "no packet was lost"
        );
        assert_eq!(drawn[0].tracks[2].values, [Some(80.0)]);
    }

    #[test]
    fn page_omits_network_beside_local_run() {
        assert!(thin_machine_series(&series(100e6), &intervals(2_000_000_000)).is_empty());
    }
}
