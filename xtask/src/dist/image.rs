//! Container images of both architectures, written as OCI layouts without a container tool.
//!
//! `iosonde` contains only the static client and runs as a user without rights. `iosonde-fio` adds
//! a static busybox and runs as root: it stands in for images of fio, whose users run a shell in
//! them. The archive also has the `manifest.json` of `docker save`, for tools that know no layouts.

use super::architecture::{Architecture, Flavour};
use super::busybox::Busybox;
use super::image_layer::{BlobStore, ImageLayer, LayerEntry, archive, blob_path};
use super::release::{Release, Staged};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// User of the image `iosonde`, by convention that of images without a shell.
const USER: u32 = 65532;
/// Largest image of one architecture, as a registry stores and a node pulls it.
const IMAGE_BYTES_MAX: usize = 15_000_000;
/// Commands of busybox with a link in `iosonde-fio`. iosonde itself needs `sh`, `head`, `sha256sum`
/// and `uname` in a pod, kubestr `sh` and `tail`. The others let a person look around.
const APPLETS: [&str; 25] = [
    "cat",
    "chmod",
    "chown",
    "cp",
    "dd",
    "df",
    "du",
    "echo",
    "env",
    "grep",
    "head",
    "kill",
    "ls",
    "mkdir",
    "mount",
    "ps",
    "rm",
    "sed",
    "sh",
    "sha256sum",
    "sleep",
    "stat",
    "sync",
    "tail",
    "uname",
];
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The two images.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReleaseImage {
    Client,
    Fio,
}

/// The image for one architecture.
struct PlatformImage {
    architecture: Architecture,
    layers: Vec<ImageLayer>,
}

impl ReleaseImage {
    pub(crate) const ALL: [Self; 2] = [Self::Client, Self::Fio];

    /// Returns the last part of the image's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "iosonde",
            Self::Fio => "iosonde-fio",
        }
    }

    /// Returns the path of the layout's archive.
    pub(crate) fn path(self, release: &Release) -> PathBuf {
        release.directory.join(self.file_name(release))
    }

    /// Returns the name of the layout's archive.
    pub(crate) fn file_name(self, release: &Release) -> String {
        format!("{}-{}-image.tar", self.name(), release.version)
    }

    fn licences(self) -> &'static str {
        match self {
            Self::Client => "MIT OR Apache-2.0",
            Self::Fio => "(MIT OR Apache-2.0) AND GPL-2.0-only",
        }
    }

    /// Returns the command of a container of the image, and its user.
    fn runtime(self) -> Value {
        match self {
            Self::Client => json!({
                "Entrypoint": ["/usr/bin/iosonde"],
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/usr/bin", "HOME=/home/nonroot"],
            }),
            Self::Fio => json!({
                "Cmd": ["/bin/sh"],
                "User": "0:0",
                "Env": ["PATH=/usr/bin:/bin", "HOME=/root"],
            }),
        }
    }
}

