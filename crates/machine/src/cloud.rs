//! The cloud of a machine, from its firmware and cloud-init's data, without network requests.

use super::proc_root::System;
use serde_json::Value;

/// Facts about a cloud machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloudFacts {
    /// `aws`, `gcp`, `azure`, ...
    pub cloud: Option<String>,
    /// The cloud's name of the machine type.
    pub instance_type: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Availability zone.
    pub zone: Option<String>,
}

/// Metadata of the cloud as stored by cloud-init; readable by all users, without secrets.
const INSTANCE_DATA: &str = "/run/cloud-init/instance-data.json";

/// The facts from firmware and cloud-init. Firmware wins: a disk image may have foreign files.
pub fn facts(system: &System) -> CloudFacts {
    let by_firmware = facts_from_firmware(&Firmware::read(system));
    let instance_data = system
        .text(INSTANCE_DATA)
        .map(|text| facts_from_instance_data(&text))
        .unwrap_or_default();
    let contradicted = by_firmware.cloud.is_some()
        && instance_data.cloud.is_some()
        && instance_data.cloud != by_firmware.cloud;
    if contradicted {
        return by_firmware;
    }
    CloudFacts {
        cloud: by_firmware.cloud.or(instance_data.cloud),
        instance_type: by_firmware.instance_type.or(instance_data.instance_type),
        region: instance_data.region,
        zone: instance_data.zone,
    }
}

/// Facts from the firmware (DMI).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Firmware {
    /// Manufacturer of the system.
    pub(crate) vendor: Option<String>,
    /// Product.
    pub(crate) product: Option<String>,
    asset_tag: Option<String>,
    bios_version: Option<String>,
}

impl Firmware {
    /// Reads the fields that all users may read.
    pub(crate) fn read(system: &System) -> Self {
        let dmi = |file: &str| system.text(format!("/sys/class/dmi/id/{file}"));
        Self {
            vendor: dmi("sys_vendor"),
            product: dmi("product_name"),
            asset_tag: dmi("chassis_asset_tag"),
            bios_version: dmi("bios_version"),
        }
    }
}

/// Asset tag of the chassis of every Azure machine.
const AZURE_ASSET_TAG: &str = "7783-7084-3265-9085-8269-3286-77";

fn facts_from_firmware(firmware: &Firmware) -> CloudFacts {
    let cloud = cloud(firmware);
    let instance_type = match cloud {
        // The other clouds have one product name for all machine types.
        Some("aws" | "alibaba" | "hetzner" | "scaleway") => firmware.product.clone(),
        _ => None,
    };
    CloudFacts {
        cloud: cloud.map(str::to_owned),
        // Instances of the older, Xen-based kind have the same product name for all types.
        instance_type: instance_type.filter(|product| product != "HVM domU"),
        ..CloudFacts::default()
    }
}

fn cloud(firmware: &Firmware) -> Option<&'static str> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (vendor, product) = (text(&firmware.vendor), text(&firmware.product));
    let (asset_tag, bios) = (text(&firmware.asset_tag), text(&firmware.bios_version));
    match (vendor.as_str(), product.as_str(), asset_tag.as_str()) {
        (_, _, AZURE_ASSET_TAG) => Some("azure"),
        (_, _, "OracleCloud.com") => Some("oracle"),
        ("Amazon EC2", ..) => Some("aws"),
        ("Xen", ..) if bios.ends_with(".amazon") => Some("aws"),
        ("Google", "Google Compute Engine", _) => Some("gcp"),
        ("Alibaba Cloud", ..) => Some("alibaba"),
        ("DigitalOcean", ..) => Some("digitalocean"),
        ("Hetzner", ..) => Some("hetzner"),
        ("Scaleway", ..) => Some("scaleway"),
        ("Vultr", ..) => Some("vultr"),
        ("Akamai" | "Linode", ..) => Some("linode"),
        ("Tencent Cloud", ..) => Some("tencent"),
        ("Huawei Cloud", ..) => Some("huawei"),
        ("UpCloud", ..) => Some("upcloud"),
        ("Exoscale", ..) => Some("exoscale"),
        ("OpenStack Foundation" | "OpenStack", ..) => Some("openstack"),
        _ => None,
    }
}

