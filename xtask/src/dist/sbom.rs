//! Bills of materials in CycloneDX 1.5: the crates in each file of the release, with their licences
//! and the checksums of their sources.

use super::architecture::Flavour;
use super::archive::sha256_hex;
use super::busybox::Busybox;
use super::check_log::CheckLog;
use super::check_scope::CheckScope;
use super::crate_tree::{ShippedCrate, shipped_crates};
use super::image::ReleaseImage;
use super::packages::{deb_name, rpm_name};
use super::release::{Release, Staged};
use crate::spdx::normalised;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Appended to the name of the described file.
const SUFFIX: &str = ".cdx.json";

/// Checksums of crates in Cargo.lock, by name and version.
type CrateChecksums = BTreeMap<(String, String), String>;

/// A finished file and the clients that it contains.
struct DescribedFile<'a> {
    path: PathBuf,
    clients: Vec<&'a Staged>,
    /// Whether it contains Debian's busybox, too.
    has_busybox: bool,
}

/// The components of one file, each once, with the components that it depends on.
#[derive(Default)]
struct ComponentList {
    components: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

/// Writes a document beside each archive, package and image of the staged clients.
///
/// # Errors
/// If cargo fails or a file cannot be read or written.
pub(crate) fn write(release: &Release, staged: &[Staged]) -> Result<Vec<PathBuf>> {
    let lock = fs::read_to_string(release.root.join("Cargo.lock"))?;
    let checksums = crate_checksums(&lock)?;
    let mut written = Vec::new();
    for file in described_files(release, staged) {
        let mut list = ComponentList::default();
        for client in &file.clients {
            let crates = shipped_crates(&release.root, client.architecture, client.flavour)?;
            list.add_crates(&crates, &checksums);
            if file.has_busybox {
                list.add_busybox(&Busybox::fetch(release, client.architecture)?, client);
            }
        }
        let bytes =
            fs::read(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
        let name = file_name(&file.path);
        let document = list.document(&name, &release.version, &sha256_hex(&bytes));
        let path = release.directory.join(document_name(&name));
        let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

/// Compares each document with its file.
///
/// # Errors
/// If a document is missing or describes other bytes.
pub(crate) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    let staged: Vec<Staged> = (scope.targets.iter())
        .map(|target| Staged {
            architecture: target.architecture(),
            flavour: target.flavour(),
            directory: release
                .work()
                .join(release.archive_name(target.architecture(), target.flavour())),
        })
        .collect();
    for file in described_files(release, &staged) {
        let name = document_name(&file_name(&file.path));
        let path = release.directory.join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let document: Value = serde_json::from_slice(&text)?;
        let bytes = fs::read(&file.path)?;
        ensure!(
            document["metadata"]["component"]["hashes"][0]["content"] == sha256_hex(&bytes),
            "{} describes other bytes than those of {}",
            path.display(),
            file.path.display()
        );
        log.add_checked(path.display());
    }
    Ok(())
}

/// Returns the files of the release that exist and contain only clients of `staged`.
fn described_files<'a>(release: &Release, staged: &'a [Staged]) -> Vec<DescribedFile<'a>> {
    let mut files = Vec::new();
    for client in staged {
        let archive = release.archive_name(client.architecture, client.flavour);
        let mut names = vec![format!("{archive}.tar.xz")];
        if client.flavour == Flavour::Gnu {
            names.push(deb_name(&release.version, client.architecture));
            names.push(rpm_name(&release.version, client.architecture));
        }
        files.extend(names.into_iter().map(|name| DescribedFile {
            path: release.directory.join(name),
            clients: vec![client],
            has_busybox: false,
        }));
    }
    let is_static = |client: &&Staged| client.flavour == Flavour::Static;
    files.extend(ReleaseImage::ALL.map(|image| DescribedFile {
        path: image.path(release),
        clients: staged.iter().filter(is_static).collect(),
        has_busybox: image == ReleaseImage::Fio,
    }));
    files.retain(|file| file.path.is_file() && !file.clients.is_empty());
    files
}

/// Returns the name of the document that describes a file.
pub(crate) fn document_name(file: &str) -> String {
    format!("{file}{SUFFIX}")
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads the checksums of all crates from a registry.
fn crate_checksums(lock: &str) -> Result<CrateChecksums> {
    let lock: toml::Table = lock.parse().context("Cargo.lock is no TOML")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let mut checksums = CrateChecksums::new();
    for package in packages.context("Cargo.lock has no packages")? {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str);
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            checksums.insert((name.to_owned(), version.to_owned()), checksum.to_owned());
        }
    }
    Ok(checksums)
}

/// Returns the package URL of a crate.
fn crate_url(one: &ShippedCrate) -> String {
    // A version's build metadata begins with a plus, which a package URL encodes.
    format!("pkg:cargo/{}@{}", one.name, one.version.replace('+', "%2B"))
}

