//! install.sh: the copy beside the archives of a release, and its check.

use super::{printed_text, write_file};
use crate::dist::architecture::Architecture;
use crate::dist::check_log::{CheckLog, UncheckedReason};
use crate::dist::check_scope::CheckScope;
use crate::dist::release::Release;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the script in the repository and in the release.
pub(super) const NAME: &str = "install.sh";
/// The line of the script that has the address of the release.
const ADDRESS_LINE: &str = "\nrelease_url=\n";

/// Writes the script with the address of the release, if it is known.
pub(super) fn write(release: &Release, url: Option<&str>) -> Result<PathBuf> {
    let path = release.root.join(NAME);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let written = write_file(
        release,
        NAME,
        &with_address(&text, url.unwrap_or_default())?,
    )?;
    fs::set_permissions(&written, fs::Permissions::from_mode(0o755))?;
    Ok(written)
}

/// The script with an address, which has no characters that a shell would interpret.
fn with_address(script: &str, url: &str) -> Result<String> {
    ensure!(
        script.matches(ADDRESS_LINE).count() == 1,
        "{NAME} has no line for the address"
    );
    Ok(script.replace(ADDRESS_LINE, &format!("\nrelease_url='{url}'\n")))
}

/// Installs each selected archive for this processor from the directory of the release, and runs
/// it.
pub(super) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    let script = release.directory.join(NAME);
    let clients = (scope.targets.iter())
        .filter(|target| Architecture::native() == Some(target.architecture()));
    let mut installed = 0;
    for client in clients {
        let (processor, flavour) = (client.architecture(), client.flavour());
        let name = release.archive_name(processor, flavour);
        let prefix = tempfile::tempdir()?;
        let mut install = install_command(&script, &release.directory, prefix.path());
        printed_text(install.env("IOSONDE_LIBC", flavour.name()))?;
        let program = prefix.path().join("bin/iosonde");
        let printed = printed_text(Command::new(program).arg("--version"))?;
        ensure!(
            printed.starts_with(&format!("iosonde {}", release.version)),
            "{NAME} installed {} from {name}",
            printed.trim()
        );
        installed += 1;
    }
    match installed {
        0 => log.add_unchecked(NAME, UncheckedReason::NoNativeClient),
        _ => log.add_checked(script.display()),
    }
    Ok(())
}

