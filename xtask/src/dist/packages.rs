//! Debian and rpm packages of the glibc client. The tools of both systems build them.
//!
//! A package depends on nothing. It offers iosonde as an alternative of `fio` and never replaces an
//! installed fio: its scripts ask update-alternatives only if `/usr/bin/fio` is absent or a link.

use super::architecture::{Architecture, Flavour};
use super::build::output;
use super::release::{Release, Staged};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Priority of the alternative: lower than that of a fio that registers itself with the usual 50.
const ALTERNATIVE_PRIORITY: u32 = 10;
const SUMMARY: &str = "storage benchmark that runs fio jobs and explains the result";
/// Folder of the tree whose files are executable.
const PROGRAMS: &str = "bin";
/// Where zsh of Debian looks for completions of packages.
const ZSH_OF_DEBIAN: &str = "share/zsh/vendor-completions";
/// Where the tree and zsh of other systems have them.
const ZSH_OF_TREE: &str = "share/zsh/site-functions";

/// The content of one package, before a package format is chosen.
pub(crate) struct PackageContent<'a> {
    pub(crate) architecture: Architecture,
    /// Version of the package: that of the release, except for the package that is upgraded.
    pub(crate) version: &'a str,
    /// Time stamp of all files, in seconds since 1970.
    pub(crate) epoch: u64,
    /// A tree as in [`Staged`]. It becomes `/usr`.
    pub(crate) tree: &'a Path,
}

/// Writes a Debian and an rpm package of each staged glibc client. Returns their paths.
///
/// # Errors
/// If dpkg-deb or rpmbuild is missing or fails, or a file cannot be written.
pub(crate) fn write(release: &Release, staged: &[Staged]) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for client in staged
        .iter()
        .filter(|client| client.flavour == Flavour::Gnu)
    {
        let content = PackageContent {
            architecture: client.architecture,
            version: &release.version,
            epoch: release.epoch,
            tree: &client.directory,
        };
        let work = release.work().join("packages");
        written.push(write_deb(&content, &work, &release.directory)?);
        written.push(write_rpm(&content, &work, &release.directory)?);
    }
    Ok(written)
}

/// Returns a version that sorts pre-releases first in both package systems: `0.1.0~rc.1`.
fn package_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

/// Name of the Debian package, as Debian's archive names files.
pub(crate) fn deb_name(version: &str, architecture: Architecture) -> String {
    format!(
        "iosonde_{}_{}.deb",
        package_version(version),
        architecture.debian()
    )
}

/// Name of the rpm package.
pub(crate) fn rpm_name(version: &str, architecture: Architecture) -> String {
    format!(
        "iosonde-{}-1.{}.rpm",
        package_version(version),
        architecture.rpm()
    )
}

/// Writes the Debian package into `directory`. `work` is for files that only the build needs.
pub(crate) fn write_deb(
    content: &PackageContent<'_>,
    work: &Path,
    directory: &Path,
) -> Result<PathBuf> {
    let root = fresh_directory(&work.join(format!("deb-{}", content.architecture.debian())))?;
    copy_tree(content.tree, &root.join("usr"))?;
    move_zsh_completions(&root.join("usr"))?;
    let doc = root.join("usr/share/doc/iosonde");
    fs::create_dir_all(&doc)?;
    write_file(&doc.join("copyright"), COPYRIGHT, 0o644)?;
    let files = files_below(&root)?;
    let control_directory = root.join("DEBIAN");
    fs::create_dir(&control_directory)?;
    fs::set_permissions(&control_directory, fs::Permissions::from_mode(0o755))?;
    let sums = output(Command::new("md5sum").args(&files).current_dir(&root))?;
    write_file(
        &root.join("DEBIAN/md5sums"),
        &String::from_utf8(sums)?,
        0o644,
    )?;
    let control = control_file(content, size_kib(&root, &files)?);
    write_file(&root.join("DEBIAN/control"), &control, 0o644)?;
    write_file(&root.join("DEBIAN/postinst"), &postinst(), 0o755)?;
    write_file(&root.join("DEBIAN/prerm"), PRERM, 0o755)?;
    let package = directory.join(deb_name(content.version, content.architecture));
    // One thread: several would make the bytes depend on the number of processors. Level 9: its
    // dictionary spans the program, whose agents share machine code with it.
    output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "-z9"])
            .args(["--threads-max=1", "--build"])
            .args([&root, &package])
            .env("SOURCE_DATE_EPOCH", content.epoch.to_string()),
    )?;
    Ok(package)
}

