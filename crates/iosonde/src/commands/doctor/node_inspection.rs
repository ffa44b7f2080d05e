//! `iosonde doctor --cluster --inspect-nodes`: disks and mounts of the nodes.

use crate::args::ClusterArgs;
use crate::commands::{cluster, consent};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::signals::StopSignal;
use comfy_table::Cell;
use iosonde_cluster::survey::{Survey, kubernetes_quantity};
use iosonde_cluster::{PodPlacement, Pods, SetupEvent, SetupObserver, inspection_rights};
use iosonde_job::TargetUri;
use iosonde_report::text_table::{hide_columns, plain, render_left, right, wrapped};
use iosonde_result::node_storage::{InspectedNode, NodeDisk, NodeMount};
use iosonde_result::session::Session;

/// Columns that a narrow terminal does not show, the least important first: sectors, and model of
/// a disk.
const LEAST_IMPORTANT_OF_DISKS: [usize; 2] = [3, 2];
/// Columns that a narrow terminal does not show, the least important first: source, type, and size
/// of a mount.
const LEAST_IMPORTANT_OF_MOUNTS: [usize; 3] = [2, 1, 3];
/// Timeout for the start of the pods.
const INSPECTION_NS: u64 = 60_000_000_000;

/// Starts a pod on each node that takes one, and lists disks and mounts of these nodes. A user who
/// may not list nodes gets those of one node. The rights of the pods are shown first.
pub(super) fn inspect_nodes(
    found: &Survey,
    args: &ClusterArgs,
    stop: &StopSignal,
) -> Result<Vec<InspectedNode>, CommandError> {
    eprintln!("note: {}", announcement());
    let root = TargetUri::HostPath("/".to_owned());
    consent::to_root(&[root.to_string()], args, &|| stop.interrupt.count())?;
    let args = ClusterArgs {
        timeout: args.timeout.or(Some(INSPECTION_NS)),
        ..args.clone()
    };
    let pods = found.nodes.is_some().then_some(Pods {
        count: None,
        placement: PodPlacement::PerNode,
        shared: false,
        checks_shared_file: false,
    });
    let options = cluster::options_of_pods(root, &args, None)?.for_node_inspection(pods);
    let mut live = PodLive::new("nodes");
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let mut session = cluster::open_unwatched(&options, watch)?;
    let inspected = session.inspect_nodes(None);
    if let Err(left) = Box::new(session).close() {
        CommandError::from(left).warn();
    }
    Ok(inspected?)
}

/// Describes what is created and which rights it needs.
fn announcement() -> String {
    format!(
        "--inspect-nodes starts a pod on each node for some seconds, as root without capabilities, \
         with the root directory of the node mounted read-only. It needs the rights to {}, and a \
         namespace that admits hostPath volumes (Pod Security level `privileged`)",
        inspection_rights().join(", ")
    )
}

/// Returns tables of the disks and mounts of each node.
pub(super) fn inspected_nodes_text(nodes: &[InspectedNode]) -> String {
    let of_node = |inspected: &InspectedNode| {
        let storage = &inspected.storage;
        format!(
            "\n{}\n{}\n{}",
            wrapped(&format!("Node {}", inspected.node)),
            disks(&storage.disks),
            mounts(&storage.mounts)
        )
    };
    nodes.iter().map(of_node).collect()
}

fn disks(all: &[NodeDisk]) -> String {
    if all.is_empty() {
        return "no disks of its own\n".to_owned();
    }
    let mut table = plain();
    table.set_header(["disk", "size", "model", "sectors (logical/physical)"]);
    for disk in all {
        let bytes = |sector: Option<u64>| sector.map_or_else(unknown, |bytes| format!("{bytes} B"));
        let logical = bytes(disk.logical_sector_bytes);
        let physical = bytes(disk.physical_sector_bytes);
        table.add_row([
            Cell::new(&disk.name),
            right(kubernetes_quantity(disk.size_bytes)),
            Cell::new(disk.model.clone().unwrap_or_else(unknown)),
            Cell::new(format!("{logical} / {physical}")),
        ]);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT_OF_DISKS);
    render_left(&mut table)
}

fn mounts(all: &[NodeMount]) -> String {
    let mut table = plain();
    table.set_header(["for hostpath://", "type", "source", "size", "free"]);
    for mount in all {
        let amount = |bytes: Option<u64>| right(bytes.map_or_else(unknown, kubernetes_quantity));
        table.add_row([
            Cell::new(&mount.path),
            Cell::new(&mount.fs_type),
            Cell::new(&mount.source),
            amount(mount.total_bytes),
            amount(mount.available_bytes),
        ]);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT_OF_MOUNTS);
    render_left(&mut table)
}

fn unknown() -> String {
    "?".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::node_storage::NodeStorage;

    /// The local SSD of a node, as the article on GKE shows it.
    fn local_ssd() -> InspectedNode {
        InspectedNode {
            node: "gke-before-localssd-ssd-pool-acba8d73-k2bd".to_owned(),
            storage: NodeStorage {
                disks: vec![NodeDisk {
                    name: "nvme0n1".to_owned(),
                    size_bytes: 402_653_184_000,
                    model: Some("nvme_card".to_owned()),
                    logical_sector_bytes: Some(4096),
                    physical_sector_bytes: Some(4096),
                }],
                mounts: vec![NodeMount {
                    path: "/mnt/stateful_partition/kube-ephemeral-ssd".to_owned(),
                    fs_type: "ext4".to_owned(),
                    source: "/dev/nvme0n1".to_owned(),
                    total_bytes: Some(369 << 30),
                    available_bytes: Some(348 << 30),
                }],
                directories: Vec::new(),
            },
        }
    }

    #[test]
    fn disks_and_mounts_of_a_node_fit_80_columns() {
        let text = inspected_nodes_text(&[local_ssd()]);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        for part in [
            "Node gke-before-localssd-ssd-pool-acba8d73-k2bd",
            "375Gi",
            "nvme_card",
            "4096 B / 4096 B",
            "/dev/nvme0n1",
            "369Gi",
            "348Gi",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn narrow_terminal_shows_free_space_of_mounts() {
        for columns in [40, 60] {
            iosonde_report::text_table::set_columns(columns);
            let text = inspected_nodes_text(&[local_ssd()]);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            for part in ["nvme0n1", "375Gi", "348Gi"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        iosonde_report::text_table::set_columns(80);
    }

    #[test]
    fn rights_are_shown_before_pods_are_made() {
        let said = announcement();
        for part in ["create jobs", "create pods/exec", "privileged", "read-only"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
