//! The temporary file for older intervals of a long run. Memory holds only the latest ones.

use iosonde_result::spill_list::BlockFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// An unnamed file, created with its first block. The kernel removes it when the program ends.
#[derive(Debug, Default)]
pub struct SpillFile(Mutex<Option<Spilled>>);

#[derive(Debug)]
struct Spilled {
    file: File,
    bytes: u64,
}

impl BlockFile for SpillFile {
    fn append(&self, block: &[u8]) -> io::Result<u64> {
        let mut spilled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spilled = match &mut *spilled {
            Some(spilled) => spilled,
            none => none.insert(Spilled {
                file: create(directories())?,
                bytes: 0,
            }),
        };
        let offset = spilled.bytes;
        spilled.file.write_all_at(block, offset)?;
        spilled.bytes += block.len() as u64;
        Ok(offset)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let spilled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*spilled {
            Some(spilled) => spilled.file.read_exact_at(bytes, offset),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Candidate directories, best first: `/tmp` is often in memory, `/var/tmp` is not. A pod with a
/// read-only root file system has only the directory of the program.
fn directories() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let program = program.and_then(|path| Some(path.parent()?.to_owned()));
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
    named.into_iter().chain(usual).chain(program).collect()
}

fn create(directories: Vec<PathBuf>) -> io::Result<File> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for directory in directories {
        match tempfile::tempfile_in(directory) {
            Ok(file) => return Ok(file),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_file_returns_appended_blocks() {
        let spill = SpillFile::default();
        assert!(spill.read(0, &mut [0]).is_err());
        assert_eq!(spill.append(b"one").unwrap(), 0);
        assert_eq!(spill.append(b"three").unwrap(), 3);
        let mut read = [0; 5];
        spill.read(3, &mut read).unwrap();
        assert_eq!(&read, b"three");
        assert!(spill.read(4, &mut read).is_err());
    }

    #[test]
    fn spill_file_uses_the_first_writable_directory() {
        let none = PathBuf::from("/nonexistent");
        assert!(create(vec![none.clone()]).is_err());
        assert!(create(vec![none, std::env::temp_dir()]).is_ok());
    }
}
