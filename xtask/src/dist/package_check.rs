//! Installs, upgrades and removes the packages in a fresh Debian and in an empty rpm root. Packages
//! of another architecture are unpacked, and their programs run with qemu.

use super::architecture::{Architecture, Flavour};
use super::build::output;
use super::busybox::Busybox;
use super::check_log::{CheckLog, UncheckedReason};
use super::check_scope::CheckScope;
use super::packages::{
    PackageContent, deb_name, fresh_directory, rpm_name, write_deb, write_file, write_rpm,
};
use super::release::Release;
use super::release_runner::ReleaseRunner;
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

/// Life of the package in a Debian without fio, and then beside an installed fio. This Debian has
/// no librados, whose package the error of a Ceph target must name.
const DEBIAN_SCRIPT: &str = r#"set -eu
dpkg -i /earlier.package
[ "$(dpkg-query -W -f '${Version}' iosonde)" = "$EARLIER_VERSION" ]
dpkg -i /new.package
[ "$(dpkg-query -W -f '${Version}' iosonde)" = "$VERSION" ]
[ -z "$(dpkg --verify iosonde)" ]
[ "$(iosonde --version)" = "iosonde $PROGRAM_VERSION" ]
[ "$(readlink -f /usr/bin/fio)" = /usr/bin/iosonde ]
fio --version
status=0
iosonde probe --quick --no-save rados://x 2>/ceph.err || status=$?
cat /ceph.err >&2
[ "$status" = 3 ]
[ "$(grep -c librados2 /ceph.err)" = 1 ]
rm /ceph.err
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

/// Checks the packages of both architectures.
///
/// # Errors
/// If a package cannot be installed, run, upgraded or removed.
pub(crate) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    let architectures = scope.architectures(Flavour::Gnu);
    if !Uid::effective().is_root() {
        log.add_unchecked("packages", UncheckedReason::NeedsRoot);
        return Ok(());
    }
    if !(architectures.iter()).any(|one| Architecture::native() == Some(*one)) {
        let name = "installation of the packages";
        log.add_unchecked(name, UncheckedReason::NoNativeClient);
    }
    for architecture in architectures {
        match Architecture::native() == Some(architecture) {
            true => check_native(release, architecture, log)?,
            false => check_foreign(release, architecture, log)?,
        }
    }
    Ok(())
}

/// Installs, upgrades and removes the packages of this machine's architecture.
fn check_native(release: &Release, architecture: Architecture, log: &mut CheckLog) -> Result<()> {
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
    log.add_checked(new_deb.display());
    let rpm = write_rpm(&earlier, &work, &work)?;
    let new_rpm = release
        .directory
        .join(rpm_name(&release.version, architecture));
    check_rpm(release, architecture, &rpm, &new_rpm)?;
    log.add_checked(new_rpm.display());
    Ok(())
}

/// Unpacks the packages of another architecture by the tools of their systems, and runs their
/// programs. The scripts of the packages are those of the other architecture.
fn check_foreign(release: &Release, architecture: Architecture, log: &mut CheckLog) -> Result<()> {
    let deb = release
        .directory
        .join(deb_name(&release.version, architecture));
    let rpm = release
        .directory
        .join(rpm_name(&release.version, architecture));
    let runner = match ReleaseRunner::new(architecture, Flavour::Gnu) {
        Ok(runner) => runner,
        Err(reason) => {
            log.add_unchecked(deb.display(), reason.clone());
            log.add_unchecked(rpm.display(), reason);
            return Ok(());
        }
    };
    let work = release.work().join("package-check-foreign");
    let root = fresh_directory(&work.join("deb"))?;
    output(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root))?;
    check_unpacked(release, &runner, &root)?;
    log.add_checked(deb.display());
    let root = fresh_directory(&work.join("rpm"))?;
    let rpm_in_root = |words: &[&str]| {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&root).args(words);
        command
    };
    output(&mut rpm_in_root(&["--initdb"])).context("help: apt-get install rpm")?;
    let words = ["--ignorearch", "--noscripts", "--install"];
    output(rpm_in_root(&words).arg(&rpm))?;
    output(&mut rpm_in_root(&["--verify", "iosonde"]))?;
    check_unpacked(release, &runner, &root)?;
    log.add_checked(rpm.display());
    Ok(())
}

/// Fails unless the program of an unpacked package reports the version of the release.
fn check_unpacked(release: &Release, runner: &ReleaseRunner, root: &Path) -> Result<()> {
    let printed = output(
        runner
            .command(&root.join("usr/bin/iosonde"))
            .arg("--version"),
    )?;
    let printed = String::from_utf8_lossy(&printed);
    ensure!(
        printed.trim() == format!("iosonde {}", release.version),
        "the unpacked program reports another version: {printed}"
    );
    Ok(())
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
    let runner = ReleaseRunner::new(architecture, Flavour::Gnu);
    let runner = (runner.ok()).context("programs of this architecture run without qemu")?;
    check_unpacked(release, &runner, &root)?;
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
    Ok(())
}
