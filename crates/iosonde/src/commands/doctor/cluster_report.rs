//! Report of `iosonde doctor --cluster`.

use comfy_table::Cell;
use iosonde_cluster::survey::{
    ClassFacts, DriverFacts, NodeFacts, SharedTrial, SnapshotClass, Survey, Trial,
    kubernetes_quantity,
};
use iosonde_report::doctor::{advice, headline};
use iosonde_report::json_document::json_text;
use iosonde_report::text_table::{hide_columns, pairs, plain, render_left, right, wrapped};

/// Columns of the table of classes that a narrow terminal does not show, the least important first:
/// growth, reclaim policy, number of volumes, provisioner.
const LEAST_IMPORTANT_OF_CLASSES: [usize; 4] = [4, 3, 5, 1];
/// Columns of the table of drivers that a narrow terminal does not show, the least important first:
/// number of nodes, snapshot classes.
const LEAST_IMPORTANT_OF_DRIVERS: [usize; 2] = [1, 3];
/// Columns of the table of nodes that a narrow terminal does not show, the least important first:
/// architecture, machine, disk, taints.
const LEAST_IMPORTANT_OF_NODES: [usize; 4] = [2, 4, 3, 5];

/// Returns the report as text of at most 80 columns.
pub(super) fn survey_text(survey: &Survey) -> String {
    let mut text = "Cluster\n\n".to_owned();
    let mut facts = vec![("version", survey.version.clone())];
    facts.extend(survey.context.clone().map(|context| ("context", context)));
    text.push_str(&pairs(&facts));
    text.push_str("\nStorage classes\n\n");
    text.push_str(&match &survey.classes {
        None => "this user may not list them\n".to_owned(),
        Some(none) if none.is_empty() => "none\n".to_owned(),
        Some(all) => classes(all),
    });
    if let Some(all) = survey.drivers.as_ref().filter(|all| !all.is_empty()) {
        let snapshots = survey.snapshot_classes.as_deref().unwrap_or_default();
        text.push_str(&format!("\nCSI drivers\n\n{}", drivers(all, snapshots)));
        if survey.lacks_snapshots {
            text.push_str(&wrapped(
                "no snapshots: the custom resource definitions of snapshot.storage.k8s.io/v1 are \
                 missing",
            ));
        }
    }
    text.push_str("\nNodes\n\n");
    text.push_str(&match &survey.nodes {
        None => "this user may not list them\n".to_owned(),
        Some(all) => nodes(all),
    });
    if let Some(inspected) = &survey.inspected {
        text.push_str(&super::node_inspection::inspected_nodes_text(inspected));
    }
    if survey.hides_runs {
        text.push_str("\nLeftovers of runs\n\nthis user may not list them\n");
    }
    text.push_str(&format!(
        "\n{}\n",
        wrapped(&headline(&survey.findings)).trim_end()
    ));
    for finding in &survey.findings {
        text.push('\n');
        text.push_str(&advice(finding));
    }
    text
}

/// Returns the report as JSON.
pub(super) fn survey_json(survey: &Survey) -> String {
    // Serialization of plain data cannot fail.
    json_text(survey).unwrap_or_default()
}

fn classes(all: &[ClassFacts]) -> String {
    let mut table = plain();
    table.set_header([
        "class",
        "provisioner",
        "binds",
        "reclaim",
        "grows",
        "volumes",
    ]);
    for class in all {
        let default = if class.is_default { " *" } else { "" };
        let volumes = class
            .volumes
            .map_or_else(|| "?".to_owned(), |volumes| volumes.to_string());
        table.add_row([
            Cell::new(format!("{}{default}", class.name)),
            Cell::new(&class.provisioner),
            Cell::new(if class.waits_for_pod {
                "with pod"
            } else {
                "at once"
            }),
            Cell::new(&class.reclaim),
            Cell::new(if class.expands { "yes" } else { "no" }),
            right(volumes),
        ]);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT_OF_CLASSES);
    let mut text = render_left(&mut table);
    if all.iter().any(|class| class.is_default) {
        text.push_str("* default for claims without a class\n");
    }
    let tried = all
        .iter()
        .filter_map(|class| Some((class.name.as_str(), trial(class.trial.as_ref()?))));
    let tried: Vec<_> = tried.collect();
    if !tried.is_empty() {
        text.push_str(&format!("\nTrial claims\n\n{}", pairs(&tried)));
    }
    text
}

