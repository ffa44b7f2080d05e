//! Reads container images back, compares all digests, and runs their programs.

use super::architecture::{Architecture, Flavour};
use super::archive::sha256_hex;
use super::build::output;
use super::check_log::{CheckLog, UncheckedReason};
use super::check_scope::CheckScope;
use super::image::ReleaseImage;
use super::image_layer::{blob_path, digest};
use super::packages::fresh_directory;
use super::release::Release;
use super::release_runner::ReleaseRunner;
use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use nix::unistd::Uid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of `iosonde-fio` that kubestr and iosonde call, with their arguments. The root
/// directory of the check has no /dev and no /proc.
const FIO_IMAGE_COMMANDS: [&[&str]; 5] = [
    &["/usr/bin/fio", "--version"],
    &["/bin/sh", "-c", "echo text"],
    &["/bin/tail", "-n", "1", "/etc/passwd"],
    &["/bin/head", "-n", "1", "/etc/passwd"],
    &["/bin/sha256sum", "/etc/passwd"],
];

/// A layout whose digests, sizes and media types are consistent.
pub(crate) struct ImageLayout {
    platforms: BTreeMap<String, ReadPlatform>,
}

/// The image of one architecture, read from a layout.
pub(crate) struct ReadPlatform {
    pub(crate) config: Value,
    /// Uncompressed archives.
    pub(crate) layers: Vec<Vec<u8>>,
}

impl ImageLayout {
    /// Reads the archive of a layout and checks each blob against the descriptors that name it.
    ///
    /// # Errors
    /// If a blob is missing, or a digest or size differs.
    pub(crate) fn read(archive: &[u8]) -> Result<Self> {
        let files = read_archive(archive)?;
        for (path, bytes) in &files {
            if let Some(hex) = path.strip_prefix("blobs/sha256/") {
                ensure!(
                    sha256_hex(bytes) == hex,
                    "the content of {path} has another digest"
                );
            }
        }
        let marker = parse(named(&files, "oci-layout")?)?;
        ensure!(
            marker["imageLayoutVersion"] == "1.0.0",
            "the layout has another version"
        );
        let top = parse(named(&files, "index.json")?)?;
        let index = parse(described(&files, &top["manifests"][0])?)?;
        let mut platforms = BTreeMap::new();
        let manifests = index["manifests"]
            .as_array()
            .context("the index has no manifests")?;
        for descriptor in manifests {
            let architecture = &descriptor["platform"]["architecture"];
            let name = architecture
                .as_str()
                .context("a manifest has no architecture")?;
            let platform = ReadPlatform::read(&files, descriptor)?;
            ensure!(
                platform.config["architecture"] == name,
                "the configuration of {name} names another architecture"
            );
            platforms.insert(name.to_owned(), platform);
        }
        check_saved_images(&files)?;
        Ok(Self { platforms })
    }

    /// Returns the image of an architecture.
    ///
    /// # Errors
    /// If the layout has none.
    pub(crate) fn platform(&self, architecture: Architecture) -> Result<&ReadPlatform> {
        let name = architecture.oci();
        self.platforms
            .get(name)
            .with_context(|| format!("the image has nothing for {name}"))
    }
}

impl ReadPlatform {
    fn read(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Result<Self> {
        let manifest = parse(described(files, descriptor)?)?;
        let config = parse(described(files, &manifest["config"])?)?;
        let packed = manifest["layers"]
            .as_array()
            .context("a manifest has no layers")?;
        let diff_ids = config["rootfs"]["diff_ids"].as_array();
        let diff_ids = diff_ids.context("a configuration has no layers")?;
        ensure!(
            packed.len() == diff_ids.len(),
            "manifest and configuration differ in their number of layers"
        );
        let mut layers = Vec::new();
        for (descriptor, diff_id) in packed.iter().zip(diff_ids) {
            let mut layer = Vec::new();
            GzDecoder::new(described(files, descriptor)?).read_to_end(&mut layer)?;
            ensure!(
                *diff_id == digest(&layer),
                "an unpacked layer has another digest"
            );
            layers.push(layer);
        }
        Ok(Self { config, layers })
    }

    /// Unpacks all layers into an empty directory.
    fn unpack(&self, directory: &Path) -> Result<()> {
        for layer in &self.layers {
            let mut archive = tar::Archive::new(layer.as_slice());
            archive.set_preserve_permissions(true);
            archive.unpack(directory)?;
        }
        Ok(())
    }
}

/// Checks both images of the release.
///
/// # Errors
/// If an image is inconsistent, lacks an architecture, or its program does not run.
pub(crate) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    let architectures = scope.architectures(Flavour::Static);
    if architectures.is_empty() {
        log.add_unchecked("images", UncheckedReason::NoStaticClient);
        return Ok(());
    }
    for image in ReleaseImage::ALL {
        let path = image.path(release);
        let archive = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let layout = ImageLayout::read(&archive)
            .with_context(|| format!("{} is no valid layout", path.display()))?;
        for architecture in architectures.iter().copied() {
            let name = format!("{}-{}", image.name(), architecture.oci());
            let root = fresh_directory(&release.work().join("image-check").join(&name))?;
            let platform = layout.platform(architecture)?;
            platform.unpack(&root)?;
            match ImageProgram::new(architecture, platform, root) {
                Ok(program) => run_programs(&program, image, &release.version)
                    .with_context(|| format!("{} for {}", path.display(), architecture.oci()))?,
                Err(reason) => log.add_unchecked(format!("run of {name}"), reason),
            }
        }
        log.add_checked(path.display());
    }
    Ok(())
}