/// The script, which takes the files of a directory and installs into `prefix`.
fn install_command(script: &Path, directory: &Path, prefix: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(script)
        .env("IOSONDE_URL", format!("file://{}", directory.display()))
        .env("PREFIX", prefix)
        .env_remove("IOSONDE_LIBC");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes archives of a script that prints a version, their sums, and the programs `uname` and
    /// `getconf` of a machine with glibc 2.36. A shell writes them: a program that this process
    /// wrote could not be run while another thread forks.
    const FIXTURE: &str = r#"
        set -e
        mkdir release machine
        for libc in gnu static; do
            name=iosonde-9.8.7-x86_64-linux-$libc
            mkdir -p $name/bin $name/share/man/man1
            printf '#!/bin/sh\necho "iosonde 9.8.7 '$libc'"\n' >$name/bin/iosonde
            chmod 755 $name/bin/iosonde
            echo page >$name/share/man/man1/iosonde.1
            tar -cf - $name | xz -0 >release/$name.tar.xz
        done
        (cd release && sha256sum *.tar.xz >SHA256SUMS)
        printf '#!/bin/sh\ncase $1 in -m) echo ${PROCESSOR:-x86_64} ;; *) echo Linux ;; esac\n' \
            >machine/uname
        printf '#!/bin/sh\n[ "$GLIBC" != none ] && echo "glibc ${GLIBC:-2.36}"\n' >machine/getconf
        chmod 755 machine/uname machine/getconf
    "#;

    struct InstallFixture(tempfile::TempDir);

    impl InstallFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut shell = Command::new("sh");
            shell.args(["-c", FIXTURE]).current_dir(folder.path());
            printed_text(&mut shell).unwrap();
            InstallFixture(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Runs the script of the repository. Err is its standard error.
        fn install(&self, variables: &[(&str, &str)]) -> std::result::Result<String, String> {
            let script = crate::repository::repository_root().join(NAME);
            let mut command = install_command(&script, &self.path("release"), &self.path("prefix"));
            let path = std::env::var("PATH").unwrap();
            command
                .env("PATH", format!("{}:{path}", self.path("machine").display()))
                .envs(variables.iter().copied());
            let done = command.output().unwrap();
            match done.status.success() {
                true => Ok(String::from_utf8(done.stdout).unwrap()),
                false => Err(String::from_utf8(done.stderr).unwrap()),
            }
        }

        /// Output of the installed program.
        fn version(&self) -> String {
            printed_text(&mut Command::new(self.path("prefix/bin/iosonde"))).unwrap()
        }
    }

    #[test]
    fn install_with_new_glibc_takes_gnu_archive() {
        let fixture = InstallFixture::new();
        let printed = fixture.install(&[]).unwrap();
        assert!(printed.starts_with("installed iosonde-9.8.7-x86_64-linux-gnu as "));
        assert_eq!(fixture.version(), "iosonde 9.8.7 gnu\n");
        assert!(fixture.path("prefix/share/man/man1/iosonde.1").is_file());
        // An installed program is replaced.
        fixture.install(&[("GLIBC", "2.27")]).unwrap();
        assert_eq!(fixture.version(), "iosonde 9.8.7 static\n");
    }

    #[test]
    fn install_without_new_glibc_takes_static_archive() {
        for glibc in ["none", "2.17", "2.27.9000", "1.99"] {
            let fixture = InstallFixture::new();
            fixture.install(&[("GLIBC", glibc)]).unwrap();
            assert_eq!(fixture.version(), "iosonde 9.8.7 static\n", "{glibc}");
        }
        for glibc in ["2.28", "2.41.9000", "3.0"] {
            let fixture = InstallFixture::new();
            fixture.install(&[("GLIBC", glibc)]).unwrap();
            assert_eq!(fixture.version(), "iosonde 9.8.7 gnu\n", "{glibc}");
        }
    }

    #[test]
    fn damaged_archive_installs_nothing() {
        let fixture = InstallFixture::new();
        let archive = fixture.path("release/iosonde-9.8.7-x86_64-linux-gnu.tar.xz");
        fs::write(archive, "damaged").unwrap();
        let error = fixture.install(&[]).unwrap_err();
        assert!(error.starts_with("error: the sha256 of iosonde-9.8.7-x86_64-linux-gnu.tar.xz"));
        assert!(!fixture.path("prefix").exists());
    }

    #[test]
    fn machines_and_folders_without_release_are_errors() {
        let fixture = InstallFixture::new();
        let first_line = |variables: &[(&str, &str)]| {
            let error = fixture.install(variables).unwrap_err();
            error.lines().next().unwrap_or_default().to_owned()
        };
        let available = format!(
            "error: file://{} has no archive for",
            fixture.path("release").display()
        );
        for (variable, value, wanted) in [
            ("PROCESSOR", "riscv64", "riscv64-linux-gnu"),
            ("PROCESSOR", "aarch64", "aarch64-linux-gnu"),
            ("IOSONDE_LIBC", "musl", "x86_64-linux-musl"),
        ] {
            assert_eq!(
                first_line(&[(variable, value)]),
                format!("{available} {wanted}, it has: x86_64-linux-gnu x86_64-linux-static")
            );
        }
        assert_eq!(
            first_line(&[("PREFIX", "/proc/none")]),
            "error: cannot write to /proc/none: No such file or directory"
        );
        assert_eq!(
            first_line(&[("TMPDIR", "/proc/none")]),
            "error: cannot create a folder in /proc/none"
        );
        assert_eq!(
            first_line(&[("IOSONDE_URL", "file:///none")]),
            "error: file:///none/SHA256SUMS does not exist"
        );
        assert_eq!(
            first_line(&[("IOSONDE_URL", "")]),
            "error: no release address is known"
        );
        for url in ["", "file:///none"] {
            let error = fixture.install(&[("IOSONDE_URL", url)]).unwrap_err();
            assert!(
                error.contains("\nhelp: build one: cargo xtask dist && "),
                "{error}"
            );
        }
    }

    /// Puts a `cp` before that of the machine: it fails as on a full disk.
    const FULL_DISK: &str = r#"
        printf '#!/bin/sh\nfor to; do :; done\n' >machine/cp
        printf 'case $to in *%s*) ;; *) exec /bin/cp "$@" ;; esac\n' "$FULL" >>machine/cp
        printf 'echo "cp: error writing $to: No space left on device" >&2\nexit 1\n' >>machine/cp
        chmod 755 machine/cp
    "#;

    #[test]
    fn full_disk_is_the_cause_of_a_failed_copy() {
        for (full, message) in [
            ("/prefix/", "error: cannot write to "),
            ("SHA256SUMS", "error: cannot copy file://"),
        ] {
            let fixture = InstallFixture::new();
            let mut shell = Command::new("sh");
            shell.args(["-c", FULL_DISK]).env("FULL", full);
            printed_text(shell.current_dir(fixture.0.path())).unwrap();
            let error = fixture.install(&[]).unwrap_err();
            let (first, help) = error.split_once('\n').unwrap();
            assert!(first.starts_with(message), "{error}");
            assert!(first.ends_with(": the disk is full"), "{error}");
            assert!(help.starts_with("help: free space in "), "{error}");
        }
    }

    #[test]
    fn program_that_needs_newer_glibc_names_the_static_archive() {
        let fixture = InstallFixture::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", OLD_GLIBC]);
        printed_text(shell.current_dir(fixture.0.path())).unwrap();
        let error = fixture.install(&[]).unwrap_err();
        assert_eq!(
            error,
            "error: the program of iosonde-9.8.7-x86_64-linux-gnu.tar.xz does not run: \
             version GLIBC_2.28 not found\nhelp: set IOSONDE_LIBC=static\n"
        );
        assert!(!fixture.path("prefix").exists());
    }

    /// Replaces the program of the archive for glibc as its loader fails on an old system.
    const OLD_GLIBC: &str = r#"
        name=iosonde-9.8.7-x86_64-linux-gnu
        printf '#!/bin/sh\necho "version GLIBC_2.28 not found" >&2; exit 1\n' >$name/bin/iosonde
        tar -cf - $name | xz -0 >release/$name.tar.xz
        (cd release && sha256sum *.tar.xz >SHA256SUMS)
    "#;

    #[test]
    fn script_beside_archives_knows_their_address() {
        let script = fs::read_to_string(crate::repository::repository_root().join(NAME)).unwrap();
        assert!(script.lines().count() < 100, "install.sh is too long");
        let filled = with_address(&script, "https://example.com/r").unwrap();
        assert!(filled.contains("\nrelease_url='https://example.com/r'\n"));
        assert!(with_address(&filled, "https://example.com/r").is_err());
    }
}