/// Writes the rpm package into `directory`. `work` is for files that only the build needs.
pub(crate) fn write_rpm(
    content: &PackageContent<'_>,
    work: &Path,
    directory: &Path,
) -> Result<PathBuf> {
    let top = fresh_directory(&work.join(format!("rpm-{}", content.architecture.rpm())))?;
    let top = top.canonicalize()?;
    let payload = top.join("payload");
    copy_tree(content.tree, &payload.join("usr"))?;
    let specification = top.join("iosonde.spec");
    let files = files_below(&payload)?;
    write_file(&specification, &spec_file(content, &payload, &files), 0o644)?;
    let directory = directory.canonicalize()?;
    let definitions = [
        format!("_topdir {}", top.display()),
        format!("_rpmdir {}", directory.display()),
        // The default puts packages into a folder for each architecture.
        "_rpmfilename %%{name}-%%{version}-%%{release}.%%{arch}.rpm".to_owned(),
        "_buildhost localhost".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 1".to_owned(),
        "_build_id_links none".to_owned(),
        // The binary is stripped, and the documents are packed as they are.
        "__os_install_post %{nil}".to_owned(),
        "debug_package %{nil}".to_owned(),
        // One thread, a dictionary as in the Debian package, and a format that RHEL 8 reads.
        "_binary_payload w9.xzdio".to_owned(),
    ];
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--nodeps", "--target"]);
    rpmbuild.arg(format!("{}-linux", content.architecture.rpm()));
    for definition in &definitions {
        rpmbuild.args(["--define", definition]);
    }
    rpmbuild
        .arg(&specification)
        .env("SOURCE_DATE_EPOCH", content.epoch.to_string());
    output(&mut rpmbuild).context("help: apt-get install rpm")?;
    Ok(directory.join(rpm_name(content.version, content.architecture)))
}

fn control_file(content: &PackageContent<'_>, installed_kib: u64) -> String {
    format!(
        "Package: iosonde\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The iosonde authors <iosonde@project.invalid>\n\
         Installed-Size: {installed_kib}\n\
         Section: utils\n\
         Priority: optional\n\
         Description: {SUMMARY}\n \
         iosonde measures disks, file systems, Ceph and volumes in Kubernetes. It needs glibc\n \
         2.28 or newer. It loads the libraries of Ceph only if a target needs them.\n",
        package_version(content.version),
        content.architecture.debian(),
    )
}

/// Reports a C library that is too old: the package has no dependencies that would refuse it. A
/// program that does not run is no alternative of fio. The package stays installed, so that apt
/// goes on.
const PROGRAM_CHECK: &str = "\
if ! /usr/bin/iosonde --version >/dev/null 2>&1; then
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc='another C library'
    echo \"error: iosonde does not run here: it needs glibc 2.28 or newer, and this is $libc\" >&2
    echo 'help: remove it, and install the archive linux-static of the same release' >&2
    exit 0
fi
";

fn postinst() -> String {
    format!(
        "#!/bin/sh\n\
         set -e\n\
         [ \"$1\" = configure ] || exit 0\n\
         {PROGRAM_CHECK}\
         # A file at /usr/bin/fio belongs to an installed fio.\n\
         if [ -e /usr/bin/fio ] && [ ! -L /usr/bin/fio ]; then exit 0; fi\n\
         update-alternatives --install /usr/bin/fio fio /usr/bin/iosonde {ALTERNATIVE_PRIORITY}\n"
    )
}