/// How programs of an unpacked image run.
enum ImageProgram {
    /// In the root directory of the image, as its user.
    Native { root: PathBuf, user: String },
    /// In the root directory of this machine: qemu is outside of the image.
    Foreign {
        root: PathBuf,
        runner: ReleaseRunner,
    },
}

impl ImageProgram {
    fn new(
        architecture: Architecture,
        platform: &ReadPlatform,
        root: PathBuf,
    ) -> std::result::Result<Self, UncheckedReason> {
        if Architecture::native() != Some(architecture) {
            let runner = ReleaseRunner::new(architecture, Flavour::Static)?;
            return Ok(Self::Foreign { root, runner });
        }
        if !Uid::effective().is_root() {
            return Err(UncheckedReason::NeedsRoot);
        }
        let user = platform.config["config"]["User"].as_str();
        let user = user.unwrap_or("0:0").to_owned();
        Ok(Self::Native { root, user })
    }

    /// Runs a program and returns its output.
    fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = match self {
            Self::Native { root, user } => {
                let mut chroot = Command::new("chroot");
                chroot
                    .arg(format!("--userspec={user}"))
                    .arg(root)
                    .arg(words[0]);
                // Of this machine and of the image: chroot is searched in the same path.
                chroot.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
                chroot
            }
            Self::Foreign { root, runner } => {
                runner.command(&root.join(words[0].trim_start_matches('/')))
            }
        };
        let printed = output(command.args(&words[1..]))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

/// Runs the programs that the users of an image call.
fn run_programs(program: &ImageProgram, image: ReleaseImage, version: &str) -> Result<()> {
    let printed = program.run(&["/usr/bin/iosonde", "--version"])?;
    // A static client adds that it was built without Ceph.
    ensure!(
        printed.starts_with(&format!("iosonde {version}")),
        "the program of the image reports another version: {printed}"
    );
    if image == ReleaseImage::Fio {
        for words in FIO_IMAGE_COMMANDS {
            let printed = program.run(words)?;
            ensure!(!printed.is_empty(), "{} prints nothing", words.join(" "));
        }
    }
    Ok(())
}

/// Checks that `manifest.json` names blobs of the layout.
fn check_saved_images(files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let saved = parse(named(files, "manifest.json")?)?;
    for image in saved.as_array().context("manifest.json is no list")? {
        let layers = image["Layers"]
            .as_array()
            .context("a saved image has no layers")?;
        for path in layers.iter().chain([&image["Config"]]) {
            named(files, path.as_str().context("a saved image names no blob")?)?;
        }
    }
    Ok(())
}

fn read_archive(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(path, bytes);
        }
    }
    Ok(files)
}

fn named<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &str) -> Result<&'a [u8]> {
    let bytes = files
        .get(path)
        .with_context(|| format!("{path} is missing"))?;
    Ok(bytes)
}

/// Returns the blob that a descriptor names, which must have its size.
fn described<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Result<&'a [u8]> {
    let path = blob_path(descriptor)?;
    let bytes = named(files, &path)?;
    ensure!(descriptor["size"] == bytes.len(), "{path} has another size");
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("a document of the image is no JSON")
}

#[cfg(test)]
mod tests {
    use super::super::image_layer::{LayerEntry, archive};
    use super::*;

    #[test]
    fn blob_with_another_digest_is_refused() {
        let path = format!("blobs/sha256/{}", sha256_hex(b"right"));
        let archive = archive(&[LayerEntry::file(&path, 0o644, *b"wrong")], 0).unwrap();
        let error = ImageLayout::read(&archive).err().unwrap().to_string();
        assert!(error.ends_with("has another digest"), "{error}");
    }

    #[test]
    fn layout_without_its_index_is_refused() {
        let marker = LayerEntry::file("oci-layout", 0o644, *br#"{"imageLayoutVersion":"1.0.0"}"#);
        let archive = archive(&[marker], 0).unwrap();
        let error = ImageLayout::read(&archive).err().unwrap().to_string();
        assert_eq!(error, "index.json is missing");
    }
}
