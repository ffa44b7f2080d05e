//! The crates that a client and its agents are built from, as cargo resolves them.

use super::architecture::{Architecture, Flavour};
use super::build::{output, rust_target};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Begins the fields of a line, and cannot occur in one.
const FIELD: char = '|';
/// Marks a package whose dependencies an earlier line has.
const REPEATED: &str = " (*)";

/// A crate that is part of a client, or that built a part of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ShippedCrate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression, empty if the crate has none.
    pub(crate) licence: String,
    /// Whether it comes from this repository.
    pub(crate) is_local: bool,
    /// Whether it only ran during the build: a macro, a build script or its dependency.
    pub(crate) is_build_only: bool,
    /// Positions of its dependencies in the list.
    pub(crate) dependencies: BTreeSet<usize>,
}

/// Returns the crates of a client, the client's own first.
///
/// # Errors
/// If cargo fails or prints an unexpected line.
pub(crate) fn shipped_crates(
    root: &Path,
    architecture: Architecture,
    flavour: Flavour,
) -> Result<Vec<ShippedCrate>> {
    let list = |edges: &str| -> Result<Vec<ShippedCrate>> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(root)
            .args([
                "tree",
                "--locked",
                "--package",
                "iosonde",
                "--package",
                "iosonde-agent",
            ])
            .args([
                "--prefix", "depth", "--format", "|{p}|{l}", "--edges", edges, "--target",
            ])
            .arg(rust_target(architecture, flavour));
        if flavour == Flavour::Static {
            cargo.args(["--no-default-features", "--features", "iosonde/local"]);
        }
        parse_tree(&String::from_utf8(output(&mut cargo)?)?)
    };
    let mut crates = list("normal,build")?;
    let contained = list("normal,no-proc-macro")?;
    let contained: BTreeSet<(&str, &str)> = contained.iter().map(ShippedCrate::identity).collect();
    for one in &mut crates {
        one.is_build_only = !contained.contains(&one.identity());
    }
    Ok(crates)
}

impl ShippedCrate {
    fn identity(&self) -> (&str, &str) {
        (&self.name, &self.version)
    }
}

/// Reads lines such as `2|serde v1.0.229|MIT OR Apache-2.0`, where 2 is the depth. A second root,
/// the agent, counts as a dependency of the first, which contains it.
fn parse_tree(text: &str) -> Result<Vec<ShippedCrate>> {
    let mut crates: Vec<ShippedCrate> = Vec::new();
    let mut positions: BTreeMap<(String, String), usize> = BTreeMap::new();
    // Positions of the crates above the current line.
    let mut above: Vec<usize> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line = line.strip_suffix(REPEATED).unwrap_or(line);
        let fields: Vec<&str> = line.split(FIELD).collect();
        let [depth, package, licence] = fields[..] else {
            bail!("cargo tree printed an unexpected line: {line}");
        };
        let depth: usize = depth
            .parse()
            .with_context(|| format!("no depth in: {line}"))?;
        let read =
            parse_package(package, licence).with_context(|| format!("no package in: {line}"))?;
        let key = (read.name.clone(), read.version.clone());
        let position = *positions.entry(key).or_insert_with(|| {
            crates.push(read);
            crates.len() - 1
        });
        above.truncate(depth);
        let parent = above.last().copied().unwrap_or(0);
        if parent != position {
            crates[parent].dependencies.insert(position);
        }
        above.push(position);
    }
    Ok(crates)
}

/// Reads `serde v1.0.229` or `iosonde v0.1.0 (/path)`.
fn parse_package(package: &str, licence: &str) -> Option<ShippedCrate> {
    let mut words = package.splitn(3, ' ');
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    let note = words.next().unwrap_or_default();
    Some(ShippedCrate {
        name,
        version,
        licence: licence.to_owned(),
        is_local: note.contains("(/"),
        is_build_only: false,
        dependencies: BTreeSet::new(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::dist) const TREE: &str = "\
0|iosonde v0.1.0 (/r/crates/iosonde)|MIT OR Apache-2.0
1|serde v1.0.229|MIT OR Apache-2.0
2|serde_derive v1.0.229 (proc-macro)|MIT/Apache-2.0
1|serde_json v1.0.154|MIT OR Apache-2.0
2|serde v1.0.229|MIT OR Apache-2.0 (*)

0|iosonde-agent v0.1.0 (/r/crates/agent)|MIT OR Apache-2.0
1|serde v1.0.229|MIT OR Apache-2.0 (*)
";

    /// The crates of [`TREE`].
    pub(in crate::dist) fn crates() -> Vec<ShippedCrate> {
        parse_tree(TREE).unwrap()
    }

    #[test]
    fn tree_lists_each_crate_once_with_its_dependencies() {
        let crates = crates();
        let names: Vec<&str> = crates.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "iosonde",
                "serde",
                "serde_derive",
                "serde_json",
                "iosonde-agent"
            ]
        );
        let dependencies =
            |index: usize| -> Vec<usize> { crates[index].dependencies.iter().copied().collect() };
        assert_eq!(dependencies(0), [1, 3, 4]);
        assert_eq!(dependencies(1), [2]);
        assert_eq!(dependencies(3), [1]);
        assert_eq!(dependencies(4), [1]);
    }

    #[test]
    fn crates_of_the_repository_are_local() {
        let local: Vec<bool> = crates().iter().map(|one| one.is_local).collect();
        assert_eq!(local, [true, false, false, false, true]);
    }

    #[test]
    fn unexpected_line_of_cargo_is_refused() {
        assert!(parse_tree("0|iosonde\n").is_err());
        assert!(parse_tree("x|iosonde v0.1.0|MIT\n").is_err());
        assert!(parse_tree("0|iosonde 0.1.0|MIT\n").is_err());
    }
}
