//! What the programs read: made before the first run, gone after the last, however that comes about.

use anyhow::{Context, Result, ensure};
use nix::libc;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A memory file system that every Linux has.
const MEMORY: &str = "/dev/shm";

/// What kind of storage there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No I/O at all: the null engine.
    Null,
    /// A file of holes, with O_DIRECT: the file system and the ring, but no device.
    Sparse,
    /// A written file, with O_DIRECT.
    Written,
    /// A loop device over a file in memory.
    LoopDevice,
    /// A file in memory, with O_DIRECT.
    Memory,
}

impl Kind {
    /// All, in the order in which they are measured.
    pub(super) const ALL: [Kind; 5] = [
        Kind::Null,
        Kind::Sparse,
        Kind::Written,
        Kind::LoopDevice,
        Kind::Memory,
    ];

    /// Its name on the command line and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Sparse => "sparse",
            Kind::Written => "file",
            Kind::LoopDevice => "loop",
            Kind::Memory => "tmpfs",
        }
    }

    /// The kind of this name.
    pub(super) fn named(name: &str) -> Result<Kind, String> {
        let names = Kind::ALL.map(Kind::name).join(", ");
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("the targets are {names}"))
    }
}

/// How a job reaches its target.
#[derive(Debug)]
pub(super) enum Engine {
    Null,
    /// io_uring and O_DIRECT on this file or device.
    IoUring(PathBuf),
}

/// A target that is ready to be read.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) description: String,
    pub(super) size_bytes: u64,
    pub(super) engine: Engine,
    /// Detached before the directory with its file is removed.
    _device: Option<LoopDevice>,
    _directory: Option<TempDir>,
}

/// Why there is no such target here.
#[derive(Debug)]
pub(super) struct Missing(pub(super) String);

impl Place {
    /// Makes a target. Files go into `directory` or into memory.
    pub(super) fn make(
        kind: Kind,
        directory: &Path,
        size_bytes: u64,
    ) -> Result<Result<Place, Missing>> {
        let place = match kind {
            Kind::Null => Place {
                description: "null engine".to_owned(),
                size_bytes,
                engine: Engine::Null,
                _device: None,
                _directory: None,
            },
            Kind::Sparse => Place::in_file(directory, size_bytes, false)?,
            Kind::Written => Place::in_file(directory, size_bytes, true)?,
            Kind::LoopDevice if !nix::unistd::geteuid().is_root() => {
                return Ok(Err(Missing("a loop device needs root".to_owned())));
            }
            Kind::LoopDevice => {
                Place::in_file(Path::new(MEMORY), size_bytes, true)?.behind_loop()?
            }
            Kind::Memory => Place::in_file(Path::new(MEMORY), size_bytes, true)?,
        };
        match &place.engine {
            Engine::IoUring(path) if open_direct(path).is_err() => Ok(Err(Missing(format!(
                "{} refuses O_DIRECT",
                place.description
            )))),
            _ => Ok(Ok(place)),
        }
    }

    fn in_file(parent: &Path, size_bytes: u64, written: bool) -> Result<Place> {
        let directory = tempfile::Builder::new()
            .prefix("iosonde-bench-")
            .tempdir_in(parent)
            .with_context(|| format!("a directory in {}", parent.display()))?;
        let path = directory.path().join("file");
        let mut file = File::create_new(&path)?;
        if written {
            write_noise(&mut file, size_bytes)
                .with_context(|| format!("writing {size_bytes} bytes to {}", path.display()))?;
        } else {
            file.set_len(size_bytes)?;
        }
        let kind = if written { "written" } else { "sparse" };
        Ok(Place {
            description: format!("{kind} file on {}", file_system(parent)),
            size_bytes,
            engine: Engine::IoUring(path),
            _device: None,
            _directory: Some(directory),
        })
    }

    fn behind_loop(self) -> Result<Place> {
        let Engine::IoUring(file) = &self.engine else {
            return Ok(self);
        };
        let device = LoopDevice::attach(file)?;
        Ok(Place {
            description: format!("loop device over a {}", self.description),
            engine: Engine::IoUring(device.path.clone()),
            _device: Some(device),
            ..self
        })
    }
}

/// Fills a file with what does not compress, and flushes it.
fn write_noise(file: &mut File, size_bytes: u64) -> Result<()> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut chunk = vec![0u8; 1 << 20];
    let mut left = size_bytes;
    while left > 0 {
        for word in chunk.chunks_exact_mut(8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            word.copy_from_slice(&random.to_le_bytes());
        }
        let length = left.min(chunk.len() as u64);
        file.write_all(&chunk[..length as usize])?;
        left -= length;
    }
    file.sync_all()?;
    Ok(())
}

fn open_direct(path: &Path) -> std::io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// The type of the file system of a directory, as findmnt(8) names it.
fn file_system(directory: &Path) -> String {
    let output = Command::new("findmnt")
        .args([
            "--noheadings",
            "--first-only",
            "--output",
            "FSTYPE",
            "--target",
        ])
        .arg(directory)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => directory.display().to_string(),
    }
}

/// A read-only loop device, detached when it goes out of scope.
#[derive(Debug)]
struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    fn attach(file: &Path) -> Result<LoopDevice> {
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on", "--read-only"])
            .arg(file)
            .output()
            .context("starting losetup")?;
        ensure!(
            output.status.success(),
            "losetup: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let path = String::from_utf8_lossy(&output.stdout).trim().into();
        Ok(LoopDevice { path })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("left behind: {}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn kinds_are_found_by_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Ok(kind));
        }
        assert!(Kind::named("floppy").unwrap_err().contains("sparse"));
    }

    #[test]
    fn files_are_sparse_or_written_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        for (written, least_blocks) in [(false, 0), (true, 2048)] {
            let place = Place::in_file(directory.path(), 1 << 20, written).unwrap();
            let Engine::IoUring(path) = &place.engine else {
                panic!("a file")
            };
            let found = std::fs::metadata(path).unwrap();
            assert_eq!(found.len(), 1 << 20);
            assert!(found.blocks() >= least_blocks && (written || found.blocks() == 0));
            drop(place);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
