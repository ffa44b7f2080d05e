//! Checks the archives: unpacks each of them, and runs the client that is in it.

use super::architecture::{Architecture, ClientTarget, Flavour};
use super::archive::sorted_entries;
use super::audit_data;
use super::build::{GLIBC_MINIMUM, agent_program, output, run};
use super::check_log::{CheckLog, UncheckedReason};
use super::check_scope::CheckScope;
use super::release::Release;
use super::release_runner::ReleaseRunner;
use super::staging::{expected_files, unexpected_page};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum sizes of the packed archive and of the client in it.
const ARCHIVE_BYTES_MAX: u64 = 8_000_000;
const CLIENT_BYTES_MAX: u64 = 25_000_000;

/// An unpacked archive.
struct UnpackedClient {
    target: ClientTarget,
    directory: PathBuf,
    /// An empty directory for the files that the client makes.
    scratch: PathBuf,
}

/// Checks the archive of each client in the scope.
pub(crate) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    for target in &scope.targets {
        let name = release.archive_name(target.architecture(), target.flavour());
        let archive = release.directory.join(format!("{name}.tar.xz"));
        check_archive(release, *target, &archive, log)
            .with_context(|| format!("{}", archive.display()))?;
    }
    Ok(())
}

fn check_archive(
    release: &Release,
    target: ClientTarget,
    archive: &Path,
    log: &mut CheckLog,
) -> Result<()> {
    let packed = std::fs::metadata(archive)?.len();
    ensure!(
        packed <= ARCHIVE_BYTES_MAX,
        "the archive has {packed} bytes, more than {ARCHIVE_BYTES_MAX}"
    );
    let client = unpack(release, target, archive)?;
    for file in expected_files(target.flavour()) {
        ensure!(client.directory.join(&file).is_file(), "there is no {file}");
    }
    let files = sorted_entries(&client.directory)?;
    if let Some(page) = unexpected_page(&files, target.flavour()) {
        bail!("a client without Ceph has {}", page.display());
    }
    check_program(release, &client)?;
    audit_data::read_audit_data(target.architecture(), &client.program())?;
    let name = release.archive_name(target.architecture(), target.flavour());
    match ReleaseRunner::new(target.architecture(), target.flavour()) {
        Ok(runner) => run_client(release, &client, &runner)?,
        Err(reason) => {
            log.add_unchecked(format!("run of {name}"), reason);
            return Ok(());
        }
    }
    if is_native(target) && target.flavour() == Flavour::Static {
        match nix::unistd::geteuid().is_root() {
            true => run_in_empty_root(release, &client)?,
            false => log.add_unchecked(
                format!("run of {name} in an empty root"),
                UncheckedReason::NeedsRoot,
            ),
        }
    }
    log.add_checked(archive.display());
    Ok(())
}

fn is_native(target: ClientTarget) -> bool {
    Architecture::native() == Some(target.architecture())
}

fn unpack(release: &Release, target: ClientTarget, archive: &Path) -> Result<UnpackedClient> {
    let name = release.archive_name(target.architecture(), target.flavour());
    let base = release.work().join("check").join(&name);
    if base.exists() {
        std::fs::remove_dir_all(&base)
            .with_context(|| format!("cannot remove {}", base.display()))?;
    }
    let scratch = base.join("scratch");
    std::fs::create_dir_all(&scratch)?;
    run(Command::new("tar")
        .arg("-xJf")
        .arg(archive)
        .arg("-C")
        .arg(&base))?;
    Ok(UnpackedClient {
        target,
        directory: base.join(name),
        scratch,
    })
}

impl UnpackedClient {
    fn program(&self) -> PathBuf {
        self.directory.join("bin/iosonde")
    }

    /// Runs the client in the scratch directory, with a history of its own. Returns its output.
    fn output(&self, runner: &ReleaseRunner, arguments: &[&str]) -> Result<String> {
        let mut command = runner.command(&self.program());
        command
            .args(arguments)
            .current_dir(&self.scratch)
            .env("HOME", &self.scratch)
            .env_remove("XDG_DATA_HOME");
        Ok(String::from_utf8_lossy(&output(&mut command)?).into_owned())
    }
}

/// Checks the executable without running it: its size, its libraries, its agents, and that it names
/// no path of this machine.
fn check_program(release: &Release, client: &UnpackedClient) -> Result<()> {
    let program = client.program();
    let bytes =
        std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    ensure!(
        bytes.len() as u64 <= CLIENT_BYTES_MAX,
        "the client has {} bytes, more than {CLIENT_BYTES_MAX}",
        bytes.len()
    );
    let glibc = newest_glibc(&bytes);
    match client.target.flavour() {
        Flavour::Gnu => {
            let is_old = glibc.is_some_and(|newest| newest <= GLIBC_MINIMUM);
            ensure!(
                is_old,
                "the client needs glibc {glibc:?}, newer than {GLIBC_MINIMUM:?}"
            );
        }
        Flavour::Static => {
            ensure!(glibc.is_none(), "the static client needs glibc {glibc:?}");
        }
    }
    let root = release.root.canonicalize()?;
    let root = root.as_os_str().as_encoded_bytes();
    ensure!(
        !contains(&bytes, root),
        "the client contains the path of this checkout"
    );
    check_embedded_agents(release, &bytes)
}