/// Writes both images with the static clients of all architectures. Returns their paths.
///
/// # Errors
/// If an image is too large, or busybox cannot be downloaded. Without a static client no image is
/// written.
pub(crate) fn write(release: &Release, staged: &[Staged]) -> Result<Vec<PathBuf>> {
    let mut client_images = Vec::new();
    let mut fio_images = Vec::new();
    for client in staged
        .iter()
        .filter(|client| client.flavour == Flavour::Static)
    {
        let architecture = client.architecture;
        let client_layer = ImageLayer::pack(&client_entries(client)?, release.epoch)?;
        let busybox = Busybox::fetch(release, architecture)?;
        let busybox_layer = ImageLayer::pack(&busybox_entries(&busybox)?, release.epoch)?;
        client_images.push(PlatformImage {
            architecture,
            layers: vec![client_layer.clone()],
        });
        fio_images.push(PlatformImage {
            architecture,
            layers: vec![client_layer, busybox_layer],
        });
    }
    if client_images.is_empty() {
        println!("not written: images (no static client was built)");
        return Ok(Vec::new());
    }
    let mut written = Vec::new();
    for (image, platforms) in [
        (ReleaseImage::Client, client_images),
        (ReleaseImage::Fio, fio_images),
    ] {
        let path = image.path(release);
        let layout = layout(image, &release.version, release.epoch, platforms)?;
        fs::write(&path, layout).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

/// The client with its licences, a home of its user, and a directory for temporary files.
fn client_entries(client: &Staged) -> Result<Vec<LayerEntry>> {
    let accounts =
        format!("root:x:0:0:root:/root:/bin/sh\nnonroot:x:{USER}:{USER}::/home/nonroot:\n");
    let groups = format!("root:x:0:\nnonroot:x:{USER}:\n");
    let mut entries = vec![
        LayerEntry::directory("etc"),
        LayerEntry::file("etc/group", 0o644, groups),
        LayerEntry::file("etc/passwd", 0o644, accounts),
        LayerEntry::directory("home"),
        LayerEntry {
            owner: USER,
            mode: 0o700,
            ..LayerEntry::directory("home/nonroot")
        },
        LayerEntry {
            mode: 0o700,
            ..LayerEntry::directory("root")
        },
        LayerEntry {
            mode: 0o1777,
            ..LayerEntry::directory("tmp")
        },
        LayerEntry::directory("usr"),
        LayerEntry::directory("usr/bin"),
        LayerEntry::file("usr/bin/iosonde", 0o755, read_file(&client.program())?),
        LayerEntry::directory("usr/share"),
        LayerEntry::directory("usr/share/doc"),
        LayerEntry::directory("usr/share/doc/iosonde"),
    ];
    let documents = client.directory.join("share/doc/iosonde");
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY"] {
        let path = format!("usr/share/doc/iosonde/{name}");
        entries.push(LayerEntry::file(
            &path,
            0o644,
            read_file(&documents.join(name))?,
        ));
    }
    Ok(entries)
}

fn busybox_entries(busybox: &Busybox) -> Result<Vec<LayerEntry>> {
    let mut entries = vec![
        LayerEntry::directory("bin"),
        LayerEntry::file("bin/busybox", 0o755, read_file(&busybox.program)?),
    ];
    for applet in APPLETS {
        entries.push(LayerEntry::link(&format!("bin/{applet}"), "busybox"));
    }
    entries.push(LayerEntry::link("usr/bin/fio", "iosonde"));
    entries.push(LayerEntry::directory("usr/share/doc/busybox-static"));
    entries.push(LayerEntry::file(
        "usr/share/doc/busybox-static/copyright",
        0o644,
        busybox.copyright.as_bytes(),
    ));
    Ok(entries)
}

/// Returns the archive of a layout. Its index has one image for each architecture.
fn layout(
    image: ReleaseImage,
    version: &str,
    epoch: u64,
    platforms: Vec<PlatformImage>,
) -> Result<Vec<u8>> {
    let created = jiff::Timestamp::from_second(i64::try_from(epoch)?)?.to_string();
    let mut store = BlobStore::default();
    let (mut manifests, mut saved) = (Vec::new(), Vec::new());
    for platform in platforms {
        let architecture = platform.architecture;
        let packed: usize = platform.layers.iter().map(|layer| layer.gzip.len()).sum();
        ensure!(
            packed <= IMAGE_BYTES_MAX,
            "the image {} for {} has {packed} bytes, more than {IMAGE_BYTES_MAX}",
            image.name(),
            architecture.oci(),
        );
        let config = configuration(image, version, &created, &platform);
        let config = store.add(CONFIG, config.to_string().into_bytes());
        let add_layer = |layer: ImageLayer| store.add(LAYER, layer.gzip);
        let layers: Vec<Value> = platform.layers.into_iter().map(add_layer).collect();
        saved.push(saved_image(image, version, architecture, &config, &layers)?);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
        });
        let mut manifest = store.add(MANIFEST, manifest.to_string().into_bytes());
        manifest["platform"] = json!({"os": "linux", "architecture": architecture.oci()});
        manifests.push(manifest);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut index = store.add(INDEX, index.to_string().into_bytes());
    index["annotations"] = json!({
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": reference(image, version),
    });
    let top = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]});
    let mut entries = store.into_entries();
    for (name, text) in [
        ("index.json", top.to_string()),
        ("manifest.json", Value::from(saved).to_string()),
        (
            "oci-layout",
            json!({"imageLayoutVersion": "1.0.0"}).to_string(),
        ),
    ] {
        entries.push(LayerEntry::file(name, 0o644, text));
    }
    archive(&entries, epoch)
}

