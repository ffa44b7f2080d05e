//! The machine's answers to queries of job files.

use crate::bounded_read::{self, TEXT_BYTES_MAX};
use crate::{host::describe_host, proc_root::System};
use iosonde_job::Env;
use iosonde_result::host::Host;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::sync::OnceLock;

/// This machine.
#[derive(Debug, Default)]
pub struct SystemEnv {
    host: OnceLock<Host>,
}

impl SystemEnv {
    fn host(&self) -> &Host {
        self.host.get_or_init(|| describe_host(&System::live()))
    }
}

impl Env for SystemEnv {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        bounded_read::read_file(path, TEXT_BYTES_MAX)
    }

    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(most as u64)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        bounded_read::standard_input(TEXT_BYTES_MAX)
    }

    fn is_device(&self, path: &str) -> bool {
        std::fs::metadata(path).is_ok_and(|facts| {
            let kind = facts.file_type();
            kind.is_block_device() || kind.is_char_device()
        })
    }

    fn page_size(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn cpus(&self) -> u64 {
        self.host().cpu.online.map_or(1, u64::from)
    }

    fn memory_mib(&self) -> u64 {
        self.host().memory_bytes.unwrap_or(0) >> 20
    }
}
