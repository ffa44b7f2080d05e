//! Tables of `iosonde watch` besides that of the devices, in the columns of sar where it has them.

use super::watch_sample::{NfsActivity, WatchSample, WatchedMachine};
use crate::args::WatchSection;
use iosonde_result::machine::Pressure;
use iosonde_result::network::InterfaceRates;

/// A table of figures. A figure is `None` if the machine does not report it.
#[derive(Debug, PartialEq)]
pub(super) struct FigureTable {
    /// Head of the first column.
    pub(super) title: &'static str,
    /// Names of the columns and their narrow widths.
    pub(super) columns: Vec<(&'static str, usize)>,
    /// Rows: name and figures.
    pub(super) rows: Vec<(String, Vec<Option<f64>>)>,
}

/// Returns the tables of a section, without empty ones.
pub(super) fn section_tables(section: WatchSection, sample: &WatchSample) -> Vec<FigureTable> {
    let mut tables = match section {
        WatchSection::Disks => Vec::new(),
        WatchSection::Cpu => vec![processors(sample)],
        WatchSection::Psi => vec![pressure(sample)],
        WatchSection::Cgroup => vec![throttling(sample)],
        WatchSection::Net => vec![interfaces(sample), tcp_table(sample), protocols(sample)],
        WatchSection::Nfs => vec![nfs_mounts(sample)],
    };
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Returns the reason why no machine of a sample has figures of a section. `None` if one has.
pub(super) fn missing_reason(section: WatchSection, sample: &WatchSample) -> Option<&'static str> {
    let is_missing = |machine: &WatchedMachine| match section {
        WatchSection::Disks => false,
        WatchSection::Cpu => machine.cpu.is_none(),
        WatchSection::Psi => machine.pressure.is_none(),
        WatchSection::Cgroup => machine.throttled_percent.is_none(),
        WatchSection::Net => machine.network.is_none(),
        WatchSection::Nfs => machine.nfs.is_empty(),
    };
    let mut machines = sample.machines.iter();
    if sample.machines.is_empty() || !machines.all(is_missing) {
        return None;
    }
    Some(match section {
        WatchSection::Disks => "disk: /proc/diskstats cannot be read",
        WatchSection::Cpu => "cpu: /proc/stat cannot be read",
        WatchSection::Psi => "psi: the kernel has no /proc/pressure (CONFIG_PSI, or psi=1 at boot)",
        WatchSection::Cgroup => "cgroup: no control group limits the processors of iosonde",
        WatchSection::Net if sample.machines.iter().any(|machine| machine.node.is_some()) => {
            "net: the cluster refuses pods in the network of a node (hostNetwork)"
        }
        WatchSection::Net => "net: /proc/net/dev cannot be read",
        WatchSection::Nfs => "nfs: no NFS is mounted where iosonde runs",
    })
}

/// Names a row: on a node with the node's name before it.
pub(super) fn row_name(machine: &WatchedMachine, name: &str) -> String {
    match &machine.node {
        Some(node) => format!("{node}/{name}"),
        None => name.to_owned(),
    }
}

fn table(
    title: &'static str,
    columns: &[&'static str],
    rows: Vec<(String, Vec<Option<f64>>)>,
) -> FigureTable {
    let column = |name: &&'static str| (*name, (name.len() + 1).max(8));
    FigureTable {
        title,
        columns: columns.iter().map(column).collect(),
        rows,
    }
}

fn processors(sample: &WatchSample) -> FigureTable {
    let row = |machine: &WatchedMachine| {
        let cpu = machine.cpu?;
        let figures = [cpu.user, cpu.system, cpu.iowait, cpu.steal];
        Some((row_name(machine, "all"), figures.map(Some).to_vec()))
    };
    let rows = sample.machines.iter().filter_map(row).collect();
    table("CPU", &["%user", "%system", "%iowait", "%steal"], rows)
}

fn pressure(sample: &WatchSample) -> FigureTable {
    let mut rows = Vec::new();
    for machine in &sample.machines {
        let Some(all) = machine.pressure else {
            continue;
        };
        for (name, one) in [("io", all.io), ("cpu", all.cpu), ("memory", all.memory)] {
            let figures = |one: Pressure| vec![Some(one.some), Some(one.full)];
            rows.extend(one.map(|one| (row_name(machine, name), figures(one))));
        }
    }
    table("PSI", &["%some", "%full"], rows)
}

fn throttling(sample: &WatchSample) -> FigureTable {
    let row = |machine: &WatchedMachine| {
        let percent = machine.throttled_percent?;
        Some((row_name(machine, "cpu"), vec![Some(percent)]))
    };
    let rows = sample.machines.iter().filter_map(row).collect();
    table("CGROUP", &["%throttled"], rows)
}

fn interfaces(sample: &WatchSample) -> FigureTable {
    let columns = [
        "rxpck/s", "txpck/s", "rxkB/s", "txkB/s", "%ifutil", "drop/s", "err/s",
    ];
    let figures = |rates: &InterfaceRates| {
        vec![
            Some(rates.received_packets_s),
            Some(rates.sent_packets_s),
            Some(rates.received_bytes_s / 1024.0),
            Some(rates.sent_bytes_s / 1024.0),
            rates.util_percent(),
            Some(rates.drops_s),
            Some(rates.errors_s),
        ]
    };
    let mut rows = Vec::new();
    for machine in &sample.machines {
        let network = machine.network.iter();
        for (name, rates) in network.flat_map(|network| &network.interfaces) {
            rows.push((row_name(machine, name), figures(rates)));
        }
    }
    table("IFACE", &columns, rows)
}

fn tcp_table(sample: &WatchSample) -> FigureTable {
    let row = |machine: &WatchedMachine| {
        let tcp = machine.network.as_ref()?.tcp?;
        let figures = [tcp.sent_segments_s, tcp.retransmits_s, tcp.timeouts_s];
        Some((row_name(machine, "tcp"), figures.map(Some).to_vec()))
    };
    let rows = sample.machines.iter().filter_map(row).collect();
    table("TCP", &["oseg/s", "retrans/s", "timeout/s"], rows)
}

fn protocols(sample: &WatchSample) -> FigureTable {
    let mut rows = Vec::new();
    for machine in &sample.machines {
        let network = machine.network.iter();
        for rates in network.flat_map(|network| &network.protocols) {
            let figures = [
                rates.connections as f64,
                rates.received_bytes_s / 1024.0,
                rates.sent_bytes_s / 1024.0,
                rates.retransmits_s,
            ];
            let name = row_name(machine, rates.protocol.name());
            rows.push((name, figures.map(Some).to_vec()));
        }
    }
    let columns = ["conns", "rxkB/s", "txkB/s", "retrans/s"];
    table("STORAGE", &columns, rows)
}

fn nfs_mounts(sample: &WatchSample) -> FigureTable {
    let mut rows = Vec::new();
    for machine in &sample.machines {
        let seconds = machine.seconds();
        for mount in &machine.nfs {
            let name = row_name(machine, &mount.mount_point);
            rows.push((name, nfs_figures(mount, seconds)));
        }
    }
    let columns = [
        "ops/s",
        "r/s",
        "rkB/s",
        "r_rtt",
        "w/s",
        "wkB/s",
        "w_rtt",
        "retrans/s",
    ];
    table("NFS", &columns, rows)
}

fn nfs_figures(mount: &NfsActivity, seconds: f64) -> Vec<Option<f64>> {
    let per_s = |count: u64| match seconds > 0.0 {
        true => count as f64 / seconds,
        false => 0.0,
    };
    let each = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    let figures = [
        per_s(mount.ops),
        per_s(mount.reads),
        per_s(mount.read_bytes) / 1024.0,
        each(mount.read_rtt_ms, mount.reads),
        per_s(mount.writes),
        per_s(mount.written_bytes) / 1024.0,
        each(mount.write_rtt_ms, mount.writes),
        per_s(mount.retransmits),
    ];
    figures.map(Some).to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::watch_sample::tests::sample;
    use super::*;
    use iosonde_result::network::{NetworkRates, TcpRates};

    #[test]
    fn sections_without_figures_have_no_table() {
        let sample = sample();
        assert_eq!(section_tables(WatchSection::Nfs, &sample), []);
        assert_eq!(section_tables(WatchSection::Net, &sample), []);
        let psi = section_tables(WatchSection::Psi, &sample).swap_remove(0);
        let expected = [("io".to_owned(), vec![Some(12.5), Some(3.0)])];
        assert_eq!(psi.rows, expected, "cpu and memory are not reported");
        let cgroup = section_tables(WatchSection::Cgroup, &sample).swap_remove(0);
        assert_eq!(cgroup.rows[0].1, [Some(4.0)]);
        let reason = missing_reason(WatchSection::Nfs, &sample).unwrap();
        assert!(reason.contains("no NFS is mounted"));
        assert_eq!(missing_reason(WatchSection::Psi, &sample), None);
        let mut of_node = sample.clone();
        of_node.machines[0].node = Some("n1".to_owned());
        let reason = missing_reason(WatchSection::Net, &of_node).unwrap();
        assert!(reason.contains("hostNetwork"), "{reason}");
        assert_eq!(
            missing_reason(WatchSection::Nfs, &WatchSample::default()),
            None
        );
    }

    #[test]
    fn network_and_nfs_tables_name_the_node() {
        let mut sample = sample();
        let machine = &mut sample.machines[0];
        machine.node = Some("n1".to_owned());
        let rates = InterfaceRates {
            received_bytes_s: 2048.0,
            ..InterfaceRates::default()
        };
        machine.network = Some(NetworkRates {
            interfaces: [("eth0".to_owned(), rates)].into(),
            tcp: Some(TcpRates::default()),
            ..NetworkRates::default()
        });
        machine.nfs = vec![NfsActivity {
            mount_point: "/mnt".to_owned(),
            reads: 10,
            read_rtt_ms: 25,
            ..NfsActivity::default()
        }];
        let net = section_tables(WatchSection::Net, &sample);
        assert_eq!(net.len(), 2, "no storage protocol has a connection");
        let (name, figures) = &net[0].rows[0];
        assert_eq!(name, "n1/eth0");
        assert_eq!((figures[2], figures[4]), (Some(2.0), None), "no link speed");
        let nfs = section_tables(WatchSection::Nfs, &sample).swap_remove(0);
        assert_eq!(nfs.rows[0].0, "n1//mnt");
        assert_eq!(
            (nfs.rows[0].1[1], nfs.rows[0].1[3]),
            (Some(10.0), Some(2.5))
        );
    }
}