fn drivers(all: &[DriverFacts], snapshots: &[SnapshotClass]) -> String {
    let mut table = plain();
    table.set_header(["driver", "nodes", "capabilities", "snapshot classes"]);
    for driver in all {
        let of_driver = snapshots.iter().filter(|class| class.driver == driver.name);
        let names: Vec<&str> = of_driver.map(|class| class.name.as_str()).collect();
        let nodes = driver.nodes.map(|nodes| nodes.to_string());
        table.add_row([
            Cell::new(&driver.name),
            right(nodes.unwrap_or_else(|| "?".to_owned())),
            Cell::new(capabilities(driver)),
            Cell::new(names.join("\n")),
        ]);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT_OF_DRIVERS);
    render_left(&mut table)
}

/// Lists what a driver can do, as far as the cluster shows it. Clones are shown nowhere.
fn capabilities(driver: &DriverFacts) -> String {
    let all = [
        ("attach", driver.attaches),
        ("expand", driver.expands == Some(true)),
        ("snapshot", driver.takes_snapshots == Some(true)),
        ("capacity", driver.publishes_capacity),
        ("inline", driver.has_ephemeral_volumes),
    ];
    let has = all.into_iter().filter(|(_, is_there)| *is_there);
    let names: Vec<&str> = has.map(|(name, _)| name).collect();
    match names.is_empty() {
        true => "none known".to_owned(),
        false => names.join(", "),
    }
}

/// Describes the number and total size of the volumes on a node's own disks.
fn local_volumes(sizes: &[u64]) -> Option<String> {
    let all = kubernetes_quantity(sizes.iter().sum());
    match sizes.len() {
        0 => None,
        1 => Some(format!("1 local volume, {all}")),
        count => Some(format!("{count} local volumes, {all}")),
    }
}

fn trial(trial: &Trial) -> String {
    match trial {
        Trial::Works {
            elapsed_ms,
            free_bytes,
            shared,
            sharing_not_tried,
        } => {
            let free = free_bytes.map_or(String::new(), |free| {
                format!(", {} free", kubernetes_quantity(free))
            });
            let seconds = *elapsed_ms as f64 / 1e3;
            let shared = match (shared, sharing_not_tried) {
                (Some(shared), _) => shared_trial(shared),
                (None, Some(_)) => "; by one pod only, see below".to_owned(),
                (None, None) => String::new(),
            };
            format!("works: bound and mounted after {seconds:.1} s{free}{shared}")
        }
        Trial::Fails { .. } => "fails: see below".to_owned(),
    }
}

/// Describes the pods that read what others wrote.
fn shared_trial(trial: &SharedTrial) -> String {
    match trial.nodes.as_slice() {
        [] => "; two pods read each other's data".to_owned(),
        [node] => format!("; two pods on {node} read each other's data"),
        nodes => format!("; {} read each other's data", nodes.join(" and ")),
    }
}

