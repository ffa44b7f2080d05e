//! The programs that are compared. Each run is a process of its own, started in the same way, with the same job.

use super::bare;
use super::cpu::CpuTime;
use super::place::{Engine, Place};
use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::UsageWho;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// I/Os in flight, for all programs.
const DEPTH: u32 = 64;
/// Size of a batch, where the comparison is about batches.
const BATCH: u32 = 16;

/// A program, and how it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Program {
    /// fio, without batch options.
    Fio,
    /// iosonde with the same job.
    Iosonde,
    /// iosonde with batches, and with its files and buffers registered.
    IosondeInBatches,
    /// The bare loop with the same batches, file and buffers.
    BareLoop,
}

impl Program {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Fio => "fio",
            Program::Iosonde => "iosonde",
            Program::IosondeInBatches => "iosonde, batches of 16",
            Program::BareLoop => "bare loop, batches of 16",
        }
    }
}

/// What one run showed.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Sample {
    pub(super) iops: f64,
    /// Of the job, for each I/O: what the program says of itself.
    pub(super) per_io: CpuTime,
    /// Of the whole process, start and end included, for each I/O: what the kernel says of it.
    pub(super) process_per_io: CpuTime,
}

/// Where the programs are, and how long they run.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) fio: PathBuf,
    pub(super) iosonde: PathBuf,
    pub(super) length: Duration,
}

impl Runs {
    /// Runs a program once, on a target.
    pub(super) fn run(&self, program: Program, place: &Place) -> Result<Sample> {
        let report = tempfile::NamedTempFile::new().context("a file for the report")?;
        let mut command = match program {
            Program::Fio => Command::new(&self.fio),
            Program::Iosonde | Program::IosondeInBatches => {
                let mut command = Command::new(&self.iosonde);
                // Keeping results is no part of the cost that is measured.
                command.env("IOSONDE_NO_SAVE", "1");
                command.arg("fio");
                command
            }
            Program::BareLoop => return self.run_bare(place),
        };
        command.args(self.job(place, report.path()));
        if program == Program::IosondeInBatches {
            command.arg(format!("--iodepth_batch_submit={BATCH}"));
            command.args(["--registerfiles", "--fixedbufs"]);
        }
        let (_, used) = run_alone(&mut command)?;
        let text = std::fs::read_to_string(report.path()).context("reading the report")?;
        sample_of_report(&text, used).with_context(|| format!("the report of {command:?}"))
    }

    /// The job, in words that both programs understand.
    fn job(&self, place: &Place, report: &Path) -> Vec<String> {
        let mut words = vec![
            "--name=bench".to_owned(),
            "--rw=randread".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={DEPTH}"),
            format!("--size={}", place.size_bytes),
            "--time_based".to_owned(),
            format!("--runtime={}ms", self.length.as_millis()),
            "--output-format=json".to_owned(),
            format!("--output={}", report.display()),
            "--eta=never".to_owned(),
        ];
        match &place.engine {
            Engine::Null => words.push("--ioengine=null".to_owned()),
            Engine::IoUring(path) => words.extend([
                "--ioengine=io_uring".to_owned(),
                "--direct=1".to_owned(),
                format!("--filename={}", path.display()),
            ]),
        }
        words
    }

    fn run_bare(&self, place: &Place) -> Result<Sample> {
        let Engine::IoUring(path) = &place.engine else {
            bail!("the bare loop needs a file")
        };
        let this = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(this);
        command.args(["bare-loop", "--file"]).arg(path);
        command.arg(format!("--size-bytes={}", place.size_bytes));
        command.arg(format!("--milliseconds={}", self.length.as_millis()));
        command.arg(format!("--depth={DEPTH}"));
        command.arg(format!("--batch={BATCH}"));
        let (output, used) = run_alone(&mut command)?;
        let outcome: bare::Outcome =
            serde_json::from_str(&output).context("the bare loop's outcome")?;
        ensure!(outcome.ios > 0, "the bare loop did no I/O");
        let ios = outcome.ios as f64;
        Ok(Sample {
            iops: ios / (outcome.elapsed_ns as f64 / 1e9),
            per_io: outcome.cpu.per(ios),
            process_per_io: used.per(ios),
        })
    }
}

/// Runs a command to its end: what it printed, and the processor time of its process. Nothing else is waited for meanwhile,
/// so that the time of all children grows by this one's alone.
pub(super) fn run_alone(command: &mut Command) -> Result<(String, CpuTime)> {
    let before = CpuTime::of(UsageWho::RUSAGE_CHILDREN)?;
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let used = CpuTime::of(UsageWho::RUSAGE_CHILDREN)? - before;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), used))
}

/// Reads fio's JSON, whoever wrote it. fio puts its messages before it.
fn sample_of_report(text: &str, used: CpuTime) -> Result<Sample> {
    let start = text.find("{\n").context("there is no JSON")?;
    let report: Value = serde_json::from_str(&text[start..])?;
    let job = &report["jobs"][0];
    let number = |value: &Value, name: &str| {
        value[name]
            .as_f64()
            .with_context(|| format!("there is no number {name}"))
    };
    ensure!(number(job, "error")? == 0.0, "the job failed");
    let ios = number(&job["read"], "total_ios")?;
    ensure!(ios > 0.0, "the job did no I/O");
    // Per cent of milliseconds, in microseconds.
    let unit_us = number(job, "job_runtime")? * 1e3 / 100.0;
    let cpu = CpuTime {
        user_us: number(job, "usr_cpu")? * unit_us,
        system_us: number(job, "sys_cpu")? * unit_us,
    };
    Ok(Sample {
        iops: number(&job["read"], "iops")?,
        per_io: cpu.per(ios),
        process_per_io: used.per(ios),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"note: something fio had to say
{
  "jobs": [{ "error": 0, "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 40.0,
             "read": { "total_ios": 100000, "iops": 50000.5 } }]
}"#;

    #[test]
    fn a_report_gives_processor_time_for_each_io() {
        let sample = sample_of_report(
            REPORT,
            CpuTime {
                user_us: 300_000.0,
                system_us: 900_000.0,
            },
        )
        .unwrap();
        assert_eq!(sample.iops, 50000.5);
        assert!((sample.per_io.user_us - 2.0).abs() < 1e-9);
        assert!((sample.per_io.system_us - 8.0).abs() < 1e-9);
        assert!((sample.process_per_io.user_us - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_failed_or_idle_job_is_no_sample() {
        for (good, bad) in [
            ("\"error\": 0", "\"error\": 5"),
            ("100000", "0"),
            ("usr_cpu", "cpu"),
        ] {
            let report = REPORT.replace(good, bad);
            assert!(
                sample_of_report(&report, CpuTime::default()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo broken >&2; exit 3"]);
        let error = run_alone(&mut command).unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains('3'), "{error}");
    }
}
