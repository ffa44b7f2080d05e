//! Lays out the files of a client as archives and packages hold them: program, manual pages,
//! completions, documents and licences.

use super::architecture::{Architecture, ClientTarget, Flavour};
use super::audit_data;
use super::build::{Builder, output, run};
use super::release::{Release, Staged};
use super::third_party;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Completions that the program prints: the shell's name, and the file below `share`.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "bash-completion/completions/iosonde"),
    ("elvish", "elvish/lib/iosonde.elv"),
    ("fish", "fish/vendor_completions.d/iosonde.fish"),
    ("zsh", "zsh/site-functions/_iosonde"),
];
/// Names of manual pages for Ceph clusters, without the section and the names of subcommands.
const CEPH_PAGES: [&str; 2] = ["iosonde-rados", "iosonde-rbd"];
/// Documents of the repository that each archive contains.
const DOCUMENTS: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds these clients and lays out their files. A file of an earlier build is not reused.
pub(crate) fn stage(release: &Release, targets: &[ClientTarget]) -> Result<Vec<Staged>> {
    let builder = Builder::with_agents(release)?;
    let mut finished: Vec<Staged> = Vec::new();
    for target in targets {
        let client = stage_client(release, &builder, *target, &finished)?;
        finished.push(client);
    }
    Ok(finished)
}

/// Returns the clients that an earlier run has laid out.
pub(crate) fn staged_before(release: &Release, targets: &[ClientTarget]) -> Result<Vec<Staged>> {
    targets
        .iter()
        .map(|target| {
            let client = staged(release, *target);
            if !client.program().is_file() {
                bail!(
                    "{} does not exist: run `cargo xtask dist --only archives` first",
                    client.program().display()
                );
            }
            Ok(client)
        })
        .collect()
}

fn staged(release: &Release, target: ClientTarget) -> Staged {
    let (architecture, flavour) = (target.architecture(), target.flavour());
    Staged {
        architecture,
        flavour,
        directory: release
            .work()
            .join(release.archive_name(architecture, flavour)),
    }
}

fn stage_client(
    release: &Release,
    builder: &Builder<'_>,
    target: ClientTarget,
    finished: &[Staged],
) -> Result<Staged> {
    let client = staged(release, target);
    if client.directory.exists() {
        std::fs::remove_dir_all(&client.directory)
            .with_context(|| format!("cannot remove {}", client.directory.display()))?;
    }
    copy_file(&builder.build_client(target)?, &client.program())?;
    audit_data::embed(release, &client)?;
    let documents = client.directory.join("share/doc/iosonde");
    for name in DOCUMENTS {
        copy_file(&release.root.join(name), &documents.join(name))?;
    }
    let licences =
        third_party::describe_licences(&release.root, target.architecture(), target.flavour())?;
    write(&documents.join("THIRD-PARTY"), licences.as_bytes())?;
    let native = match native_client(finished, target.flavour()) {
        _ if Architecture::native() == Some(target.architecture()) => client.program(),
        Some(other) => other.program(),
        None => build_native_program(builder, target)?,
    };
    print_pages(&native, &client.directory.join("share"))?;
    Ok(client)
}

/// Returns the client of the flavour that runs on this machine. It prints the pages of the others.
fn native_client(finished: &[Staged], flavour: Flavour) -> Option<&Staged> {
    finished.iter().find(|client| {
        client.flavour == flavour && Architecture::native() == Some(client.architecture)
    })
}

/// Builds the program of the same flavour that runs on this machine.
fn build_native_program(builder: &Builder<'_>, target: ClientTarget) -> Result<PathBuf> {
    let native = Architecture::native().context("this architecture has no release")?;
    let native = ClientTarget::ALL
        .into_iter()
        .find(|other| other.architecture() == native && other.flavour() == target.flavour())
        .context("each architecture has each flavour")?;
    builder.build_client(native)
}

/// Writes the manual pages and the completions below the directory `share`.
fn print_pages(program: &Path, share: &Path) -> Result<()> {
    let manual = share.join("man/man1");
    std::fs::create_dir_all(&manual)
        .with_context(|| format!("cannot create {}", manual.display()))?;
    run(Command::new(program)
        .arg("man")
        .arg("--directory")
        .arg(&manual))?;
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        write(&share.join(file), &script)?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    create_parent(to)?;
    std::fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    create_parent(path)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn create_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a file has a directory")?;
    std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))
}

/// Returns the files that each client of the flavour has, relative to its directory. A static
/// client has no commands for Ceph.
pub(crate) fn expected_files(flavour: Flavour) -> Vec<String> {
    let mut files = vec![
        "bin/iosonde".to_owned(),
        "share/man/man1/iosonde.1".to_owned(),
        "share/man/man1/iosonde-probe.1".to_owned(),
        "share/man/man1/iosonde-fio.1".to_owned(),
        "share/doc/iosonde/THIRD-PARTY".to_owned(),
    ];
    if flavour == Flavour::Gnu {
        files.push("share/man/man1/iosonde-rados.1".to_owned());
    }
    let documents = DOCUMENTS.iter();
    files.extend(documents.map(|name| format!("share/doc/iosonde/{name}")));
    files.extend(COMPLETIONS.iter().map(|(_, file)| format!("share/{file}")));
    files
}

/// Returns the first manual page of a command that the flavour does not have.
pub(crate) fn unexpected_page(files: &[PathBuf], flavour: Flavour) -> Option<&Path> {
    let is_ceph_page = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (CEPH_PAGES.iter()).any(|page| name.strip_prefix(page).is_some_and(is_end_of_name))
    };
    let mut paths = files.iter().map(PathBuf::as_path);
    paths.find(|path| flavour == Flavour::Static && is_ceph_page(path))
}

/// Whether a page's name ends here, or goes on with the name of a further command.
fn is_end_of_name(rest: &str) -> bool {
    rest.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_client_with_page_for_ceph_is_refused() {
        let page = |name: &str| PathBuf::from(format!("share/man/man1/{name}"));
        let pages = ["iosonde.1", "iosonde-rados-bench.1", "iosonde-rbd.1"].map(page);
        assert_eq!(
            unexpected_page(&pages, Flavour::Static),
            Some(pages[1].as_path())
        );
        assert_eq!(unexpected_page(&pages, Flavour::Gnu), None);
        assert_eq!(unexpected_page(&pages[..1], Flavour::Static), None);
    }

    #[test]
    fn pages_come_from_the_finished_native_client() {
        let native = Architecture::native().unwrap();
        let client = |architecture, flavour| Staged {
            architecture,
            flavour,
            directory: PathBuf::from("/r"),
        };
        let finished = Architecture::ALL.map(|architecture| client(architecture, Flavour::Gnu));
        let chosen = native_client(&finished, Flavour::Gnu).unwrap();
        assert_eq!(chosen.architecture, native);
        assert!(native_client(&finished, Flavour::Static).is_none());
    }

    #[test]
    fn clients_that_were_not_built_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let release = Release {
            root: directory.path().to_owned(),
            directory: directory.path().join("dist"),
            version: "1.0.0".to_owned(),
            epoch: 0,
        };
        let error = staged_before(&release, &[ClientTarget::X86_64Static])
            .err()
            .expect("nothing was built");
        let error = error.to_string();
        assert!(
            error.contains("iosonde-1.0.0-x86_64-linux-static/bin/iosonde"),
            "{error}"
        );
        let built = staged(&release, ClientTarget::X86_64Static).program();
        write(&built, b"program").unwrap();
        let found = staged_before(&release, &[ClientTarget::X86_64Static]).unwrap();
        assert_eq!(found[0].program(), built);
    }
}
