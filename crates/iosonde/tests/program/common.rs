//! Helpers shared by the tests of the program: a directory with its own history.

// Each test program uses only some helpers.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with a history, removed on drop.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// `name` must be unique among all tests.
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("iosonde-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// Path of a file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The program with these arguments, started in the directory.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonde"));
        command
            .args(words)
            .current_dir(&self.0)
            .env_remove("IOSONDE_STORE")
            .env_remove("IOSONDE_NO_SAVE")
            .env_remove("COLUMNS")
            // Other programs use the disk of this machine, and no test here needs its exact rates.
            .env("IOSONDE_NO_IDLE_WAIT", "1")
            .env("HOME", &self.0)
            .env("XDG_DATA_HOME", self.path("data"));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", error(&output));
        out(&output)
    }

    /// Writes a file in the directory.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Whether a subdirectory is empty or missing.
    pub(crate) fn is_empty(&self, directory: &str) -> bool {
        fs::read_dir(self.path(directory)).map_or(true, |files| files.count() == 0)
    }

    /// Returns the standard output of a command that must end with this status.
    pub(crate) fn text(&self, status: i32, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{words:?}: {}",
            error(&output)
        );
        out(&output)
    }

    /// Path of the history.
    pub(crate) fn store(&self) -> PathBuf {
        self.path("data/iosonde/history.db")
    }

    /// Returns the rows of `list` as CSV.
    pub(crate) fn listed(&self) -> Vec<String> {
        let lines = self.done(&["list", "--format", "csv"]);
        lines.lines().skip(1).map(str::to_owned).collect()
    }

    /// Writes fio's JSON of a job that the number identifies.
    pub(crate) fn fio_json(&self, number: u32) -> PathBuf {
        let path = self.path(&format!("{number}.json"));
        let iops = 1000 + number;
        let text = format!(
            r#"{{"fio version": "fio-3.33", "timestamp_ms": {},
            "jobs": [{{"jobname": "j", "groupid": 0, "elapsed": 10,
            "job options": {{"rw": "read", "filename": "/dev/x"}},
            "read": {{"total_ios": 10000, "iops": {iops}, "bw_bytes": {}, "iops_mean": {iops},
            "iops_stddev": 10.5,
            "iops_samples": 20}}}}]}}"#,
            1_795_000_000_000u64 + u64::from(number) * 1000,
            iops * 4096
        );
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output.
pub(crate) fn out(output: &Output) -> String {
    text(&output.stdout)
}

/// Standard error.
pub(crate) fn error(output: &Output) -> String {
    text(&output.stderr)
}

/// A device with low IOPS, which is fast to simulate.
pub(crate) const NET: &str = "sim:read_us=500,write_us=300,parallel=4,fsync_us=2ms";
/// A slower device.
pub(crate) const SLOWER: &str = "sim:read_us=900,write_us=300,parallel=4";

/// A suite whose expectations some devices do not meet.
pub(crate) const SUITE: &str = r#"
about = "a small suite"
[variables]
runtime = 8
[labels]
team = "db"
[[workload]]
name = "disk"
options = { size = "1g", bs = "4k", direct = 1, time_based = true, runtime = "${runtime}" }
axes = { rw = ["randread", "randwrite"], iodepth = [1, 8] }
expect = ["disk-randread-8.iops >= 5k", "max_iops >= 1M", "disk-randread-1.p99 <= 1ms"]
[[workload]]
name = "log"
options = { rw = "write", bs = "8k", size = "16m", fdatasync = 1 }
expect = ["sync.p99 <= 10ms", "log.sync.p99.9 <= 10ms"]
"#;

/// A job of one second on a simulated device.
pub(crate) const JOB: [&str; 9] = [
    "fio",
    "--name=j",
    "--ioengine=sim",
    "--sim=parallel=1,read_us=10ms",
    "--rw=randread",
    "--size=1m",
    "--runtime=8",
    "--time_based",
    "--output-format=json",
];

/// Result of SQLite's integrity check.
pub(crate) fn integrity(store: &Path) -> String {
    let connection = rusqlite::Connection::open(store).unwrap();
    let check = "PRAGMA integrity_check";
    connection.query_row(check, [], |row| row.get(0)).unwrap()
}
