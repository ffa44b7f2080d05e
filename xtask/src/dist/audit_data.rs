//! Embeds the list of crates into a client, where `cargo audit bin` and scanners of images read it.
//!
//! The format is that of cargo-auditable: JSON, compressed with zlib, in the ELF section `.dep-v0`.
//! objcopy adds the section after the build, so that it does not matter which linker was used.

use super::architecture::Architecture;
use super::build::output;
use super::crate_tree::{ShippedCrate, shipped_crates};
use super::release::{Release, Staged};
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

const SECTION: &str = ".dep-v0";

/// Adds the crates of a client to its executable.
///
/// # Errors
/// If cargo or objcopy fails.
pub(crate) fn embed(release: &Release, client: &Staged) -> Result<()> {
    let crates = shipped_crates(&release.root, client.architecture, client.flavour)?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(document(&crates).to_string().as_bytes())?;
    let data = tempfile::NamedTempFile::new()?;
    fs::write(data.path(), encoder.finish()?)?;
    output(
        objcopy(client.architecture)
            .arg(format!("--add-section={SECTION}={}", data.path().display()))
            .arg(format!("--set-section-flags={SECTION}=noload,readonly"))
            .arg(client.program()),
    )
    .context("help: apt-get install binutils")?;
    let embedded = read_audit_data(client.architecture, &client.program())?;
    ensure!(
        embedded["packages"].as_array().map(Vec::len) == Some(crates.len()),
        "{} does not have the list of crates that was added",
        client.program().display()
    );
    Ok(())
}

/// Returns the list that an executable contains.
///
/// # Errors
/// If it contains none.
pub(crate) fn read_audit_data(architecture: Architecture, program: &Path) -> Result<Value> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    output(
        objcopy(architecture)
            .arg(format!("--dump-section={SECTION}={}", data.display()))
            .arg(program)
            .arg(directory.path().join("copy")),
    )?;
    let compressed = fs::read(&data)
        .with_context(|| format!("{} has no list of its crates", program.display()))?;
    let mut text = String::new();
    ZlibDecoder::new(compressed.as_slice()).read_to_string(&mut text)?;
    serde_json::from_str(&text).context("the list of crates is no JSON")
}

/// Returns the objcopy that knows executables of the architecture.
fn objcopy(architecture: Architecture) -> Command {
    if Architecture::native() == Some(architecture) {
        return Command::new("objcopy");
    }
    Command::new(format!("{}-linux-gnu-objcopy", architecture.rust()))
}

/// Returns the document of cargo-auditable. The first crate is the root.
fn document(crates: &[ShippedCrate]) -> Value {
    let packages = crates.iter().enumerate().map(|(position, one)| {
        let mut package = json!({
            "name": one.name,
            "version": one.version,
            "source": if one.is_local { "local" } else { "crates.io" },
        });
        if one.is_build_only {
            package["kind"] = json!("build");
        }
        if !one.dependencies.is_empty() {
            package["dependencies"] = json!(one.dependencies);
        }
        if position == 0 {
            package["root"] = json!(true);
        }
        package
    });
    json!({"packages": packages.collect::<Vec<Value>>()})
}

#[cfg(test)]
mod tests {
    use super::super::crate_tree::tests::crates;
    use super::*;

    #[test]
    fn document_has_one_root_and_marks_build_dependencies() {
        let mut crates = crates();
        crates[2].is_build_only = true;
        let document = document(&crates);
        assert_eq!(
            document["packages"][0],
            json!({"name": "iosonde", "version": "0.1.0", "source": "local",
                "dependencies": [1, 3, 4], "root": true})
        );
        assert_eq!(
            document["packages"][2],
            json!({"name": "serde_derive", "version": "1.0.229", "source": "crates.io",
                "kind": "build"})
        );
    }
}