/// Parses cloud-init's instance data. Fields that are missing, redacted or no text are `None`.
fn facts_from_instance_data(text: &str) -> CloudFacts {
    let Ok(data) = serde_json::from_str::<Value>(text) else {
        return CloudFacts::default();
    };
    let at = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| disclosed_text(data.pointer(pointer)?))
    };
    let cloud = at(&["/v1/cloud_name", "/v1/cloud-name"]);
    CloudFacts {
        cloud: cloud.as_deref().and_then(cloud_of_cloud_init),
        instance_type: at(&[
            "/ds/meta_data/instance-type",
            "/ds/meta_data/instance_type",
            "/ds/dynamic/instance-identity/document/instanceType",
            "/ds/dynamic/instance_identity/document/instanceType",
            "/ds/meta_data/imds/compute/vmSize",
            "/ds/meta_data/shape",
        ]),
        region: at(&["/v1/region", "/ds/meta_data/imds/compute/location"]),
        zone: at(&[
            "/v1/availability_zone",
            "/v1/availability-zone",
            "/ds/meta_data/imds/compute/zone",
        ]),
    }
}

fn disclosed_text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    let hidden = text.is_empty() || text.starts_with("redacted") || text == "n/a";
    (!hidden).then(|| text.to_owned())
}

fn cloud_of_cloud_init(name: &str) -> Option<String> {
    let name = match name {
        "gce" => "gcp",
        "aliyun" => "alibaba",
        "akamai" => "linode",
        "aws" | "azure" | "oracle" | "digitalocean" | "hetzner" | "scaleway" | "vultr"
        | "upcloud" | "exoscale" | "openstack" => name,
        // The others are data sources such as `nocloud`, which any machine may use.
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn firmware(vendor: &str, product: &str, asset_tag: &str, bios: &str) -> Firmware {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Firmware {
            vendor: known(vendor),
            product: known(product),
            asset_tag: known(asset_tag),
            bios_version: known(bios),
        }
    }

    #[test]
    fn clouds_are_named_only_by_their_firmware() {
        let cases = [
            (firmware("Amazon EC2", "m7i.large", "", ""), Some("aws")),
            (firmware("Xen", "HVM domU", "", "4.11.amazon"), Some("aws")),
            (firmware("Xen", "HVM domU", "", "4.17"), None),
            (
                firmware(
                    "Microsoft Corporation",
                    "Virtual Machine",
                    AZURE_ASSET_TAG,
                    "",
                ),
                Some("azure"),
            ),
            // Hyper-V outside a cloud.
            (
                firmware("Microsoft Corporation", "Virtual Machine", "", ""),
                None,
            ),
            (
                firmware("QEMU", "Standard PC", "OracleCloud.com", ""),
                Some("oracle"),
            ),
            (
                firmware("Google", "Google Compute Engine", "", ""),
                Some("gcp"),
            ),
            (Firmware::default(), None),
        ];
        for (firmware, expected) in cases {
            assert_eq!(cloud(&firmware), expected, "{firmware:?}");
        }
    }

    #[test]
    fn only_some_firmware_names_the_machine_type() {
        let of = |vendor, product, bios| {
            facts_from_firmware(&firmware(vendor, product, "", bios)).instance_type
        };
        assert_eq!(
            of("Amazon EC2", "i4i.large", "").as_deref(),
            Some("i4i.large")
        );
        assert_eq!(of("Xen", "HVM domU", "4.11.amazon"), None);
        assert_eq!(of("Google", "Google Compute Engine", ""), None);
    }

    #[test]
    fn cloud_init_tells_type_and_zone_of_each_cloud() {
        let facts = |text: &str| {
            let facts = facts_from_instance_data(text);
            [facts.cloud, facts.instance_type, facts.region, facts.zone]
                .map(|fact| fact.unwrap_or_else(|| "-".to_owned()))
        };
        assert_eq!(
            facts(concat!(
                r#"{"v1": {"cloud_name": "aws", "region": "eu-west-1", "#,
                r#""availability_zone": "eu-west-1b"}, "#,
                r#""ds": {"meta_data": {"instance-type": "c6gd.xlarge"}}}"#
            )),
            ["aws", "c6gd.xlarge", "eu-west-1", "eu-west-1b"]
        );
        assert_eq!(
            facts(concat!(
                r#"{"v1": {"cloud_name": "gce", "region": "us-central1", "#,
                r#""availability_zone": "us-central1-a"}}"#
            )),
            ["gcp", "-", "us-central1", "us-central1-a"]
        );
        assert_eq!(
            facts(concat!(
                r#"{"v1": {"cloud_name": "azure", "region": "westeurope", "#,
                r#""availability_zone": null}, "ds": {"meta_data": {"imds": {"compute": "#,
                r#"{"vmSize": "Standard_L8s_v3", "zone": "2"}}}}}"#
            )),
            ["azure", "Standard_L8s_v3", "westeurope", "2"]
        );
        assert_eq!(
            facts(r#"{"v1": {"cloud_name": "nocloud", "region": "redacted for non-root user"}}"#),
            ["-", "-", "-", "-"]
        );
    }

    proptest! {
        #[test]
        fn arbitrary_instance_data_never_panics(text in "\\PC*") {
            facts_from_instance_data(&text);
        }
    }
}
