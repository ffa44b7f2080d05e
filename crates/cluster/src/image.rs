//! Builds an image with the agent, without container tools: one layer with one file.

use crate::options::AgentProgram;
use iosonde_job::lowercase_hex;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io;

/// Path of the agent in an image that contains it.
pub(crate) const AGENT_IN_IMAGE: &str = "/iosonde-agent";
/// Last path component of the names of images that contain the agent.
const NAME: &str = "iosonde-agent";
/// Fixed time stamp, so that the same agent always gives the same image.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Size of a block of a tar archive.
const TAR_BLOCK_BYTES: usize = 512;

/// Whether the image contains the agent, judged by its name.
pub fn carries_agent(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    let end = last.find([':', '@']).unwrap_or(last.len());
    &last[..end] == NAME
}

/// Returns an archive for `docker load`, `ctr images import` and `skopeo copy docker-archive:`.
///
/// # Errors
/// If the archive cannot be built.
pub fn archive(agent: &AgentProgram<'_>, reference: &str) -> io::Result<Vec<u8>> {
    let layer = tar_archive(&[(NAME, 0o755, agent.bytes)])?;
    debug_assert_eq!(layer.len() % TAR_BLOCK_BYTES, 0);
    let config = json!({
        "architecture": agent.arch,
        "os": "linux",
        "created": EPOCH,
        "config": {
            "Entrypoint": [AGENT_IN_IMAGE],
            "User": "65532:65532",
            "Labels": {"org.opencontainers.image.title": NAME},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256_hex(&layer))]},
        "history": [{"created": EPOCH, "created_by": "iosonde k8s image"}],
    })
    .to_string();
    let config_name = format!("{}.json", sha256_hex(config.as_bytes()));
    let manifest = json!([{
        "Config": config_name,
        "RepoTags": [reference],
        "Layers": ["layer.tar"],
    }])
    .to_string();
    tar_archive(&[
        ("manifest.json", 0o644, manifest.as_bytes()),
        (&config_name, 0o644, config.as_bytes()),
        ("layer.tar", 0o644, &layer),
    ])
}

fn tar_archive(files: &[(&str, u32, &[u8])]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, mode, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(*mode);
        archive.append_data(&mut header, name, *bytes)?;
    }
    archive.into_inner()
}

fn sha256_hex(bytes: &[u8]) -> String {
    lowercase_hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    #[test]
    fn images_that_carry_the_agent_are_known_by_name() {
        for image in [
            "iosonde-agent",
            "registry.example.com:5000/tools/iosonde-agent:0.1.0",
            "ghcr.io/x/iosonde-agent@sha256:abc",
        ] {
            assert!(carries_agent(image), "{image}");
        }
        for image in [
            "busybox",
            "iosonde-agent/busybox:1",
            "x/my-iosonde-agent",
            "",
        ] {
            assert!(!carries_agent(image), "{image}");
        }
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).unwrap();
                (entry.path().unwrap().display().to_string(), bytes)
            })
            .collect()
    }

    #[test]
    fn image_holds_one_layer_with_the_agent() {
        let agent = AgentProgram {
            bytes: b"not really a program",
            arch: "arm64",
        };
        let image = archive(&agent, "example.com/iosonde-agent:1").unwrap();
        assert_eq!(
            image,
            archive(&agent, "example.com/iosonde-agent:1").unwrap()
        );
        let parts = files(&image);
        let read =
            |name: &str| -> serde_json::Value { serde_json::from_slice(&parts[name]).unwrap() };
        let manifest = &read("manifest.json")[0];
        assert_eq!(manifest["RepoTags"][0], "example.com/iosonde-agent:1");
        let config = read(manifest["Config"].as_str().unwrap());
        assert_eq!(config["architecture"], "arm64");
        let layer = &parts["layer.tar"];
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            format!("sha256:{}", sha256_hex(layer))
        );
        assert_eq!(files(layer)["iosonde-agent"], agent.bytes);
    }
}
