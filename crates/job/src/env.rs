//! What parsing asks of the world around it, as a trait, so that it stays pure.

use std::collections::BTreeMap;
use std::io;

/// The world: variables, files, and facts about the machine.
pub trait Env {
    /// An environment variable.
    fn var(&self, name: &str) -> Option<String>;
    /// The contents of a job file or include file. One of more bytes than people write is an error.
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>>;
    /// The first bytes of a file, `most` of them or fewer. It may have no end, as /dev/urandom.
    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>>;
    /// All of standard input, for the job file `-`.
    fn read_stdin(&self) -> io::Result<Vec<u8>>;
    /// Whether the path is a block or character device: a job named after one works on it.
    fn is_device(&self, path: &str) -> bool;
    /// Bytes in a page of memory.
    fn page_size(&self) -> u64;
    /// CPUs that are online.
    fn cpus(&self) -> u64;
    /// Memory of the machine in MiB.
    fn memory_mib(&self) -> u64;
}

/// A world made up for tests and previews.
#[derive(Debug, Clone)]
pub struct FakeEnv {
    /// Environment variables.
    pub vars: BTreeMap<String, String>,
    /// Files by path; `-` is standard input.
    pub files: BTreeMap<String, String>,
    /// Paths that are devices.
    pub devices: Vec<String>,
}

impl FakeEnv {
    /// A world with nothing in it: pages of 4096 bytes, 4 CPUs, 8192 MiB.
    pub fn new() -> Self {
        FakeEnv {
            vars: BTreeMap::new(),
            files: BTreeMap::new(),
            devices: Vec::new(),
        }
    }

    /// Adds a file.
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Adds an environment variable.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// Adds a device.
    pub fn device(mut self, path: &str) -> Self {
        self.devices.push(path.into());
        self
    }
}

impl Default for FakeEnv {
    fn default() -> Self {
        FakeEnv::new()
    }
}

impl Env for FakeEnv {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.read_file(path)?;
        bytes.truncate(most);
        Ok(bytes)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.read_file("-")
    }

    fn is_device(&self, path: &str) -> bool {
        self.devices.iter().any(|device| device == path)
    }

    fn page_size(&self) -> u64 {
        4096
    }

    fn cpus(&self) -> u64 {
        4
    }

    fn memory_mib(&self) -> u64 {
        8192
    }
}
