//! The environment of the parser as a trait, so that parsing itself makes no system calls.

use std::collections::BTreeMap;
use std::io;

/// Environment variables, files, and properties of the machine.
pub trait Env {
    /// Returns an environment variable.
    fn var(&self, name: &str) -> Option<String>;
    /// Returns the contents of a job file or include file. A file longer than a plausible job file
    /// is an error.
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Returns up to `most` bytes from the start of a file. The file may be endless, as
    /// /dev/urandom is.
    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>>;
    /// Reads all of standard input, for the job file `-`.
    fn read_stdin(&self) -> io::Result<Vec<u8>>;
    /// Whether the path is a block or character device. A job named after a device uses that
    /// device.
    fn is_device(&self, path: &str) -> bool;
    /// Returns the page size in bytes.
    fn page_size(&self) -> u64;
    /// Returns the number of online CPUs.
    fn cpus(&self) -> u64;
    /// Returns the memory of the machine in MiB.
    fn memory_mib(&self) -> u64;
}

/// A simulated environment for tests and previews.
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
    /// Makes an environment without variables, files and devices: pages of 4096 bytes, 4 CPUs, 8192
    /// MiB.
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