impl ComponentList {
    fn add_crates(&mut self, crates: &[ShippedCrate], checksums: &CrateChecksums) {
        for one in crates {
            let url = crate_url(one);
            let mut component = json!({
                "type": "library",
                "bom-ref": url,
                "name": one.name,
                "version": one.version,
                "purl": url,
                // A macro or build script is not part of the executable.
                "scope": if one.is_build_only { "excluded" } else { "required" },
            });
            if !one.licence.is_empty() {
                component["licenses"] = json!([{"expression": normalised(&one.licence)}]);
            }
            if let Some(sum) = checksums.get(&(one.name.clone(), one.version.clone())) {
                component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
            }
            let dependencies = one
                .dependencies
                .iter()
                .map(|index| crate_url(&crates[*index]));
            self.dependencies
                .entry(url.clone())
                .or_default()
                .extend(dependencies);
            self.components.insert(url, component);
        }
    }

    fn add_busybox(&mut self, busybox: &Busybox, client: &Staged) {
        let url = format!(
            "pkg:deb/debian/busybox-static@{}?arch={}",
            busybox.version.replace(':', "%3A").replace('+', "%2B"),
            client.architecture.debian()
        );
        let component = json!({
            "type": "application",
            "bom-ref": url,
            "name": "busybox-static",
            "version": busybox.version,
            "purl": url,
            "scope": "required",
            "licenses": [{"expression": "GPL-2.0-only"}],
        });
        self.components.insert(url, component);
    }

    fn document(self, name: &str, version: &str, sha256: &str) -> Value {
        let dependencies = self.dependencies.into_iter();
        let dependencies: Vec<Value> = dependencies
            .map(|(reference, on)| json!({"ref": reference, "dependsOn": on}))
            .collect();
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "application",
                    "bom-ref": name,
                    "name": name,
                    "version": version,
                    "hashes": [{"alg": "SHA-256", "content": sha256}],
                    "licenses": [{"expression": "MIT OR Apache-2.0"}],
                },
            },
            "components": self.components.into_values().collect::<Vec<Value>>(),
            "dependencies": dependencies,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::architecture::Architecture;
    use super::super::crate_tree::tests::crates;
    use super::*;

    const LOCK: &str = "[[package]]\nname = \"serde\"\nversion = \"1.0.229\"\n\
                        source = \"registry\"\nchecksum = \"abc\"\n\
                        [[package]]\nname = \"iosonde\"\nversion = \"0.1.0\"\n";

    #[test]
    fn image_of_an_earlier_build_is_not_described() {
        let directory = tempfile::tempdir().unwrap();
        let release = Release {
            root: directory.path().to_owned(),
            directory: directory.path().to_owned(),
            version: "1.0.0".to_owned(),
            epoch: 0,
        };
        fs::write(ReleaseImage::Client.path(&release), "").unwrap();
        let client = |flavour| Staged {
            architecture: Architecture::X86_64,
            flavour,
            directory: directory.path().to_owned(),
        };
        assert!(described_files(&release, &[client(Flavour::Gnu)]).is_empty());
        let with_static = [client(Flavour::Static)];
        assert_eq!(described_files(&release, &with_static).len(), 1);
    }

    #[test]
    fn document_names_each_crate_with_licence_and_checksum() {
        let mut list = ComponentList::default();
        list.add_crates(&crates(), &crate_checksums(LOCK).unwrap());
        // The other architecture has the same crates.
        list.add_crates(&crates(), &crate_checksums(LOCK).unwrap());
        let document = list.document("iosonde.deb", "0.1.0", "00");
        let components = document["components"].as_array().unwrap();
        assert_eq!(components.len(), crates().len());
        let find = |name: &str| components.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(find("serde")["hashes"][0]["content"], "abc");
        assert_eq!(find("iosonde")["hashes"], Value::Null);
        assert_eq!(find("serde")["purl"], "pkg:cargo/serde@1.0.229");
        let macros = &find("serde_derive")["licenses"][0]["expression"];
        assert_eq!(macros, "MIT OR Apache-2.0");
    }

    #[test]
    fn document_has_the_dependencies_of_each_crate() {
        let mut list = ComponentList::default();
        list.add_crates(&crates(), &CrateChecksums::new());
        let document = list.document("iosonde.deb", "0.1.0", "00");
        let dependencies = document["dependencies"].as_array().unwrap();
        let found = dependencies
            .iter()
            .find(|one| one["ref"] == "pkg:cargo/serde_json@1.0.154");
        assert_eq!(
            found.unwrap()["dependsOn"],
            json!(["pkg:cargo/serde@1.0.229"])
        );
        assert_eq!(
            document["metadata"]["component"]["hashes"][0]["content"],
            "00"
        );
    }
}
