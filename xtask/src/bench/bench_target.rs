//! Targets of the benchmark: created before the first run, and removed when dropped.

use super::xorshift::next_xorshift;
use anyhow::{Context, Result, ensure};
use nix::libc;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A tmpfs that every Linux has.
const MEMORY: &str = "/dev/shm";

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchTargetKind {
    /// The null engine: no I/O.
    Null,
    /// A sparse file with O_DIRECT: measures the file system and the ring without a device.
    Sparse,
    /// A written file with O_DIRECT.
    Written,
    /// A loop device over a file on tmpfs.
    LoopDevice,
    /// A file on tmpfs with O_DIRECT.
    Memory,
}

impl BenchTargetKind {
    /// All kinds in the order of measurement.
    pub(super) const ALL: [BenchTargetKind; 5] = [
        BenchTargetKind::Null,
        BenchTargetKind::Sparse,
        BenchTargetKind::Written,
        BenchTargetKind::LoopDevice,
        BenchTargetKind::Memory,
    ];

    /// Name of the kind on the command line and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            BenchTargetKind::Null => "null",
            BenchTargetKind::Sparse => "sparse",
            BenchTargetKind::Written => "file",
            BenchTargetKind::LoopDevice => "loop",
            BenchTargetKind::Memory => "tmpfs",
        }
    }

    /// Finds the kind with a name.
    pub(super) fn named(name: &str) -> Result<BenchTargetKind, String> {
        let names = BenchTargetKind::ALL.map(BenchTargetKind::name).join(", ");
        let found = BenchTargetKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("the targets are {names}"))
    }
}

/// I/O engine of the job.
#[derive(Debug)]
pub(super) enum BenchEngine {
    Null,
    /// io_uring with O_DIRECT on this file or device.
    IoUring(PathBuf),
}

/// A prepared target.
#[derive(Debug)]
pub(super) struct BenchTarget {
    pub(super) description: String,
    pub(super) size_bytes: u64,
    pub(super) engine: BenchEngine,
    /// Detached before the directory with its file is removed.
    _device: Option<LoopDevice>,
    _directory: Option<TempDir>,
}

/// Reason why this machine cannot have the target.
#[derive(Debug)]
pub(super) struct Missing(pub(super) String);

impl BenchTarget {
    /// Creates a target. Its file is in `directory` or on tmpfs.
    pub(super) fn make(
        kind: BenchTargetKind,
        directory: &Path,
        size_bytes: u64,
    ) -> Result<Result<BenchTarget, Missing>> {
        let target = match kind {
            BenchTargetKind::Null => BenchTarget {
                description: "null engine".to_owned(),
                size_bytes,
                engine: BenchEngine::Null,
                _device: None,
                _directory: None,
            },
            BenchTargetKind::Sparse => BenchTarget::in_file(directory, size_bytes, false)?,
            BenchTargetKind::Written => BenchTarget::in_file(directory, size_bytes, true)?,
            BenchTargetKind::LoopDevice if !nix::unistd::geteuid().is_root() => {
                return Ok(Err(Missing("a loop device needs root".to_owned())));
            }
            BenchTargetKind::LoopDevice => {
                let file = BenchTarget::in_file(Path::new(MEMORY), size_bytes, true)?;
                file.behind_loop(LoopAccess::ReadOnly)?
            }
            BenchTargetKind::Memory => BenchTarget::in_file(Path::new(MEMORY), size_bytes, true)?,
        };
        match &target.engine {
            BenchEngine::IoUring(path) if open_direct(path).is_err() => Ok(Err(Missing(format!(
                "{} refuses O_DIRECT",
                target.description
            )))),
            _ => Ok(Ok(target)),
        }
    }

    /// Creates a loop device over a file on tmpfs, which jobs may write.
    pub(super) fn writable_loop(size_bytes: u64) -> Result<Result<BenchTarget, Missing>> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(Err(Missing("a loop device needs root".to_owned())));
        }
        let file = BenchTarget::in_file(Path::new(MEMORY), size_bytes, true)?;
        file.behind_loop(LoopAccess::Writable).map(Ok)
    }

    /// A file or device that exists, and that remains.
    pub(super) fn existing(path: &Path, size_bytes: u64) -> BenchTarget {
        BenchTarget {
            description: path.display().to_string(),
            size_bytes,
            engine: BenchEngine::IoUring(path.to_owned()),
            _device: None,
            _directory: None,
        }
    }

    fn in_file(parent: &Path, size_bytes: u64, written: bool) -> Result<BenchTarget> {
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
        Ok(BenchTarget {
            description: format!("{kind} file on {}", file_system(parent)),
            size_bytes,
            engine: BenchEngine::IoUring(path),
            _device: None,
            _directory: Some(directory),
        })
    }

    fn behind_loop(self, access: LoopAccess) -> Result<BenchTarget> {
        let BenchEngine::IoUring(file) = &self.engine else {
            return Ok(self);
        };
        let device = LoopDevice::attach(file, access)?;
        Ok(BenchTarget {
            description: format!("loop device over a {}", self.description),
            engine: BenchEngine::IoUring(device.path.clone()),
            _device: Some(device),
            ..self
        })
    }
}

/// Fills a file with incompressible data and syncs it.
fn write_noise(file: &mut File, size_bytes: u64) -> Result<()> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut chunk = vec![0u8; 1 << 20];
    let mut left = size_bytes;
    while left > 0 {
        for word in chunk.chunks_exact_mut(8) {
            random = next_xorshift(random);
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

/// File system type of a directory, as findmnt(8) names it.
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

/// Whether jobs may write a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopAccess {
    ReadOnly,
    Writable,
}

/// A loop device, detached when dropped.
#[derive(Debug)]
struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    fn attach(file: &Path, access: LoopAccess) -> Result<LoopDevice> {
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .args((access == LoopAccess::ReadOnly).then_some("--read-only"))
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
        for kind in BenchTargetKind::ALL {
            assert_eq!(BenchTargetKind::named(kind.name()), Ok(kind));
        }
        assert!(
            BenchTargetKind::named("floppy")
                .unwrap_err()
                .contains("sparse")
        );
    }

    #[test]
    fn files_are_sparse_or_written_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        for (written, least_blocks) in [(false, 0), (true, 2048)] {
            let target = BenchTarget::in_file(directory.path(), 1 << 20, written).unwrap();
            let BenchEngine::IoUring(path) = &target.engine else {
                panic!("a file")
            };
            let found = std::fs::metadata(path).unwrap();
            assert_eq!(found.len(), 1 << 20);
            assert!(found.blocks() >= least_blocks && (written || found.blocks() == 0));
            drop(target);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
