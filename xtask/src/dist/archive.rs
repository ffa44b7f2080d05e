//! Archives of the release: the same files give the same bytes, on any day and for any user.

use super::release::{Release, Staged};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packs each client as `iosonde-VERSION-ARCHITECTURE-linux-FLAVOUR.tar.xz`.
pub(crate) fn write(release: &Release, staged: &[Staged]) -> Result<Vec<PathBuf>> {
    staged
        .iter()
        .map(|client| {
            let name = release.archive_name(client.architecture, client.flavour);
            let path = release.directory.join(format!("{name}.tar.xz"));
            let tar = tar_of_directory(&client.directory, &name, release.epoch)?;
            std::fs::write(&path, compress(&tar)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        })
        .collect()
}

/// Returns a tar archive of the directory, whose entries are sorted, belong to root and have the
/// time `epoch`. `prefix` replaces the directory's path.
pub(crate) fn tar_of_directory(directory: &Path, prefix: &str, epoch: u64) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for relative in sorted_entries(directory)? {
        let source = directory.join(&relative);
        let metadata = std::fs::symlink_metadata(&source)?;
        let mut header = tar::Header::new_gnu();
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        let name = Path::new(prefix).join(&relative);
        if metadata.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            let name = name.display().to_string();
            let name = format!("{}/", name.trim_end_matches('/'));
            builder.append_data(&mut header, name, std::io::empty())?;
        } else if metadata.is_file() {
            let is_program = metadata.permissions().mode() & 0o111 != 0;
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(if is_program { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            builder.append_data(&mut header, &name, File::open(&source)?)?;
        } else {
            bail!("{} is no file and no directory", source.display());
        }
    }
    Ok(builder.into_inner()?)
}

/// Returns the paths of all files and directories below the directory, relative to it and sorted.
/// The directory itself is the first: its path is empty.
pub(crate) fn sorted_entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let mut next = 0;
    while next < found.len() {
        let path = directory.join(&found[next]);
        if path.is_dir() && !path.is_symlink() {
            let listed = std::fs::read_dir(&path)
                .with_context(|| format!("cannot list {}", path.display()))?;
            for entry in listed {
                let relative = found[next].join(entry?.file_name());
                found.push(relative);
            }
        }
        next += 1;
    }
    found.sort();
    Ok(found)
}

/// Compresses with one thread: the output of several depends on their number.
pub(crate) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut xz = Command::new("xz")
        .args(["-9", "--extreme", "--threads=1", "--stdout"])
        .env_remove("XZ_OPT")
        .env_remove("XZ_DEFAULTS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run xz (Debian: apt-get install xz-utils)")?;
    let mut input = xz.stdin.take().context("xz has no standard input")?;
    // A thread of its own: xz writes before it has read everything.
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.write_all(bytes));
        let output = xz.wait_with_output();
        (writer.join(), output)
    });
    let output = written.1?;
    if !output.status.success() || !matches!(written.0, Ok(Ok(()))) {
        bail!("xz failed: {}", output.status);
    }
    Ok(output.stdout)
}

/// Returns the SHA-256 of the bytes in lowercase hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Fills a directory in the given order.
    fn filled(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, name).unwrap();
        }
        directory
    }

    #[test]
    fn tar_of_equal_directories_has_equal_bytes() {
        let first = filled(&["share/a", "bin/x", "share/b"]);
        let second = filled(&["share/b", "share/a", "bin/x"]);
        let [first, second] = [first, second].map(|made| {
            let program = made.path().join("bin/x");
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
            tar_of_directory(made.path(), "iosonde-1", 1_000_000_000).unwrap()
        });
        assert_eq!(first, second);
    }

    #[test]
    fn tar_entries_are_sorted_and_belong_to_root() {
        let made = filled(&["share/a", "bin/x"]);
        let bytes = tar_of_directory(made.path(), "top", 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 7);
            names.push(entry.path().unwrap().display().to_string());
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
        }
        let expected = ["top/", "top/bin/", "top/bin/x", "top/share/", "top/share/a"];
        assert_eq!(names, expected);
    }

    #[test]
    fn sha256_of_nothing_is_the_published_one() {
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