fn nodes(all: &[NodeFacts]) -> String {
    let mut table = plain();
    table.set_header([
        "node",
        "ready",
        "arch",
        "disk",
        "machine, version",
        "local SSD, taints",
    ]);
    for node in all {
        let place = [
            node.machine.clone(),
            node.zone.clone(),
            node.kubelet.clone(),
        ]
        .into_iter()
        .flatten();
        let more: Vec<String> = node
            .local_ssd
            .iter()
            .map(|label| label.rsplit('/').next().unwrap_or(label))
            .map(str::to_owned)
            .chain(local_volumes(&node.local_volumes))
            .chain(node.taints.iter().cloned())
            .collect();
        table.add_row([
            node.name.clone(),
            if node.is_usable { "yes" } else { "no" }.to_owned(),
            node.arch.clone(),
            node.disk_bytes
                .map_or_else(|| "?".to_owned(), kubernetes_quantity),
            place.collect::<Vec<_>>().join(", "),
            more.join("\n"),
        ]);
    }
    hide_columns(&mut table, &LEAST_IMPORTANT_OF_NODES);
    render_left(&mut table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_cluster::leftovers::{LeftoverRun, LostNamespace, LostVolume};
    use iosonde_cluster::survey::SharingNotTried;

    fn class(name: &str, trial: Option<Trial>) -> ClassFacts {
        ClassFacts {
            name: name.to_owned(),
            provisioner: "ebs.csi.aws.com".to_owned(),
            is_default: name == "fast",
            waits_for_pod: name == "fast",
            reclaim: if name == "keep" { "Retain" } else { "Delete" }.to_owned(),
            expands: true,
            kept_directory: None,
            volumes: Some(3),
            shared: Some(false),
            trial,
        }
    }

    fn node() -> NodeFacts {
        NodeFacts {
            name: "node-1".to_owned(),
            is_usable: true,
            arch: "amd64".to_owned(),
            machine: Some("n2-standard-8".to_owned()),
            zone: Some("europe-west4-a".to_owned()),
            kubelet: Some("v1.27.3-gke.100".to_owned()),
            disk_bytes: Some(375 << 30),
            local_ssd: vec!["cloud.google.com/gke-local-nvme-ssd=true".to_owned()],
            local_volumes: vec![375 << 30, 375 << 30],
            taints: vec!["dedicated=db:NoSchedule".to_owned()],
            pressure: vec!["DiskPressure".to_owned()],
        }
    }

    fn sample() -> Survey {
        let mut survey = Survey {
            context: Some("lab".to_owned()),
            version: "v1.34.4".to_owned(),
            classes: Some(vec![
                class(
                    "fast",
                    Some(Trial::Works {
                        elapsed_ms: 6200,
                        free_bytes: Some(1 << 30),
                        shared: None,
                        sharing_not_tried: None,
                    }),
                ),
                class(
                    "keep",
                    Some(Trial::Fails {
                        cause: "the claim is not provisioned: no pool".to_owned(),
                        remedy: "check the provisioner's log".to_owned(),
                    }),
                ),
            ]),
            drivers: Some(vec![DriverFacts {
                name: "ebs.csi.aws.com".to_owned(),
                nodes: Some(1),
                publishes_capacity: false,
                attaches: true,
                has_ephemeral_volumes: false,
                expands: Some(true),
                takes_snapshots: Some(true),
            }]),
            snapshot_classes: Some(vec![SnapshotClass {
                name: "daily".to_owned(),
                driver: "ebs.csi.aws.com".to_owned(),
                deletion_policy: "Delete".to_owned(),
            }]),
            lacks_snapshots: false,
            nodes: Some(vec![node()]),
            requested_bytes: None,
            inspected: None,
            hides_runs: false,
            leftovers: vec![LeftoverRun {
                namespace: "bench".to_owned(),
                job: "iosonde-3f2a9c00".to_owned(),
                id: "3f2a9c00".to_owned(),
                created: "2026-01-01T00:00:00Z".to_owned(),
                is_running: true,
            }],
            lost_volumes: vec![LostVolume {
                name: "pvc-1".to_owned(),
                namespace: "bench".to_owned(),
                size: "5Gi".to_owned(),
            }],
            lost_namespaces: vec![LostNamespace {
                name: "lab".to_owned(),
            }],
            findings: Vec::new(),
        };
        survey.judge();
        survey
    }

    #[test]
    fn cluster_report_fits_80_columns() {
        let text = survey_text(&sample());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!("survey", text);
    }

    #[test]
    fn cluster_report_fits_a_narrow_terminal() {
        let mut survey = sample();
        for class in survey.classes.iter_mut().flatten() {
            class.name = format!("{}-replicated-on-three-zones", class.name);
        }
        for columns in [40, 60] {
            iosonde_report::text_table::set_columns(columns);
            let text = survey_text(&survey);
            for line in text.lines().filter(|line| !line.starts_with("$ ")) {
                assert!(line.chars().count() <= columns, "{line}: {text}");
            }
            for part in ["with pod", "attach", "node-1", "works: bound"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        iosonde_report::text_table::set_columns(80);
    }

    #[test]
    fn trial_of_two_pods_names_their_nodes() {
        let words = |nodes: &[&str]| {
            trial(&Trial::Works {
                elapsed_ms: 6200,
                free_bytes: None,
                shared: Some(SharedTrial {
                    nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
                    verified_bytes: 1 << 20,
                }),
                sharing_not_tried: None,
            })
        };
        assert_eq!(
            words(&["n1", "n2"]),
            "works: bound and mounted after 6.2 s; n1 and n2 read each other's data"
        );
        assert!(words(&["n1"]).ends_with("; two pods on n1 read each other's data"));
        let alone = trial(&Trial::Works {
            elapsed_ms: 6200,
            free_bytes: None,
            shared: None,
            sharing_not_tried: Some(SharingNotTried {
                cause: "no node takes the pod".to_owned(),
                remedy: "add a node".to_owned(),
            }),
        });
        assert!(alone.ends_with("; by one pod only, see below"), "{alone}");
    }

    #[test]
    fn cluster_report_names_resources_without_access() {
        let blind = Survey {
            classes: None,
            nodes: None,
            hides_runs: true,
            leftovers: Vec::new(),
            lost_volumes: Vec::new(),
            lost_namespaces: Vec::new(),
            findings: Vec::new(),
            ..sample()
        };
        assert_eq!(survey_text(&blind).matches("may not list them").count(), 3);
        let without = Survey {
            lacks_snapshots: true,
            ..sample()
        };
        assert!(survey_text(&without).contains("no snapshots: the custom resource definitions"));
        let json: serde_json::Value = serde_json::from_str(&survey_json(&sample())).unwrap();
        assert_eq!(json["classes"][0]["trial"]["works"]["elapsed_ms"], 6200);
    }
}