fn configuration(
    image: ReleaseImage,
    version: &str,
    created: &str,
    platform: &PlatformImage,
) -> Value {
    let mut runtime = image.runtime();
    runtime["Labels"] = json!({
        "org.opencontainers.image.title": image.name(),
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": image.licences(),
    });
    let diff_ids: Vec<&str> = platform
        .layers
        .iter()
        .map(|layer| layer.diff_id.as_str())
        .collect();
    let history = json!({"created": created, "created_by": "cargo xtask dist"});
    json!({
        "architecture": platform.architecture.oci(),
        "os": "linux",
        "created": created,
        "config": runtime,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": vec![history; platform.layers.len()],
    })
}

/// Returns the full name of the image. A name without a registry is short for this one.
fn reference(image: ReleaseImage, version: &str) -> String {
    format!("docker.io/library/{}:{version}", image.name())
}

/// Returns an entry of `manifest.json`, which names one architecture: others have it in their tag.
fn saved_image(
    image: ReleaseImage,
    version: &str,
    architecture: Architecture,
    config: &Value,
    layers: &[Value],
) -> Result<Value> {
    let tag = match architecture {
        Architecture::X86_64 => version.to_owned(),
        Architecture::Aarch64 => format!("{version}-{}", architecture.oci()),
    };
    let layers: Vec<String> = layers.iter().map(blob_path).collect::<Result<_>>()?;
    Ok(json!({
        "Config": blob_path(config)?,
        "RepoTags": [reference(image, &tag)],
        "Layers": layers,
    }))
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::image_check::ImageLayout;
    use super::super::image_layer::EntryContent;
    use super::*;

    fn platforms() -> Vec<PlatformImage> {
        let entries = [LayerEntry::file("program", 0o755, *b"bytes")];
        Architecture::ALL
            .map(|architecture| PlatformImage {
                architecture,
                layers: vec![ImageLayer::pack(&entries, 1).unwrap()],
            })
            .into()
    }

    #[test]
    fn layout_has_an_image_for_each_architecture() {
        let layout = layout(ReleaseImage::Fio, "0.1.0", 1_700_000_000, platforms()).unwrap();
        let layout = ImageLayout::read(&layout).unwrap();
        for architecture in Architecture::ALL {
            let platform = layout.platform(architecture).unwrap();
            assert_eq!(platform.config["created"], "2023-11-14T22:13:20Z");
            assert_eq!(platform.config["config"]["User"], "0:0");
            assert_eq!(platform.layers.len(), 1);
        }
    }

    #[test]
    fn layout_of_the_same_layers_has_the_same_bytes() {
        let write = || layout(ReleaseImage::Client, "0.1.0", 7, platforms()).unwrap();
        assert_eq!(write(), write());
    }

    #[test]
    fn client_image_runs_as_a_user_without_rights() {
        let runtime = ReleaseImage::Client.runtime();
        assert_eq!(runtime["User"], "65532:65532");
        assert_eq!(runtime["Entrypoint"][0], "/usr/bin/iosonde");
    }

    #[test]
    fn layer_of_busybox_links_the_commands_of_its_users() {
        let program = tempfile::NamedTempFile::new().unwrap();
        let busybox = Busybox {
            version: "1".to_owned(),
            program: program.path().to_owned(),
            copyright: "GPL".to_owned(),
        };
        let entries = busybox_entries(&busybox).unwrap();
        for (path, wanted) in [
            ("bin/sh", "busybox"),
            ("bin/tail", "busybox"),
            ("bin/sha256sum", "busybox"),
            ("bin/uname", "busybox"),
            ("usr/bin/fio", "iosonde"),
        ] {
            let entry = entries.iter().find(|entry| entry.path == path).unwrap();
            assert!(
                matches!(&entry.content, EntryContent::Link(target) if target == wanted),
                "{path}"
            );
        }
    }
}