const PRERM: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] || [ \"$1\" = deconfigure ]; then
    update-alternatives --remove fio /usr/bin/iosonde
fi
";

const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: iosonde

Files: *
Copyright: The iosonde authors
License: MIT or Apache-2.0
 The texts are in LICENSE-MIT and LICENSE-APACHE in this directory. THIRD-PARTY has the licences of
 the libraries that the program contains.
";

/// Returns the specification for rpmbuild. Its scripts are in Lua, which rpm runs itself: shell
/// scripts would make the package depend on a shell.
fn spec_file(content: &PackageContent<'_>, payload: &Path, files: &[String]) -> String {
    let mut text = format!(
        "Name: iosonde\n\
         Version: {}\n\
         Release: 1\n\
         Summary: {SUMMARY}\n\
         License: MIT OR Apache-2.0\n\
         AutoReqProv: no\n\n\
         %description\n\
         iosonde measures disks, file systems, Ceph and volumes in Kubernetes. It needs glibc\n\
         2.28 or newer. It loads the libraries of Ceph only if a target needs them.\n\n\
         %install\n\
         cp -a \"{}/.\" \"%{{buildroot}}\"\n\n\
         %post -p <lua>\n\
         local update = \"/usr/sbin/update-alternatives\"\n\
         local fio = posix.stat(\"/usr/bin/fio\", \"type\")\n\
         if posix.stat(update) and (fio == nil or fio == \"link\") then\n  \
         os.execute(update .. \" --install /usr/bin/fio fio /usr/bin/iosonde \
         {ALTERNATIVE_PRIORITY}\")\n\
         end\n\n\
         %preun -p <lua>\n\
         local update = \"/usr/sbin/update-alternatives\"\n\
         if tonumber(arg[2]) == 0 and posix.stat(update) then\n  \
         os.execute(update .. \" --remove fio /usr/bin/iosonde\")\n\
         end\n\n\
         %files\n\
         %defattr(-,root,root)\n",
        package_version(content.version),
        payload.display(),
    );
    for file in files {
        text.push_str(&format!("\"/{file}\"\n"));
    }
    text
}

/// Copies files with the modes of a package, whatever the mode mask of the build was.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for file in files_below(from)? {
        let target = to.join(&file);
        let parent = target.parent().context("a file has a directory")?;
        fs::create_dir_all(parent)?;
        fs::copy(from.join(&file), &target)
            .with_context(|| format!("cannot copy {file} into the package"))?;
        let is_program = Path::new(&file).starts_with(PROGRAMS);
        let mode = if is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
    }
    set_directory_modes(to)
}

fn set_directory_modes(directory: &Path) -> Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            set_directory_modes(&entry.path())?;
        }
    }
    Ok(())
}

fn move_zsh_completions(usr: &Path) -> Result<()> {
    let from = usr.join(ZSH_OF_TREE);
    if from.exists() {
        fs::rename(&from, usr.join(ZSH_OF_DEBIAN)).context("cannot move the completions of zsh")?;
    }
    Ok(())
}

