//! A file served by nbdkit through nbdfuse, with configurable delays and errors and a request log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Scratch;
use crate::mount::{unmount, unmount_lazily};
use crate::requests::Requests;

/// Maximum wait for the end of a server that is unmounted or killed.
const SERVER_EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How the file answers requests, built from nbdkit's filters.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    filters: Vec<&'static str>,
    parameters: Vec<String>,
}

impl Behaviour {
    /// Answers at once.
    #[must_use]
    pub fn plain() -> Behaviour {
        Behaviour::default()
    }

    /// Adds a delay to each read and write.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Behaviour {
        self.filters.push("delay");
        let ms = delay.as_millis();
        self.parameters
            .extend([format!("rdelay={ms}ms"), format!("wdelay={ms}ms")]);
        self
    }

    /// Makes `operation` (nbdkit's `pread`, ...) fail with an errno, at a rate such as `1%`.
    #[must_use]
    pub fn failing(mut self, operation: &str, error: &str, rate: &str) -> Behaviour {
        self.filters.push("error");
        self.parameters.extend([
            format!("error={error}"),
            format!("error-{operation}-rate={rate}"),
        ]);
        self
    }

    /// Makes operations of all kinds fail at this rate.
    #[must_use]
    pub fn broken(mut self, error: &str, rate: &str) -> Behaviour {
        self.filters.push("error");
        self.parameters
            .extend([format!("error={error}"), format!("error-rate={rate}")]);
        self
    }
}

/// The served file. Drop unmounts it, which ends its server. If programs still use the file, drop
/// kills the server, and their I/O fails.
#[derive(Debug)]
pub struct FuseFile {
    path: PathBuf,
    log: PathBuf,
    server: Child,
}

impl FuseFile {
    /// Serves a file of zeros from memory.
    ///
    /// # Panics
    /// Without [`crate::Need::Nbdfuse`], or when the server does not come up.
    #[must_use]
    pub fn serve(
        scratch: &Scratch,
        name: &str,
        size_bytes: u64,
        behaviour: &Behaviour,
    ) -> FuseFile {
        let path = scratch.work().join(name);
        let log = scratch.out().join(format!("{name}.requests"));
        File::create(&path).expect("a file to mount on");
        let mut command = Command::new("nbdfuse");
        command
            .arg(&path)
            .args(["[", "nbdkit", "--exit-with-parent", "--filter=log"]);
        command.args(
            behaviour
                .filters
                .iter()
                .map(|filter| format!("--filter={filter}")),
        );
        command
            .arg("memory")
            .arg(size_bytes.to_string())
            .arg(format!("logfile={}", log.display()));
        command
            .args(&behaviour.parameters)
            .arg("]")
            .stdin(Stdio::null());
        // nbdkit reports each injected error on standard error.
        command.stderr(File::create(log.with_extension("stderr")).expect("a file for messages"));
        let server = command.spawn().expect("nbdfuse starts");
        let file = FuseFile { path, log, server };
        file.wait_until_served(size_bytes);
        file
    }

    fn wait_until_served(&self, size_bytes: u64) {
        // One minute: usually some 10 ms suffice, but not on every machine.
        for _ in 0..6000 {
            if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == size_bytes) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nbdfuse did not serve {}", self.path.display());
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kills the server: every later request to the file fails.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub fn die(&mut self) {
        self.server.kill().expect("a server to kill");
        self.server.wait().expect("a server that ends");
    }

    /// Waits until the server has ended. Returns false after [`SERVER_EXIT_TIMEOUT`].
    fn wait_for_exit(&mut self) -> bool {
        let deadline = Instant::now() + SERVER_EXIT_TIMEOUT;
        while matches!(self.server.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// All requests since the file was created.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests::parse(&fs::read_to_string(&self.log).expect("nbdkit's log"))
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        let is_unmounted = unmount(&self.path);
        if is_unmounted && self.wait_for_exit() {
            return;
        }
        // A test that failed may have left a loop device or a program that uses the file.
        let _ = self.server.kill();
        if !self.wait_for_exit() {
            eprintln!("left behind: process {}", self.server.id());
        }
        if !is_unmounted && !unmount_lazily(&self.path) {
            eprintln!("left behind: {}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require;

    #[test]
    #[ignore = "needs root, nbdkit and nbdfuse"]
    fn drop_of_file_in_use_ends_its_server() {
        require!(Root, Nbdfuse);
        let scratch = Scratch::shared();
        let file = FuseFile::serve(&scratch, "used", 1 << 20, &Behaviour::plain());
        let (path, server) = (file.path().to_owned(), file.server.id());
        let used = File::open(&path).expect("the served file");
        drop(file);
        let process = format!("/proc/{server}");
        assert!(!Path::new(&process).exists(), "{process}");
        let below = fs::metadata(&path).expect("the file below the mount");
        assert_eq!(below.len(), 0);
        drop(used);
    }
}
