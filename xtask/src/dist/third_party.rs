//! The licences of all crates that a client and its agents contain.

use super::architecture::{Architecture, Flavour};
use super::build::{output, rust_target};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages whose dependencies a client contains.
const SHIPPED: [&str; 2] = ["iosonde", "iosonde-agent"];
/// Beginnings of the names of licence files, in capitals.
const LICENCE_FILES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];
/// Libraries that are no crates.
const LIBRARIES: &str = "\
The executables also contain the standard library of Rust (MIT OR Apache-2.0,
Copyright (c) The Rust Project Contributors) and SQLite (public domain). Agents and static clients
contain parts of musl (MIT, Copyright (c) 2005-2020 Rich Felker, et al.), their C library.
";
/// Licence of the font that `iosonde plot` contains.
const FONT_LICENCE: &str = include_str!("../../../data/fonts/OFL.txt");

/// Output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    resolve: ResolvedPackages,
}

#[derive(Debug, Deserialize)]
struct CargoPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for packages of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct ResolvedPackages {
    nodes: Vec<ResolvedPackage>,
}

#[derive(Debug, Deserialize)]
struct ResolvedPackage {
    id: String,
    deps: Vec<ResolvedDependency>,
}

#[derive(Debug, Deserialize)]
struct ResolvedDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// None for a dependency at run time, else `dev` or `build`.
    kind: Option<String>,
}

/// Returns the document THIRD-PARTY of a client.
pub(crate) fn describe_licences(
    root: &Path,
    architecture: Architecture,
    flavour: Flavour,
) -> Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
        ])
        .arg(rust_target(architecture, flavour));
    let metadata: CargoMetadata = serde_json::from_slice(&output(&mut cargo)?)
        .context("cargo metadata prints other JSON than expected")?;
    let mut licences: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut crates = Vec::new();
    for package in shipped_packages(&metadata) {
        let licence = package.license.as_deref().unwrap_or("see the licence file");
        let name = format!("{} {}", package.name, package.version);
        crates.push(format!("{name}: {licence}"));
        for text in licence_files(&package.manifest_path)? {
            licences.entry(text).or_default().push(name.clone());
        }
    }
    let font = FONT_LICENCE.trim().to_owned();
    licences.entry(font).or_default().push("Arimo".to_owned());
    Ok(document(&crates, &licences))
}

/// Returns the packages of others that the client or the agent contains, sorted by name.
fn shipped_packages(metadata: &CargoMetadata) -> Vec<&CargoPackage> {
    let nodes: BTreeMap<&str, &ResolvedPackage> = (metadata.resolve.nodes.iter())
        .map(|node| (node.id.as_str(), node))
        .collect();
    let roots = (metadata.packages.iter())
        .filter(|package| package.source.is_none() && SHIPPED.contains(&package.name.as_str()));
    let mut waiting: Vec<&str> = roots.map(|package| package.id.as_str()).collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !reached.insert(id) {
            continue;
        }
        let at_run_time = (nodes.get(id).into_iter())
            .flat_map(|node| &node.deps)
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        waiting.extend(at_run_time.map(|dependency| dependency.pkg.as_str()));
    }
    let mut packages: Vec<&CargoPackage> = (metadata.packages.iter())
        .filter(|package| package.source.is_some() && reached.contains(package.id.as_str()))
        .collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    packages
}

/// Returns the texts of the licence files beside a manifest, sorted by the names of the files.
fn licence_files(manifest: &Path) -> Result<Vec<String>> {
    let directory = manifest.parent().context("a manifest has a directory")?;
    let listed = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    let mut paths = listed
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.is_file() && is_licence_file(path));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let bytes =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
        .collect()
}

fn is_licence_file(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_uppercase();
    LICENCE_FILES
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

/// Joins the list of crates and each text once, with the crates it applies to.
fn document(crates: &[String], licences: &BTreeMap<String, Vec<String>>) -> String {
    let mut text = format!(
        "Crates in these executables:\n\n{}\n\n{LIBRARIES}",
        crates.join("\n")
    );
    // In the order of the crates, which a change in one text does not change.
    let mut sorted: Vec<(&Vec<String>, &String)> =
        licences.iter().map(|(text, users)| (users, text)).collect();
    sorted.sort();
    for (users, licence) in sorted {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{}\n{}\n\n{licence}\n",
            "-".repeat(72),
            users.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "packages": [
            {"id": "p0", "name": "iosonde", "version": "1.0.0", "license": "MIT",
             "source": null, "manifest_path": "/r/Cargo.toml"},
            {"id": "p1", "name": "used", "version": "2.0.0", "license": "MIT",
             "source": "registry", "manifest_path": "/c/used/Cargo.toml"},
            {"id": "p2", "name": "tested-with", "version": "3.0.0", "license": "MIT",
             "source": "registry", "manifest_path": "/c/tested/Cargo.toml"}],
        "resolve": {"nodes": [
            {"id": "p0", "deps": [
                {"pkg": "p1", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                {"pkg": "p2", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "p1", "deps": [{"pkg": "p1", "dep_kinds": [{"kind": null}]}]},
            {"id": "p2", "deps": []}]}}"#;

    #[test]
    fn shipped_packages_leave_out_test_dependencies() {
        let metadata: CargoMetadata = serde_json::from_str(METADATA).unwrap();
        let names: Vec<&str> = (shipped_packages(&metadata).iter())
            .map(|package| package.name.as_str())
            .collect();
        assert_eq!(names, ["used"]);
    }

    #[test]
    fn licence_files_are_found_by_their_names() {
        for name in [
            "LICENSE-MIT",
            "license.txt",
            "COPYING",
            "UNLICENSE",
            "Licence.md",
        ] {
            assert!(is_licence_file(Path::new(name)), "{name}");
        }
        assert!(!is_licence_file(Path::new("README.md")));
    }

    #[test]
    fn document_holds_each_text_once() {
        let users = ["a 1.0.0", "b 1.0.0"].map(str::to_owned);
        let licences = BTreeMap::from([("Be kind.".to_owned(), users.to_vec())]);
        let text = document(&users.map(|user| format!("{user}: MIT")), &licences);
        assert_eq!(text.matches("Be kind.").count(), 1);
        assert!(text.contains("a 1.0.0, b 1.0.0\n\nBe kind."), "{text}");
    }
}