/// Returns the sorted paths of all files below `root`, relative to it.
fn files_below(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                directories.push(path);
            } else {
                let relative = path.strip_prefix(root)?.to_str();
                files.push(relative.context("a file name is no UTF-8")?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn size_kib(root: &Path, files: &[String]) -> Result<u64> {
    let mut kib = 0;
    for file in files {
        kib += fs::metadata(root.join(file))?.len().div_ceil(1024);
    }
    Ok(kib)
}

/// Returns an empty directory at `path`.
pub(crate) fn fresh_directory(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot empty {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(path.to_owned())
}

/// Writes a file with the given mode.
pub(crate) fn write_file(path: &Path, text: &str, mode: u32) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content<'a>(tree: &'a Path, version: &'a str) -> PackageContent<'a> {
        PackageContent {
            architecture: Architecture::Aarch64,
            version,
            epoch: 1_700_000_000,
            tree,
        }
    }

    /// A tree like that of a staged client, with a script as its program.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for directory in ["bin", "share/man/man1", ZSH_OF_TREE] {
            fs::create_dir_all(tree.path().join(directory)).unwrap();
        }
        write_file(&tree.path().join("bin/iosonde"), "#!/bin/sh\n", 0o700).unwrap();
        write_file(
            &tree.path().join("share/man/man1/iosonde.1"),
            ".TH\n",
            0o600,
        )
        .unwrap();
        write_file(
            &tree.path().join(ZSH_OF_TREE).join("_iosonde"),
            "#compdef\n",
            0o600,
        )
        .unwrap();
        tree
    }

    #[test]
    fn control_file_has_no_dependency() {
        let control = control_file(&content(Path::new("/t"), "0.1.0-rc.1"), 12);
        assert!(
            control.starts_with("Package: iosonde\nVersion: 0.1.0~rc.1\nArchitecture: arm64\n")
        );
        assert!(control.contains("\nInstalled-Size: 12\n"));
        assert!(!control.contains("Depends"));
        let description = control.split("Description: ").nth(1).unwrap();
        assert!(
            description
                .lines()
                .skip(1)
                .all(|line| line.starts_with(' '))
        );
    }

    /// Runs the script that follows an installation, with programs of one folder instead of those
    /// of the machine: iosonde with this status, and update-alternatives that prints its words.
    fn run_postinst(status: u8) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        // A shell writes the programs: those that this process wrote could not be run while another
        // thread forks.
        let machine = format!(
            "cd {path}; printf '#!/bin/sh\\nexit {status}\\n' >iosonde; \
             printf '#!/bin/sh\\necho glibc 2.27\\n' >getconf; \
             printf '#!/bin/sh\\necho \"$@\"\\n' >update-alternatives; chmod 755 *"
        );
        let mut shell = Command::new("sh");
        output(shell.args(["-c", &machine])).unwrap();
        let script = postinst()
            .replace("/usr/bin/iosonde --version", &format!("{path}/iosonde"))
            .replace("/usr/bin/fio ]", &format!("{path}/fio ]"));
        let mut shell = Command::new("sh");
        let words = ["-c", &script, "postinst", "configure"];
        shell.env("PATH", format!("{path}:/usr/bin:/bin"));
        let done = shell.args(words).output().unwrap();
        assert!(done.status.success());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr))
    }

    #[test]
    fn postinst_reports_old_c_library_and_goes_on() {
        let (alternative, errors) = run_postinst(1);
        assert_eq!(alternative, "");
        assert_eq!(
            errors,
            "error: iosonde does not run here: it needs glibc 2.28 or newer, \
             and this is glibc 2.27\n\
             help: remove it, and install the archive linux-static of the same release\n"
        );
    }

    #[test]
    fn postinst_registers_the_alternative_of_a_program_that_runs() {
        let (alternative, errors) = run_postinst(0);
        assert_eq!(
            alternative,
            "--install /usr/bin/fio fio /usr/bin/iosonde 10\n"
        );
        assert_eq!(errors, "");
    }

    #[test]
    fn spec_file_lists_each_file_and_needs_no_shell() {
        let files = ["usr/bin/iosonde".to_owned()];
        let spec = spec_file(&content(Path::new("/t"), "0.1.0"), Path::new("/p"), &files);
        assert!(spec.contains("\nAutoReqProv: no\n"));
        assert!(spec.ends_with("%defattr(-,root,root)\n\"/usr/bin/iosonde\"\n"));
        for script in ["%post ", "%preun "] {
            assert!(spec.contains(&format!("{script}-p <lua>")), "{spec}");
        }
    }

    #[test]
    fn package_names_are_those_of_their_system() {
        assert_eq!(
            deb_name("0.1.0", Architecture::X86_64),
            "iosonde_0.1.0_amd64.deb"
        );
        assert_eq!(
            rpm_name("0.1.0", Architecture::Aarch64),
            "iosonde-0.1.0-1.aarch64.rpm"
        );
    }

    #[test]
    fn copied_files_have_the_modes_of_a_package() {
        let (tree, to) = (tree(), tempfile::tempdir().unwrap());
        copy_tree(tree.path(), to.path()).unwrap();
        let mode = |file: &str| {
            let mode = fs::metadata(to.path().join(file))
                .unwrap()
                .permissions()
                .mode();
            mode & 0o777
        };
        assert_eq!(mode("bin/iosonde"), 0o755);
        assert_eq!(mode("share/man/man1/iosonde.1"), 0o644);
        assert_eq!(mode("share/man"), 0o755);
    }

    #[test]
    fn deb_of_the_same_tree_has_the_same_bytes() {
        let (tree, work) = (tree(), tempfile::tempdir().unwrap());
        let write = || {
            let content = content(tree.path(), "0.1.0");
            let package = write_deb(&content, &work.path().join("w"), work.path()).unwrap();
            fs::read(package).unwrap()
        };
        let first = write();
        assert_eq!(first, write());
        assert!(first.starts_with(b"!<arch>\n"));
    }
}
