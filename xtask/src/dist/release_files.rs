//! The files of a complete release, and of the part that a check selects.

use super::architecture::Flavour;
use super::check_scope::CheckScope;
use super::image::ReleaseImage;
use super::packages::{deb_name, rpm_name};
use super::release::Release;
use super::{Part, manifests, sbom, site};
use anyhow::{Result, ensure};

/// Fails if a file of the scope does not exist, and names all of them.
///
/// # Errors
/// If a file is missing.
pub(crate) fn require_files(release: &Release, scope: &CheckScope) -> Result<()> {
    let names = file_names(release, scope);
    let missing: Vec<&str> = (names.iter())
        .filter(|name| !release.directory.join(name).is_file())
        .map(String::as_str)
        .collect();
    ensure!(
        missing.is_empty(),
        "{} of {} files are missing in {}: {}\n\
         help: build them with `cargo xtask dist`, or check fewer with --only and --target",
        missing.len(),
        names.len(),
        release.directory.display(),
        missing.join(", ")
    );
    Ok(())
}

/// Returns the names of all files of the scope.
fn file_names(release: &Release, scope: &CheckScope) -> Vec<String> {
    let mut described = Vec::new();
    if scope.includes(Part::Archives) {
        described.extend(scope.targets.iter().map(|target| {
            let name = release.archive_name(target.architecture(), target.flavour());
            format!("{name}.tar.xz")
        }));
    }
    if scope.includes(Part::Packages) {
        for architecture in scope.architectures(Flavour::Gnu) {
            described.push(deb_name(&release.version, architecture));
            described.push(rpm_name(&release.version, architecture));
        }
    }
    if scope.includes(Part::Image) && !scope.architectures(Flavour::Static).is_empty() {
        described.extend(ReleaseImage::ALL.map(|image| image.file_name(release)));
    }
    let mut names = described.clone();
    if scope.only.is_none() {
        names.extend(described.iter().map(|name| sbom::document_name(name)));
    }
    if scope.includes(Part::Manifests) {
        names.extend(manifests::file_names(release, scope));
    }
    if scope.includes(Part::Site) {
        names.push(site::file_name(release));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::architecture::ClientTarget;
    use super::*;

    fn release(directory: &std::path::Path) -> Release {
        Release {
            root: directory.to_owned(),
            directory: directory.to_owned(),
            version: "1.0.0".to_owned(),
            epoch: 0,
        }
    }

    #[test]
    fn complete_release_has_all_parts_of_all_clients() {
        let release = release(std::path::Path::new("/r"));
        let names = file_names(&release, &CheckScope::new(None, &[]));
        for name in [
            "iosonde-1.0.0-aarch64-linux-static.tar.xz",
            "iosonde-1.0.0-x86_64-linux-gnu.tar.xz.cdx.json",
            "iosonde_1.0.0_arm64.deb",
            "iosonde-1.0.0-1.x86_64.rpm",
            "iosonde-fio-1.0.0-image.tar",
            "kubectl-iosonde-1.0.0-aarch64-linux.tar.gz",
            "iosonde.yaml",
            "iosonde.rb",
            "install.sh",
            "iosonde-chart-1.0.0.tgz",
            "iosonde-site-1.0.0.tar.xz",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        // 4 archives, 4 packages and 2 images with a document each, 6 manifests, and the site.
        assert_eq!(names.len(), 27, "{names:?}");
    }

    #[test]
    fn incomplete_release_names_the_missing_files() {
        let directory = tempfile::tempdir().unwrap();
        let release = release(directory.path());
        let built = directory
            .path()
            .join("iosonde-1.0.0-x86_64-linux-gnu.tar.xz");
        std::fs::write(built, "").unwrap();
        let all = CheckScope::new(Some(Part::Archives), &[]);
        let error = require_files(&release, &all).unwrap_err().to_string();
        assert!(error.starts_with("3 of 4 files are missing"), "{error}");
        assert!(error.contains("x86_64-linux-static.tar.xz"), "{error}");
        assert!(!error.contains("x86_64-linux-gnu.tar.xz"), "{error}");
        let one = CheckScope::new(Some(Part::Archives), &[ClientTarget::X86_64Gnu]);
        assert!(require_files(&release, &one).is_ok());
        let whole = CheckScope::new(None, &[ClientTarget::X86_64Gnu]);
        let error = require_files(&release, &whole).unwrap_err().to_string();
        assert!(error.contains("iosonde_1.0.0_amd64.deb"), "{error}");
    }
}
