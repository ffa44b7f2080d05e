//! Disk and network activity of nodes that were watched during a run, in sar's columns.

use crate::text_table::{aligned_columns, fill_table, hide_columns, plain, render_left, wrapped};
use iosonde_result::machine::DeviceRates;
use iosonde_result::nodes::NodeResult;
use iosonde_study::probe::ProbeResult;
use std::collections::BTreeMap;

const COLUMNS: [&str; 7] = [
    "tps", "rkB/s", "wkB/s", "areq-sz", "aqu-sz", "await", "%util",
];
/// Columns that a narrow terminal does not show, the least important first: size of requests,
/// queue, rates of requests and bytes. Wait and utilisation stay.
const LEAST_IMPORTANT: [usize; 5] = [4, 5, 1, 2, 3];

/// Tables of a run, with all disks that completed I/O.
pub fn nodes_text(nodes: &[NodeResult]) -> String {
    let mut text = String::new();
    for node in nodes {
        let busy = node
            .averages()
            .into_iter()
            .filter(|(_, rates)| rates.tps > 0.0);
        text.push_str(&node_heading(node));
        text.push_str(&device_table("disk", busy));
        if let Some(load) = node.network_load() {
            text.push_str(&wrapped(&format!("network: {}", load.evidence_text())));
        }
    }
    text
}

/// Tables of a probe, with the busiest disk of each phase.
pub(crate) fn of_phases(result: &ProbeResult) -> String {
    let mut text = String::new();
    let all = result.runs.iter().flat_map(|run| &run.result.nodes);
    // A node may be missing in some phases.
    let nodes: BTreeMap<&str, &NodeResult> = all.map(|node| (node.node.as_str(), node)).collect();
    for (name, node) in nodes {
        let of_phase = result.runs.iter().filter_map(|run| {
            let mut nodes = run.result.nodes.iter();
            let (disk, rates) = nodes.find(|other| other.node == name)?.busiest()?;
            Some((format!("{}: {disk}", run.phase.title()), rates))
        });
        text.push_str(&node_heading(node));
        text.push_str(&device_table("phase, busiest disk", of_phase));
    }
    text
}

fn node_heading(node: &NodeResult) -> String {
    let watched = wrapped(&format!("Node {}, watched: {}", node.node, node.why));
    format!("\n{watched}\n")
}

fn device_table(first: &str, all: impl Iterator<Item = (String, DeviceRates)>) -> String {
    let rows = all.map(|(name, rates)| {
        let [tps, read, write, _, request, queue, wait, util] = rates.columns();
        let figures = [tps, read, write, request, queue, wait, util];
        let figures = figures.map(|value| format!("{value:.2}"));
        [vec![name], figures.to_vec()].concat()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return "no disk had I/O\n".to_owned();
    }
    let head = [&[first][..], &COLUMNS[..]].concat();
    let mut table = fill_table(plain(), &aligned_columns(&head, 1), rows);
    hide_columns(&mut table, &LEAST_IMPORTANT);
    render_left(&mut table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::machine::{MachineSeries, MachineSlice};

    #[test]
    fn node_disks_are_shown_in_sar_columns() {
        let rates = DeviceRates {
            tps: 1234.5,
            read_kib_s: 4938.0,
            request_kib: 4.0,
            queue: 0.98,
            await_ms: 0.79,
            util_percent: 97.5,
            ..DeviceRates::default()
        };
        let devices = [
            ("sdb".to_owned(), rates),
            ("sda".to_owned(), DeviceRates::default()),
        ];
        let node = NodeResult {
            node: "control-plane".to_owned(),
            why: "serves the volume from 10.0.0.5".to_owned(),
            serves: true,
            series: MachineSeries {
                slices: vec![MachineSlice {
                    length_ns: 1_000_000_000,
                    devices: devices.into(),
                    ..MachineSlice::default()
                }]
                .into(),
                ..MachineSeries::default()
            },
        };
        let idle = NodeResult {
            series: MachineSeries::default(),
            ..node.clone()
        };
        insta::assert_snapshot!("nodes", nodes_text(&[node, idle]));
    }

    #[test]
    fn narrow_terminal_shows_wait_and_utilisation_of_disks() {
        let rates = DeviceRates {
            tps: 999_999.0,
            read_kib_s: 9_999_999.0,
            write_kib_s: 9_999_999.0,
            request_kib: 1024.0,
            queue: 1023.98,
            await_ms: 59_999.79,
            util_percent: 100.0,
            ..DeviceRates::default()
        };
        let name = "mapper-vg-data-lv-database";
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = device_table("disk", std::iter::once((name.to_owned(), rates)));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert!(text.contains(" 59999.79  100.00\n"), "{text}");
        }
        crate::text_table::set_columns(80);
    }
}