/// Fails unless the client contains each agent that was built with it, byte for byte. A release
/// that another machine has built comes without these files.
fn check_embedded_agents(release: &Release, client: &[u8]) -> Result<()> {
    for architecture in Architecture::ALL {
        let path = agent_program(release, architecture);
        if !path.is_file() {
            continue;
        }
        let agent =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(
            contains(client, &agent),
            "the client does not contain {}",
            path.display()
        );
    }
    Ok(())
}

/// Returns the newest version of glibc among the symbol versions of an executable.
fn newest_glibc(executable: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"\0GLIBC_2.";
    let starts = executable
        .windows(PREFIX.len())
        .enumerate()
        .filter(|(_, window)| *window == PREFIX)
        .map(|(at, _)| at + PREFIX.len());
    starts
        .filter_map(|at| {
            let digits = executable[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            let digits: Vec<u8> = digits.copied().collect();
            let minor = String::from_utf8(digits).ok()?.parse().ok()?;
            Some((2, minor))
        })
        .max()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    !wanted.is_empty() && bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Runs the client as its users do first.
fn run_client(release: &Release, client: &UnpackedClient, runner: &ReleaseRunner) -> Result<()> {
    let version = client.output(runner, &["--version"])?;
    let expected = match client.target.flavour() {
        Flavour::Gnu => format!("iosonde {}\n", release.version),
        Flavour::Static => format!("iosonde {} (without Ceph)\n", release.version),
    };
    ensure!(
        version == expected,
        "--version prints {version:?}, not {expected:?}"
    );
    let fio = client.output(runner, &["fio", "--version"])?;
    ensure!(!fio.trim().is_empty(), "fio --version prints nothing");
    let probed = client.output(runner, &["probe", "--quick", "--no-save", "."])?;
    ensure!(!probed.trim().is_empty(), "probe --quick prints no result");
    let left = sorted_entries(&client.scratch)?;
    if let Some(file) = left
        .iter()
        .find(|path| path.to_string_lossy().contains("probe"))
    {
        bail!("probe has left the file {}", file.display());
    }
    if client.target.flavour() == Flavour::Static {
        check_without_ceph(client, runner)?;
    }
    Ok(())
}

/// Fails unless a Ceph target is refused because of this build.
fn check_without_ceph(client: &UnpackedClient, runner: &ReleaseRunner) -> Result<()> {
    let refused = client.output(runner, &["probe", "--quick", "--no-save", "rados://pool"]);
    let message = match refused {
        Ok(printed) => bail!("a client without Ceph measured a pool: {printed}"),
        Err(error) => error.to_string(),
    };
    ensure!(
        message.contains("this iosonde was built without Ceph"),
        "a Ceph target is refused with other words: {message}"
    );
    Ok(())
}

/// Runs the static client in a root directory that contains no other file: no library, no
/// certificates, no /proc, no /dev. Needs the rights of root.
fn run_in_empty_root(release: &Release, client: &UnpackedClient) -> Result<()> {
    let root = release.work().join("check/empty-root");
    std::fs::create_dir_all(root.join("data"))?;
    std::fs::copy(client.program(), root.join("iosonde"))?;
    for arguments in [
        &["--version"][..],
        &["probe", "--quick", "--no-save", "/data"],
    ] {
        output(
            Command::new("chroot")
                .arg(&root)
                .arg("/iosonde")
                .args(arguments),
        )
        .context("in an empty root")?;
    }
    std::fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_glibc_is_compared_by_number() {
        let symbols = b"\0GLIBC_2.9\0GLIBC_2.28\0GLIBC_2.3.4\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(symbols), Some((2, 28)));
        assert_eq!(newest_glibc(b"\x7fELF without libraries"), None);
    }

    #[test]
    fn client_without_built_agent_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let release = Release {
            root: directory.path().to_owned(),
            directory: directory.path().join("dist"),
            version: "1.0.0".to_owned(),
            epoch: 0,
        };
        check_embedded_agents(&release, b"client of another machine").unwrap();
        for architecture in Architecture::ALL {
            let agent = agent_program(&release, architecture);
            std::fs::create_dir_all(agent.parent().unwrap()).unwrap();
            std::fs::write(&agent, architecture.rust()).unwrap();
        }
        check_embedded_agents(&release, b"client, x86_64, aarch64").unwrap();
        let error = check_embedded_agents(&release, b"client, x86_64").unwrap_err();
        assert!(error.to_string().contains("aarch64"), "{error}");
    }

    #[test]
    fn paths_are_found_inside_of_bytes() {
        assert!(contains(b"panicked at /home/me/src/main.rs", b"/home/me"));
        assert!(!contains(b"/home/m", b"/home/me"));
        assert!(!contains(b"anything", b""));
    }
}
