//! A file served by nbdkit through nbdfuse: it can be slow or broken in a known way, and it logs each request.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Scratch;
use crate::mount::unmount;
use crate::requests::Requests;

/// What the file does to requests; made of nbdkit's filters.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    filters: Vec<&'static str>,
    parameters: Vec<String>,
}

impl Behaviour {
    /// A file that answers at once.
    #[must_use]
    pub fn plain() -> Behaviour {
        Behaviour::default()
    }

    /// Each read and write takes this much longer.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Behaviour {
        self.filters.push("delay");
        let ms = delay.as_millis();
        self.parameters
            .extend([format!("rdelay={ms}ms"), format!("wdelay={ms}ms")]);
        self
    }

    /// Some operations fail. `operation` is nbdkit's name for it (`pread`, `pwrite`, ...), `error` an errno, `rate` as in `1%`.
    #[must_use]
    pub fn failing(mut self, operation: &str, error: &str, rate: &str) -> Behaviour {
        self.filters.push("error");
        self.parameters.extend([
            format!("error={error}"),
            format!("error-{operation}-rate={rate}"),
        ]);
        self
    }

    /// Operations of all kinds fail, at this rate.
    #[must_use]
    pub fn broken(mut self, error: &str, rate: &str) -> Behaviour {
        self.filters.push("error");
        self.parameters
            .extend([format!("error={error}"), format!("error-rate={rate}")]);
        self
    }
}

/// The file. It is unmounted at the end, which ends its server.
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
        // nbdkit reports each error that it was told to inject.
        command.stderr(File::create(log.with_extension("stderr")).expect("a file for messages"));
        let server = command.spawn().expect("nbdfuse starts");
        let file = FuseFile { path, log, server };
        file.wait_until_served(size_bytes);
        file
    }

    fn wait_until_served(&self, size_bytes: u64) {
        // A minute: it takes a few hundredths of a second, but not on every machine.
        for _ in 0..6000 {
            if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == size_bytes) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nbdfuse did not serve {}", self.path.display());
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its server is killed: whatever is asked of the file from now on fails.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn die(&mut self) {
        self.server.kill().expect("a server to kill");
        self.server.wait().expect("a server that ends");
    }

    /// All requests since the file was made.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests::parse(&fs::read_to_string(&self.log).expect("nbdkit's log"))
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        unmount(&self.path);
        let _ = self.server.wait();
    }
}
