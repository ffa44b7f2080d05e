//! Installs, upgrades and removes the packages in a fresh Debian and in an empty rpm root.

use super::architecture::{Architecture, Flavour};
use super::build::output;
use super::busybox::Busybox;
use super::check_scope::CheckScope;
use super::packages::{
    PackageContent, deb_name, fresh_directory, rpm_name, write_deb, write_file, write_rpm,
};
use super::release::Release;
use anyhow::{Context, Result, ensure};
use nix::unistd::Uid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of the package that is upgraded. It has the files of the release.
const EARLIER_VERSION: &str = "0.0.9";
/// The Debian that the package is installed in.
const DEBIAN_SUITE: &str = "bookworm";
/// Names of the packages in the roots.
const EARLIER: &str = "/earlier.package";
const NEW: &str = "/new.package";

/// Life of the package in a Debian without fio, and then beside an installed fio.
const DEBIAN_SCRIPT: &str = r#"set -eu
dpkg -i /earlier.package
[ "$(dpkg-query -W -f '${Version}' iosonde)" = "$EARLIER_VERSION" ]
dpkg -i /new.package
[ "$(dpkg-query -W -f '${Version}' iosonde)" = "$VERSION" ]
dpkg --verify iosonde
[ "$(iosonde --version)" = "iosonde $PROGRAM_VERSION" ]
[ "$(readlink -f /usr/bin/fio)" = /usr/bin/iosonde ]
fio --version
dpkg -r iosonde
[ ! -e /usr/bin/iosonde ]
[ ! -L /usr/bin/fio ]
echo 'an installed fio' >/usr/bin/fio
dpkg -i /new.package
[ "$(cat /usr/bin/fio)" = 'an installed fio' ]
dpkg -r iosonde
[ "$(cat /usr/bin/fio)" = 'an installed fio' ]
rm /usr/bin/fio
"#;

/// Records the calls of update-alternatives in an rpm root.
const RECORDER: &str = "#!/bin/sh\necho \"$1 $2 $3\" >>/alternatives.log\n";
/// One entry per installation: the first, and the upgrade. Only the removal removes.
const RECORDED_CALLS: &str = "--install /usr/bin/fio fio\n\
                              --install /usr/bin/fio fio\n\
                              --remove fio /usr/bin/iosonde\n";

/// Checks the packages of this machine's architecture. Says what is skipped, and why.
///
/// # Errors
/// If a package cannot be installed, run, upgraded or removed.
pub(crate) fn check(release: &Release, scope: &CheckScope) -> Result<()> {
    let native = Architecture::native();
    let Some(architecture) = native.filter(|native| scope.has_client(*native, Flavour::Gnu)) else {
        println!("skipped: packages: none is for this machine");
        return Ok(());
    };
    if !Uid::effective().is_root() {
        println!("skipped: packages: their installation needs root");
        return Ok(());
    }
    let work = fresh_directory(&release.work().join("package-check"))?;
    let tree = release
        .work()
        .join(release.archive_name(architecture, Flavour::Gnu));
    let earlier = PackageContent {
        architecture,
        version: EARLIER_VERSION,
        epoch: release.epoch,
        tree: &tree,
    };
    let deb = write_deb(&earlier, &work, &work)?;
    let new_deb = release
        .directory
        .join(deb_name(&release.version, architecture));
    check_debian(release, &deb, &new_deb)?;
    let rpm = write_rpm(&earlier, &work, &work)?;
    let new_rpm = release
        .directory
        .join(rpm_name(&release.version, architecture));
    check_rpm(release, architecture, &rpm, &new_rpm)
}

/// Runs [`DEBIAN_SCRIPT`] in a Debian of the smallest variant, which is kept for the next check.
fn check_debian(release: &Release, earlier: &Path, new: &Path) -> Result<()> {
    let root = debian_root(release)?;
    fs::copy(earlier, root.join(EARLIER.trim_start_matches('/')))?;
    fs::copy(new, root.join(NEW.trim_start_matches('/')))
        .with_context(|| format!("cannot copy {}", new.display()))?;
    let version = output(Command::new("dpkg-deb").arg("-f").arg(new).arg("Version"))?;
    let log = output(
        Command::new("chroot")
            .arg(&root)
            .args(["/bin/sh", "-c", DEBIAN_SCRIPT])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .env("EARLIER_VERSION", EARLIER_VERSION)
            .env("VERSION", String::from_utf8_lossy(&version).trim())
            .env("PROGRAM_VERSION", &release.version),
    )
    .with_context(|| format!("the package failed in {}", root.display()))?;
    print!("{}", String::from_utf8_lossy(&log));
    println!("checked: {}", new.display());
    Ok(())
}

/// Returns the root of a fresh Debian. A check that failed leaves its package: it is purged.
fn debian_root(release: &Release) -> Result<PathBuf> {
    let root = release.work().join("debian-root");
    let finished = release.work().join("debian-root.finished");
    if !finished.exists() {
        fresh_directory(&root)?;
        output(
            Command::new("debootstrap")
                .args(["--variant=minbase", DEBIAN_SUITE])
                .arg(&root),
        )
        .context("help: apt-get install debootstrap")?;
        fs::write(&finished, "")?;
    }
    let purge = "dpkg --purge iosonde >/dev/null 2>&1; rm -f /usr/bin/fio";
    output(
        Command::new("chroot")
            .arg(&root)
            .args(["/bin/sh", "-c", purge])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    )?;
    Ok(root)
}

/// Checks the rpm package in a root that contains only a shell and a recording update-alternatives.
fn check_rpm(
    release: &Release,
    architecture: Architecture,
    earlier: &Path,
    new: &Path,
) -> Result<()> {
    let root = fresh_directory(&release.work().join("rpm-root"))?.canonicalize()?;
    for directory in ["bin", "usr/bin", "usr/sbin"] {
        fs::create_dir_all(root.join(directory))?;
    }
    let busybox = Busybox::fetch(release, architecture)?;
    fs::copy(&busybox.program, root.join("bin/sh"))?;
    write_file(&root.join("usr/sbin/update-alternatives"), RECORDER, 0o755)?;
    let rpm = |arguments: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&root).args(arguments);
        rpm
    };
    output(&mut rpm(&["--initdb"])).context("help: apt-get install rpm")?;
    output(rpm(&["--install"]).arg(earlier))?;
    output(rpm(&["--upgrade"]).arg(new))
        .with_context(|| format!("cannot upgrade to {}", new.display()))?;
    output(&mut rpm(&["--verify", "iosonde"]))?;
    let program = root.join("usr/bin/iosonde");
    let printed = output(Command::new(&program).arg("--version"))?;
    let printed = String::from_utf8_lossy(&printed);
    ensure!(
        printed.trim() == format!("iosonde {}", release.version),
        "the installed program reports another version: {printed}"
    );
    output(&mut rpm(&["--erase", "iosonde"]))?;
    ensure!(
        !program.exists(),
        "{} remains after removal",
        program.display()
    );
    let calls = fs::read_to_string(root.join("alternatives.log"))
        .context("the scripts of the rpm package did not call update-alternatives")?;
    ensure!(
        calls == RECORDED_CALLS,
        "unexpected calls of update-alternatives:\n{calls}"
    );
    println!("checked: {}", new.display());
    Ok(())
}
