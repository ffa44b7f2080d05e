//! Findings of a survey: problems of the cluster that affect measurements.

use super::gke_version::{NVME_EPHEMERAL_STORAGE_SINCE, lacks_nvme_ephemeral_storage};
use super::{ClassFacts, NodeFacts, Survey, Trial};
use crate::leftovers::LeftoverRun;
use iosonde_result::doctor::Severity::{Note, Problem, Warning};
use iosonde_result::doctor::{CleanUp, ClusterCause, Finding};

impl Survey {
    /// Fills in the findings.
    pub fn judge(&mut self) {
        self.findings.clear();
        let mut found = Vec::new();
        for class in self.classes.iter().flatten() {
            found.extend(class_finding(class));
            found.extend(untried_sharing_finding(class));
            found.extend(self.driver_finding(class));
        }
        found.extend(self.sharing_finding());
        let defaults = self
            .classes
            .iter()
            .flatten()
            .filter(|class| class.is_default);
        if defaults.count() > 1 {
            let cause = ClusterCause::SeveralDefaultClasses;
            found.push(Finding::in_cluster(Note, "storage classes", cause));
        }
        for node in self.nodes.iter().flatten() {
            found.extend(node_findings(node));
        }
        found.extend(self.request_findings());
        for leftover in &self.leftovers {
            found.push(self.leftover_finding(leftover));
        }
        for volume in &self.lost_volumes {
            let cause = ClusterCause::RetainedVolume {
                size: volume.size.clone(),
                clean_up: self.clean_up(&volume.namespace),
            };
            found.push(Finding::in_cluster(Note, &volume.name, cause));
        }
        for namespace in &self.lost_namespaces {
            let clean_up = self.clean_up(&namespace.name);
            let cause = ClusterCause::EmptyNamespace { clean_up };
            found.push(Finding::in_cluster(Note, &namespace.name, cause));
        }
        found.sort_by_key(|finding| finding.severity);
        self.findings = found;
    }

    /// Returns the removal of the leftovers of one namespace.
    fn clean_up(&self, namespace: &str) -> CleanUp {
        CleanUp {
            context: self.context.clone(),
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the finding for a cluster of which no class has volumes for several nodes.
    fn sharing_finding(&self) -> Option<Finding> {
        let classes = self.classes.as_ref().filter(|all| !all.is_empty())?;
        let is_of_one_node = |class: &ClassFacts| class.shared == Some(false);
        classes.iter().all(is_of_one_node).then(|| {
            let provisioners = classes.iter().map(|class| class.provisioner.clone());
            let cause = ClusterCause::NoSharedClass {
                provisioners: provisioners.collect(),
            };
            Finding::in_cluster(Note, "storage classes", cause)
        })
    }

    /// Returns the finding for a class whose driver runs on no node.
    fn driver_finding(&self, class: &ClassFacts) -> Option<Finding> {
        let mut drivers = self.drivers.iter().flatten();
        let driver = drivers.find(|driver| driver.name == class.provisioner)?;
        (driver.nodes == Some(0)).then(|| {
            let driver = driver.name.clone();
            let cause = ClusterCause::DriverOnNoNode { driver };
            Finding::in_cluster(Problem, &class.name, cause)
        })
    }

    /// Returns the findings for the nodes that allocate less than the user intends to request. They
    /// are problems if no usable node allocates enough.
    fn request_findings(&self) -> Vec<Finding> {
        let Some(requested_bytes) = self.requested_bytes else {
            return Vec::new();
        };
        let nodes = || self.nodes.iter().flatten();
        let fits = |node: &NodeFacts| node.disk_bytes.is_none_or(|bytes| bytes >= requested_bytes);
        let severity = match nodes().any(|node| node.is_usable && fits(node)) {
            true => Note,
            false => Problem,
        };
        let too_small = nodes().filter(|node| !fits(node));
        let finding = |node: &NodeFacts| {
            let cause = ClusterCause::EphemeralStorageTooSmall {
                requested_bytes,
                allocatable_bytes: node.disk_bytes.unwrap_or(0),
            };
            Finding::in_cluster(severity, &node.name, cause)
        };
        too_small.map(finding).collect()
    }

    fn leftover_finding(&self, leftover: &LeftoverRun) -> Finding {
        let subject = format!("{}/{}", leftover.namespace, leftover.job);
        let cause = ClusterCause::RunInCluster {
            run: leftover.id.clone(),
            created: leftover.created.clone(),
            is_running: leftover.is_running,
            clean_up: self.clean_up(&leftover.namespace),
        };
        Finding::in_cluster(Warning, &subject, cause)
    }
}

fn class_finding(class: &ClassFacts) -> Option<Finding> {
    let (severity, cause) = match &class.trial {
        Some(Trial::Fails { cause, remedy }) => {
            let cause = ClusterCause::ClassFails {
                error: cause.clone(),
                action: remedy.clone(),
            };
            (Problem, cause)
        }
        _ if class.reclaim == "Retain" => (Note, ClusterCause::ClassRetains),
        _ => {
            let kept = class.kept_directory.as_ref()?;
            let cause = ClusterCause::ClassKeepsDirectory {
                parameter: kept.parameter().to_owned(),
                remainder: kept.remainder().to_owned(),
            };
            (Note, cause)
        }
    };
    Some(Finding::in_cluster(severity, &class.name, cause))
}

/// Returns the finding for a class that one pod has tried instead of two.
fn untried_sharing_finding(class: &ClassFacts) -> Option<Finding> {
    let Some(Trial::Works {
        sharing_not_tried: Some(reason),
        ..
    }) = &class.trial
    else {
        return None;
    };
    let cause = ClusterCause::SharingNotTried {
        error: reason.cause.clone(),
        action: reason.remedy.clone(),
    };
    Some(Finding::in_cluster(Note, &class.name, cause))
}

fn node_findings(node: &NodeFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    if !node.is_usable {
        let cause = ClusterCause::NodeNotUsable;
        found.push(Finding::in_cluster(Warning, &node.name, cause));
    }
    let version = node.kubelet.as_deref().unwrap_or_default();
    if lacks_nvme_ephemeral_storage(version) {
        let cause = ClusterCause::NoNvmeEphemeralStorage {
            version: version.to_owned(),
            needed: NVME_EPHEMERAL_STORAGE_SINCE.to_owned(),
        };
        found.push(Finding::in_cluster(Note, &node.name, cause));
    }
    for pressure in &node.pressure {
        let severity = match pressure.as_str() {
            "DiskPressure" => Problem,
            _ => Warning,
        };
        let condition = pressure.clone();
        let cause = ClusterCause::NodePressure { condition };
        found.push(Finding::in_cluster(severity, &node.name, cause));
    }
    found
}
