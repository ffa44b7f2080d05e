//! Facts of a run by key, which select and tabulate results as given labels do.

use crate::host::{DeviceInfo, TargetInfo};
use crate::property_values::PropertyValues;
use crate::run::RunResult;
use std::collections::BTreeMap;

impl RunResult {
    /// Returns the known facts of the machine, the node and the storage by key.
    pub fn facts(&self) -> BTreeMap<String, PropertyValues> {
        let platform = &self.host.platform;
        let label = |key: &str| self.labels.get(key).cloned();
        let disks: Vec<&DeviceInfo> = self
            .targets
            .iter()
            .flat_map(TargetInfo::bottom_devices)
            .collect();
        let one = PropertyValues::from_iter::<Option<String>>;
        let of_disks = |read: &dyn Fn(&DeviceInfo) -> Option<String>| -> PropertyValues {
            disks.iter().filter_map(|disk| read(disk)).collect()
        };
        let mounts = self
            .targets
            .iter()
            .filter_map(|target| target.mount.as_ref());
        let sizes = self.targets.iter().filter_map(TargetInfo::volume_bytes);
        let scheduler = |disk: &DeviceInfo| disk.queue.as_ref()?.scheduler.clone();
        let known = [
            ("cloud", one(platform.cloud.clone())),
            (
                "region",
                one(label("region").or_else(|| platform.region.clone())),
            ),
            ("zone", one(label("zone").or_else(|| platform.zone.clone()))),
            (
                "machine_type",
                one(label("instance_type").or_else(|| platform.instance_type.clone())),
            ),
            ("node", self.node()),
            (
                "os",
                one(label("node_os").or_else(|| self.operating_system())),
            ),
            ("kernel", one(self.host.kernel.clone())),
            ("driver", of_disks(&|disk| disk.driver.clone())),
            (
                "driver_version",
                of_disks(&|disk| disk.driver_version.clone()),
            ),
            ("firmware", of_disks(&|disk| disk.firmware.clone())),
            ("model", of_disks(&|disk| disk.model.clone())),
            ("scheduler", of_disks(&scheduler)),
            ("disk_size", sizes.filter_map(whole_gibibytes).collect()),
            (
                "file_system",
                mounts.map(|mount| mount.fs_type.clone()).collect(),
            ),
            ("class", one(label("storage_class"))),
            ("provisioner", one(label("provisioner"))),
            (
                "ceph_version",
                one(self.ceph.as_ref().and_then(|side| side.version.clone())),
            ),
        ];
        let known = known.into_iter().filter(|(_, values)| !values.is_empty());
        known
            .map(|(key, values)| (key.to_owned(), values))
            .collect()
    }

    /// The nodes of all pods, the node of the only pod, or the host name.
    fn node(&self) -> PropertyValues {
        let nodes: PropertyValues = self.pods.iter().map(|pod| pod.node.clone()).collect();
        match nodes.is_empty() {
            true => {
                let label = self.labels.get("node").cloned();
                label
                    .or_else(|| self.host.hostname.clone())
                    .into_iter()
                    .collect()
            }
            false => nodes,
        }
    }

    /// `debian 12`; without an identifier, as in old results, the system's name for people.
    fn operating_system(&self) -> Option<String> {
        let Some(id) = &self.host.os_id else {
            return self.host.os.clone();
        };
        Some(match &self.host.os_version {
            Some(version) => format!("{id} {version}"),
            None => id.clone(),
        })
    }
}

/// `375 GiB`, rounded. `None` below half a gibibyte, the size of test files rather than of disks.
fn whole_gibibytes(bytes: u64) -> Option<String> {
    let gibibytes = bytes.saturating_add(1 << 29) >> 30;
    (gibibytes > 0).then(|| format!("{gibibytes} GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::CephSide;
    use crate::host::{Host, Mount, Platform};
    use iosonde_job::plan::Plan;

    fn run() -> RunResult {
        RunResult {
            host: Host {
                hostname: Some("vm-1".to_owned()),
                kernel: Some("4.7.0-0.bpo.1-amd64".to_owned()),
                os: Some("Debian GNU/Linux 8 (jessie)".to_owned()),
                platform: Platform {
                    cloud: Some("gcp".to_owned()),
                    region: Some("asia-northeast1".to_owned()),
                    instance_type: Some("n1-standard-2".to_owned()),
                    ..Platform::default()
                },
                ..Host::default()
            },
            ..RunResult::unmeasured(Plan::default())
        }
    }

    fn target(fs_type: &str, driver: &str) -> TargetInfo {
        TargetInfo {
            mount: Some(Mount {
                fs_type: fs_type.to_owned(),
                ..Mount::default()
            }),
            devices: vec![DeviceInfo {
                driver: Some(driver.to_owned()),
                driver_version: Some("1.0".to_owned()),
                firmware: Some("2.0".to_owned()),
                size_bytes: 375 << 30,
                ..DeviceInfo::default()
            }],
            ..TargetInfo::default()
        }
    }

    #[test]
    fn run_facts_name_machine_and_storage() {
        let mut run = run();
        run.targets = vec![target("ext4", "nvme"), target("ext4", "nvme")];
        let facts: Vec<String> = run
            .facts()
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let expected = [
            "cloud=gcp",
            "disk_size=375 GiB",
            "driver=nvme",
            "driver_version=1.0",
            "file_system=ext4",
            "firmware=2.0",
            "kernel=4.7.0-0.bpo.1-amd64",
            "machine_type=n1-standard-2",
            "node=vm-1",
            "os=Debian GNU/Linux 8 (jessie)",
            "region=asia-northeast1",
        ];
        assert_eq!(facts, expected);
        run.host.os_id = Some("debian".to_owned());
        run.host.os_version = Some("8".to_owned());
        assert_eq!(run.facts()["os"].to_string(), "debian 8");
    }

    #[test]
    fn run_facts_of_a_pod_come_from_its_node_and_claim() {
        let mut run = run();
        for (key, value) in [
            ("node", "n1"),
            ("node_os", "Ubuntu 22.04.3 LTS"),
            ("storage_class", "fast"),
            ("instance_type", "m7i.large"),
        ] {
            run.labels.insert(key.to_owned(), value.to_owned());
        }
        run.ceph = Some(CephSide {
            version: Some("18.2.4 reef".to_owned()),
            ..CephSide::default()
        });
        let facts = run.facts();
        let fact = |key: &str| facts[key].to_string();
        assert_eq!(fact("node"), "n1");
        assert_eq!(fact("os"), "Ubuntu 22.04.3 LTS");
        assert_eq!(fact("class"), "fast");
        assert_eq!(fact("machine_type"), "m7i.large");
        assert_eq!(fact("ceph_version"), "18.2.4 reef");
    }

    #[test]
    fn facts_with_several_values_list_each_once() {
        let mut run = run();
        run.targets = vec![target("ext4", "sd"), target("xfs", "sd")];
        let facts = run.facts();
        let values = |key: &str| facts[key].iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(values("file_system"), ["ext4", "xfs"]);
        assert_eq!(values("driver"), ["sd"]);
    }
}
